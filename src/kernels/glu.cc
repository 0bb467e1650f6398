#include "kernels/glu.h"

#include "kernels/chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/glu.cc"
#include <hwy/foreach_target.h>

#include "kernels/map-inl.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void GluRow(const float* x, std::size_t width, float* y) {
  Map([](auto d, auto a, auto b) HWY_ATTR { return hn::Mul(a, Sigmoid(d, b)); }, y, width, x, x + width);
}

void GluBackRow(const float* x, const float* dy, std::size_t width, float* dx, bool add) {
  const auto left = [](auto d, auto b, auto up) HWY_ATTR { return hn::Mul(up, Sigmoid(d, b)); };
  const auto right = [](auto d, auto a, auto b, auto up) HWY_ATTR {
    const auto s = Sigmoid(d, b);
    return hn::Mul(hn::Mul(up, a), hn::NegMulAdd(s, s, s));
  };
  if (add) {
    Map([&](auto d, auto b, auto up, auto old) HWY_ATTR { return hn::Add(old, left(d, b, up)); }, dx, width, x + width,
        dy, dx);
    Map([&](auto d, auto a, auto b, auto up, auto old) HWY_ATTR { return hn::Add(old, right(d, a, b, up)); },
        dx + width, width, x, x + width, dy, dx + width);
  } else {
    Map(left, dx, width, x + width, dy);
    Map(right, dx + width, width, x, x + width, dy);
  }
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {

HWY_EXPORT(GluRow);
HWY_EXPORT(GluBackRow);

void glu(Rows x, Tile y) {
  in_row_chunks(y.count, x.width, [&](std::size_t begin, std::size_t count) {
    for (std::size_t i = begin; i < begin + count; ++i) HWY_DYNAMIC_DISPATCH(GluRow)(x.row(i), y.width, y.row(i));
  });
}

void glu_backward(Rows x, Rows dy, Tile dx, bool add) {
  in_row_chunks(dy.count, x.width, [&](std::size_t begin, std::size_t count) {
    for (std::size_t i = begin; i < begin + count; ++i) {
      HWY_DYNAMIC_DISPATCH(GluBackRow)(x.row(i), dy.row(i), dy.width, dx.row(i), add);
    }
  });
}

}  // namespace regard
#endif
