// Lifts a squash to an alignment: p = weight((s − peak) − τ), weight convex and rising, Σ p = 1. A squash is two
// one-line functions, weight and its slope, once for vectors and once for numbers, and kUnit with weight(kUnit) = 1.
//
// τ comes from Newton's method started on the left, at −kUnit: there Σ p ≥ 1, and since the sum is convex in τ every
// step stays on the left until digits run out (for sparsemax this is Michelot's algorithm). A hundred weights that are
// all off by the last digit of τ do not sum to one: so after every step what is kept as the peak moves to where weights
// begin, and τ is the small rest. The last step may go back: the sum of the first one is large and its digits coarse.
// If p_j = f(s_j − τ) sums to one and g = f′, then ds = g·(dp − Σ g·dp/Σ g).

#ifndef REGARD_ATTENTION_SQUASH_INL_H_PLAIN  // what does not depend on the target
#define REGARD_ATTENTION_SQUASH_INL_H_PLAIN

#include <cmath>
#include <limits>

#include "attention/mechanism.h"

namespace regard {

inline constexpr int kNewtonSteps = 100;  // never reached: each step but the last adds digits or drops a key
inline constexpr float kNear = 0x1p-22f;  // a sum this near to one is one, up to the digits of its terms

// The squash F on f64: plain loops. `Kernels` has the same three for f32.
template <class F, class Kernels>
struct SquashAlign : Align {
  void solve(Tile s, float* peak, float* tau) const override { Kernels::solve(s, peak, tau); }
  void weigh(Tile s, const float* peak, const float* tau) const override { Kernels::weigh(s, peak, tau); }
  void pullback(Tile s, const float* peak, const float* tau, const float*, Tile dp) const override {
    Kernels::pullback(s, peak, tau, dp);
  }

  void solve(RowsOf<double> s, double* peak, double* tau) const override {
    for (std::size_t i = 0; i < s.count; ++i) {
      peak[i] = kHidden<double>;
      for (std::size_t j = 0; j < s.width; ++j) peak[i] = s.row(i)[j] > peak[i] ? s.row(i)[j] : peak[i];
      tau[i] = -F::kUnit;
      if (peak[i] == kHidden<double>) peak[i] = tau[i] = 0;
      for (int step = 0; step < kNewtonSteps; ++step) {
        double sum = 0, slopes = 0;
        for (std::size_t j = 0; j < s.width; ++j) {
          if (s.row(i)[j] == kHidden<double>) continue;
          sum += F::weight(s.row(i)[j] - peak[i] - tau[i]);
          slopes += F::slope(s.row(i)[j] - peak[i] - tau[i]);
        }
        const double next = slopes == 0 ? tau[i] : tau[i] + (sum - 1) / slopes;
        const bool further = next > tau[i];
        tau[i] = next;
        if (!further) break;
      }
    }
  }
  void weigh(RowsOf<double> s, const double* peak, const double* tau) const override {
    for (std::size_t i = 0; i < s.count; ++i) {
      for (std::size_t j = 0; j < s.width; ++j) {
        double& x = s.row(i)[j];
        x = x == kHidden<double> ? 0 : F::weight(x - peak[i] - tau[i]);
      }
    }
  }
  void pullback(RowsOf<double> s, const double* peak, const double* tau, const double*,
                RowsOf<double> dp) const override {
    for (std::size_t i = 0; i < s.count; ++i) {
      double share = 0, slopes = 0;
      for (std::size_t j = 0; j < s.width; ++j) {
        const double x = s.row(i)[j], g = x == kHidden<double> ? 0 : F::slope(x - peak[i] - tau[i]);
        if (g == 0) continue;
        share += g * dp.row(i)[j];
        slopes += g;
      }
      for (std::size_t j = 0; j < s.width; ++j) {
        const double x = s.row(i)[j], g = x == kHidden<double> ? 0 : F::slope(x - peak[i] - tau[i]);
        dp.row(i)[j] = g == 0 ? 0 : g * (dp.row(i)[j] - share / slopes);
      }
    }
    weigh(s, peak, tau);
  }
};

}  // namespace regard

