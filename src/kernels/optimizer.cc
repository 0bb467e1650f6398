#include "kernels/optimizer.h"

#include <algorithm>
#include <cstddef>

#include "kernels/chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optimizer.cc"
#include <hwy/foreach_target.h>
//
#include "kernels/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using V = hn::Vec<F>;

// change(x, v…) for a vector of every array at a time; what it makes of v is stored, x is only read. A step of training
// touches weights and moments once, so they come from memory, where fetching ahead helps (bench optimizer, 20 million
// weights: 10.4 ms, 12.0 without; twice as far ahead 11.0).
template <class Change, class... Arrays>
HWY_INLINE void Update(std::size_t count, Change change, const float* HWY_RESTRICT x, Arrays* HWY_RESTRICT... arrays) {
  const F d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hwy::Prefetch(x + i + kFetchAhead);
    (hwy::Prefetch(arrays + i + kFetchAhead), ...);
    [&](auto... v) HWY_ATTR {
      change(hn::LoadU(d, x + i), v...);
      (hn::StoreU(v, d, arrays + i), ...);
    }(hn::LoadU(d, arrays + i)...);
  }
  if (i == count) return;
  const std::size_t rest = count - i;
  [&](auto... v) HWY_ATTR {
    change(LoadFirst(d, x + i, rest), v...);
    (StoreFirst(v, d, arrays + i, rest), ...);
  }(LoadFirst(d, arrays + i, rest)...);
}

void Sgd(const float* gradient, float* weight, std::size_t count, const SgdNumbers<float>& numbers) {
  const F d;
  const V scale = hn::Set(d, numbers.gradient_scale), rate = hn::Set(d, numbers.rate), keep = hn::Set(d, numbers.keep);
  Update(
      count, [&](V g, V& w) HWY_ATTR { w = hn::NegMulAdd(rate, hn::Mul(scale, g), hn::Mul(keep, w)); }, gradient,
      weight);
}

void SgdMomentum(const float* gradient, float* weight, float* moment, std::size_t count,
                 const SgdNumbers<float>& numbers) {
  const F d;
  const V scale = hn::Set(d, numbers.gradient_scale), momentum = hn::Set(d, numbers.momentum),
          rate = hn::Set(d, numbers.rate), keep = hn::Set(d, numbers.keep);
  Update(
      count,
      [&](V g, V& w, V& m) HWY_ATTR {
        m = hn::MulAdd(momentum, m, hn::Mul(scale, g));
        w = hn::NegMulAdd(rate, m, hn::Mul(keep, w));
      },
      gradient, weight, moment);
}

void Adadelta(const float* gradient, float* weight, float* squares, float* changes, std::size_t count,
              const AdadeltaNumbers<float>& numbers) {
  const F d;
  const V scale = hn::Set(d, numbers.gradient_scale), decay = hn::Set(d, numbers.decay),
          rest = hn::Set(d, numbers.rest), epsilon = hn::Set(d, numbers.epsilon), rate = hn::Set(d, numbers.rate),
          keep = hn::Set(d, numbers.keep);
  Update(
      count,
      [&](V gradients, V& w, V& s, V& c) HWY_ATTR {
        const V g = hn::Mul(scale, gradients);
        s = hn::MulAdd(hn::Mul(rest, g), g, hn::Mul(decay, s));
        const V step = hn::Mul(hn::Div(hn::Sqrt(hn::Add(c, epsilon)), hn::Sqrt(hn::Add(s, epsilon))), g);
        c = hn::MulAdd(hn::Mul(rest, step), step, hn::Mul(decay, c));
        w = hn::NegMulAdd(rate, step, hn::Mul(keep, w));
      },
      gradient, weight, squares, changes);
}

