// How often a text has a part.
#pragma once

#include <cstddef>
#include <string_view>

namespace regard {

inline std::size_t occurrences(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++found;
  return found;
}

}  // namespace regard
