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

constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Σ exp(x − peak); the terms are stored in `terms` if that is not null. Meanwhile the next row is fetched, if not null.
HWY_INLINE float SumExp(const float* x, std::size_t n, float peak, float* terms, const float* next) {
  const Tag16 d;
  Lanes16 sums;
  for (Vector16& part : sums.part) part = hn::Zero(d);
  ForEachPart16(n, [&](std::size_t offset, std::size_t part, std::size_t count) HWY_ATTR {
    if (next != nullptr) hwy::Prefetch(next + offset);
    const Vector16 term = Exp(d, hn::Sub(LoadPart16(x + offset, count), hn::Set(d, peak)));
    if (terms != nullptr) StorePart16(term, terms + offset, count);
    sums.part[part] = ChangeFirst16(hn::Add(sums.part[part], term), sums.part[part], count);
  });
  return SumTree16(sums);
}

// The largest element, for which no order is needed: four vectors at a time. NaN may be overlooked; it comes back with
// the sum of the exponentials.
HWY_INLINE float Peak(const float* x, std::size_t n) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  auto a = hn::Set(d, kNothing), b = a, c = a, e = a;
  std::size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Max(hn::LoadU(d, x + i), a);
    b = hn::Max(hn::LoadU(d, x + i + lanes), b);
    c = hn::Max(hn::LoadU(d, x + i + 2 * lanes), c);
    e = hn::Max(hn::LoadU(d, x + i + 3 * lanes), e);
  }
  for (; i + lanes <= n; i += lanes) a = hn::Max(hn::LoadU(d, x + i), a);
  if (i < n) b = hn::IfThenElse(hn::FirstN(d, n - i), hn::Max(LoadFirst(d, x + i, n - i), b), b);
  const float peak = hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(a, b), hn::Max(c, e))));
  return peak == kNothing ? Max16(x, n) : peak;
}

HWY_INLINE void Fill(float* y, std::size_t n, float value) {
  Map([value](auto d) HWY_ATTR { return hn::Set(d, value); }, y, n);
}

// The peak of the next row is looked for before this row is finished: the processor has something to do while it waits
// for the sum.
void SoftmaxRows(Rows x, Tile y, Path path) {
  constexpr std::size_t kBuffer = 4096;  // where the exponentials wait for their sum if y shall not be in the cache
  HWY_ALIGN float buffer[kBuffer];
  if (x.width > kBuffer && path == Path::kStreamed) path = Path::kAhead;
  float peak = Peak(x.row(0), x.width);
  for (std::size_t i = 0; i < x.count; ++i) {
    float* terms = path == Path::kStreamed ? buffer : y.row(i);
    const float* next = x.row(i + 1);
    const float sum = SumExp(x.row(i), x.width, peak, terms, path == Path::kCached ? nullptr : next);
    const bool empty = peak == kNothing;
    if (i + 1 < x.count) peak = Peak(next, x.width);
    if (empty) {
      Fill(y.row(i), x.width, 0.0f);
    } else {
      const auto share = [factor = 1.0f / sum](auto d, auto v) HWY_ATTR { return hn::Mul(v, hn::Set(d, factor)); };
      MapOn(path == Path::kStreamed ? path : Path::kCached, share, y.row(i), x.width, terms);
    }
  }
}

void LogSoftmaxRows(Rows x, Tile y, Path path) {
  const hn::ScalableTag<float> one;
  float next_peak = Peak(x.row(0), x.width);
  for (std::size_t i = 0; i < x.count; ++i) {
    const float peak = next_peak;
    const float* next = x.row(i + 1);
    const float sum = SumExp(x.row(i), x.width, peak, nullptr, path == Path::kCached ? nullptr : next);
    if (i + 1 < x.count) next_peak = Peak(next, x.width);
    if (peak == kNothing) {
      Fill(y.row(i), x.width, kNothing);
    } else {
      const float logarithm = hn::GetLane(Log(one, hn::Set(one, sum)));
      const auto minus = [peak, logarithm](auto d, auto v)
                             HWY_ATTR { return hn::Sub(hn::Sub(v, hn::Set(d, peak)), hn::Set(d, logarithm)); };
      MapOn(path == Path::kStreamed ? path : Path::kCached, minus, y.row(i), x.width, x.row(i));
    }
  }
}

