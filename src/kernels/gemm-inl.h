// The parts of the matrix product that are compiled once per target: a block of C that is held in registers, a tile of
// C made of such blocks, and the copying of A and B into the order in which the blocks read them. No threads in here.

#ifndef REGARD_KERNELS_GEMM_INL_H_PLAIN  // what does not depend on the target
#define REGARD_KERNELS_GEMM_INL_H_PLAIN

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "kernels/gemm.h"
#include "kernels/views.h"

namespace regard::gemm_detail {

// How a tile finds B.
enum class ReadB {
  kPacked,  // panels of the whole of B
  kDirect,  // B itself, its rows contiguous: best if it is in the second cache, or is fetched there in time
  kFar,     // the same, fetched just before it is used: best for a single block of rows
  kPack,    // B itself, packed by the tile block by block
  kTurn,    // B itself, its columns contiguous, turned in registers: for a single block of rows
  kThin,    // B itself, its rows contiguous and so few that writing C is the work
};

// A product and how its tiles go about it.
struct Product {
  Matrix a;
  Matrix b;                       // unless kPacked
  const float* panels = nullptr;  // kPacked: from column `panels_begin` on
  std::size_t panels_begin = 0;
  MatrixOf<float> c;
  Epilogue epilogue;
  ReadB read_b = ReadB::kPacked;
  bool keep_panels = false;      // kPack: the tile wants its panels again, they become [columns / 16][K][16]
  bool pack_a = false;           // A is column-major, and its columns are too far apart to be read as they are
  std::size_t k_block = 0;       // k is cut into blocks of this length, the sums waiting in C meanwhile
  std::size_t column_block = 0;  // columns of B that are multiplied with all rows of a tile before going on
};

struct TileRange {
  std::size_t row_begin, row_end, column_begin, column_end;  // column_begin is a multiple of kPanelWidth
};

// Rows of B this far apart, or a multiple of it, push each other out of the caches.
inline constexpr std::size_t kAliased = 1024;

inline constexpr std::size_t kTurnedColumns = 16;  // of B that are turned in registers together

inline std::size_t divide_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit; }
inline std::size_t round_up(std::size_t value, std::size_t unit) { return divide_up(value, unit) * unit; }

// Floats that a tile of so many rows and columns needs for its copies of A and B.
inline std::size_t packed_a_size(const Product& p, std::size_t rows) {
  return p.pack_a ? round_up(rows * std::min(p.k_block, p.a.columns), kPanelWidth) : 0;
}
inline std::size_t packed_b_size(const Product& p, std::size_t columns) {
  const std::size_t depth = std::min(p.k_block, p.a.columns);
  switch (p.read_b) {
    case ReadB::kPacked:
    case ReadB::kTurn:
      return 0;
    case ReadB::kThin:
      return depth * std::min(p.column_block, columns);
    case ReadB::kDirect:
    case ReadB::kFar:
      return kPanelWidth * depth;  // the last, ragged panel
    case ReadB::kPack:
      return p.keep_panels ? packed_size(p.a.columns, columns) : packed_size(depth, std::min(p.column_block, columns));
  }
  return 0;
}

}  // namespace regard::gemm_detail

#endif  // REGARD_KERNELS_GEMM_INL_H_PLAIN

