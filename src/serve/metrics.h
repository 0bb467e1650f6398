// What the server counts, as Prometheus reads it.
//
//     metrics.count("/translate", 200, 0.012);
//     metrics.text({{"regard_queue_length", "requests that wait", 3}})
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace regard::serve {

class Metrics {
 public:
  // Paths come from the server's own list, so there are never more than a few.
  void count(std::string_view path, int status, double seconds);

  struct Value {
    std::string_view name, help;
    double value = 0;
    bool counter = false;  // it only grows
  };
  std::string text(const std::vector<Value>& values) const;

 private:
  static constexpr std::array<double, 12> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                     0.1,   0.25,   0.5,   1,    2.5,   10};
  struct Times {
    std::array<std::uint64_t, kBounds.size() + 1> within = {};  // the last: longer than all bounds
    std::uint64_t count = 0;
    double sum = 0;
  };
  mutable std::mutex lock_;
  std::map<std::pair<std::string, int>, std::uint64_t> requests_;
  std::map<std::string, Times, std::less<>> times_;
};

}  // namespace regard::serve
