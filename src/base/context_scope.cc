#include "base/context_scope.h"

#include <utility>

#include "base/check.h"

namespace regard {
namespace {
thread_local std::shared_ptr<Budget> budget;
}

void Budget::take(std::size_t bytes, const char* what) {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ || used > limit_ - bytes) {
      fail(ErrorKind::kLimit, "out of memory: ", what, " of ", bytes, " bytes does not fit: ", used, " of ", limit_,
           " bytes (memory_limit) are in use");
    }
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
}

const std::shared_ptr<Budget>& current_budget() { return budget; }

ContextScope::ContextScope(const Context& context) : threads_(context.threads), before_(budget) {
  if (context.memory_limit > 0) budget = std::make_shared<Budget>(context.memory_limit);
}
ContextScope::~ContextScope() { budget = std::move(before_); }

void stop_if_asked(const Context& context) {
  if (context.cancel.stop_requested()) fail(ErrorKind::kCancelled, "stopped");
}

}  // namespace regard
