#include "attention/tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/tiles.cc"
#include <hwy/foreach_target.h>

#include "attention/additive-inl.h"
#include "kernels/gemm-inl.h"
#include "kernels/math-inl.h"
#include "kernels/random-inl.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr float kNothing = -std::numeric_limits<float>::infinity();

// x·0 is 0, or NaN for NaN and ∞.
bool AllFinite(Rows x) {
  const Tag16 d;
  const Vector16 zero = hn::Zero(d);
  const bool dense = x.stride == x.width;
  const std::size_t count = dense ? (x.width == 0 ? 0 : 1) : x.count, width = dense ? x.count * x.width : x.width;
  Vector16 strange[4] = {zero, zero, zero, zero};
  for (std::size_t i = 0; i < count; ++i) {
    const float* row = x.row(i);
    std::size_t c = 0;
    for (; c + 4 * kPartLanes <= width; c += 4 * kPartLanes) {
#pragma GCC unroll 4
      for (std::size_t j = 0; j < 4; ++j)
        strange[j] = hn::MulAdd(hn::LoadU(d, row + c + j * kPartLanes), zero, strange[j]);
    }
    for (; c + kPartLanes <= width; c += kPartLanes) strange[0] = hn::MulAdd(hn::LoadU(d, row + c), zero, strange[0]);
    if (c < width) strange[1] = hn::MulAdd(LoadPart16(row + c, width - c), zero, strange[1]);
  }
  const Vector16 all = hn::Add(hn::Add(strange[0], strange[1]), hn::Add(strange[2], strange[3]));
  return hn::AllTrue(d, hn::Eq(all, zero));
}

// c = a·b, or with `resume` c += a·b, in blocks of registers: each element the chain that gemm has, without the thought
// that gemm spends on large products. Column j of panel p of b stands at b[p · b_panel + k · b_k + j]. The last panel
// may be ragged if b is packed.
void MultiplyBlocks(Matrix a, const float* b, std::size_t b_panel, std::size_t b_k, Tile c, bool resume, Ahead* ahead) {
  constexpr std::size_t kStrip = gemm_detail::kMostPanels * kPanelWidth;
  const gemm_detail::RowBlocks blocks(c.count);
  gemm_detail::BlockArguments arguments;
  arguments.a_row = a.row_stride;
  arguments.a_k = a.column_stride;
  arguments.b_panel = b_panel;
  arguments.b_k = b_k;
  arguments.depth = a.columns;
  arguments.c_row = c.stride;
  arguments.bias = nullptr;
  arguments.resume = resume;
  arguments.relu = false;
  arguments.far_b = false;
  for (std::size_t strip = 0; strip < c.width; strip += kStrip) {
    const std::size_t columns = HWY_MIN(kStrip, c.width - strip), full = columns / kPanelWidth * kPanelWidth;
    for (std::size_t block = 0, i = 0; block < blocks.count; i += blocks.height(block), ++block) {
      const std::size_t height = blocks.height(block), most = gemm_detail::BlockPanels(height) * kPanelWidth;
      arguments.a = a.data + i * a.row_stride;
      std::size_t width;
      for (std::size_t done = 0; done < columns; done += width) {
        width = HWY_MIN(most, (done < full ? full : columns) - done);
        arguments.b = b + (strip + done) / kPanelWidth * b_panel;
        arguments.c = c.row(i) + strip + done;
        arguments.next_c = arguments.c + height * c.stride;
        const float* const wanted = ahead == nullptr ? nullptr : ahead->take(a.columns);
        arguments.ahead = wanted == nullptr ? arguments.b : wanted;
        arguments.ahead_k = wanted == nullptr ? 0 : Ahead::kLine;
        if (width % kPanelWidth == 0) {
          gemm_detail::AnyBlock(height, width / kPanelWidth, arguments);
        } else {
          gemm_detail::EdgeBlock(height, width, Activation::kNone, arguments);
        }
      }
    }
  }
}

// y += a·x, one step of the chain that a product is.
HWY_INLINE void AddScaled(float a, const float* x, float* y, std::size_t width) {
  const Vector16 factor = hn::Set(Tag16(), a);
  ForEachPart16(width, [&](std::size_t c, std::size_t, std::size_t lanes) HWY_ATTR {
    StorePart16(hn::MulAdd(factor, LoadPart16(x + c, lanes), LoadPart16(y + c, lanes)), y + c, lanes);
  });
}

