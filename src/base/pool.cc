#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/float_mode.h"

namespace regard {
namespace {

inline void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  asm volatile("yield");
#endif
}

// How long a waiting thread spins before it sleeps. Small operations follow each other within microseconds, and a
// sleeping worker takes about 50 µs to wake.
constexpr int kSpins = 1000;

struct Job {
  void (*call)(void*, std::size_t, int) = nullptr;
  void* work = nullptr;
  std::size_t items = 0;
  int threads = 1;  // the caller is one of them
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex failure_lock;
  std::size_t failed_item = 0;
  std::exception_ptr failure;

  void run(int worker) {
    for (;;) {
      const std::size_t item = next.fetch_add(1, std::memory_order_relaxed);
      if (item >= items) return;
      try {
        call(work, item, worker);
      } catch (...) {
        const std::lock_guard lock(failure_lock);
        if (!failed.load(std::memory_order_relaxed) || item < failed_item) {
          failure = std::current_exception();
          failed_item = item;
        }
        failed.store(true, std::memory_order_relaxed);
      }
    }
  }
};

thread_local bool inside = false;  // this thread is running an item, so what it calls runs inline
thread_local int limit = 0;        // 0: one a core

class Pool {
 public:
  static Pool& instance();

  // False if the pool is busy with another thread's work.
  bool try_run(std::size_t items, int wanted, void (*call)(void*, std::size_t, int), void* work) {
    std::unique_lock busy(busy_, std::try_to_lock);
    if (!busy.owns_lock()) return false;
    start_workers(wanted - 1);
    job_.call = call;
    job_.work = work;
    job_.items = items;
    job_.threads = wanted;
    job_.next.store(0, std::memory_order_relaxed);
    open();
    inside = true;
    job_.run(0);
    inside = false;
    close();
    if (job_.failed.load(std::memory_order_relaxed)) {
      const std::exception_ptr failure = std::exchange(job_.failure, nullptr);
      job_.failed.store(false, std::memory_order_relaxed);
      std::rethrow_exception(failure);
    }
    return true;
  }

 private:
  // state_ = round << 16 | closed << 15 | workers that joined. A worker may touch the job only after it has joined an
  // open round, and the caller returns once the round is closed and all who joined have left: it never waits for a
  // worker that is still waking up.
  static constexpr std::uint64_t kClosed = 1u << 15;
  static constexpr std::uint64_t kJoined = kClosed - 1;

  void open() {
    const std::uint64_t round = (state_.load(std::memory_order_relaxed) >> 16) + 1;
    state_.store(round << 16, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) state_.notify_all();
  }

  void close() {
    std::uint64_t state = state_.fetch_or(kClosed, std::memory_order_acq_rel) | kClosed;
    for (int spin = 0; (state & kJoined) != 0; ++spin) {
      if (spin < kSpins) {
        pause();
      } else {
        state_.wait(state, std::memory_order_acquire);
      }
      state = state_.load(std::memory_order_acquire);
    }
  }

  void start_workers(int count) {
    if (started_ >= count) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (; started_ < count; ++started_) {
      try {
        std::thread([this, number = started_ + 1] { work(number); }).detach();
      } catch (const std::system_error&) {
        break;  // no more threads to be had: fewer do the same work
      }
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void work(int number) {
    set_float_mode(kComputeMode);
    inside = true;
    std::uint64_t seen = 0;
    for (;;) {
      std::uint64_t state = wait_for_round(seen);
      seen = state >> 16;
      if (!join(state)) continue;
      if (number < job_.threads) job_.run(number);
      const std::uint64_t left = state_.fetch_sub(1, std::memory_order_acq_rel) - 1;
      if ((left & kClosed) != 0 && (left & kJoined) == 0) state_.notify_all();
    }
  }

  // Spins, then sleeps until the state changes, then spins again: a round that is over by the time a worker has woken
  // up is soon followed by another.
  std::uint64_t wait_for_round(std::uint64_t seen) {
    const auto is_new = [seen](std::uint64_t state) { return state >> 16 != seen && (state & kClosed) == 0; };
    for (;;) {
      for (int spin = 0; spin < kSpins; ++spin) {
        const std::uint64_t state = state_.load(std::memory_order_acquire);
        if (is_new(state)) return state;
        pause();
      }
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      const std::uint64_t state = state_.load(std::memory_order_seq_cst);
      if (!is_new(state)) state_.wait(state, std::memory_order_seq_cst);
      sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    }
  }

  bool join(std::uint64_t state) {
    const std::uint64_t round = state >> 16;
    while (state >> 16 == round && (state & kClosed) == 0) {
      if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }

  std::mutex busy_;
  Job job_;
  int started_ = 0;
  alignas(64) std::atomic<std::uint64_t> state_{kClosed};
  alignas(64) std::atomic<int> sleepers_{0};
};

std::atomic<Pool*> current_pool{nullptr};

// Never destroyed: workers may still be waiting in it while the process ends. A forked child has none of the workers,
// so it forgets the pool and makes a new one.
Pool& Pool::instance() {
  Pool* pool = current_pool.load(std::memory_order_acquire);
  if (pool != nullptr) return *pool;
  static const int registered = pthread_atfork(nullptr, nullptr, [] { current_pool.store(nullptr); });
  static_cast<void>(registered);
  Pool* fresh = new Pool;
  if (current_pool.compare_exchange_strong(pool, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *pool;
}

}  // namespace

int hardware_threads() {
  static const int count = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }();
  return count;
}

int threads() { return inside ? 1 : limit > 0 ? limit : hardware_threads(); }

ThreadLimit::ThreadLimit(int new_limit) : before_(limit) { limit = std::clamp(new_limit, 0, 1024); }
ThreadLimit::~ThreadLimit() { limit = before_; }

void detail::run_parallel(std::size_t items, void (*call)(void*, std::size_t, int), void* work) {
  const FloatMode mode;
  const int wanted = static_cast<int>(std::min<std::size_t>(items, static_cast<std::size_t>(threads())));
  if (wanted > 1 && !inside && Pool::instance().try_run(items, wanted, call, work)) return;
  const bool before = std::exchange(inside, true);
  Job job;
  job.call = call;
  job.work = work;
  job.items = items;
  job.run(0);
  inside = before;
  if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace regard
