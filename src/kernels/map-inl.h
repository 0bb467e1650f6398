// Functions of vectors applied to arrays of any length. The last elements go through the same function in the first
// lanes of a vector, and never a byte beyond the array is touched.
//
//     Map([](auto d, auto v, auto w) HWY_ATTR { return hn::Add(v, w); }, y, n, x, z);          // y = x + z
#if defined(REGARD_KERNELS_MAP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_MAP_INL_H_
#undef REGARD_KERNELS_MAP_INL_H_
#else
#define REGARD_KERNELS_MAP_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/chunks.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The first `count` < Lanes(d) lanes, zero in the others; lanes have 4 bytes. Highway's MaskedLoad reads the whole
// vector on targets without masks (AVX2 has them for 4 bytes).
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadFirst(D d, const T* from, std::size_t count) {
  static_assert(sizeof(T) == 4);
#if HWY_MEM_OPS_MIGHT_FAULT && HWY_TARGET != HWY_AVX2
  HWY_ALIGN T lanes[hn::MaxLanes(D())] = {};
  std::memcpy(lanes, from, count * sizeof(T));
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(hn::FirstN(d, count), d, from);
#endif
}

template <class D, class V, class T = hn::TFromD<D>>
HWY_INLINE void StoreFirst(V v, D d, T* to, std::size_t count) {
#if HWY_MEM_OPS_MIGHT_FAULT && HWY_TARGET != HWY_AVX2
  HWY_ALIGN T lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  std::memcpy(to, lanes, count * sizeof(T));
#else
  hn::BlendedStore(v, hn::FirstN(d, count), d, to);
#endif
}

// y = f(d, x…) for n elements; y may be one of the arrays.
template <class F, class... Arrays>
HWY_INLINE void Map(F f, float* y, std::size_t n, const Arrays*... x) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i)...), d, y + i);
  if (i < n) StoreFirst(f(d, LoadFirst(d, x + i, n - i)...), d, y + i, n - i);
}

inline constexpr std::size_t kFetchAhead = 1024;  // one page; 512 is 4 % slower, 256 13 %

// The same on a path of kernels/chunks.h. If the path is kStreamed, y is none of the arrays.
template <class F, class... Arrays>
HWY_INLINE void MapOn(Path path, F f, float* y, std::size_t n, const Arrays*... x) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  if (path == Path::kStreamed) {  // such stores are whole and aligned
    const std::size_t head = (0 - reinterpret_cast<std::uintptr_t>(y)) / sizeof(float) % lanes;
    i = head < n ? head : n;
    if (i > 0) StoreFirst(f(d, LoadFirst(d, x, i)...), d, y, i);
  }
  for (; i + lanes <= n; i += lanes) {
    if (path != Path::kCached) (hwy::Prefetch(x + i + kFetchAhead), ...);
    const auto v = f(d, hn::LoadU(d, x + i)...);
    if (path == Path::kStreamed) {
      hn::Stream(v, d, y + i);
    } else {
      hn::StoreU(v, d, y + i);
    }
  }
  if (i < n) StoreFirst(f(d, LoadFirst(d, x + i, n - i)...), d, y + i, n - i);
}

// dx = f(d, saved, dy), or dx += that.
template <class F>
HWY_INLINE void MapGradient(Path path, F f, const float* saved, const float* dy, float* dx, std::size_t n, bool add) {
  if (add) {
    const auto sum = [f](auto d, auto v, auto g, auto old) HWY_ATTR { return hn::Add(old, f(d, v, g)); };
    MapOn(path, sum, dx, n, saved, dy, dx);
  } else {
    MapOn(path, f, dx, n, saved, dy);
  }
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
