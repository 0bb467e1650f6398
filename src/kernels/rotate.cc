#include "kernels/rotate.h"

#include "kernels/chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rotate.cc"
#include <hwy/foreach_target.h>

#include "kernels/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors have an even number of lanes, so a pair never falls apart.
void RotateRow(const float* x, const float* turn, std::size_t width, float* y, bool back, bool add) {
  const auto ahead = [](auto d, auto v, auto c, auto s)
                         HWY_ATTR { return hn::MulAdd(v, c, hn::Mul(hn::Reverse2(d, v), s)); };
  const auto turned = [](auto d, auto v, auto c, auto s)
                          HWY_ATTR { return hn::MulAdd(v, c, hn::Neg(hn::Mul(hn::Reverse2(d, v), s))); };
  const float *c = turn, *s = turn + width;
  if (add) {
    if (back) {
      Map([&](auto d, auto v, auto p, auto q, auto old) HWY_ATTR { return hn::Add(old, turned(d, v, p, q)); }, y, width,
          x, c, s, y);
    } else {
      Map([&](auto d, auto v, auto p, auto q, auto old) HWY_ATTR { return hn::Add(old, ahead(d, v, p, q)); }, y, width,
          x, c, s, y);
    }
  } else if (back) {
    Map(turned, y, width, x, c, s);
  } else {
    Map(ahead, y, width, x, c, s);
  }
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {

HWY_EXPORT(RotateRow);

void rotate(Rows x, const float* const* turns, std::size_t period, Tile y, bool back, bool add) {
  in_row_chunks(x.count, x.width, [&](std::size_t begin, std::size_t count) {
    for (std::size_t r = begin; r < begin + count; ++r) {
      HWY_DYNAMIC_DISPATCH(RotateRow)(x.row(r), turns[r % period], x.width, y.row(r), back, add);
    }
  });
}

}  // namespace regard
#endif
