// 1.5-entmax: p = max((s − τ)/2, 0)², Σ p = 1: between softmax and sparsemax.    Peters, Niculae and Martins 2019
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/aligns/entmax15.cc"
#include <hwy/foreach_target.h>

#include "attention/squash-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace {

struct Entmax15 {  // NaN is not below 0 and stays
  static constexpr float kUnit = 2;
  template <class D, class V>
  static HWY_INLINE V weight(D d, V x) {
    const V half = slope(d, x);
    return hn::Mul(half, half);
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V x) {
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Set(d, 0.5f)));
  }
};

void Entmax15Solve(Tile s, float* peak, float* tau) { SquashSolve<Entmax15>(s, peak, tau); }
void Entmax15Weigh(Tile s, const float* peak, const float* tau) { SquashWeigh<Entmax15>(s, peak, tau); }
void Entmax15Pullback(Tile s, const float* peak, const float* tau, Tile dp) {
  SquashPullback<Entmax15>(s, peak, tau, dp);
}

}  // namespace
}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

REGARD_SQUASH(Entmax15);

struct Entmax15Reference {
  static constexpr double kUnit = 2;
  static double weight(double x) { return x < 0 ? 0 : x * x / 4; }
  static double slope(double x) { return x < 0 ? 0 : x / 2; }
};

const Registry<Align>::Add add({.name = "entmax15",
                                .formula = "p = max(e/2 − τ, 0)², Σp = 1",
                                .paper = "Peters et al. 2019",
                                .kernel = "whole rows"},
                               [](const Term&) -> std::unique_ptr<Align> {
                                 return std::make_unique<SquashAlign<Entmax15Reference, Entmax15Kernels>>();
                               });

}  // namespace
}  // namespace regard
#endif
