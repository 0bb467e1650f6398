#include "base/pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/float_mode.h"

namespace regard {
namespace {

std::vector<int> count_visits(std::size_t items) {
  std::vector<std::atomic<int>> visits(items);
  parallel(items, [&](std::size_t item) { ++visits[item]; });
  return {visits.begin(), visits.end()};
}

TEST(Pool, RunsEveryItemExactlyOnce) {
  for (int limit : {1, 2, 3, 8}) {
    const ThreadLimit scope(limit);
    for (std::size_t items : {0u, 1u, 2u, 7u, 1000u})
      EXPECT_EQ(count_visits(items), std::vector<int>(items, 1)) << limit << " threads";
  }
}

TEST(Pool, RunsManyShortRounds) {
  const ThreadLimit scope(4);
  std::atomic<long> sum{0};
  for (int round = 0; round < 20000; ++round) parallel(5, [&](std::size_t item) { sum += static_cast<long>(item); });
  EXPECT_EQ(sum.load(), 20000L * 10);
}

TEST(Pool, WorkerNumbersAreBelowTheThreadCount) {
  const ThreadLimit scope(3);
  std::atomic<int> highest{0};
  parallel(1000, [&](std::size_t, int worker) {
    int seen = highest;
    while (worker > seen && !highest.compare_exchange_weak(seen, worker)) {
    }
  });
  EXPECT_LT(highest.load(), 3);
}

TEST(Pool, NestedCallsRunInline) {
  const ThreadLimit scope(4);
  std::atomic<int> inner{0};
  parallel(8, [&](std::size_t) { parallel(8, [&](std::size_t) { ++inner; }); });
  EXPECT_EQ(inner.load(), 64);
}

TEST(Pool, ThrowsWhatTheLowestItemThrew) {
  const ThreadLimit scope(4);
  for (int round = 0; round < 100; ++round) {
    try {
      parallel(64, [](std::size_t item) {
        if (item % 7 == 3) throw std::runtime_error(std::to_string(item));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "3");
    }
  }
  EXPECT_EQ(count_visits(16), std::vector<int>(16, 1)) << "the pool works after a failure";
}

TEST(Pool, ServesSeveralCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<long> sum{0};
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      const ThreadLimit scope(3);
      for (int round = 0; round < 2000; ++round)
        parallel(10, [&](std::size_t item) { sum += static_cast<long>(item); });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum.load(), 4L * 2000 * 45);
}

TEST(Pool, WorksInAForkedChild) {
  const ThreadLimit scope(4);
  count_visits(100);
  const pid_t child = fork();
  if (child == 0) _exit(count_visits(100) == std::vector<int>(100, 1) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Pool, LeavesTheCallersFloatModeAlone) {
  const std::uint64_t before = float_mode();
  std::atomic<bool> computing{true};
  parallel(64, [&](std::size_t) {
    if (float_mode() != kComputeMode) computing = false;
  });
  EXPECT_TRUE(computing);
  EXPECT_EQ(float_mode(), before);
}

TEST(ThreadLimit, NestsAndRestores) {
  const int outside = threads();
  {
    const ThreadLimit one(1);
    EXPECT_EQ(threads(), 1);
    {
      const ThreadLimit three(3);
      EXPECT_EQ(threads(), 3);
    }
    EXPECT_EQ(threads(), 1);
  }
  EXPECT_EQ(threads(), outside);
}

}  // namespace
}  // namespace regard
