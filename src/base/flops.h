// How many floating-point operations products of matrices and attention take, forward and backward alike for products,
// forward only for attention. Nothing is counted unless somebody asks; then all threads of the process are.
//
//     const FlopCount count;
//     model.loss(tape, batch);
//     count.flops();
//
// A multiplication and an addition are two. Of attention the pairs that are seen count, a tanh as one.
#pragma once

#include <atomic>

namespace regard {

namespace detail {
inline std::atomic<int> flop_counts{0};  // that live
inline std::atomic<double> flops_so_far{0};
}  // namespace detail

inline bool counts_flops() { return detail::flop_counts.load(std::memory_order_relaxed) > 0; }
inline void count_flops(double flops) { detail::flops_so_far.fetch_add(flops, std::memory_order_relaxed); }

class FlopCount {
 public:
  FlopCount() : before_(detail::flops_so_far.load()) { ++detail::flop_counts; }
  ~FlopCount() { --detail::flop_counts; }
  FlopCount(const FlopCount&) = delete;
  FlopCount& operator=(const FlopCount&) = delete;

  double flops() const { return detail::flops_so_far.load() - before_; }

 private:
  double before_;
};

}  // namespace regard
