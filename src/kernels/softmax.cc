#include "kernels/softmax.h"

#include "kernels/chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/map-inl.h"
#include "kernels/math-inl.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace {

HWY_INLINE auto Times(float factor) {
  return [factor](auto d, auto v) HWY_ATTR { return hn::Mul(v, hn::Set(d, factor)); };
}

// exp(x − peak), and −∞ − −∞ does not arise: rows with that peak are dealt with before.
HWY_INLINE auto ExpBelow(float peak) {
  return [peak](auto d, auto v) HWY_ATTR { return Exp(d, hn::Sub(v, hn::Set(d, peak))); };
}

constexpr float kNothing = -std::numeric_limits<float>::infinity();

void SoftmaxRows(Rows x, Tile y) {
  for (std::size_t i = 0; i < x.count; ++i) {
    const float* from = x.row(i);
    float* to = y.row(i);
    const float peak = Max16(from, x.width);
    if (peak == kNothing) {
      Map([](auto d) HWY_ATTR { return hn::Zero(d); }, to, x.width);
      continue;
    }
    const float sum = SumAndStore16(x.width, to, ExpBelow(peak), from);
    Map(Times(1.0f / sum), to, x.width, to);
  }
}

void LogSoftmaxRows(Rows x, Tile y) {
  const hn::ScalableTag<float> one;
  for (std::size_t i = 0; i < x.count; ++i) {
    const float* from = x.row(i);
    float* to = y.row(i);
    const float peak = Max16(from, x.width);
    if (peak == kNothing) {
      Map([](auto d) HWY_ATTR { return hn::Set(d, kNothing); }, to, x.width);
      continue;
    }
    const float sum = SumOf16(x.width, ExpBelow(peak), from);
    const float logarithm = hn::GetLane(Log(one, hn::Set(one, sum)));
    const auto minus = [peak, logarithm](auto d, auto v)
                           HWY_ATTR { return hn::Sub(hn::Sub(v, hn::Set(d, peak)), hn::Set(d, logarithm)); };
    Map(minus, to, x.width, from);
  }
}

void SoftmaxBackwardRows(Rows y, Rows dy, Tile dx, bool add) {
  for (std::size_t i = 0; i < y.count; ++i) {
    const float dot = Dot16(y.row(i), dy.row(i), y.width);
    const auto gradient = [dot](auto d, auto v, auto g) HWY_ATTR { return hn::Mul(v, hn::Sub(g, hn::Set(d, dot))); };
    MapGradient(gradient, y.row(i), dy.row(i), dx.row(i), y.width, add);
  }
}

void LogSoftmaxBackwardRows(Rows y, Rows dy, Tile dx, bool add) {
  for (std::size_t i = 0; i < y.count; ++i) {
    if (Max16(y.row(i), y.width) == kNothing) {
      if (!add) Map([](auto d) HWY_ATTR { return hn::Zero(d); }, dx.row(i), y.width);
      continue;
    }
    const float sum = Sum16(dy.row(i), y.width);
    const auto gradient = [sum](auto d, auto v, auto g)
                              HWY_ATTR { return hn::NegMulAdd(Exp(d, v), hn::Set(d, sum), g); };
    MapGradient(gradient, y.row(i), dy.row(i), dx.row(i), y.width, add);
  }
}

}  // namespace
}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(SoftmaxRows);
HWY_EXPORT(LogSoftmaxRows);
HWY_EXPORT(SoftmaxBackwardRows);
HWY_EXPORT(LogSoftmaxBackwardRows);

}  // namespace

void softmax(Rows x, Tile y) {
  in_row_chunks(x.count, x.width, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(SoftmaxRows)(some_rows(x, begin, count), some_rows(y, begin, count));
  });
}

void log_softmax(Rows x, Tile y) {
  in_row_chunks(x.count, x.width, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(LogSoftmaxRows)(some_rows(x, begin, count), some_rows(y, begin, count));
  });
}

void softmax_backward(Rows y, Rows dy, Tile dx, bool add) {
  in_row_chunks(y.count, y.width, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(SoftmaxBackwardRows)
    (some_rows(y, begin, count), some_rows(dy, begin, count), some_rows(dx, begin, count), add);
  });
}

void log_softmax_backward(Rows y, Rows dy, Tile dx, bool add) {
  in_row_chunks(y.count, y.width, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(LogSoftmaxBackwardRows)
    (some_rows(y, begin, count), some_rows(dy, begin, count), some_rows(dx, begin, count), add);
  });
}

}  // namespace regard
#endif
