// Text for tables and for JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/json.h"

namespace regard::cli {

inline std::size_t letters(std::string_view text) {  // in UTF-8
  std::size_t count = 0;
  for (const char byte : text) count += (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
  return count;
}

inline std::string padded(std::string_view text, std::size_t width) {
  const std::size_t length = letters(text);
  return std::string(text) + std::string(length < width ? width - length : 0, ' ');
}

inline std::string with_commas(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t place = digits.size(); place > 3;) digits.insert(place -= 3, 1, ',');
  return digits;
}

inline std::string json_text(std::string_view text) { return json_quote(text); }

}  // namespace regard::cli
