// Additive scores of one query against many keys, and their gradients, for one target: s_j = θᵀ tanh(q + k_j). A tanh
// is most of the work, so everything else stays in registers: keys go through the columns several at once, and backward
// a strip of columns goes through all keys.
#if defined(REGARD_ATTENTION_ADDITIVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_ATTENTION_ADDITIVE_INL_H_
#undef REGARD_ATTENTION_ADDITIVE_INL_H_
#else
#define REGARD_ATTENTION_ADDITIVE_INL_H_
#endif

#include "kernels/math-inl.h"
#include "kernels/reduce-inl.h"
#include "kernels/views.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// kCount neighbouring keys.
template <std::size_t kCount>
HWY_INLINE void AdditiveScoresOf(const float* q, Rows keys, std::size_t first, const float* theta, float* scores) {
  const Tag16 d;
  Lanes16 sums[kCount];
#pragma GCC unroll 8
  for (std::size_t j = 0; j < kCount; ++j) {
    for (Vector16& part : sums[j].part) part = hn::Zero(d);
  }
  ForEachPart16(keys.width, [&](std::size_t c, std::size_t part, std::size_t lanes) HWY_ATTR {
    const Vector16 query = LoadPart16(q + c, lanes), weight = LoadPart16(theta + c, lanes);
#pragma GCC unroll 8
    for (std::size_t j = 0; j < kCount; ++j) {
      const Vector16 t = Tanh(d, hn::Add(query, LoadPart16(keys.row(first + j) + c, lanes)));
      Vector16& sum = sums[j].part[part];
      sum = ChangeFirst16(hn::MulAdd(weight, t, sum), sum, lanes);
    }
  });
#pragma GCC unroll 8
  for (std::size_t j = 0; j < kCount; ++j) scores[first + j] = SumTree16(sums[j]);
}

HWY_INLINE void AdditiveRowScores(const float* q, Rows keys, const float* theta, float* scores) {
  std::size_t j = 0;
  for (; j + 2 <= keys.count; j += 2) AdditiveScoresOf<2>(q, keys, j, theta, scores);
  for (; j < keys.count; ++j) AdditiveScoresOf<1>(q, keys, j, theta, scores);
}

// Adds the gradients of a row of scores. Keys whose ds is 0 are not looked at.
template <std::size_t kVectors>
HWY_INLINE void AdditiveStrip(const float* q, Rows keys, const float* theta, const float* ds, float* dq, Tile dk,
                              float* d_theta, std::size_t c, std::size_t lanes) {
  const Tag16 d;
  const Vector16 one = hn::Set(d, 1.0f);
  Vector16 query[kVectors], weight[kVectors], query_sum[kVectors], weight_sum[kVectors];
#pragma GCC unroll 8
  for (std::size_t v = 0; v < kVectors; ++v) {
    query[v] = LoadPart16(q + c + v * kPartLanes, lanes);
    weight[v] = LoadPart16(theta + c + v * kPartLanes, lanes);
    query_sum[v] = LoadPart16(dq + c + v * kPartLanes, lanes);
    weight_sum[v] = LoadPart16(d_theta + c + v * kPartLanes, lanes);
  }
  for (std::size_t j = 0; j < keys.count; ++j) {
    if (ds[j] == 0.0f) continue;
    const Vector16 factor = hn::Set(d, ds[j]);
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::size_t at = c + v * kPartLanes;
      const Vector16 t = Tanh(d, hn::Add(query[v], LoadPart16(keys.row(j) + at, lanes)));
      const Vector16 g = hn::Mul(hn::Mul(factor, weight[v]), hn::NegMulAdd(t, t, one));
      query_sum[v] = hn::Add(query_sum[v], g);
      StorePart16(hn::Add(LoadPart16(dk.row(j) + at, lanes), g), dk.row(j) + at, lanes);
      weight_sum[v] = hn::MulAdd(factor, t, weight_sum[v]);
    }
  }
#pragma GCC unroll 8
  for (std::size_t v = 0; v < kVectors; ++v) {
    StorePart16(query_sum[v], dq + c + v * kPartLanes, lanes);
    StorePart16(weight_sum[v], d_theta + c + v * kPartLanes, lanes);
  }
}

HWY_INLINE void AdditiveRowGradients(const float* q, Rows keys, const float* theta, const float* ds, float* dq, Tile dk,
                                     float* d_theta) {
  constexpr std::size_t kVectors = HWY_TARGET == HWY_AVX3 ? 4 : 1;
  std::size_t c = 0;
  for (; c + kVectors * kPartLanes <= keys.width; c += kVectors * kPartLanes)
    AdditiveStrip<kVectors>(q, keys, theta, ds, dq, dk, d_theta, c, kPartLanes);
  for (; c < keys.width; c += kPartLanes)
    AdditiveStrip<1>(q, keys, theta, ds, dq, dk, d_theta, c, HWY_MIN(kPartLanes, keys.width - c));
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
