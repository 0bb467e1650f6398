// Threads. One pool serves the whole process; a call splits its work into items, and which thread runs an item never
// changes what the item computes. A call from inside an item, and a call while the pool is busy with somebody else's
// work, runs its items one after another in the calling thread. Workers block all signals. A forked child gets a pool
// of its own on first use.
//
//     parallel(tiles, [&](std::size_t tile) { … });
//     parallel(tiles, [&](std::size_t tile, int worker) { … scratch[worker] … });     // worker < threads()
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace regard {

int hardware_threads();  // cores this process may use
int threads();           // how many threads parallel() may use when called from this thread

// Within its life, calls from this thread use at most `limit` threads (0: one a core).
class ThreadLimit {
 public:
  explicit ThreadLimit(int limit);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};

namespace detail {
void run_parallel(std::size_t items, void (*call)(void* work, std::size_t item, int worker), void* work);
}

// Runs work(item) for every item; returns when all are done. What an item throws is thrown here (of several, the one
// with the lowest number).
template <class Work>
requires std::invocable<Work&, std::size_t> || std::invocable<Work&, std::size_t, int>
void parallel(std::size_t items, Work&& work) {
  using Plain = std::remove_reference_t<Work>;
  detail::run_parallel(
      items,
      [](void* opaque, std::size_t item, [[maybe_unused]] int worker) {
        Plain& call = *static_cast<Plain*>(opaque);
        if constexpr (std::invocable<Plain&, std::size_t, int>) {
          call(item, worker);
        } else {
          call(item);
        }
      },
      const_cast<void*>(static_cast<const void*>(&work)));
}

}  // namespace regard
