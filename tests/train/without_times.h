// The diary of a run without what depends on the clock.
#pragma once

#include <string>
#include <string_view>

namespace regard {

inline std::string without_times(std::string metrics) {  // (no std::regex: g++ warns inside of it when it sanitizes)
  for (const std::string_view key : {"\"seconds\":", "\"tokens_per_second\":"}) {
    for (std::size_t at = 0; (at = metrics.find(key, at)) != std::string::npos;) {
      at += key.size();
      const std::size_t end = metrics.find_first_not_of(" 0123456789.", at);
      metrics.erase(at, (end == std::string::npos ? metrics.size() : end) - at);
    }
  }
  return metrics;
}

}  // namespace regard