void SelectedProduct(Matrix a, Rows b, Tile c) {
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) {
      const float factor = a.at(i, j);
      if (factor != 0.0f) AddScaled(factor, b.row(j), c.row(i), b.width);
    }
  }
}

void ScaleRows(Tile x, const float* factors) {
  for (std::size_t i = 0; i < x.count; ++i) {
    if (factors[i] == 1.0f) continue;
    Map([factor = factors[i]](auto d, auto v) HWY_ATTR { return hn::Mul(v, hn::Set(d, factor)); }, x.row(i), x.width,
        x.row(i));
  }
}

void PlainZeros(Tile x) {
  for (std::size_t i = 0; i < x.count; ++i) {
    Map([](auto d, auto v) HWY_ATTR { return hn::Add(v, hn::Zero(d)); }, x.row(i), x.width, x.row(i));
  }
}

void ScaledCopy(Rows x, float factor, Tile y) {
  for (std::size_t i = 0; i < x.count; ++i) {
    Map([factor](auto d, auto v) HWY_ATTR { return hn::Mul(v, hn::Set(d, factor)); }, y.row(i), x.width, x.row(i));
  }
}

void AddScaledCopy(Rows x, float factor, Tile y) {
  for (std::size_t i = 0; i < x.count; ++i) {
    Map([factor](auto d, auto old, auto v) HWY_ATTR { return hn::MulAdd(v, hn::Set(d, factor), old); }, y.row(i),
        x.width, y.row(i), x.row(i));
  }
}

void DotRows(Rows x, Rows y, float* to) {
  for (std::size_t i = 0; i < x.count; ++i) to[i] = Dot16(x.row(i), y.row(i), x.width);
}

void NormaliseRows(Rows x, float length, Tile y) {
  for (std::size_t i = 0; i < x.count; ++i) {
    const float own = std::sqrt(SumSquares16(x.row(i), x.width));
    const float divisor = own == 0.0f ? 1.0f : own;
    Map([=](auto d, auto v) HWY_ATTR { return hn::Mul(hn::Div(v, hn::Set(d, divisor)), hn::Set(d, length)); }, y.row(i),
        x.width, x.row(i));
  }
}

void NormaliseRowsBackward(Rows x, Rows dy, float length, Tile dx) {
  for (std::size_t i = 0; i < x.count; ++i) {
    const float *from = x.row(i), *gradient = dy.row(i);
    if (std::all_of(gradient, gradient + x.width, [](float g) { return g == 0.0f; })) continue;
    const float own = std::sqrt(SumSquares16(from, x.width));
    if (own == 0.0f) continue;
    const float along = SumOf16(
        x.width, [=](auto d, auto v, auto g) HWY_ATTR { return hn::Mul(hn::Div(v, hn::Set(d, own)), g); }, from,
        gradient);
    const float factor = length / own;
    Map(
        [=](auto d, auto old, auto v, auto g) HWY_ATTR {
          const auto across = hn::NegMulAdd(hn::Div(v, hn::Set(d, own)), hn::Set(d, along), g);
          return hn::MulAdd(across, hn::Set(d, factor), old);
        },
        dx.row(i), x.width, dx.row(i), from, gradient);
  }
}

// exp(x) for x ≤ 0 (NaN stays), cheaper than Exp: the remainder in one step and a polynomial of degree 5, 1.8e-7 off
// for x > −20 and 4e-7 below; weights that small no longer matter. exp(0) is 1 and whatever is below −87.4 is 0.
// Several vectors go through the steps side by side: one by one they wait for each other (28 ns a row of 128, together
// 20).
template <std::size_t kCount>
HWY_INLINE void ExpBelow(Vector16 (&x)[kCount]) {
  const Tag16 d;
  const hn::RebindToUnsigned<Tag16> du;
  const Vector16 rounder = hn::Set(d, detail::kRounder), one = hn::Set(d, 1.0f);
  Vector16 rounded[kCount], p[kCount];
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kCount; ++i) x[i] = AtLeast(hn::Set(d, -88.0f), x[i]);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kCount; ++i) rounded[i] = hn::MulAdd(x[i], hn::Set(d, 1.44269502f), rounder);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kCount; ++i)
    x[i] = hn::NegMulAdd(hn::Sub(rounded[i], rounder), hn::Set(d, 0.693147182f), x[i]);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kCount; ++i)
    p[i] = hn::MulAdd(hn::Set(d, 0.00831252057f), x[i], hn::Set(d, 0.0418901592f));
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], x[i], hn::Set(d, 0.166671142f));
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], x[i], hn::Set(d, 0.499992311f));
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], x[i], one);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kCount; ++i) p[i] = hn::MulAdd(p[i], x[i], one);
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kCount; ++i)
    x[i] = hn::Mul(p[i], hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, rounded[i]))));
}

