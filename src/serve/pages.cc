#include "serve/pages.h"

#include <algorithm>
#include <array>

namespace regard::serve {
namespace {

constexpr std::array<Page, 1> kPages = {
    {{"/robots.txt", "text/plain; charset=utf-8", "User-agent: *\nDisallow: /\n"}},
};

}  // namespace

const Page* find_page(std::string_view path) {
  const auto* found = std::find_if(kPages.begin(), kPages.end(), [&](const Page& each) { return each.path == path; });
  return found == kPages.end() ? nullptr : found;
}

}  // namespace regard::serve