// In namespace regard, once: the f32 kernels of a squash whose functions NameSolve, NameWeigh, NamePullback are
// exported.
#define REGARD_SQUASH(Name)                                                                                 \
  HWY_EXPORT(Name##Solve);                                                                                  \
  HWY_EXPORT(Name##Weigh);                                                                                  \
  HWY_EXPORT(Name##Pullback);                                                                               \
  struct Name##Kernels {                                                                                    \
    static void solve(Tile s, float* peak, float* tau) { HWY_DYNAMIC_DISPATCH(Name##Solve)(s, peak, tau); } \
    static void weigh(Tile s, const float* peak, const float* tau) {                                        \
      HWY_DYNAMIC_DISPATCH(Name##Weigh)(s, peak, tau);                                                      \
    }                                                                                                       \
    static void pullback(Tile s, const float* peak, const float* tau, Tile dp) {                            \
      HWY_DYNAMIC_DISPATCH(Name##Pullback)(s, peak, tau, dp);                                               \
    }                                                                                                       \
  }

#endif  // REGARD_ATTENTION_SQUASH_INL_H_PLAIN

#if defined(REGARD_ATTENTION_SQUASH_INL_H_TARGET) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef REGARD_ATTENTION_SQUASH_INL_H_TARGET
#undef REGARD_ATTENTION_SQUASH_INL_H_TARGET
#else
#define REGARD_ATTENTION_SQUASH_INL_H_TARGET
#endif

#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// x = (s − peak) − τ; where s is hidden, f(x) is 0 whatever x came out as.
template <class Function>
HWY_INLINE Vector16 OfVisible(Vector16 s, float peak, float tau, Function f) {
  const Tag16 d;
  const Vector16 x = hn::Sub(hn::Sub(s, hn::Set(d, peak)), hn::Set(d, tau));
  return hn::IfThenZeroElse(hn::Eq(s, hn::Set(d, kHidden<float>)), f(x));
}

template <class F>
HWY_INLINE Vector16 SquashWeight(Vector16 s, float peak, float tau) {
  return OfVisible(s, peak, tau, [](Vector16 x) HWY_ATTR { return F::weight(Tag16(), x); });
}
template <class F>
HWY_INLINE Vector16 SquashSlope(Vector16 s, float peak, float tau) {
  return OfVisible(s, peak, tau, [](Vector16 x) HWY_ATTR { return F::slope(Tag16(), x); });
}

template <class F>
void SquashSolve(Tile s, float* peak, float* tau) {
  const Tag16 d;
  for (std::size_t i = 0; i < s.count; ++i) {
    const float* row = s.row(i);
    Lanes16 peaks;
    for (Vector16& part : peaks.part) part = hn::Set(d, kHidden<float>);
    ForEachPart16(s.width, [&](std::size_t j, std::size_t part, std::size_t lanes) HWY_ATTR {
      const Vector16 v = LoadPart16(row + j, lanes);
      const Vector16 larger = hn::IfThenElse(hn::Gt(v, peaks.part[part]), v, peaks.part[part]);
      peaks.part[part] = ChangeFirst16(larger, peaks.part[part], lanes);
    });
    const float top = Tree16(peaks, [](auto, auto a, auto b) HWY_ATTR { return hn::IfThenElse(hn::Gt(b, a), b, a); });
    const bool nothing = top == kHidden<float>;
    float base = nothing ? 0.0f : top, rest = nothing ? 0.0f : -F::kUnit;
    for (int step = 0; step < kNewtonSteps; ++step) {
      const float sum = SumOf16(
          s.width, [&](auto, auto v) HWY_ATTR { return SquashWeight<F>(v, base, rest); }, row);
      const float slopes = SumOf16(
          s.width, [&](auto, auto v) HWY_ATTR { return SquashSlope<F>(v, base, rest); }, row);
      const float at = slopes == 0.0f ? rest : rest + (sum - 1.0f) / slopes, before = base;
      base = before + at;
      rest = at - (base - before);
      if (!(sum - 1.0f > kNear)) break;
    }
    peak[i] = base;
    tau[i] = rest;
  }
}

template <class F>
void SquashWeigh(Tile s, const float* peak, const float* tau) {
  for (std::size_t i = 0; i < s.count; ++i) {
    float* row = s.row(i);
    ForEachPart16(s.width, [&](std::size_t j, std::size_t, std::size_t lanes) HWY_ATTR {
      StorePart16(SquashWeight<F>(LoadPart16(row + j, lanes), peak[i], tau[i]), row + j, lanes);
    });
  }
}

template <class F>
void SquashPullback(Tile s, const float* peak, const float* tau, Tile dp) {
  const Tag16 d;
  for (std::size_t i = 0; i < s.count; ++i) {
    float *row = s.row(i), *gradient = dp.row(i);
    const float slopes = SumOf16(
        s.width, [&](auto, auto v) HWY_ATTR { return SquashSlope<F>(v, peak[i], tau[i]); }, row);
    const float share = SumOf16(
        s.width,
        [&](auto, auto v, auto w) HWY_ATTR {
          const Vector16 g = SquashSlope<F>(v, peak[i], tau[i]);
          return hn::IfThenZeroElse(hn::Eq(g, hn::Zero(d)), hn::Mul(g, w));
        },
        row, gradient);
    const Vector16 mean = hn::Set(d, slopes == 0.0f ? 0.0f : share / slopes);
    ForEachPart16(s.width, [&](std::size_t j, std::size_t, std::size_t lanes) HWY_ATTR {
      const Vector16 v = LoadPart16(row + j, lanes), g = SquashSlope<F>(v, peak[i], tau[i]);
      const Vector16 ds = hn::Mul(g, hn::Sub(LoadPart16(gradient + j, lanes), mean));
      StorePart16(hn::IfThenZeroElse(hn::Eq(g, hn::Zero(d)), ds), gradient + j, lanes);
      StorePart16(SquashWeight<F>(v, peak[i], tau[i]), row + j, lanes);
    });
  }
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // once per target
