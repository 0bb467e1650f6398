#include "serve/batcher.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <utility>

#include "regard/error.h"

namespace regard::serve {
namespace {

using End = Batcher::End;
using Outcome = Batcher::Outcome;

Outcome caught() {
  try {
    throw;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kCancelled) return {.end = End::kGone};
    return {.end = error.kind() == ErrorKind::kLimit ? End::kLimit : End::kFailed, .why = error.what()};
  } catch (const std::bad_alloc&) {
    return {.end = End::kLimit, .why = "not enough memory"};
  } catch (const std::exception& error) {
    return {.end = End::kFailed, .why = error.what()};
  } catch (...) {
    return {.end = End::kFailed, .why = "something that is no exception of ours"};
  }
}

// Stops a batch when the last of those who wait for it has left, or when the batcher ends.
class StopWhenAllLeft {
 public:
  StopWhenAllLeft(const std::vector<Batcher::Job>& jobs, const std::stop_token& stop) : left_(jobs.size()) {
    for (const Batcher::Job& job : jobs) {
      watched_.push_back(std::make_unique<std::stop_callback<std::function<void()>>>(job.gone, [this] {
        if (left_.fetch_sub(1) == 1) source_.request_stop();
      }));
    }
    ended_.emplace(stop, [this] { source_.request_stop(); });
  }
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::atomic<std::size_t> left_;
  std::vector<std::unique_ptr<std::stop_callback<std::function<void()>>>> watched_;
  std::optional<std::stop_callback<std::function<void()>>> ended_;
};

}  // namespace

Batcher::Batcher(const Limits& limits, Work work) : limits_(limits), work_(std::move(work)) {
  for (std::int64_t i = 0; i < std::max<std::int64_t>(1, limits.workers); ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { serve(stop); });
  }
}

Batcher::~Batcher() {
  {
    const std::lock_guard guard(lock_);
    closed_ = true;
  }
  for (std::jthread& each : threads_) each.request_stop();
  threads_.clear();  // joins
  for (Waiting& each : queue_) finish(each.job, {.end = End::kGone});
}

bool Batcher::add(Job job) {
  {
    const std::lock_guard guard(lock_);
    if (closed_ || queue_.size() >= static_cast<std::size_t>(limits_.queue)) return false;
    ++counts_.jobs;
    lines_waiting_ += static_cast<std::int64_t>(job.lines.size());
    queue_.push_back({std::move(job), Clock::now()});
  }
  changed_.notify_one();
  return true;
}

Batcher::Counts Batcher::counts() const {
  const std::lock_guard guard(lock_);
  Counts counts = counts_;
  counts.waiting = static_cast<std::int64_t>(queue_.size());
  return counts;
}

// Whether there is no reason to wait for more.
bool Batcher::ready() const {
  return queue_.empty() || queue_.front().job.alone != nullptr || lines_waiting_ >= limits_.batch;
}

std::vector<Batcher::Job> Batcher::next(const std::stop_token& stop) {
  std::unique_lock guard(lock_);
  for (;;) {
    if (!changed_.wait(guard, stop, [this] { return !queue_.empty(); })) return {};
    const auto patience = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits_.delay));
    const Clock::time_point until = queue_.front().since + patience;
    changed_.wait_until(guard, stop, until, [this] { return ready(); });
    if (stop.stop_requested()) return {};
    if (!queue_.empty()) break;  // else another thread was faster
  }
  std::vector<Job> jobs;
  std::int64_t lines = 0;
  while (!queue_.empty()) {
    Job& first = queue_.front().job;
    const auto more = static_cast<std::int64_t>(first.lines.size());
    if (!jobs.empty() && (first.alone || lines + more > limits_.batch)) break;
    const bool alone = first.alone != nullptr;
    lines += more;
    jobs.push_back(std::move(first));
    queue_.pop_front();
    if (alone) break;
  }
  lines_waiting_ -= lines;
  counts_.running += static_cast<std::int64_t>(jobs.size());
  ++counts_.batches;
  counts_.lines += static_cast<std::uint64_t>(lines);
  if (!queue_.empty()) changed_.notify_one();
  return jobs;
}

