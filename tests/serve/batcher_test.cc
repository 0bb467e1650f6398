// Jobs of several clients: who gets which result, how many are taken, who is left out. Tests wait for events, never for
// time to pass: where a job has to be under way, its work says so.
#include "serve/batcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <map>
#include <set>

#include "base/check.h"
#include "support/cases.h"

namespace regard::serve {
namespace {

using End = Batcher::End;
using Outcome = Batcher::Outcome;
using Translations = std::vector<Translator::Translation>;

// A translation that says what it was made of.
Translations echo(const Batcher::Line& like, std::span<const std::string> lines) {
  Translations made;
  for (const std::string& each : lines) {
    made.push_back({{{.text = text(each, "/", like.model, "/", like.beam), .tokens = {}}}});
  }
  return made;
}

struct Asked {
  std::promise<Outcome> promise;
  std::future<Outcome> future = promise.get_future();
};

Batcher::Job job_of(std::vector<Batcher::Line> lines, Asked& asked) {
  return {.lines = std::move(lines),
          .done = [&asked](Outcome outcome) { asked.promise.set_value(std::move(outcome)); }};
}

// Work that waits until it is let go; so that others queue up behind it.
class Gate {
 public:
  Batcher::Job job(Asked& asked, std::stop_token gone = {}) {
    return {.alone =
                [this](const Context& context) {
                  entered_.set_value();
                  const std::stop_callback stop(context.cancel, [this] { open(); });
                  opened_.get_future().wait();
                  stop_if_asked(context);
                },
            .gone = std::move(gone),
            .done = [&asked](Outcome outcome) { asked.promise.set_value(std::move(outcome)); }};
  }
  void wait_until_entered() { entered_.get_future().wait(); }
  void open() {
    if (!opened_already_.exchange(true)) opened_.set_value();
  }

 private:
  std::promise<void> entered_, opened_;
  std::atomic<bool> opened_already_ = false;
};

Limits one_worker() {
  Limits limits;
  limits.workers = 1;
  return limits;
}

TEST(Batcher, EveryJobGetsItsOwnResults) {
  Limits limits;
  limits.workers = 3;
  limits.queue = 1'000'000;
  limits.batch = 7;
  Batcher batcher(limits, [](const Batcher::Line& like, auto lines, const Context&) { return echo(like, lines); });
  const int clients = 8, each = cases(100);
  std::atomic<int> wrong = 0, right = 0;
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(clients));
  std::latch all(static_cast<std::ptrdiff_t>(clients) * each);
  for (int client = 0; client < clients; ++client) {
    threads.emplace_back([&, client] {
      for (int i = 0; i < each; ++i) {
        std::vector<Batcher::Line> lines;
        std::vector<std::string> expected;
        for (int k = 0; k <= i % 3; ++k) {
          const auto model = static_cast<std::size_t>((i + k) % 2);
          lines.push_back({.model = model, .beam = 1 + k, .text = text("line ", client, " ", i, " ", k)});
          expected.push_back(text(lines.back().text, "/", model, "/", 1 + k));
        }
        const bool taken = batcher.add({.lines = lines, .done = [&, expected](Outcome outcome) {
                                          bool good =
                                              outcome.end == End::kDone && outcome.found.size() == expected.size();
                                          for (std::size_t k = 0; good && k < expected.size(); ++k) {
                                            good = outcome.found[k].best.at(0).text == expected[k];
                                          }
                                          ++(good ? right : wrong);
                                          all.count_down();
                                        }});
        EXPECT_TRUE(taken);
      }
    });
  }
  all.wait();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(right, clients * each);
  EXPECT_EQ(batcher.counts().jobs, static_cast<std::uint64_t>(clients) * static_cast<std::uint64_t>(each));
}

TEST(Batcher, WhatWaitsIsComputedTogether) {
  Gate gate;
  Asked held;
  std::vector<Asked> asked(10);
  std::vector<std::size_t> sizes;
  Batcher batcher(one_worker(), [&](const Batcher::Line& like, auto lines, const Context&) {
    sizes.push_back(lines.size());
    return echo(like, lines);
  });
  ASSERT_TRUE(batcher.add(gate.job(held)));
  gate.wait_until_entered();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    ASSERT_TRUE(batcher.add(job_of({{.text = std::to_string(i)}}, asked[i])));
  }
  gate.open();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(asked[i].future.get().found.at(0).best.at(0).text, text(i, "/0/5"));
  }
  EXPECT_EQ(sizes, std::vector<std::size_t>{10});
}

TEST(Batcher, TheQueueIsBounded) {
  Gate gate;
  Asked held;
  std::vector<Asked> asked(4);
  Limits limits = one_worker();
  limits.queue = 3;
  Batcher batcher(limits, [](const Batcher::Line& like, auto lines, const Context&) { return echo(like, lines); });
  ASSERT_TRUE(batcher.add(gate.job(held)));
  gate.wait_until_entered();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(batcher.add(job_of({{.text = "a"}}, asked[i])));
  EXPECT_FALSE(batcher.add(job_of({{.text = "a"}}, asked[3])));
  EXPECT_EQ(batcher.counts().waiting, 3);
  gate.open();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(asked[i].future.get().end, End::kDone);
}

