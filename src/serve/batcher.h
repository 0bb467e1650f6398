// Requests of several users, translated together. A bounded queue; a few milliseconds of patience, so that who asks at
// the same time is served in one batch; threads that compute. What a line is translated to does not depend on its
// neighbours (same bits), so nobody can tell.
//
//     Batcher batcher({.queue = 64}, [&](const Batcher::Line& like, auto lines, auto& context) { … });
//     if (!batcher.add({.lines = {{.model = 0, .text = "他们在看。"}}, .done = [](Batcher::Outcome outcome) { … }})) …
//
// Results belong to the job that they were computed for, never to a place in a shared buffer. `done` is called once for
// every job that was taken, by a thread of the batcher, whatever happens to it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "regard/context.h"
#include "serve/limits.h"
#include "tasks/translator.h"

namespace regard::serve {

class Batcher {
 public:
  using Clock = std::chrono::steady_clock;

  struct Line {
    std::size_t model = 0;
    std::int64_t beam = 5, best = 1;
    std::string text = {};
    Keeps keeps = Keeps::kNothing;
  };
  enum class End : std::uint8_t {
    kDone,
    kLate,    // its deadline was over before it was begun
    kGone,    // nobody waits for it any more
    kLimit,   // there was not enough memory
    kFailed,  // a mistake of ours; `why` is for our eyes
  };
  struct Outcome {
    End end = End::kDone;
    std::vector<Translator::Translation> found = {};  // one a line
    std::string why = {};
  };
  struct Job {
    std::vector<Line> lines = {};
    std::function<void(const Context&)> alone = {};  // instead of lines: work of its own
    Clock::time_point deadline = Clock::time_point::max();
    std::stop_token gone = {};  // asked to stop: the client has left
    std::function<void(Outcome)> done = {};
  };
  // Translates lines that are to be treated like `like`, whose text is not looked at.
  using Work = std::function<std::vector<Translator::Translation>(const Line& like, std::span<const std::string> lines,
                                                                  const Context& context)>;

  Batcher(const Limits& limits, Work work);
  ~Batcher();  // what waits ends as kGone; what is being computed is asked to stop
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  bool add(Job job);  // false: too many wait, or it is closed; `done` is not called

  struct Counts {
    std::uint64_t jobs = 0, lines = 0, batches = 0;  // so far
    std::uint64_t late = 0, gone = 0, failed = 0;
    std::int64_t waiting = 0, running = 0;  // jobs, now
  };
  Counts counts() const;

 private:
  struct Waiting {
    Job job;
    Clock::time_point since;
  };
  void serve(const std::stop_token& stop);
  std::vector<Job> next(const std::stop_token& stop);  // none: there is nothing more to do
  bool ready() const;
  void run(std::vector<Job>& jobs, const std::stop_token& stop);
  void translate(std::vector<Job>& jobs, const std::stop_token& stop);
  void finish(Job& job, Outcome outcome);

  Limits limits_;
  Work work_;
  mutable std::mutex lock_;
  std::condition_variable_any changed_;
  std::deque<Waiting> queue_;
  std::int64_t lines_waiting_ = 0;
  bool closed_ = false;
  Counts counts_;
  std::vector<std::jthread> threads_;  // last: they use all of the above
};

}  // namespace regard::serve