HWY_INLINE Vector16 ExpBelow(Vector16 x) {
  Vector16 one[1] = {x};
  ExpBelow(one);
  return one[0];
}

// Reductions of several rows: each leaves its 16 lanes here, and the trees of all are gone through together, eight
// shuffles for four rows instead of four for each.
struct RowLanes {
  static constexpr std::size_t kRows = 16;
  HWY_ALIGN float lanes[kRows][16];

  template <class Join>
  HWY_INLINE void reduce(std::size_t rows, Join join, float* to) const {  // room for 16
    const Tag16 d;
#if HWY_TARGET == HWY_AVX3
    Vector16 all = hn::Zero(d);
    const auto number = hn::Iota(hn::RebindToUnsigned<Tag16>(), 0);
#pragma GCC unroll 4
    for (std::uint32_t g = 0; g < 4; ++g) {  // rows g, g + 4, g + 8 and g + 12
      if (g >= rows) break;
      const Vector16 a = hn::Load(d, lanes[g]), b = hn::Load(d, lanes[g + 8]);
      const Vector16 c = hn::Load(d, lanes[g + 4]), e = hn::Load(d, lanes[g + 12]);
      Vector16 ab = join(d, hn::ConcatLowerLower(d, b, a), hn::ConcatUpperUpper(d, b, a));
      Vector16 ce = join(d, hn::ConcatLowerLower(d, e, c), hn::ConcatUpperUpper(d, e, c));
      ab = join(d, ab, hn::SwapAdjacentBlocks(ab));
      ce = join(d, ce, hn::SwapAdjacentBlocks(ce));
      Vector16 four = hn::OddEvenBlocks(ce, ab);  // a block of each row, in order
      four = join(d, four, hn::Shuffle1032(four));
      four = join(d, four, hn::Shuffle2301(four));
      const auto mine =
          hn::Eq(hn::And(number, hn::Set(hn::RebindToUnsigned<Tag16>(), 3)), hn::Set(hn::RebindToUnsigned<Tag16>(), g));
      all = hn::IfThenElse(hn::RebindMask(d, mine), four, all);
    }
    hn::StoreU(all, d, to);
#else
    for (std::size_t i = 0; i < rows; ++i) {
      Lanes16 own;
#pragma GCC unroll 4
      for (std::size_t part = 0; part < kParts; ++part) own.part[part] = hn::Load(d, lanes[i] + part * kPartLanes);
      to[i] = Tree16(own, join);
    }
#endif
  }
};

// The largest scores in each of 16 lanes, NaN aside: that one comes back with the sum of the exponentials.
HWY_INLINE void RowPeaks(const float* x, std::size_t n, float* lanes) {
  const Tag16 d;
  Lanes16 peaks;
  for (Vector16& part : peaks.part) part = hn::Set(d, kNothing);
  ForEachPart16(n, [&](std::size_t offset, std::size_t part, std::size_t count) HWY_ATTR {
    const Vector16 larger = hn::Max(LoadPart16(x + offset, count), peaks.part[part]);
    peaks.part[part] = ChangeFirst16(larger, peaks.part[part], count);
  });
#pragma GCC unroll 4
  for (std::size_t part = 0; part < kParts; ++part) hn::Store(peaks.part[part], d, lanes + part * kPartLanes);
}