#if defined(REGARD_KERNELS_GEMM_INL_H_TARGET) == defined(HWY_TARGET_TOGGLE)  // once per target
#ifdef REGARD_KERNELS_GEMM_INL_H_TARGET
#undef REGARD_KERNELS_GEMM_INL_H_TARGET
#else
#define REGARD_KERNELS_GEMM_INL_H_TARGET
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE::gemm_detail {
namespace hn = hwy::HWY_NAMESPACE;
using regard::gemm_detail::kAliased;
using regard::gemm_detail::kTurnedColumns;
using regard::gemm_detail::Product;
using regard::gemm_detail::ReadB;
using regard::gemm_detail::TileRange;

using FloatTag = hn::CappedTag<float, kPanelWidth>;
using FloatVec = hn::Vec<FloatTag>;
constexpr std::size_t kLanes = HWY_MIN(HWY_LANES(float), kPanelWidth);
constexpr std::size_t kVectorsPerPanel = kPanelWidth / kLanes;

// The block of C in registers: its most rows, and for a number of rows the panels side by side. All sums must fit, and
// beside them the vectors of B or the broadcast elements of A; and eight sums at least should be under way, since two
// fused multiply-adds start in a cycle and take four. kPrefetch: how many steps of k a packed B is fetched ahead; where
// a panel passes by slowly, the processor's own fetching falls asleep (AVX2, 6 rows, B from the third cache: 72 without
// and 88 GFLOP/s with it; AVX-512: no difference).
constexpr std::size_t kMostPanels = 4;
#if HWY_TARGET == HWY_AVX3
constexpr std::size_t kBlockRows = 6, kPrefetch = 0;
constexpr std::size_t BlockPanels(std::size_t /*rows*/) { return 4; }
#elif HWY_TARGET == HWY_AVX2
constexpr std::size_t kBlockRows = 6, kPrefetch = 24;
constexpr std::size_t BlockPanels(std::size_t rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }
#elif HWY_TARGET == HWY_NEON
constexpr std::size_t kBlockRows = 6, kPrefetch = 0;
constexpr std::size_t BlockPanels(std::size_t /*rows*/) { return 1; }
#else  // 16 registers of 4 lanes
constexpr std::size_t kBlockRows = 3, kPrefetch = 0;
constexpr std::size_t BlockPanels(std::size_t /*rows*/) { return 1; }
#endif
// Blocks of which B is turned in registers: their most rows, and for a number of rows the vectors side by side.
constexpr std::size_t kTurnedRows = 6;
constexpr std::size_t TurnedVectors(std::size_t rows) { return HWY_TARGET == HWY_AVX3 || rows > 3 ? 1 : 2; }
constexpr std::size_t kPrefetchFar = 6;  // for ReadB::kFar: 4 and 8 are as good, 16 is a quarter slower

struct BlockArguments {
  const float* a;  // element (i, k) at a[i · a_row + k · a_k]
  std::size_t a_row, a_k;
  const float* b;  // column j of panel p at b[p · b_panel + k · b_k + j]
  std::size_t b_panel, b_k;
  std::size_t depth;
  float* c;
  std::size_t c_row;
  const float* bias;  // may be null
  bool resume;        // the sums start at C instead of 0
  bool relu;
  bool far_b;
  const float* next_c;  // where the next block goes
  const float* ahead;   // what is wanted soon: a line of it is fetched with every k
  std::size_t ahead_k;
};

// What of the addresses is known beforehand.
enum class Order {
  kAny,
  kFarB,     // any; and B is fetched some steps ahead
  kRowsOfA,  // rows of A contiguous, B in panels: a_k = 1, b_k = 16
  kPackedA,  // both packed: a_row = 1, a_k = rows, b_k = 16
};

// A value that stands in a register from here on. Otherwise compilers repeat the load in each of the instructions that
// use it, and loads become the limit (g++ 12, AVX-512, three rows: 97 instead of 170 GFLOP/s).
HWY_INLINE FloatVec InRegister(FloatVec v) {
#if HWY_ARCH_X86
  asm("" : "+v"(v.raw));
#endif
  return v;
}

#define REGARD_INLINE_LAMBDA HWY_ATTR __attribute__((always_inline))

template <std::size_t kRows, std::size_t kPanels, Order kOrder>
void Block(const BlockArguments& arguments) {
  constexpr bool kPackedB = kOrder == Order::kRowsOfA || kOrder == Order::kPackedA;
  constexpr std::size_t kVectors = kPanels * kVectorsPerPanel;
  const FloatTag d;
  const std::size_t a_row = kOrder == Order::kPackedA ? 1 : arguments.a_row;
  const std::size_t a_k = kOrder == Order::kPackedA ? kRows : kOrder == Order::kRowsOfA ? 1 : arguments.a_k;
  const std::size_t b_panel = arguments.b_panel, b_k = kPackedB ? kPanelWidth : arguments.b_k;
  // Two pointers each into A and B: a row is then at most twice a_row away, which an address can say by itself.
  constexpr std::size_t kHalfRows = 3, kHalfPanels = 2;
  const float* HWY_RESTRICT a_low = arguments.a;
  const float* HWY_RESTRICT a_high = arguments.a + kHalfRows * a_row;
  const float* HWY_RESTRICT b_low = arguments.b;
  const float* HWY_RESTRICT b_high = arguments.b + kHalfPanels * b_panel;
  const float* HWY_RESTRICT ahead = arguments.ahead;
  const std::size_t ahead_k = arguments.ahead_k;
  float* const HWY_RESTRICT c = arguments.c;
  const std::size_t c_row = arguments.c_row;

  FloatVec sum[kRows][kVectors];
  if (arguments.resume) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (std::size_t j = 0; j < kPanels; ++j) hwy::Prefetch(arguments.next_c + i * c_row + j * kPanelWidth);
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) sum[i][v] = hn::LoadU(d, c + i * c_row + v * kLanes);
    }
  } else {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) sum[i][v] = hn::Zero(d);
    }
  }

  const auto load_a = [&](std::size_t i) REGARD_INLINE_LAMBDA {
    return hn::Set(d, i < kHalfRows ? a_low[i * a_row] : a_high[(i - kHalfRows) * a_row]);
  };
  const auto load_b = [&](std::size_t v) REGARD_INLINE_LAMBDA {
    const std::size_t panel = v / kVectorsPerPanel;
    const float* at = panel < kHalfPanels ? b_low + panel * b_panel : b_high + (panel - kHalfPanels) * b_panel;
    constexpr std::size_t kSteps = kOrder == Order::kFarB ? kPrefetchFar : kPackedB ? kPrefetch : 0;
    if (kSteps != 0 && v % kVectorsPerPanel == 0) hwy::Prefetch(at + kSteps * b_k);
    return hn::LoadU(d, at + v % kVectorsPerPanel * kLanes);
  };
  const auto step = [&]() REGARD_INLINE_LAMBDA {
    if constexpr (kRows <= kVectors) {  // the elements of A stay, B passes by
      FloatVec x[kRows];
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kRows; ++i) x[i] = load_a(i);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) {
        const FloatVec y = kRows == 1 ? load_b(v) : InRegister(load_b(v));
#pragma GCC unroll 8
        for (std::size_t i = 0; i < kRows; ++i) sum[i][v] = hn::MulAdd(x[i], y, sum[i][v]);
      }
    } else {  // the vectors of B stay
      FloatVec y[kVectors];
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) y[v] = InRegister(load_b(v));
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kRows; ++i) {
        const FloatVec x = load_a(i);
#pragma GCC unroll 8
        for (std::size_t v = 0; v < kVectors; ++v) sum[i][v] = hn::MulAdd(x, y[v], sum[i][v]);
      }
    }
    __builtin_prefetch(ahead, 0, 2);  // into the second cache
    a_low += a_k;
    a_high += a_k;
    b_low += b_k;
    b_high += b_k;
    ahead += ahead_k;
  };
  std::size_t k = 0;
  if constexpr (kPackedB) {  // a loop of few turns ends as foreseen: K = 128, 64 rows: 0.93 and 0.95 of the limit
    for (; k + 4 <= arguments.depth; k += 4) {
      step();
      step();
      step();
      step();
    }
  }
  for (; k < arguments.depth; ++k) step();

  if (arguments.bias != nullptr) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) {
      const FloatVec bias = hn::LoadU(d, arguments.bias + v * kLanes);
#pragma GCC unroll 8
      for (std::size_t i = 0; i < kRows; ++i) sum[i][v] = hn::Add(sum[i][v], bias);
    }
  }
  if (arguments.relu) {
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v)  // NaN is not less than 0 and stays
        sum[i][v] = hn::IfThenZeroElse(hn::Lt(sum[i][v], hn::Zero(d)), sum[i][v]);
    }
  }
