#include "kernels/arg_max.h"

#include "kernels/chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/arg_max.cc"
#include <hwy/foreach_target.h>

#include "kernels/map-inl.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// First the peak, then the first place that holds it (or the first NaN): two passes over a row that is in cache.
std::size_t ArgMaxRow(const float* x, std::size_t n) {
  const hn::ScalableTag<float> d;
  const float peak = Max16(x, n);
  const bool strange = peak != peak;
  const auto wanted = hn::Set(d, peak);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, x + i);
    const std::intptr_t lane = hn::FindFirstTrue(d, strange ? hn::IsNaN(v) : hn::Eq(v, wanted));
    if (lane >= 0) return i + static_cast<std::size_t>(lane);
  }
  while (i + 1 < n && (strange ? x[i] == x[i] : x[i] != peak)) ++i;
  return i;
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {

HWY_EXPORT(ArgMaxRow);

void arg_max(Rows x, std::int32_t* place) {
  in_row_chunks(x.count, x.width, [&](std::size_t begin, std::size_t count) {
    for (std::size_t i = begin; i < begin + count; ++i) {
      place[i] = static_cast<std::int32_t>(HWY_DYNAMIC_DISPATCH(ArgMaxRow)(x.row(i), x.width));
    }
  });
}

}  // namespace regard
#endif