// A row becomes exp((s − base)·sharpness); their sum stays in 16 lanes.
template <bool kSharp>
HWY_INLINE void RowExp(float* row, std::size_t n, float base, float sharpness, float* lanes) {
  const Tag16 d;
  const Vector16 minus = hn::Set(d, base), sharp = hn::Set(d, sharpness);
  Lanes16 sums;
  for (Vector16& part : sums.part) part = hn::Zero(d);
  constexpr std::size_t kTogether = HWY_MAX(kParts, HWY_TARGET == HWY_AVX3 ? 4 : 2), kStep = kTogether * kPartLanes;
  const std::size_t most = n / kStep * kStep;
  for (std::size_t at = 0; at < most; at += kStep) {
    Vector16 x[kTogether];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kTogether; ++i) {
      const Vector16 z = hn::Sub(hn::LoadU(d, row + at + i * kPartLanes), minus);
      x[i] = kSharp ? hn::Mul(z, sharp) : z;
    }
    ExpBelow(x);
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kTogether; ++i) {
      hn::StoreU(x[i], d, row + at + i * kPartLanes);
      sums.part[i % kParts] = hn::Add(sums.part[i % kParts], x[i]);
    }
  }
  row += most;
  ForEachPart16(n - most, [&](std::size_t offset, std::size_t part, std::size_t count) HWY_ATTR {
    const Vector16 z = hn::Sub(LoadPart16(row + offset, count), minus);
    const Vector16 term = ExpBelow(kSharp ? hn::Mul(z, sharp) : z);
    StorePart16(term, row + offset, count);
    sums.part[part] = ChangeFirst16(hn::Add(sums.part[part], term), sums.part[part], count);
  });
#pragma GCC unroll 4
  for (std::size_t part = 0; part < kParts; ++part) hn::Store(sums.part[part], d, lanes + part * kPartLanes);
}

// What is done once a row is done for a vector of rows.
void SoftmaxAbsorb(Tile s, float sharpness, float* peak, float* mass, float* factor) {
  constexpr std::size_t kRows = RowLanes::kRows;
  const Tag16 d;
  HWY_ALIGN float tops[kRows], sums[kRows];
  RowLanes parts;
  for (std::size_t i = s.count; i < kRows; ++i) std::fill_n(parts.lanes[i], 16, 0.0f);
  for (std::size_t begin = 0; begin < s.count; begin += kRows) {
    const std::size_t rows = HWY_MIN(kRows, s.count - begin);
    for (std::size_t i = 0; i < rows; ++i) RowPeaks(s.row(begin + i), s.width, parts.lanes[i]);
    parts.reduce(
        rows, [](auto, auto a, auto b) HWY_ATTR { return hn::Max(a, b); }, tops);
    ForEachPart16(rows, [&](std::size_t i, std::size_t, std::size_t lanes) HWY_ATTR {
      const Vector16 before = LoadPart16(peak + begin + i, lanes), top = hn::Max(LoadPart16(tops + i, lanes), before);
      const Vector16 fresh = ExpBelow(hn::Mul(hn::Sub(before, top), hn::Set(d, sharpness)));
      StorePart16(hn::IfThenElse(hn::Eq(before, top), hn::Set(d, 1.0f), fresh), factor + begin + i, lanes);
      StorePart16(top, peak + begin + i, lanes);
      StorePart16(hn::IfThenZeroElse(hn::Eq(top, hn::Set(d, kNothing)), top), tops + i, lanes);
    });
    if (sharpness == 1.0f) {
      for (std::size_t i = 0; i < rows; ++i)
        RowExp<false>(s.row(begin + i), s.width, tops[i], sharpness, parts.lanes[i]);
    } else {
      for (std::size_t i = 0; i < rows; ++i)
        RowExp<true>(s.row(begin + i), s.width, tops[i], sharpness, parts.lanes[i]);
    }
    parts.reduce(
        rows, [](auto, auto a, auto b) HWY_ATTR { return hn::Add(a, b); }, sums);
    ForEachPart16(rows, [&](std::size_t i, std::size_t, std::size_t lanes) HWY_ATTR {
      const Vector16 old = LoadPart16(mass + begin + i, lanes), change = LoadPart16(factor + begin + i, lanes);
      StorePart16(hn::MulAdd(old, change, LoadPart16(sums + i, lanes)), mass + begin + i, lanes);
    });
  }
}

