#include "serve/pages.h"

#include <algorithm>

#include "serve/page_files.h"

namespace regard::serve {
namespace {

constexpr Page kRobots = {"/robots.txt", "text/plain; charset=utf-8", "User-agent: *\nDisallow: /\n"};

}  // namespace

const Page* find_page(std::string_view path) {
  if (path == kRobots.path) return &kRobots;
  const std::span<const Page> all = page_files();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Page& each) { return each.path == path; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace regard::serve