TEST(Batcher, WhoIsLateOrGoneIsNotComputed) {
  Gate gate;
  Asked held, late, gone, good;
  std::stop_source leaves;
  std::atomic<int> lines_seen = 0;
  Batcher batcher(one_worker(), [&](const Batcher::Line& like, auto lines, const Context&) {
    lines_seen += static_cast<int>(lines.size());
    return echo(like, lines);
  });
  ASSERT_TRUE(batcher.add(gate.job(held)));
  gate.wait_until_entered();
  Batcher::Job job = job_of({{.text = "late"}}, late);
  job.deadline = Batcher::Clock::now();
  ASSERT_TRUE(batcher.add(std::move(job)));
  job = job_of({{.text = "gone"}}, gone);
  job.gone = leaves.get_token();
  ASSERT_TRUE(batcher.add(std::move(job)));
  ASSERT_TRUE(batcher.add(job_of({{.text = "good"}}, good)));
  leaves.request_stop();
  gate.open();
  EXPECT_EQ(late.future.get().end, End::kLate);
  EXPECT_EQ(gone.future.get().end, End::kGone);
  EXPECT_EQ(good.future.get().found.at(0).best.at(0).text, "good/0/5");
  EXPECT_EQ(lines_seen, 1);
}

TEST(Batcher, WorkStopsWhenItsClientLeaves) {
  Gate gate;
  Asked held;
  std::stop_source leaves;
  Batcher batcher(one_worker(),
                  [](const Batcher::Line& like, auto lines, const Context&) { return echo(like, lines); });
  ASSERT_TRUE(batcher.add(gate.job(held, leaves.get_token())));
  gate.wait_until_entered();
  leaves.request_stop();  // nobody opens the gate
  EXPECT_EQ(held.future.get().end, End::kGone);
}

TEST(Batcher, ABatchGoesOnUntilTheLastOfItsClientsHasLeft) {
  Gate gate;
  Asked held, leaving, staying;
  std::stop_source leaves;
  std::promise<void> entered;
  std::promise<void> go;
  std::atomic<bool> stopped = false;
  Batcher batcher(one_worker(), [&](const Batcher::Line& like, auto lines, const Context& context) {
    if (like.text == "first") return echo(like, lines);
    entered.set_value();
    go.get_future().wait();
    stopped = context.cancel.stop_requested();
    return echo(like, lines);
  });
  ASSERT_TRUE(batcher.add(gate.job(held)));
  gate.wait_until_entered();
  Batcher::Job job = job_of({{.text = "leaving"}}, leaving);
  job.gone = leaves.get_token();
  ASSERT_TRUE(batcher.add(std::move(job)));
  ASSERT_TRUE(batcher.add(job_of({{.text = "staying"}}, staying)));
  gate.open();
  entered.get_future().wait();
  leaves.request_stop();
  go.set_value();
  EXPECT_EQ(leaving.future.get().end, End::kGone);
  EXPECT_EQ(staying.future.get().found.at(0).best.at(0).text, "staying/0/5");
  EXPECT_FALSE(stopped);
}

TEST(Batcher, OneThatFailsDoesNotHarmItsNeighbours) {
  Gate gate;
  Asked held;
  Batcher batcher(one_worker(), [](const Batcher::Line& like, auto lines, const Context&) {
    for (const std::string& each : lines) {
      if (each == "bad") fail(ErrorKind::kInternal, "a secret");
      if (each == "large") fail(ErrorKind::kLimit, "too much");
      if (each == "memory") throw std::bad_alloc();
    }
    return echo(like, lines);
  });
  ASSERT_TRUE(batcher.add(gate.job(held)));
  gate.wait_until_entered();
  const std::pair<const char*, End> jobs[] = {
      {"a", End::kDone}, {"bad", End::kFailed}, {"b", End::kDone}, {"large", End::kLimit}, {"memory", End::kLimit}};
  std::vector<Asked> asked(std::size(jobs));
  for (std::size_t i = 0; i < asked.size(); ++i) ASSERT_TRUE(batcher.add(job_of({{.text = jobs[i].first}}, asked[i])));
  gate.open();
  for (std::size_t i = 0; i < asked.size(); ++i) EXPECT_EQ(asked[i].future.get().end, jobs[i].second) << jobs[i].first;
}

TEST(Batcher, EndingAnswersEverybody) {
  std::vector<Asked> asked(5);
  Asked held;
  Gate gate;
  {
    Batcher batcher(one_worker(),
                    [](const Batcher::Line& like, auto lines, const Context&) { return echo(like, lines); });
    ASSERT_TRUE(batcher.add(gate.job(held)));
    gate.wait_until_entered();
    for (Asked& each : asked) ASSERT_TRUE(batcher.add(job_of({{.text = "a"}}, each)));
  }  // the gate is never opened by hand: it is asked to stop
  EXPECT_EQ(held.future.get().end, End::kGone);
  for (Asked& each : asked) EXPECT_EQ(each.future.get().end, End::kGone);
}

}  // namespace
}  // namespace regard::serve