#pragma GCC unroll 8
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(sum[i][v], d, c + i * c_row + v * kLanes);
  }
}

template <std::size_t kRows>
HWY_INLINE void BlockOfRows(std::size_t panels, const BlockArguments& arguments) {
  if constexpr (kRows <= kBlockRows) {
    constexpr std::size_t kMost = BlockPanels(kRows);
    if (panels == kMost && arguments.b_k == kPanelWidth) {
      if (arguments.a_k == 1) return Block<kRows, kMost, Order::kRowsOfA>(arguments);
      if (arguments.a_row == 1 && arguments.a_k == kRows) return Block<kRows, kMost, Order::kPackedA>(arguments);
    }
    if (panels == kMost && arguments.far_b) return Block<kRows, kMost, Order::kFarB>(arguments);
    switch (panels) {
      case 1:
        return Block<kRows, 1, Order::kAny>(arguments);
      case 2:
        return Block<kRows, HWY_MIN(2, kMost), Order::kAny>(arguments);
      case 3:
        return Block<kRows, HWY_MIN(3, kMost), Order::kAny>(arguments);
      case 4:
        return Block<kRows, HWY_MIN(4, kMost), Order::kAny>(arguments);
    }
  }
}

HWY_INLINE void AnyBlock(std::size_t rows, std::size_t panels, const BlockArguments& arguments) {
  switch (rows) {
    case 1:
      return BlockOfRows<1>(panels, arguments);
    case 2:
      return BlockOfRows<2>(panels, arguments);
    case 3:
      return BlockOfRows<3>(panels, arguments);
    case 4:
      return BlockOfRows<4>(panels, arguments);
    case 5:
      return BlockOfRows<5>(panels, arguments);
    case 6:
      return BlockOfRows<6>(panels, arguments);
  }
}

// The activations that would make a block too large: a second look at its rows while they are in the first cache.
// `width` is a multiple of the panel.
inline void Activate(Activation activation, float* c, std::size_t c_row, std::size_t rows, std::size_t width) {
  const FloatTag d;
  const auto each = [&](auto function) REGARD_INLINE_LAMBDA {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < width; j += kLanes) {
        float* at = c + i * c_row + j;
        hn::StoreU(function(hn::LoadU(d, at)), d, at);
      }
    }
  };
  switch (activation) {
    case Activation::kNone:
    case Activation::kRelu:  // done in the block
      return;
    case Activation::kTanh:
      return each([&](FloatVec x) REGARD_INLINE_LAMBDA { return Tanh(d, x); });
    case Activation::kSigmoid:
      return each([&](FloatVec x) REGARD_INLINE_LAMBDA { return Sigmoid(d, x); });
    case Activation::kGelu:
      return each([&](FloatVec x) REGARD_INLINE_LAMBDA { return Gelu(d, x); });
    case Activation::kSilu:
      return each([&](FloatVec x) REGARD_INLINE_LAMBDA { return Silu(d, x); });
  }
}

