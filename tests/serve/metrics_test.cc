// What Prometheus reads.
#include "serve/metrics.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace regard::serve {
namespace {

bool has(const std::string& text, std::string_view line) {
  return ("\n" + text).find("\n" + std::string(line) + "\n") != std::string::npos;
}

TEST(Metrics, CountsByPathAndStatus) {
  Metrics metrics;
  metrics.count("/translate", 200, 0.002);
  metrics.count("/translate", 200, 20);
  metrics.count("/translate", 503, 0);
  metrics.count("/score", 200, 0.5);
  const std::string text = metrics.text({{"regard_waiting", "requests that wait", 3, false}});
  EXPECT_TRUE(has(text, "regard_requests_total{path=\"/translate\",status=\"200\"} 2")) << text;
  EXPECT_TRUE(has(text, "regard_requests_total{path=\"/translate\",status=\"503\"} 1"));
  EXPECT_TRUE(has(text, "regard_request_seconds_bucket{path=\"/translate\",le=\"0.001\"} 1"));
  EXPECT_TRUE(has(text, "regard_request_seconds_bucket{path=\"/translate\",le=\"0.0025\"} 2"));
  EXPECT_TRUE(has(text, "regard_request_seconds_bucket{path=\"/translate\",le=\"10\"} 2"));
  EXPECT_TRUE(has(text, "regard_request_seconds_bucket{path=\"/translate\",le=\"+Inf\"} 3"));
  EXPECT_TRUE(has(text, "regard_request_seconds_count{path=\"/score\"} 1"));
  EXPECT_TRUE(has(text, "# TYPE regard_waiting gauge"));
  EXPECT_TRUE(has(text, "regard_waiting 3"));
}

TEST(Metrics, ManyThreadsMayCount) {
  Metrics metrics;
  {
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 250; ++k) metrics.count("/health", 200, 0.1);
      });
    }
  }
  EXPECT_TRUE(has(metrics.text({}), "regard_requests_total{path=\"/health\",status=\"200\"} 1000"));
}

}  // namespace
}  // namespace regard::serve
