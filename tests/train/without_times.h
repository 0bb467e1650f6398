// The diary of a run without what depends on the clock.
#pragma once

#include <regex>
#include <string>

namespace regard {

inline std::string without_times(const std::string& metrics) {
  return std::regex_replace(metrics, std::regex("\"(seconds|tokens_per_second)\": *[0-9.]+"), "\"$1\":");
}

}  // namespace regard
