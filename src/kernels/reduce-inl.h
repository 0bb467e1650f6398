// The one way in which kernels add up a row: 16 virtual lanes and a fixed tree, so that a sum depends on its length
// alone and has the same bits on every target. Lane l takes elements l, l + 16, l + 32, …, one after another; then lane
// l and lane l + 8 are joined, l and l + 4, l + 2, l + 1. 16 lanes are one vector on AVX-512, two on AVX2, four on SSE4
// and NEON. The last elements of a row go to their own lanes by the same formula, the other lanes stay as they are.
//
//     float total = Sum16(x, n);
//     float squares = SumOf16(n, [](auto d, auto v) HWY_ATTR { return hn::Mul(v, v); }, x);
#if defined(REGARD_KERNELS_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_REDUCE_INL_H_
#undef REGARD_KERNELS_REDUCE_INL_H_
#else
#define REGARD_KERNELS_REDUCE_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <limits>

#include "kernels/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag16 = hn::CappedTag<float, 16>;
using Vector16 = hn::Vec<Tag16>;
inline constexpr std::size_t kPartLanes = hn::MaxLanes(Tag16());
inline constexpr std::size_t kParts = 16 / kPartLanes;

struct Lanes16 {
  Vector16 part[kParts];
};

// Calls step(offset, part, count) for 16 elements at a time; count is kPartLanes, or less for the last ones.
template <class Step>
HWY_INLINE void ForEachPart16(std::size_t n, Step step) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
#pragma GCC unroll 4
    for (std::size_t part = 0; part < kParts; ++part) step(i + part * kPartLanes, part, kPartLanes);
  }
  for (std::size_t part = 0; part < kParts && i < n; ++part, i += kPartLanes)
    step(i, part, n - i < kPartLanes ? n - i : kPartLanes);
}

HWY_INLINE Vector16 LoadPart16(const float* from, std::size_t count) {
  const Tag16 d;
  return count == kPartLanes ? hn::LoadU(d, from) : LoadFirst(d, from, count);
}

HWY_INLINE void StorePart16(Vector16 v, float* to, std::size_t count) {
  const Tag16 d;
  if (count == kPartLanes) {
    hn::StoreU(v, d, to);
  } else {
    StoreFirst(v, d, to, count);
  }
}

// The new value in the first `count` lanes, the old one in the others.
HWY_INLINE Vector16 ChangeFirst16(Vector16 fresh, Vector16 old, std::size_t count) {
  const Tag16 d;
  return count == kPartLanes ? fresh : hn::IfThenElse(hn::FirstN(d, count), fresh, old);
}

// lanes = step(d, lanes, v…) over the elements v of the arrays.
template <class Step, class... Arrays>
HWY_INLINE Lanes16 Fold16(std::size_t n, Vector16 start, Step step, const Arrays*... arrays) {
  const Tag16 d;
  Lanes16 lanes;
  for (Vector16& part : lanes.part) part = start;
  ForEachPart16(n, [&](std::size_t offset, std::size_t part, std::size_t count) HWY_ATTR {
    const Vector16 fresh = step(d, lanes.part[part], LoadPart16(arrays + offset, count)...);
    lanes.part[part] = ChangeFirst16(fresh, lanes.part[part], count);
  });
  return lanes;
}

// The fixed tree: join(d, lane l, lane l + 8), then 4, 2, 1 apart.
template <class Join, std::size_t kCount = kParts>
HWY_INLINE float Tree16(Lanes16 lanes, Join join) {
  const Tag16 d;
  const hn::Full128<float> quarter;
  hn::Vec<decltype(quarter)> four;
  if constexpr (kCount == 1) {
    const hn::Half<Tag16> half;
    const hn::Half<decltype(half)> fourth;
    const auto eight = join(half, hn::LowerHalf(half, lanes.part[0]), hn::UpperHalf(half, lanes.part[0]));
    four = join(fourth, hn::LowerHalf(fourth, eight), hn::UpperHalf(fourth, eight));
  } else if constexpr (kCount == 2) {
    const hn::Half<Tag16> half;
    const auto eight = join(d, lanes.part[0], lanes.part[1]);
    four = join(half, hn::LowerHalf(half, eight), hn::UpperHalf(half, eight));
  } else {
    static_assert(kCount == 4);
    four = join(d, join(d, lanes.part[0], lanes.part[2]), join(d, lanes.part[1], lanes.part[3]));
  }
  four = join(quarter, four, hn::Shuffle1032(four));
  four = join(quarter, four, hn::Shuffle2301(four));
  return hn::GetLane(four);
}

HWY_INLINE float SumTree16(Lanes16 lanes) {
  return Tree16(lanes, [](auto, auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}

HWY_INLINE float Sum16(const float* x, std::size_t n) {
  return SumTree16(Fold16(
      n, hn::Zero(Tag16()), [](auto, auto sum, auto v) HWY_ATTR { return hn::Add(sum, v); }, x));
}

HWY_INLINE float Dot16(const float* x, const float* y, std::size_t n) {
  return SumTree16(Fold16(
      n, hn::Zero(Tag16()), [](auto, auto sum, auto v, auto w) HWY_ATTR { return hn::MulAdd(v, w, sum); }, x, y));
}

HWY_INLINE float SumSquares16(const float* x, std::size_t n) {
  return SumTree16(Fold16(
      n, hn::Zero(Tag16()), [](auto, auto sum, auto v) HWY_ATTR { return hn::MulAdd(v, v, sum); }, x));
}

// Σ f(d, v…) over the elements v of the arrays.
template <class F, class... Arrays>
HWY_INLINE float SumOf16(std::size_t n, F f, const Arrays*... arrays) {
  return SumTree16(Fold16(
      n, hn::Zero(Tag16()), [&](auto d, auto sum, auto... v) HWY_ATTR { return hn::Add(sum, f(d, v...)); }, arrays...));
}

// The largest element; −∞ for none. A NaN anywhere gives NaN.
HWY_INLINE float Max16(const float* x, std::size_t n) {
  const Tag16 d;
  Lanes16 peaks, strange;  // a lane of `strange` that is not 0 is NaN
  for (Vector16& part : peaks.part) part = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (Vector16& part : strange.part) part = hn::Zero(d);
  ForEachPart16(n, [&](std::size_t offset, std::size_t part, std::size_t count) HWY_ATTR {
    const Vector16 v = LoadPart16(x + offset, count);
    const Vector16 peak = hn::IfThenElse(hn::Gt(v, peaks.part[part]), v, peaks.part[part]);
    peaks.part[part] = ChangeFirst16(peak, peaks.part[part], count);
    strange.part[part] = hn::IfThenElse(hn::IsNaN(v), v, strange.part[part]);
  });
  const float peak = Tree16(peaks, [](auto, auto a, auto b) HWY_ATTR { return hn::IfThenElse(hn::Gt(b, a), b, a); });
  const float doubt = SumTree16(strange);
  return doubt == 0.0f ? peak : doubt;
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
