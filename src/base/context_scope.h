// Puts a Context in force for the calling thread: its thread limit and its memory budget.
//
//     const ContextScope scope(context);       // in every long call of the library
//     stop_if_asked(context);                  // between steps
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/pool.h"
#include "regard/context.h"

namespace regard {

// Counts the bytes of tensors that were made under one Context.
class Budget {
 public:
  explicit Budget(std::uint64_t limit) : limit_(limit) {}
  void take(std::size_t bytes,
            const char* what);  // throws kLimit instead of going over; what: "a tensor", for the text
  void give_back(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
};

const std::shared_ptr<Budget>& current_budget();  // null: no limit

class ContextScope {
 public:
  explicit ContextScope(const Context& context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  ThreadLimit threads_;
  std::shared_ptr<Budget> before_;
};

void stop_if_asked(const Context& context);  // throws kCancelled

}  // namespace regard