void SoftmaxSettle(std::size_t count, float* peak, float* mass, float* factor) {
  const Tag16 d;
  ForEachPart16(count, [&](std::size_t i, std::size_t, std::size_t lanes) HWY_ATTR {
    const Vector16 sum = LoadPart16(mass + i, lanes);
    const auto nothing = hn::Eq(sum, hn::Zero(d));
    StorePart16(hn::IfThenZeroElse(nothing, LoadPart16(peak + i, lanes)), peak + i, lanes);
    StorePart16(hn::IfThenZeroElse(nothing, hn::Div(hn::Set(d, 1.0f), sum)), factor + i, lanes);
    StorePart16(hn::IfThenZeroElse(nothing, Log(d, sum)), mass + i, lanes);
  });
}

HWY_INLINE Vector16 SoftmaxWeight(Vector16 s, Vector16 sharp, Vector16 top, Vector16 rest) {
  const Tag16 d;
  const Vector16 p = ExpBelow(hn::Sub(hn::Mul(hn::Sub(s, top), sharp), rest));
  return hn::IfThenZeroElse(hn::Eq(s, hn::Set(d, kNothing)), p);
}

void SoftmaxWeigh(Tile s, float sharpness, const float* peak, const float* tau) {
  const Tag16 d;
  for (std::size_t i = 0; i < s.count; ++i) {
    float* row = s.row(i);
    const Vector16 sharp = hn::Set(d, sharpness), top = hn::Set(d, peak[i]), rest = hn::Set(d, tau[i]);
    ForEachPart16(s.width, [&](std::size_t j, std::size_t, std::size_t lanes) HWY_ATTR {
      StorePart16(SoftmaxWeight(LoadPart16(row + j, lanes), sharp, top, rest), row + j, lanes);
    });
  }
}

void SoftmaxPullback(Tile s, float sharpness, const float* peak, const float* tau, const float* delta, Tile dp) {
  const Tag16 d;
  for (std::size_t i = 0; i < s.count; ++i) {
    float *row = s.row(i), *gradient = dp.row(i);
    const Vector16 sharp = hn::Set(d, sharpness), top = hn::Set(d, peak[i]), rest = hn::Set(d, tau[i]);
    const Vector16 mean = hn::Set(d, delta[i]);
    ForEachPart16(s.width, [&](std::size_t j, std::size_t, std::size_t lanes) HWY_ATTR {
      const Vector16 p = SoftmaxWeight(LoadPart16(row + j, lanes), sharp, top, rest);
      const Vector16 ds = hn::Mul(hn::Mul(p, hn::Sub(LoadPart16(gradient + j, lanes), mean)), sharp);
      StorePart16(p, row + j, lanes);
      StorePart16(hn::IfThenZeroElse(hn::Eq(p, hn::Zero(d)), ds), gradient + j, lanes);
    });
  }
}

void SelectRow(const std::int8_t* mask, std::size_t count, float* s) {
  const Tag16 d;
  const hn::RebindToSigned<Tag16> wide;
  const hn::Rebind<std::int8_t, Tag16> narrow;
  std::size_t j = 0;
  for (; j + kPartLanes <= count; j += kPartLanes) {
    const auto hidden = hn::Eq(hn::PromoteTo(wide, hn::LoadU(narrow, mask + j)), hn::Zero(wide));
    hn::StoreU(hn::IfThenElse(hn::RebindMask(d, hidden), hn::Set(d, kNothing), hn::LoadU(d, s + j)), d, s + j);
  }
  for (; j < count; ++j) s[j] = mask[j] == 0 ? kNothing : s[j];
}

void CountVisible(Rows s, float* count) {  // whole numbers: any order gives the same
  for (std::size_t i = 0; i < s.count; ++i) {
    count[i] = SumOf16(
        s.width,
        [](auto tag, auto v)
            HWY_ATTR { return hn::IfThenZeroElse(hn::Eq(v, hn::Set(tag, kNothing)), hn::Set(tag, 1.0f)); },
        s.row(i));
  }
}

void ShareVisible(Tile s, const float* count) {
  for (std::size_t i = 0; i < s.count; ++i) {
    const float share = 1.0f / count[i];  // of nothing visible: not used
    Map([share](auto d, auto v)
            HWY_ATTR { return hn::IfThenZeroElse(hn::Eq(v, hn::Set(d, kNothing)), hn::Set(d, share)); },
        s.row(i), s.width, s.row(i));
  }
}