// The largest elements of 16 classes of columns, −∞ where a class has none. NaN may be overlooked.
HWY_INLINE void PeakLanes(const float* x, std::size_t n, float* lanes) {
  const Tag16 d;
  constexpr std::size_t kGroups = HWY_MAX(1, 4 / kParts), kStep = kGroups * 16;
  Vector16 peaks[kGroups * kParts];
#pragma GCC unroll 4
  for (Vector16& each : peaks) each = hn::Set(d, kNothing);
  std::size_t i = 0;
  for (; i + kStep <= n; i += kStep) {
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kGroups * kParts; ++v)
      peaks[v] = hn::Max(hn::LoadU(d, x + i + v * kPartLanes), peaks[v]);
  }
  ForEachPart16(n - i, [&](std::size_t offset, std::size_t part, std::size_t count) HWY_ATTR {
    const Vector16 larger = hn::Max(LoadPart16(x + i + offset, count), peaks[part]);
    peaks[part] = ChangeFirst16(larger, peaks[part], count);
  });
#pragma GCC unroll 4
  for (std::size_t part = 0; part < kParts; ++part) {
#pragma GCC unroll 4
    for (std::size_t v = kParts + part; v < kGroups * kParts; v += kParts) peaks[part] = hn::Max(peaks[v], peaks[part]);
    hn::StoreU(peaks[part], d, lanes + part * kPartLanes);
  }
}

// The `count`-th largest of 16 numbers: as many elements of a row are at least as large as that of its lanes.
HWY_INLINE float LargestOf16(const float* lanes, std::size_t count) {
  float largest[16];
  for (std::size_t i = 0; i < 16; ++i) {
    std::size_t at = i;
    for (; at > 0 && lanes[i] > largest[at - 1]; --at) largest[at] = largest[at - 1];
    largest[at] = lanes[i];
  }
  return largest[count - 1];
}

// Few elements are worth a look: those below the `count`-th largest of 16 of them are not, which leaves some 15 of 8000
// for a count of 10. (Compared after the logarithm is subtracted: rounding makes some equal, and then the first
// counts.)
void LikeliestRows(Rows x, const Likeliest& out, std::size_t first) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  constexpr std::size_t kTogether = 4;
  for (std::size_t i = 0; i < x.count; ++i) {
    const float* const row = x.row(i);
    HWY_ALIGN float lane_peaks[16];
    PeakLanes(row, x.width, lane_peaks);
    float peak = *std::max_element(lane_peaks, lane_peaks + 16);
    if (!(peak > kNothing)) peak = Max16(row, x.width);
    const float sum = SumExp(row, x.width, peak, nullptr, i + 1 < x.count ? x.row(i + 1) : nullptr);
    const float logarithm = peak == kNothing ? 0.0f : hn::GetLane(Log(d, hn::Set(d, sum)));
    const auto value = [&](auto v) HWY_ATTR {
      return peak == kNothing ? v : hn::Sub(hn::Sub(v, hn::Set(d, peak)), hn::Set(d, logarithm));
    };
    float* const values = out.values + (first + i) * out.count;
    std::int32_t* const columns = out.columns + (first + i) * out.count;
    std::size_t found = 0;
    float least = out.count >= 1 && out.count <= 16 ? hn::GetLane(value(hn::Set(d, LargestOf16(lane_peaks, out.count))))
                                                    : kNothing;
    bool bounded = least > kNothing;  // not of a row that is NaN
    HWY_ALIGN float some[HWY_MAX_BYTES / sizeof(float)];
    const auto look = [&](std::size_t j, std::size_t here) HWY_ATTR {
      hn::Store(value(LoadFirst(d, row + j, here)), d, some);
      for (std::size_t lane = 0; lane < here; ++lane) {
        if (bounded && !(some[lane] >= least)) continue;
        if (found == out.count && !(some[lane] > values[found - 1])) continue;  // of equal ones the first counts
        std::size_t at = found < out.count ? found++ : found - 1;
        for (; at > 0 && some[lane] > values[at - 1]; --at) {
          values[at] = values[at - 1];
          columns[at] = columns[at - 1];
        }
        values[at] = some[lane];
        columns[at] = static_cast<std::int32_t>(j + lane);
      }
      if (found == out.count && found > 0) {
        least = values[found - 1];
        bounded = true;
      }
    };
    std::size_t j = 0;
    for (; j + kTogether * lanes <= x.width; j += kTogether * lanes) {
      if (bounded) {
        const auto least_here = hn::Set(d, least);
        const auto worth = [&](std::size_t v)
                               HWY_ATTR { return hn::Ge(value(hn::LoadU(d, row + j + v * lanes)), least_here); };
        if (hn::AllFalse(d, hn::Or(hn::Or(worth(0), worth(1)), hn::Or(worth(2), worth(3))))) continue;
      }
      for (std::size_t v = 0; v < kTogether; ++v) look(j + v * lanes, lanes);
    }
    for (; j < x.width; j += lanes) look(j, HWY_MIN(lanes, x.width - j));
    out.also_values[first + i] = hn::GetLane(value(hn::Set(d, row[out.also])));
  }
}

