#include "serve/metrics.h"

#include <fmt/format.h>

#include <iterator>

namespace regard::serve {

void Metrics::count(std::string_view path, int status, double seconds) {
  const std::lock_guard guard(lock_);
  ++requests_[{std::string(path), status}];
  Times& times = times_[std::string(path)];
  std::size_t bound = 0;
  while (bound < kBounds.size() && seconds > kBounds[bound]) ++bound;
  ++times.within[bound];
  ++times.count;
  times.sum += seconds;
}

std::string Metrics::text(const std::vector<Value>& values) const {
  std::string out;
  const auto line = [&out]<class... Parts>(fmt::format_string<Parts...> format, Parts&&... parts) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Parts>(parts)...);
    out += '\n';
  };
  for (const Value& each : values) {
    line("# HELP {} {}", each.name, each.help);
    line("# TYPE {} {}", each.name, each.counter ? "counter" : "gauge");
    line("{} {}", each.name, each.value);
  }
  const std::lock_guard guard(lock_);
  line("# HELP regard_requests_total answers, by path and status");
  line("# TYPE regard_requests_total counter");
  for (const auto& [key, count] : requests_) {
    line("regard_requests_total{{path=\"{}\",status=\"{}\"}} {}", key.first, key.second, count);
  }
  line("# HELP regard_request_seconds from the last byte of a request to its answer");
  line("# TYPE regard_request_seconds histogram");
  for (const auto& [path, times] : times_) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kBounds.size(); ++i) {
      sum += times.within[i];
      line("regard_request_seconds_bucket{{path=\"{}\",le=\"{}\"}} {}", path, kBounds[i], sum);
    }
    line("regard_request_seconds_bucket{{path=\"{}\",le=\"+Inf\"}} {}", path, times.count);
    line("regard_request_seconds_sum{{path=\"{}\"}} {}", path, times.sum);
    line("regard_request_seconds_count{{path=\"{}\"}} {}", path, times.count);
  }
  return out;
}

}  // namespace regard::serve
