// Loads and stores of the first few lanes of a vector, for the ends of rows: never a byte beyond the row is touched.
// (Highway's MaskedLoad may read the whole vector on targets without masks.)
#if defined(REGARD_KERNELS_PARTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_PARTIAL_INL_H_
#undef REGARD_KERNELS_PARTIAL_INL_H_
#else
#define REGARD_KERNELS_PARTIAL_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The first `count` < Lanes(d) lanes, zero in the others.
template <class D, class T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> LoadFirst(D d, const T* from, std::size_t count) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN T lanes[hn::MaxLanes(D())] = {};
  std::memcpy(lanes, from, count * sizeof(T));
  return hn::Load(d, lanes);
#else
  return hn::MaskedLoad(hn::FirstN(d, count), d, from);
#endif
}

template <class D, class V, class T = hn::TFromD<D>>
HWY_INLINE void StoreFirst(V v, D d, T* to, std::size_t count) {
#if HWY_MEM_OPS_MIGHT_FAULT
  HWY_ALIGN T lanes[hn::MaxLanes(D())];
  hn::Store(v, d, lanes);
  std::memcpy(to, lanes, count * sizeof(T));
#else
  hn::BlendedStore(v, hn::FirstN(d, count), d, to);
#endif
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