// Cuts rows into blocks of nearly equal height: 7 as 4 + 3 rather than 6 + 1.
struct RowBlocks {
  std::size_t rows, count, base, larger;
  explicit RowBlocks(std::size_t all)
      : rows(all),
        count((all + kBlockRows - 1) / kBlockRows),
        base(count == 0 ? 0 : all / count),
        larger(count == 0 ? 0 : all % count) {}
  std::size_t height(std::size_t block) const { return base + (block < larger ? 1 : 0); }
};

// ------------------------------------------------------------------------------------------------------------ packing

// Four elements each of the rows p, p + 4·stride, p + 8·stride, …, a row in 128 bits.
template <class D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const float* p, std::size_t stride) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return hn::LoadU(d, p);
  } else {
#if HWY_TARGET == HWY_AVX3  // inserted from memory a block does not need the one unit that shuffles
    if constexpr (hn::MaxLanes(D()) == 16) {
      __m512 blocks = _mm512_castps128_ps512(_mm_loadu_ps(p));
      blocks = _mm512_insertf32x4(blocks, _mm_loadu_ps(p + 4 * stride), 1);
      blocks = _mm512_insertf32x4(blocks, _mm_loadu_ps(p + 8 * stride), 2);
      return hn::Vec<D>{_mm512_insertf32x4(blocks, _mm_loadu_ps(p + 12 * stride), 3)};
    }
#endif
    const hn::Half<D> half;
    const auto lower = LoadBlocks(half, p, stride);
    const auto upper = LoadBlocks(half, p + hn::MaxLanes(half) * stride, stride);
    return hn::Combine(d, upper, lower);
  }
}

// Exchanges rows and columns of each 4 × 4 elements in the blocks of four vectors: 8 shuffles for 64 elements.
template <class D>
HWY_INLINE void TurnFour(D d, const hn::Vec<D>* HWY_RESTRICT rows, hn::Vec<D>* HWY_RESTRICT to) {
  const hn::Repartition<double, D> pairs;
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, rows[0], rows[1]));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, rows[2], rows[3]));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, rows[0], rows[1]));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, rows[2], rows[3]));
  to[0] = hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23));
  to[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23));
  to[2] = hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23));
  to[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23));
}

// Vector i holds from[j · stride + i] for as many j as D has lanes. The blocks of a vector are loaded from four rows
// that belong together, so that the exchange stays within blocks.
template <class D>
HWY_INLINE void LoadFourTurned(D d, const float* from, std::size_t stride, hn::Vec<D>* HWY_RESTRICT to) {
  hn::Vec<D> rows[4];
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 4; ++i) rows[i] = LoadBlocks(d, from + i * stride, stride);
  TurnFour(d, rows, to);
}

// use(i, vector of from[j · stride + i] for all lanes j) for i = 0 … 15. Of every row a whole line is read at once:
// rows that are a multiple of some kilobytes apart push each other out of the first cache (bench matmul_backward, Zen
// 4, dx_1x2048x512: 50 µs, four steps at a time 118). With 16 lanes, halves of lines are put together by the loads: 48
// shuffles for 256 elements.
template <class Use>
HWY_INLINE void ForEachTurned(const float* from, std::size_t stride, const Use& use) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kLanes == 16) {
    const FloatTag d;
    const hn::Half<FloatTag> half;
    FloatVec turned[2][8];  // rows 0 … 7 and 8 … 15, in blocks of four rows: steps c and c + 4 of each four
#pragma GCC unroll 2
    for (std::size_t k = 0; k < 16; k += 8) {
#pragma GCC unroll 2
      for (std::size_t part = 0; part < 2; ++part) {
        FloatVec rows[4];
#pragma GCC unroll 4
        for (std::size_t i = 0; i < 4; ++i) {
          const float* const at = from + (8 * part + i) * stride + k;
          rows[i] = hn::Combine(d, hn::LoadU(half, at + 4 * stride), hn::LoadU(half, at));
        }
        TurnFour(d, rows, turned[part] + k / 2);
      }
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 16; i += 4) {
#pragma GCC unroll 4
      for (std::size_t c = 0; c < 4; ++c) {
        const __m512 low = turned[0][i / 8 * 4 + c].raw, high = turned[1][i / 8 * 4 + c].raw;
        use(i + c,
            FloatVec{i % 8 == 0 ? _mm512_shuffle_f32x4(low, high, 0x88) : _mm512_shuffle_f32x4(low, high, 0xDD)});
      }
    }
    return;
  }
#endif
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 16; i += 4) {
    FloatVec turned[4];
    LoadFourTurned(FloatTag(), from + i, stride, turned);
#pragma GCC unroll 4
    for (std::size_t c = 0; c < 4; ++c) use(i + c, turned[c]);
  }
}

// to[k · 16 + j] = from[j · stride + k] for four k and as many j as D has lanes.
template <class D>
HWY_INLINE void TransposeFour(D d, const float* from, std::size_t stride, float* to) {
  hn::Vec<D> turned[4];
  LoadFourTurned(d, from, stride, turned);
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 4; ++i) hn::StoreU(turned[i], d, to + i * kPanelWidth);
}