void SoftmaxBackwardRows(Rows y, Rows dy, Tile dx, bool add, Path path) {
  for (std::size_t i = 0; i < y.count; ++i) {
    const float dot = Dot16(y.row(i), dy.row(i), y.width);
    const auto gradient = [dot](auto d, auto v, auto g) HWY_ATTR { return hn::Mul(v, hn::Sub(g, hn::Set(d, dot))); };
    MapGradient(path, gradient, y.row(i), dy.row(i), dx.row(i), y.width, add);
  }
}

void LogSoftmaxBackwardRows(Rows y, Rows dy, Tile dx, bool add, Path path) {
  for (std::size_t i = 0; i < y.count; ++i) {
    if (Max16(y.row(i), y.width) == kNothing) {
      if (!add) Fill(dx.row(i), y.width, 0.0f);
      continue;
    }
    const float sum = Sum16(dy.row(i), y.width);
    const auto gradient = [sum](auto d, auto v, auto g)
                              HWY_ATTR { return hn::NegMulAdd(Exp(d, v), hn::Set(d, sum), g); };
    MapGradient(path, gradient, y.row(i), dy.row(i), dx.row(i), y.width, add);
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
HWY_EXPORT(LikeliestRows);
HWY_EXPORT(SoftmaxBackwardRows);
HWY_EXPORT(LogSoftmaxBackwardRows);

}  // namespace

void softmax(Rows x, Tile y) {
  const Path path = path_for(x.count * x.width, x.data == y.data);
  in_row_chunks(x.count, x.width, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(SoftmaxRows)(some_rows(x, begin, count), some_rows(y, begin, count), path);
    finish_stores(path);
  });
}

void log_softmax(Rows x, Tile y) {
  const Path path = path_for(x.count * x.width, x.data == y.data);
  in_row_chunks(x.count, x.width, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(LogSoftmaxRows)(some_rows(x, begin, count), some_rows(y, begin, count), path);
    finish_stores(path);
  });
}

void likeliest(Rows x, const Likeliest& out) {
  in_row_chunks(x.count, x.width, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(LikeliestRows)(some_rows(x, begin, count), out, begin);
  });
}

void softmax_backward(Rows y, Rows dy, Tile dx, bool add) {
  const Path path = path_for(y.count * y.width, add || dx.data == y.data || dx.data == dy.data);
  in_row_chunks(y.count, y.width, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(SoftmaxBackwardRows)
    (some_rows(y, begin, count), some_rows(dy, begin, count), some_rows(dx, begin, count), add, path);
    finish_stores(path);
  });
}

void log_softmax_backward(Rows y, Rows dy, Tile dx, bool add) {
  const Path path = path_for(y.count * y.width, add || dx.data == y.data || dx.data == dy.data);
  in_row_chunks(y.count, y.width, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(LogSoftmaxBackwardRows)
    (some_rows(y, begin, count), some_rows(dy, begin, count), some_rows(dx, begin, count), add, path);
    finish_stores(path);
  });
}

}  // namespace regard
#endif
