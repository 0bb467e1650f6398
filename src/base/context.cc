#include "regard/context.h"

#include <utility>

#include "base/budget.h"
#include "base/budget_scope.h"
#include "base/check.h"
#include "base/pool.h"

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
  std::uint64_t most = most_.load(std::memory_order_relaxed);
  while (most < used + bytes && !most_.compare_exchange_weak(most, used + bytes, std::memory_order_relaxed)) {
  }
}

const std::shared_ptr<Budget>& current_budget() { return budget; }

BudgetScope::BudgetScope(std::shared_ptr<Budget> given) : before_(std::exchange(budget, std::move(given))) {}
BudgetScope::~BudgetScope() { budget = std::move(before_); }

struct ContextScope::Before {
  ThreadLimit threads;
  std::shared_ptr<Budget> budget;
};

ContextScope::ContextScope(const Context& context)
    : before_(new Before{.threads = ThreadLimit(context.threads), .budget = budget}) {
  if (context.memory_limit > 0) budget = std::make_shared<Budget>(context.memory_limit);
}
ContextScope::~ContextScope() { budget = std::move(before_->budget); }

void stop_if_asked(const Context& context) {
  if (context.cancel.stop_requested()) fail(ErrorKind::kCancelled, "stopped");
}

}  // namespace regard