void Adam(const float* gradient, float* weight, float* first, float* second, std::size_t count,
          const AdamNumbers<float>& numbers) {
  const F d;
  const V scale = hn::Set(d, numbers.gradient_scale), first_rest = hn::Set(d, numbers.first_rest),
          second_keep = hn::Set(d, numbers.second_keep), second_rest = hn::Set(d, numbers.second_rest),
          rate = hn::Set(d, numbers.rate), root_scale = hn::Set(d, numbers.root_scale),
          epsilon = hn::Set(d, numbers.epsilon), keep = hn::Set(d, numbers.keep);
  Update(
      count,
      [&](V gradients, V& w, V& m, V& v) HWY_ATTR {
        const V g = hn::Mul(scale, gradients);
        m = hn::MulAdd(first_rest, hn::Sub(g, m), m);
        v = hn::MulAdd(hn::Mul(second_rest, g), g, hn::Mul(second_keep, v));
        const V size = hn::MulAdd(hn::Sqrt(v), root_scale, epsilon);
        w = hn::NegMulAdd(rate, hn::Div(m, size), hn::Mul(keep, w));
      },
      gradient, weight, first, second);
}

void Follow(const float* weight, float* average, std::size_t count, float rest) {
  const V share = hn::Set(F(), rest);
  Update(
      count, [&](V w, V& a) HWY_ATTR { a = hn::MulAdd(share, hn::Sub(w, a), a); }, weight, average);
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(Sgd);
HWY_EXPORT(SgdMomentum);
HWY_EXPORT(Adadelta);
HWY_EXPORT(Adam);
HWY_EXPORT(Follow);

// Long pieces, so that little of what was fetched ahead belongs to another thread.
template <class Work>
void in_long_chunks(std::size_t count, Work work) {
  constexpr std::size_t kChunk = 32768;
  for_each_item((count + kChunk - 1) / kChunk, count,
                [&](std::size_t item) { work(item * kChunk, std::min(kChunk, count - item * kChunk)); });
}

}  // namespace

void sgd(const float* gradient, float* weight, float* moment, std::size_t count, const SgdNumbers<float>& numbers) {
  in_long_chunks(count, [&](std::size_t at, std::size_t some) {
    if (moment == nullptr) {
      HWY_DYNAMIC_DISPATCH(Sgd)(gradient + at, weight + at, some, numbers);
    } else {
      HWY_DYNAMIC_DISPATCH(SgdMomentum)(gradient + at, weight + at, moment + at, some, numbers);
    }
  });
}

void adadelta(const float* gradient, float* weight, float* squares, float* changes, std::size_t count,
              const AdadeltaNumbers<float>& numbers) {
  in_long_chunks(count, [&](std::size_t at, std::size_t some) {
    HWY_DYNAMIC_DISPATCH(Adadelta)(gradient + at, weight + at, squares + at, changes + at, some, numbers);
  });
}

void adam(const float* gradient, float* weight, float* first, float* second, std::size_t count,
          const AdamNumbers<float>& numbers) {
  in_long_chunks(count, [&](std::size_t at, std::size_t some) {
    HWY_DYNAMIC_DISPATCH(Adam)(gradient + at, weight + at, first + at, second + at, some, numbers);
  });
}

void follow(const float* weight, float* average, std::size_t count, float rest) {
  in_long_chunks(count, [&](std::size_t at, std::size_t some) {
    HWY_DYNAMIC_DISPATCH(Follow)(weight + at, average + at, some, rest);
  });
}

void sgd(const double* gradient, double* weight, double* moment, std::size_t count, const SgdNumbers<double>& numbers) {
  reference::sgd(gradient, weight, moment, count, numbers);
}

void adadelta(const double* gradient, double* weight, double* squares, double* changes, std::size_t count,
              const AdadeltaNumbers<double>& numbers) {
  reference::adadelta(gradient, weight, squares, changes, count, numbers);
}

void adam(const double* gradient, double* weight, double* first, double* second, std::size_t count,
          const AdamNumbers<double>& numbers) {
  reference::adam(gradient, weight, first, second, count, numbers);
}

void follow(const double* weight, double* average, std::size_t count, double rest) {
  reference::follow(weight, average, count, rest);
}

}  // namespace regard
#endif