// A panel of up to 16 columns, each of which is contiguous.
inline void PackColumns(const float* b, std::size_t column_stride, std::size_t depth, std::size_t columns,
                        float* panel) {
  const FloatTag d;
  std::size_t k = 0;
  if (columns < kPanelWidth) {
    std::fill_n(panel, depth * kPanelWidth, 0.0f);
  } else {
    for (; k + 16 <= depth; k += 16) {
#pragma GCC unroll 4
      for (std::size_t j = 0; j < kPanelWidth; j += kLanes) {
        float* const to = panel + k * kPanelWidth + j;
        ForEachTurned(b + k + j * column_stride, column_stride,
                      [&](std::size_t i, FloatVec y) REGARD_INLINE_LAMBDA { hn::StoreU(y, d, to + i * kPanelWidth); });
      }
    }
  }
  for (; k < depth; k += 4) {
    const float* from = b + k;
    float* to = panel + k * kPanelWidth;
    std::size_t j = 0;
    if (k + 4 <= depth) {
      for (; j + kLanes <= columns; j += kLanes) TransposeFour(d, from + j * column_stride, column_stride, to + j);
      for (; j + 4 <= columns; j += 4)
        TransposeFour(hn::CappedTag<float, 4>(), from + j * column_stride, column_stride, to + j);
    }
    for (; j < columns; ++j) {
      for (std::size_t i = 0; i < HWY_MIN(4, depth - k); ++i) to[i * kPanelWidth + j] = from[j * column_stride + i];
    }
  }
}

// Panels of rows that are contiguous.
inline void PackRows(const float* b, std::size_t row_stride, std::size_t depth, std::size_t columns, float* panel,
                     std::size_t panel_stride) {
  const FloatTag d;
  const std::size_t full = columns / kPanelWidth, rest = columns % kPanelWidth;
  for (std::size_t k = 0; k < depth; ++k) {
    const float* from = b + k * row_stride;
    float* to = panel + k * kPanelWidth;
    for (std::size_t p = 0; p < full; ++p, from += kPanelWidth, to += panel_stride) {
#pragma GCC unroll 4
      for (std::size_t j = 0; j < kPanelWidth; j += kLanes) hn::StoreU(hn::LoadU(d, from + j), d, to + j);
    }
    if (rest != 0) {
      for (std::size_t j = 0; j < rest; ++j) to[j] = from[j];
      for (std::size_t j = rest; j < kPanelWidth; ++j) to[j] = 0.0f;
    }
  }
}

// B, or a part of it, into panels that are `panel_stride` apart.
inline void PackPanels(Matrix b, float* panels, std::size_t panel_stride) {
  if (b.column_stride == 1) {
    constexpr std::size_t kTogether = 4 * kPanelWidth;  // few enough to be written side by side
    for (std::size_t j = 0; j < b.columns; j += kTogether) {
      PackRows(b.data + j, b.row_stride, b.rows, HWY_MIN(kTogether, b.columns - j),
               panels + j / kPanelWidth * panel_stride, panel_stride);
    }
  } else {
    for (std::size_t j = 0; j < b.columns; j += kPanelWidth) {
      PackColumns(b.data + j * b.column_stride, b.column_stride, b.rows, HWY_MIN(kPanelWidth, b.columns - j),
                  panels + j / kPanelWidth * panel_stride);
    }
  }
}

// A column-major A as the blocks read it, [depth][height] each, block after block.
inline void PackBlocksOfA(const float* a, std::size_t column_stride, std::size_t depth, const RowBlocks& blocks,
                          float* to) {
  // Eight steps of k of eight blocks: lines of A are read whole while they are in the first cache, even if its columns
  // push each other out of it, and lines are written one after another. Eight elements are copied at once; what is too
  // much is written over by the next step.
  constexpr std::size_t kSteps = 8, kTogether = 8, kChunk = 8;
  const hn::CappedTag<float, kChunk> d;
  std::size_t row = 0;
  for (std::size_t block = 0; block < blocks.count;) {
    const std::size_t height = blocks.height(block);
    std::size_t count = 0;  // blocks of this height that have eight elements to read
    while (count < kTogether && block + count < blocks.count && blocks.height(block + count) == height &&
           row + count * height + kChunk <= blocks.rows) {
      ++count;
    }
    std::size_t k = 0;
    for (; count != 0 && (k + kSteps) * height + kChunk <= depth * height; k += kSteps) {
      for (std::size_t b = 0; b < count; ++b) {
        const float* from = a + k * column_stride + row + b * height;
        float* out = to + (row + b * height) * depth + k * height;
#pragma GCC unroll 8
        for (std::size_t i = 0; i < kSteps; ++i, from += column_stride, out += height) {
#pragma GCC unroll 2
          for (std::size_t j = 0; j < kChunk; j += hn::MaxLanes(d)) hn::StoreU(hn::LoadU(d, from + j), d, out + j);
        }
      }
    }
    if (count == 0) count = 1;
    for (std::size_t b = 0; b < count; ++b, row += height) {
      for (std::size_t rest = k; rest < depth; ++rest) {
        for (std::size_t i = 0; i < height; ++i)
          to[row * depth + rest * height + i] = a[rest * column_stride + row + i];
      }
    }
    block += count;
  }
}

