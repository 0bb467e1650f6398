// What --seed takes: a whole number of 64 bits. CLI11 by itself reads -1 as the largest one, so does everything above
// it, and nothing at all as 0: several seeds would be one.
#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>

#include "base/check.h"

namespace regard::cli {

inline std::string a_seed(const std::string& given) {
  std::uint64_t value = 0;
  const char* end = given.data() + given.size();
  const auto [read, error] = std::from_chars(given.data(), end, value);
  if (error == std::errc() && read == end) return "";
  return text("'", given, "', expected a whole number from 0 to ", std::numeric_limits<std::uint64_t>::max());
}

}  // namespace regard::cli
