// The reference run: the same bits on every target, thread count, batch and padding, and under signals.
#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>

#include "base/check.h"
#include "base/pool.h"
#include "kernels/target.h"
#include "verify/checks.h"
#include "verify/reference_run.h"

namespace regard::verify {
namespace {

// What a training run gives on a processor with AVX2 or AVX-512, with g++ and with clang. It changes when the
// arithmetic of an operation changes: then results, and every trained model, change for every user, and the release
// notes say so.
constexpr const char* kExpected = "43b423040f9c612c00019ff212860d33";

bool fused(const std::string& target) { return target == "avx512" || target == "avx2"; }

TEST(ReferenceRun, HasTheBitsItAlwaysHad) {
  for (const std::string& name : targets()) {
    if (!fused(name)) continue;
    const TargetScope scope(name);
    EXPECT_EQ(reference_hash(), kExpected) << "on " << name;
  }
}

TEST(ReferenceRun, DoesNotDependOnThreads) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    std::string one;
    for (const int threads : {1, 2, 3, 5}) {
      const ThreadLimit limit(threads);
      const std::string hash = reference_hash();
      if (threads == 1) one = hash;
      EXPECT_EQ(hash, one) << name << ", " << threads << " threads";
    }
  }
}

TEST(ReferenceRun, AnExampleDependsNeitherOnItsNeighboursNorOnPadding) {
  std::map<int, ExampleResult> alone;
  for (int example = 0; example < kExamples; ++example) {
    alone[example] = run_examples({example}, 0).front();
    for (std::int64_t i = 0; i < alone[example].log_probabilities.size(); ++i) {
      EXPECT_LT(alone[example].log_probabilities.data<float>()[i], 0);
    }
  }
  std::vector<int> all(kExamples), backwards;
  std::iota(all.begin(), all.end(), 0);
  backwards.assign(all.rbegin(), all.rend());
  for (const std::string& name : targets()) {
    if (!fused(name)) continue;
    const TargetScope scope(name);
    for (const auto& [examples, padding] :
         {std::pair{all, 0}, std::pair{backwards, 0}, std::pair{all, 1}, std::pair{backwards, 17},
          std::pair{std::vector{3}, 64}, std::pair{std::vector{5, 2}, 0}, std::pair{std::vector{2, 5, 5, 2, 7}, 3}}) {
      for (const ExampleResult& result : run_examples(examples, padding)) {
        const ExampleResult& expected = alone[result.example];
        const auto where = [&, count = examples.size(), columns = padding] {
          return text("example ", result.example, " among ", count, " with ", columns, " columns of padding, ", name);
        };
        EXPECT_TRUE(same_bits(result.log_probabilities, expected.log_probabilities)) << where();
        EXPECT_TRUE(same_bits(result.embedding_gradient, expected.embedding_gradient)) << where();
        EXPECT_TRUE(same_bits(result.weights, expected.weights)) << where();
      }
    }
  }
}

std::atomic<long> signals{0};

TEST(ReferenceRun, SignalsDoNotChangeIt) {
  const std::string quiet = reference_hash();
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) { ++signals; };
  ASSERT_EQ(sigaction(SIGRTMIN, &action, &before), 0);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGRTMIN;
  timer_t timer{};
  ASSERT_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  itimerspec often{};
  often.it_value.tv_nsec = often.it_interval.tv_nsec = 200'000;  // 5 kHz
  ASSERT_EQ(timer_settime(timer, 0, &often, nullptr), 0);
  const ThreadLimit limit(2);
  for (int round = 0; signals < 500 && round < 10000; ++round) EXPECT_EQ(reference_hash(), quiet);
  timer_delete(timer);
  sigaction(SIGRTMIN, &before, nullptr);
  EXPECT_GE(signals.load(), 500);
}

}  // namespace
}  // namespace regard::verify