// --------------------------------------------------------------------------------------------------------------- tile

// A block whose last panel is wider than C: calculated beside C. A template, so that several sources may have it.
template <class Arguments>
HWY_NOINLINE void EdgeBlock(std::size_t rows, std::size_t columns, Activation activation, Arguments arguments) {
  constexpr std::size_t kWidth = kMostPanels * kPanelWidth;
  HWY_ALIGN float c[kBlockRows * kWidth];
  HWY_ALIGN float bias[kWidth];
  float* const to = arguments.c;
  const std::size_t to_row = arguments.c_row;
  const std::size_t panels = (columns + kPanelWidth - 1) / kPanelWidth, width = panels * kPanelWidth;
  if (arguments.resume) {
    for (std::size_t i = 0; i < rows; ++i) {
      std::copy_n(to + i * to_row, columns, c + i * kWidth);
      std::fill_n(c + i * kWidth + columns, width - columns, 0.0f);
    }
  }
  if (arguments.bias != nullptr) {
    std::copy_n(arguments.bias, columns, bias);
    std::fill_n(bias + columns, width - columns, 0.0f);
    arguments.bias = bias;
  }
  arguments.c = c;
  arguments.c_row = kWidth;
  AnyBlock(rows, panels, arguments);
  Activate(activation, c, kWidth, rows, width);
  for (std::size_t i = 0; i < rows; ++i) std::copy_n(c + i * kWidth, columns, to + i * to_row);
}

// A block of C whose columns of B are contiguous: they are turned in registers.
template <std::size_t kRows>
HWY_NOINLINE void TurnedBlock(const Product& p, std::size_t row, std::size_t column) {
  constexpr std::size_t kVectors = TurnedVectors(kRows);
  const FloatTag d;
  const std::size_t depth = p.a.columns, a_row = p.a.row_stride, a_k = p.a.column_stride, b_column = p.b.column_stride;
  const float* const a = p.a.data + row * a_row;
  for (std::size_t done = 0; done < kTurnedColumns; done += kVectors * kLanes) {
    const float* const b = p.b.data + (column + done) * b_column;
    float* const c = p.c.data + row * p.c.row_stride + column + done;
    FloatVec sum[kRows][kVectors];
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v)
        sum[i][v] = p.epilogue.accumulate ? hn::LoadU(d, c + i * p.c.row_stride + v * kLanes) : hn::Zero(d);
    }
    const auto four = [&](std::size_t k, std::size_t v) REGARD_INLINE_LAMBDA {
      FloatVec y[4];
      LoadFourTurned(d, b + v * kLanes * b_column + k, b_column, y);
#pragma GCC unroll 4
      for (std::size_t q = 0; q < 4; ++q) {
#pragma GCC unroll 8
        for (std::size_t i = 0; i < kRows; ++i)
          sum[i][v] = hn::MulAdd(hn::Set(d, a[i * a_row + (k + q) * a_k]), y[q], sum[i][v]);
      }
    };
    std::size_t k = 0;
    for (; k + 16 <= depth; k += 16) {  // a line of every column is used up at once: soon others take its place
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) {
        ForEachTurned(b + v * kLanes * b_column + k, b_column, [&](std::size_t q, FloatVec y) REGARD_INLINE_LAMBDA {
#pragma GCC unroll 8
          for (std::size_t i = 0; i < kRows; ++i)
            sum[i][v] = hn::MulAdd(hn::Set(d, a[i * a_row + (k + q) * a_k]), y, sum[i][v]);
        });
      }
    }
    for (; k + 4 <= depth; k += 4) {
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) four(k, v);
    }
    for (; k < depth; ++k) {
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) {
        HWY_ALIGN float lanes[kLanes];
        for (std::size_t j = 0; j < kLanes; ++j) lanes[j] = b[(v * kLanes + j) * b_column + k];
        const FloatVec y = hn::Load(d, lanes);
#pragma GCC unroll 8
        for (std::size_t i = 0; i < kRows; ++i)
          sum[i][v] = hn::MulAdd(hn::Set(d, a[i * a_row + k * a_k]), y, sum[i][v]);
      }
    }
#pragma GCC unroll 8
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(sum[i][v], d, c + i * p.c.row_stride + v * kLanes);
    }
  }
}

inline void TurnedTile(const Product& p, const TileRange& range) {
  for (std::size_t i = range.row_begin; i < range.row_end;) {
    const std::size_t height = HWY_MIN(kTurnedRows, range.row_end - i);
    for (std::size_t j = range.column_begin; j < range.column_end; j += kTurnedColumns) {
      switch (height) {
        case 1:
          TurnedBlock<1>(p, i, j);
          break;
        case 2:
          TurnedBlock<2>(p, i, j);
          break;
        case 3:
          TurnedBlock<3>(p, i, j);
          break;
        case 4:
          TurnedBlock<4>(p, i, j);
          break;
        case 5:
          TurnedBlock<5>(p, i, j);
          break;
        default:
          TurnedBlock<6>(p, i, j);
      }
    }
    i += height;
  }
}

