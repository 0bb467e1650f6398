#include "kernels/optimizer.h"

#include <algorithm>
#include <cstddef>

#include "base/pool.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optimizer.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

struct SgdVectors {
  V gradient_scale, momentum, rate, keep;
};

// One vector of elements. Without momentum `moment` is null.
HWY_INLINE void SgdVector(F d, const float* HWY_RESTRICT gradient, float* HWY_RESTRICT weight,
                          float* HWY_RESTRICT moment, const SgdVectors& n) {
  V step = hn::Mul(n.gradient_scale, hn::LoadU(d, gradient));
  if (moment != nullptr) {
    step = hn::MulAdd(n.momentum, hn::LoadU(d, moment), step);
    hn::StoreU(step, d, moment);
  }
  hn::StoreU(hn::NegMulAdd(n.rate, step, hn::Mul(n.keep, hn::LoadU(d, weight))), d, weight);
}

void Sgd(const float* gradient, float* weight, float* moment, std::size_t count, const SgdNumbers<float>& numbers) {
  const F d;
  const std::size_t lanes = hn::Lanes(d);
  const SgdVectors n = {hn::Set(d, numbers.gradient_scale), hn::Set(d, numbers.momentum), hn::Set(d, numbers.rate),
                        hn::Set(d, numbers.keep)};
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    SgdVector(d, gradient + i, weight + i, moment == nullptr ? nullptr : moment + i, n);
  }
  if (i == count) return;
  // The tail goes through the same formula, in vectors on the stack.
  HWY_ALIGN float tail[3][HWY_MAX_BYTES / sizeof(float)] = {};
  const std::size_t rest = count - i;
  std::copy_n(gradient + i, rest, tail[0]);
  std::copy_n(weight + i, rest, tail[1]);
  if (moment != nullptr) std::copy_n(moment + i, rest, tail[2]);
  SgdVector(d, tail[0], tail[1], moment == nullptr ? nullptr : tail[2], n);
  std::copy_n(tail[1], rest, weight + i);
  if (moment != nullptr) std::copy_n(tail[2], rest, moment + i);
}

struct AdamVectors {
  V gradient_scale, first_rest, second_keep, second_rest, rate, root_scale, epsilon, keep;
};

HWY_INLINE void AdamVector(F d, const float* HWY_RESTRICT gradient, float* HWY_RESTRICT weight,
                           float* HWY_RESTRICT first, float* HWY_RESTRICT second, const AdamVectors& n) {
  const V g = hn::Mul(n.gradient_scale, hn::LoadU(d, gradient));
  const V before = hn::LoadU(d, first);
  const V m = hn::MulAdd(n.first_rest, hn::Sub(g, before), before);
  const V v = hn::MulAdd(hn::Mul(n.second_rest, g), g, hn::Mul(n.second_keep, hn::LoadU(d, second)));
  hn::StoreU(m, d, first);
  hn::StoreU(v, d, second);
  const V size = hn::MulAdd(hn::Sqrt(v), n.root_scale, n.epsilon);
  hn::StoreU(hn::NegMulAdd(n.rate, hn::Div(m, size), hn::Mul(n.keep, hn::LoadU(d, weight))), d, weight);
}

void Adam(const float* gradient, float* weight, float* first, float* second, std::size_t count,
          const AdamNumbers<float>& numbers) {
  const F d;
  const std::size_t lanes = hn::Lanes(d);
  const AdamVectors n = {hn::Set(d, numbers.gradient_scale), hn::Set(d, numbers.first_rest),
                         hn::Set(d, numbers.second_keep),    hn::Set(d, numbers.second_rest),
                         hn::Set(d, numbers.rate),           hn::Set(d, numbers.root_scale),
                         hn::Set(d, numbers.epsilon),        hn::Set(d, numbers.keep)};
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) AdamVector(d, gradient + i, weight + i, first + i, second + i, n);
  if (i == count) return;
  HWY_ALIGN float tail[4][HWY_MAX_BYTES / sizeof(float)] = {};
  const std::size_t rest = count - i;
  std::copy_n(gradient + i, rest, tail[0]);
  std::copy_n(weight + i, rest, tail[1]);
  std::copy_n(first + i, rest, tail[2]);
  std::copy_n(second + i, rest, tail[3]);
  AdamVector(d, tail[0], tail[1], tail[2], tail[3], n);
  std::copy_n(tail[1], rest, weight + i);
  std::copy_n(tail[2], rest, first + i);
  std::copy_n(tail[3], rest, second + i);
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(Sgd);
HWY_EXPORT(Adam);

constexpr std::size_t kChunk = 16384;  // 64 KiB an array: four arrays fit in the second-level cache

template <class Work>
void in_chunks(std::size_t count, Work work) {
  parallel((count + kChunk - 1) / kChunk, [&](std::size_t chunk) {
    const std::size_t begin = chunk * kChunk;
    work(begin, std::min(kChunk, count - begin));
  });
}

}  // namespace

void sgd(const float* gradient, float* weight, float* moment, std::size_t count, const SgdNumbers<float>& numbers) {
  in_chunks(count, [&](std::size_t at, std::size_t some) {
    HWY_DYNAMIC_DISPATCH(Sgd)
    (gradient + at, weight + at, moment == nullptr ? nullptr : moment + at, some, numbers);
  });
}

void adam(const float* gradient, float* weight, float* first, float* second, std::size_t count,
          const AdamNumbers<float>& numbers) {
  in_chunks(count, [&](std::size_t at, std::size_t some) {
    HWY_DYNAMIC_DISPATCH(Adam)(gradient + at, weight + at, first + at, second + at, some, numbers);
  });
}

void sgd(const double* gradient, double* weight, double* moment, std::size_t count, const SgdNumbers<double>& numbers) {
  reference::sgd(gradient, weight, moment, count, numbers);
}

void adam(const double* gradient, double* weight, double* first, double* second, std::size_t count,
          const AdamNumbers<double>& numbers) {
  reference::adam(gradient, weight, first, second, count, numbers);
}

}  // namespace regard
#endif
