// Files that are built into the program and given to browsers as they are. There are no others: a path that a client
// names is looked up here, never on a disk.
#pragma once

#include <string_view>

namespace regard::serve {

struct Page {
  std::string_view path;  // "/", "/map.js"
  std::string_view type;  // "text/html; charset=utf-8"
  std::string_view body;
};

const Page* find_page(std::string_view path);  // null: there is none

// What a page may do: load what this server has, nothing else, no script within HTML.
constexpr std::string_view kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

}  // namespace regard::serve
