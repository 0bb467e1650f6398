// How a long call may behave: how many threads it uses, how it is stopped, whom it tells how far it is.
//
//     regard::Context context{.threads = 2, .memory_limit = 1 << 30};
//     const regard::ContextScope scope(context);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>

#include "regard/export.h"

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

// Puts a Context in force for the calling thread, until the end of the block: its thread limit and its memory limit,
// which counts the tensors made from then on. Beyond it they throw an Error of kind kLimit; nothing else has happened.
class REGARD_API ContextScope {
 public:
  explicit ContextScope(const Context& context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  struct Before;
  std::unique_ptr<Before> before_;
};

REGARD_API void stop_if_asked(const Context& context);  // throws kCancelled; long calls ask between steps

}  // namespace regard