// A product of few k: C is written row by row, from left to right.
template <std::size_t kRows>
HWY_INLINE void ThinRows(const Product& p, std::size_t row, const float* HWY_RESTRICT b, std::size_t b_k,
                         float* HWY_RESTRICT c, std::size_t columns) {
  constexpr std::size_t kVectors = 4;
  const FloatTag d;
  const std::size_t depth = p.a.columns, a_row = p.a.row_stride, a_k = p.a.column_stride;
  const float* HWY_RESTRICT a = p.a.data + row * a_row;
  c += row * p.c.row_stride;
  const auto strip = [&](std::size_t j, auto vectors) REGARD_INLINE_LAMBDA {
    constexpr std::size_t kCount = decltype(vectors)::value;
    FloatVec sum[kRows][kCount];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kCount; ++v)
        sum[i][v] = p.epilogue.accumulate ? hn::LoadU(d, c + i * p.c.row_stride + j + v * kLanes) : hn::Zero(d);
    }
    for (std::size_t k = 0; k < depth; ++k) {
      FloatVec y[kCount];
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kCount; ++v) y[v] = InRegister(hn::LoadU(d, b + k * b_k + j + v * kLanes));
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kRows; ++i) {
        const FloatVec x = hn::Set(d, a[i * a_row + k * a_k]);
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kCount; ++v) sum[i][v] = hn::MulAdd(x, y[v], sum[i][v]);
      }
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kCount; ++v) hn::StoreU(sum[i][v], d, c + i * p.c.row_stride + j + v * kLanes);
    }
  };
  std::size_t j = 0;
  for (; j + kVectors * kLanes <= columns; j += kVectors * kLanes)
    strip(j, std::integral_constant<std::size_t, kVectors>());
  for (; j < columns; j += kLanes) strip(j, std::integral_constant<std::size_t, 1>());
}

inline void ThinTile(const Product& p, const TileRange& range, float* packed_b) {
  const std::size_t depth = p.a.columns;
  for (std::size_t first = range.column_begin; first < range.column_end; first += p.column_block) {
    const std::size_t columns = HWY_MIN(p.column_block, range.column_end - first);
    const float* b = p.b.data + first;
    std::size_t b_k = p.b.row_stride;
    if (b_k % kAliased == 0 && depth > 8) {  // more rows than there are places for them in the first cache
      for (std::size_t k = 0; k < depth; ++k) std::copy_n(b + k * b_k, columns, packed_b + k * columns);
      b = packed_b;
      b_k = columns;
    }
    float* const c = p.c.data + first;
    std::size_t i = range.row_begin;
    for (; i + 4 <= range.row_end; i += 4) ThinRows<4>(p, i, b, b_k, c, columns);
    for (; i < range.row_end; ++i) ThinRows<1>(p, i, b, b_k, c, columns);
  }
}

// Memory that is wanted soon, `count` stripes of it. A block fetches one of them, a line with each step of k.
struct Stripes {
  const float* at = nullptr;
  std::size_t apart = 0;  // from stripe to stripe
  std::size_t step = 0;   // from line to line
  std::size_t count = 0;
};