void Batcher::finish(Job& job, Outcome outcome) {
  {
    const std::lock_guard guard(lock_);
    counts_.late += outcome.end == End::kLate ? 1 : 0;
    counts_.gone += outcome.end == End::kGone ? 1 : 0;
    counts_.failed += outcome.end == End::kFailed || outcome.end == End::kLimit ? 1 : 0;
  }
  const std::function<void(Outcome)> done = std::move(job.done);
  if (done) done(std::move(outcome));
}

void Batcher::serve(const std::stop_token& stop) {
  for (;;) {
    std::vector<Job> jobs = next(stop);
    if (jobs.empty()) return;
    const auto count = static_cast<std::int64_t>(jobs.size());
    run(jobs, stop);
    const std::lock_guard guard(lock_);
    counts_.running -= count;
  }
}

void Batcher::run(std::vector<Job>& jobs, const std::stop_token& stop) {
  const Clock::time_point now = Clock::now();
  std::vector<Job> left;
  for (Job& job : jobs) {
    if (job.gone.stop_requested()) {
      finish(job, {.end = End::kGone});
    } else if (job.deadline < now) {
      finish(job, {.end = End::kLate});
    } else {
      left.push_back(std::move(job));
    }
  }
  if (left.empty()) return;
  if (!left.front().alone) {
    translate(left, stop);
    return;
  }
  Outcome outcome;
  try {
    const StopWhenAllLeft watch(left, stop);
    left.front().alone({.threads = limits_.threads, .cancel = watch.token()});
  } catch (...) {
    outcome = caught();
  }
  finish(left.front(), std::move(outcome));
}

void Batcher::translate(std::vector<Job>& jobs, const std::stop_token& stop) {
  struct Place {
    std::size_t job, line;
  };
  using Key = std::tuple<std::size_t, std::int64_t, std::int64_t, Keeps>;
  std::vector<std::pair<Key, Place>> places;
  std::vector<Outcome> outcomes(jobs.size());
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    outcomes[j].found.resize(jobs[j].lines.size());
    for (std::size_t i = 0; i < jobs[j].lines.size(); ++i) {
      const Line& line = jobs[j].lines[i];
      places.push_back({{line.model, line.beam, line.best, line.keeps}, {j, i}});
    }
  }
  std::stable_sort(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::optional<Outcome> failed;
  try {
    const StopWhenAllLeft watch(jobs, stop);
    const Context context{.threads = limits_.threads, .cancel = watch.token()};
    for (std::size_t first = 0; first < places.size();) {
      std::vector<std::string> lines;
      std::size_t end = first;
      for (; end < places.size() && places[end].first == places[first].first; ++end) {
        lines.push_back(jobs[places[end].second.job].lines[places[end].second.line].text);
      }
      const Place& like = places[first].second;
      std::vector<Translator::Translation> found = work_(jobs[like.job].lines[like.line], lines, context);
      for (std::size_t i = first; i < end; ++i) {
        const Place& place = places[i].second;
        outcomes[place.job].found[place.line] = std::move(found.at(i - first));
      }
      first = end;
    }
  } catch (...) {
    failed = caught();
  }
  if (failed && failed->end != End::kGone && jobs.size() > 1) {
    // What one of them asked for was too much: the others shall not suffer.
    for (Job& job : jobs) {
      std::vector<Job> one;
      one.push_back(std::move(job));
      translate(one, stop);
    }
    return;
  }
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    if (failed) outcomes[j] = *failed;
    if (jobs[j].gone.stop_requested()) outcomes[j] = {.end = End::kGone};
    finish(jobs[j], std::move(outcomes[j]));
  }
}

}  // namespace regard::serve
