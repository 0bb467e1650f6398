// The memory budget of a Context: it counts the bytes of tensors that were made under it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace regard {

class Budget {
 public:
  explicit Budget(std::uint64_t limit) : limit_(limit) {}
  void take(std::size_t bytes,
            const char* what);  // throws kLimit instead of going over; what: "a tensor", for the text
  void give_back(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  std::uint64_t most() const { return most_.load(std::memory_order_relaxed); }  // that were ever in use together

 private:
  std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0}, most_{0};
};

const std::shared_ptr<Budget>& current_budget();  // of the calling thread; null: no limit

}  // namespace regard
