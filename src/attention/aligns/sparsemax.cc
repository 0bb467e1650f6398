// Sparsemax: p = max(s − τ, 0), Σ p = 1: the point of the simplex nearest to the scores.    Martins and Astudillo 2016
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/aligns/sparsemax.cc"
#include <hwy/foreach_target.h>

#include "attention/squash-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace {

struct Sparsemax {  // NaN is not below 0 and stays
  static constexpr float kUnit = 1;
  template <class D, class V>
  static HWY_INLINE V weight(D d, V x) {
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V x) {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Set(d, 1.0f), hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x));
  }
};

void SparsemaxSolve(Tile s, float* peak, float* tau) { SquashSolve<Sparsemax>(s, peak, tau); }
void SparsemaxWeigh(Tile s, const float* peak, const float* tau) { SquashWeigh<Sparsemax>(s, peak, tau); }
void SparsemaxPullback(Tile s, const float* peak, const float* tau, Tile dp) {
  SquashPullback<Sparsemax>(s, peak, tau, dp);
}

}  // namespace
}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

REGARD_SQUASH(Sparsemax);

struct SparsemaxReference {
  static constexpr double kUnit = 1;
  static double weight(double x) { return x < 0 ? 0 : x; }
  static double slope(double x) { return x < 0 ? 0 : x > 0 ? 1 : x; }
};

const Registry<Align>::Add add({.name = "sparsemax",
                                .formula = "p = the point of the simplex nearest to e",
                                .paper = "Martins and Astudillo 2016",
                                .kernel = "whole rows"},
                               [](const Term&) -> std::unique_ptr<Align> {
                                 return std::make_unique<SquashAlign<SparsemaxReference, SparsemaxKernels>>();
                               });

}  // namespace
}  // namespace regard
#endif