void DropTile(Tile x, float p, RandomKey key, std::uint64_t query, std::uint64_t first, std::uint8_t* kept) {
  const Tag16 d;
  const hn::RebindToUnsigned<Tag16> du;
  const auto threshold = hn::Set(du, dropout_threshold(p));
  const Vector16 scale = hn::Set(d, 1.0f / (1.0f - p));
  for (std::size_t i = 0; i < x.count; ++i) {
    const PhiloxKeys keys(key.at(query + i));
    float* const row = x.row(i);
    for (std::uint64_t group = first / 64; group * 64 < first + x.width; ++group) {  // of 64 elements
#pragma GCC unroll 4
      for (std::size_t part = 0; part < kParts; ++part) {
        const auto bits = PhiloxBlocks(du, keys, group * 16 + part * kPartLanes);
#pragma GCC unroll 4
        for (std::size_t w = 0; w < 4; ++w) {
          const std::uint64_t element = group * 64 + w * 16 + part * kPartLanes;
          if (element < first || element >= first + x.width) continue;
          const auto j = static_cast<std::size_t>(element - first);
          const std::size_t lanes = HWY_MIN(kPartLanes, x.width - j);
          const auto stays = hn::Not(hn::Lt(bits.word[w], threshold));
          const Vector16 value = hn::Mul(LoadPart16(row + j, lanes), scale);
          StorePart16(hn::IfThenElseZero(hn::RebindMask(d, stays), value), row + j, lanes);
          if (kept == nullptr) continue;
          std::uint8_t byte[8] = {};  // as many as the function may write
          hn::StoreMaskBits(du, stays, byte);
          if constexpr (kPartLanes >= 8) {
            std::copy_n(byte, kPartLanes / 8, kept + i * kKeptBytes + j / 8);
          } else {
            std::uint8_t& to = kept[i * kKeptBytes + j / 8];
            to = static_cast<std::uint8_t>(j % 8 == 0 ? byte[0] & 15 : to | byte[0] << 4);
          }
        }
      }
    }
  }
}

void KeepTile(Tile x, float p, const std::uint8_t* kept) {
  const Tag16 d;
  const Vector16 scale = hn::Set(d, 1.0f / (1.0f - p));
  for (std::size_t i = 0; i < x.count; ++i) {
    float* const row = x.row(i);
    ForEachPart16(x.width, [&](std::size_t j, std::size_t, std::size_t lanes) HWY_ATTR {
      std::uint8_t bits[8] = {};  // as many as the function may read
      std::copy_n(kept + i * kKeptBytes + j / 8, (kPartLanes + 7) / 8, bits);
      bits[0] = static_cast<std::uint8_t>(bits[0] >> (j % 8));
      const Vector16 value = hn::Mul(LoadPart16(row + j, lanes), scale);
      StorePart16(hn::IfThenElseZero(hn::LoadMaskBits(d, bits), value), row + j, lanes);
    });
  }
}

void AdditiveTile(Rows q, Rows k, const float* theta, Tile s) {
  for (std::size_t i = 0; i < q.count; ++i) AdditiveRowScores(q.row(i), k, theta, s.row(i));
}

void AdditiveTileBackward(Rows q, Rows k, const float* theta, Rows ds, Tile dq, Tile dk, float* d_theta) {
  for (std::size_t i = 0; i < q.count; ++i) {
    AdditiveRowGradients(q.row(i), k, theta, ds.row(i), dq.row(i), dk, d_theta);
  }
}

}  // namespace
}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(AllFinite);
HWY_EXPORT(MultiplyBlocks);
HWY_EXPORT(SelectedProduct);
HWY_EXPORT(ScaledCopy);
HWY_EXPORT(AddScaledCopy);
HWY_EXPORT(ScaleRows);
HWY_EXPORT(PlainZeros);
HWY_EXPORT(DotRows);
HWY_EXPORT(NormaliseRows);
HWY_EXPORT(NormaliseRowsBackward);
HWY_EXPORT(SoftmaxAbsorb);
HWY_EXPORT(SoftmaxSettle);
HWY_EXPORT(SoftmaxWeigh);
HWY_EXPORT(SoftmaxPullback);
HWY_EXPORT(SelectRow);
HWY_EXPORT(CountVisible);
HWY_EXPORT(ShareVisible);
HWY_EXPORT(DropTile);
HWY_EXPORT(KeepTile);
HWY_EXPORT(AdditiveTile);
HWY_EXPORT(AdditiveTileBackward);

}  // namespace

