// How a long call may behave: how many threads it uses, how it is stopped, whom it tells how far it is.
//
//     regard::Context context{.threads = 2, .memory_limit = 1 << 30};
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string_view>

namespace regard {

struct Progress {
  std::string_view what;  // "training", "reading corpus.zh"
  std::int64_t done = 0;
  std::int64_t total = 0;  // 0: not known
};

struct Context {
  int threads = 0;              // 0: one a core; never changes a bit of any result
  std::stop_token cancel = {};  // asked to stop: the call ends with an Error of kind kCancelled
  std::function<void(const Progress&)> progress = {};
  std::function<void(std::string_view)> log = {};  // one line, no newline
  std::uint64_t memory_limit = 0;                  // bytes of tensors; 0: no limit
};

}  // namespace regard