// One tile of C over all of k: for each block of k and each block of columns, all rows. The next columns of B, and what
// the next block of k begins with, are fetched into the second cache meanwhile: B from the third cache costs nothing
// from some twenty rows on.
inline void MultiplyTile(const Product& p, const TileRange& range, float* packed_a, float* packed_b) {
  if (p.read_b == ReadB::kTurn) return TurnedTile(p, range);
  if (p.read_b == ReadB::kThin) return ThinTile(p, range, packed_b);
  constexpr std::size_t kStrip = kMostPanels * kPanelWidth;
  const std::size_t total_depth = p.a.columns, tile_columns = range.column_end - range.column_begin;
  const RowBlocks blocks(range.row_end - range.row_begin);
  const bool alone = blocks.count == 1;  // B passes by faster than it is fetched: 1×2048×512 takes 36 µs, without 33
  const bool dense_a = p.a.row_stride == total_depth && p.a.column_stride == 1 && p.k_block >= total_depth;
  std::size_t k = 0;
  do {
    const std::size_t depth = HWY_MIN(p.k_block, total_depth - k);
    const bool last = k + depth == total_depth;
    const Activation activation = last ? p.epilogue.activation : Activation::kNone;
    const float* const bias = last ? p.epilogue.bias : nullptr;
    const float* const a = p.a.data + range.row_begin * p.a.row_stride + k * p.a.column_stride;
    if (p.pack_a) PackBlocksOfA(a, p.a.column_stride, depth, blocks, packed_a);

    Stripes soon[3];  // the next columns of B; A and B of the next block of k
    if (!last && p.a.row_stride == 1) {
      soon[1] = {a + depth * p.a.column_stride, kPanelWidth, p.a.column_stride,
                 (blocks.rows + kPanelWidth - 1) / kPanelWidth};
    }
    if (!last && p.read_b != ReadB::kPacked && p.b.column_stride == 1) {
      soon[2] = {p.b.data + (k + depth) * p.b.row_stride + range.column_begin, kPanelWidth, p.b.row_stride,
                 HWY_MIN(p.column_block, tile_columns) / kPanelWidth};
    }

    BlockArguments arguments;
    arguments.depth = depth;
    arguments.c_row = p.c.row_stride;
    arguments.resume = k > 0 || p.epilogue.accumulate;
    arguments.relu = activation == Activation::kRelu;
    arguments.far_b = p.read_b == ReadB::kFar;
    for (std::size_t j = range.column_begin; j < range.column_end; j += p.column_block) {
      const std::size_t columns = HWY_MIN(p.column_block, range.column_end - j);
      const std::size_t next_panels = HWY_MIN(p.column_block, range.column_end - j - columns) / kPanelWidth;
      std::size_t direct_columns = columns;  // beyond them stands a ragged panel that has been packed
      std::size_t b_k = kPanelWidth;
      const float* b = nullptr;
      switch (p.read_b) {
        case ReadB::kPacked:
          b = p.panels + (j - p.panels_begin) * total_depth + k * kPanelWidth;
          arguments.b_panel = total_depth * kPanelWidth;
          soon[0] = {b + columns * total_depth, arguments.b_panel, kPanelWidth, next_panels};
          break;
        case ReadB::kPack: {
          float* const to =
              p.keep_panels ? packed_b + (j - range.column_begin) * total_depth + k * kPanelWidth : packed_b;
          arguments.b_panel = (p.keep_panels ? total_depth : depth) * kPanelWidth;
          const Matrix part{p.b.data + k * p.b.row_stride + j * p.b.column_stride, depth, columns, p.b.row_stride,
                            p.b.column_stride};
          PackPanels(part, to, arguments.b_panel);
          b = to;
          if (p.b.column_stride == 1) {
            soon[0] = {part.data + columns, kPanelWidth, p.b.row_stride, next_panels};
          } else if (p.b.column_stride == depth) {  // whole columns, one behind the other
            soon[0] = {part.data + columns * depth, kPanelWidth * depth, kPanelWidth, next_panels};
          }
          break;
        }
        case ReadB::kTurn:  // not here
        case ReadB::kThin:
        case ReadB::kDirect:
        case ReadB::kFar:
          b = p.b.data + k * p.b.row_stride + j;
          b_k = p.b.row_stride;
          arguments.b_panel = kPanelWidth;
          soon[0] = {b + columns, kPanelWidth, p.b.row_stride, next_panels};
          direct_columns = columns / kPanelWidth * kPanelWidth;
          if (direct_columns != columns)
            PackRows(b + direct_columns, p.b.row_stride, depth, columns - direct_columns, packed_b, 0);
          break;
      }
      for (std::size_t block = 0, i = 0; block < blocks.count; i += blocks.height(block), ++block) {
        const std::size_t height = blocks.height(block);
        const std::size_t most = BlockPanels(height) * kPanelWidth;
        arguments.a = p.pack_a ? packed_a + i * depth : a + i * p.a.row_stride;
        arguments.a_row = p.pack_a ? 1 : p.a.row_stride;
        arguments.a_k = p.pack_a ? height : p.a.column_stride;
        std::size_t width;
        for (std::size_t done = 0; done < columns; done += width) {
          const bool direct = done < direct_columns;
          width = HWY_MIN(most, (direct ? direct_columns : columns) - done);
          arguments.b = direct ? b + done / kPanelWidth * arguments.b_panel : packed_b;
          arguments.b_k = direct ? b_k : kPanelWidth;
          arguments.c = p.c.data + (range.row_begin + i) * p.c.row_stride + j + done;
          arguments.next_c =
              done + width < columns ? arguments.c + width : arguments.c + height * p.c.row_stride - done;
          arguments.bias = bias == nullptr ? nullptr : bias + j + done;
          arguments.ahead = arguments.b;  // nothing new
          arguments.ahead_k = 0;
          if (!alone && done == 0 && dense_a &&
              (columns > kStrip || soon[0].count == 0)) {  // the rows of the next block
            arguments.ahead = arguments.a + height * p.a.row_stride;
            arguments.ahead_k = kPanelWidth;
          } else if (!alone && done % kStrip == 0) {
            for (Stripes& stripes : soon) {
              if (stripes.count == 0) continue;
              arguments.ahead = stripes.at;
              arguments.ahead_k = stripes.step;
              stripes.at += stripes.apart;
              --stripes.count;
              break;
            }
          }
          if (width % kPanelWidth == 0) {
            AnyBlock(height, width / kPanelWidth, arguments);
            Activate(activation, arguments.c, arguments.c_row, height, width);
          } else {
            EdgeBlock(height, width, activation, arguments);
          }
        }
      }
    }
    k += depth;
  } while (k < total_depth);
}

#undef REGARD_INLINE_LAMBDA

}  // namespace regard::HWY_NAMESPACE::gemm_detail
HWY_AFTER_NAMESPACE();

#endif  // once per target