bool all_finite(Rows x) { return HWY_DYNAMIC_DISPATCH(AllFinite)(x); }

void selected_product(Matrix a, Rows b, bool finite, Tile c, bool fresh, Ahead* ahead) {
  if (finite && c.width % kPanelWidth == 0) {
    HWY_DYNAMIC_DISPATCH(MultiplyBlocks)(a, b.data, kPanelWidth, b.stride, c, !fresh, ahead);
  } else if (finite) {
    gemm(a, as_matrix(b), as_matrix(c), {.accumulate = !fresh});
  } else {
    for (std::size_t i = 0; i < c.count && fresh; ++i) std::fill_n(c.row(i), c.width, 0.0f);
    HWY_DYNAMIC_DISPATCH(SelectedProduct)(a, b, c);
  }
}

void product_tile(Rows q, PackedMatrix k, Tile s, Ahead* ahead) {
  HWY_DYNAMIC_DISPATCH(MultiplyBlocks)(as_matrix(q), k.panels, k.k * kPanelWidth, kPanelWidth, s, false, ahead);
}

void scaled_copy(Rows x, float factor, Tile y) { HWY_DYNAMIC_DISPATCH(ScaledCopy)(x, factor, y); }
void add_scaled_copy(Rows x, float factor, Tile y) { HWY_DYNAMIC_DISPATCH(AddScaledCopy)(x, factor, y); }
void scale_rows(Tile x, const float* factors) { HWY_DYNAMIC_DISPATCH(ScaleRows)(x, factors); }
void plain_zeros(Tile x) { HWY_DYNAMIC_DISPATCH(PlainZeros)(x); }
void dot_rows(Rows x, Rows y, float* to) { HWY_DYNAMIC_DISPATCH(DotRows)(x, y, to); }
void normalise_rows(Rows x, float length, Tile y) { HWY_DYNAMIC_DISPATCH(NormaliseRows)(x, length, y); }
void normalise_rows_backward(Rows x, Rows dy, float length, Tile dx) {
  HWY_DYNAMIC_DISPATCH(NormaliseRowsBackward)(x, dy, length, dx);
}
void softmax_absorb(Tile s, float sharpness, float* peak, float* mass, float* factor) {
  HWY_DYNAMIC_DISPATCH(SoftmaxAbsorb)(s, sharpness, peak, mass, factor);
}
void softmax_settle(std::size_t count, float* peak, float* mass, float* factor) {
  HWY_DYNAMIC_DISPATCH(SoftmaxSettle)(count, peak, mass, factor);
}
void softmax_weigh(Tile s, float sharpness, const float* peak, const float* tau) {
  HWY_DYNAMIC_DISPATCH(SoftmaxWeigh)(s, sharpness, peak, tau);
}
void softmax_pullback(Tile s, float sharpness, const float* peak, const float* tau, const float* delta, Tile dp) {
  HWY_DYNAMIC_DISPATCH(SoftmaxPullback)(s, sharpness, peak, tau, delta, dp);
}
void select_row(const std::int8_t* mask, std::size_t count, float* s) {
  HWY_DYNAMIC_DISPATCH(SelectRow)(mask, count, s);
}
void count_visible(Rows s, float* count) { HWY_DYNAMIC_DISPATCH(CountVisible)(s, count); }
void share_visible(Tile s, const float* count) { HWY_DYNAMIC_DISPATCH(ShareVisible)(s, count); }
void drop_tile(Tile x, float p, RandomKey key, std::uint64_t query, std::uint64_t first, std::uint8_t* kept) {
  HWY_DYNAMIC_DISPATCH(DropTile)(x, p, key, query, first, kept);
}
void keep_tile(Tile x, float p, const std::uint8_t* kept) { HWY_DYNAMIC_DISPATCH(KeepTile)(x, p, kept); }
void additive_tile(Rows q, Rows k, const float* theta, Tile s) { HWY_DYNAMIC_DISPATCH(AdditiveTile)(q, k, theta, s); }
void additive_tile_backward(Rows q, Rows k, const float* theta, Rows ds, Tile dq, Tile dk, float* d_theta) {
  HWY_DYNAMIC_DISPATCH(AdditiveTileBackward)(q, k, theta, ds, dq, dk, d_theta);
}

}  // namespace regard
#endif
