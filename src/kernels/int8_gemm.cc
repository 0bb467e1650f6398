// The product of bytes for every target, and how the work is cut: rows are made bytes first, then tiles of columns or
// rows are multiplied, each by one thread. Nothing in here changes a bit of the result.
#include "kernels/int8_gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/int8_gemm.cc"
#include "hwy/foreach_target.h"
#include "kernels/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// p has room for whole vectors. The largest magnitude is found by its bits, where what is not finite is larger than
// all.
float QuantizeRow(const float* x, std::size_t count, std::uint8_t* p) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::uint8_t, decltype(d)> d8;
  const std::size_t lanes = hn::Lanes(d), whole = count / lanes * lanes;
  auto most = hn::Zero(di);
  for (std::size_t i = 0; i < whole; i += lanes) {
    most = hn::Max(most, hn::BitCast(di, hn::Abs(hn::LoadU(d, x + i))));
  }
  if (whole < count) most = hn::Max(most, hn::BitCast(di, hn::Abs(LoadFirst(d, x + whole, count - whole))));
  const std::int32_t bits = hn::GetLane(hn::MaxOfLanes(di, most));
  float peak;
  std::memcpy(&peak, &bits, sizeof(peak));
  const bool finite = bits < 0x7f800000;
  const bool zero = !finite || peak < kInt8Tiny;
  if (zero) {
    std::memset(p, 128, (count + lanes - 1) / lanes * lanes);
    return finite ? 0 : std::nanf("");
  }
  const auto inverse = hn::Set(d, kInt8Largest / peak);
  const auto middle = hn::Set(di, 128);
  const auto bytes = [&](auto v)
                         HWY_ATTR { return hn::DemoteTo(d8, hn::Add(hn::NearestInt(hn::Mul(v, inverse)), middle)); };
  for (std::size_t i = 0; i < whole; i += lanes) hn::StoreU(bytes(hn::LoadU(d, x + i)), d8, p + i);
  if (whole < count) hn::StoreU(bytes(LoadFirst(d, x + whole, count - whole)), d8, p + whole);
  return peak / kInt8Largest;
}

void QuantizeRows(Matrix a, std::size_t begin, std::size_t count, std::uint8_t* p, std::size_t stride, float* scales) {
  for (std::size_t i = begin; i < begin + count; ++i) {
    scales[i] = QuantizeRow(a.data + i * a.row_stride, a.columns, p + i * stride);
  }
}

// 64 bytes of a panel, four rows of 16 columns, become vectors of 16 bits; products of two neighbours are added at
// once. (NEON adds no neighbours: there the four stay apart until the end.)
inline constexpr bool kNeighbours = HWY_ARCH_X86 != 0;
inline constexpr std::size_t kLanes16 = hn::MaxLanes(hn::ScalableTag<std::int16_t>());
inline constexpr std::size_t kChunks = 64 / kLanes16;
inline constexpr std::size_t kMostRows = kChunks == 2 ? 6 : kChunks == 4 ? 3 : 1;

inline constexpr std::size_t kParts = kNeighbours ? 2 : 4;

// The sums of 16 columns, each in kParts, as they come from the registers: `to` has room for all of them.
template <class V>
HWY_INLINE void StoreParts(const V* sums, const V* others, std::int32_t* to) {
  const hn::ScalableTag<std::int32_t> d32;
#pragma GCC unroll 8
  for (std::size_t c = 0; c < kChunks; ++c) {
    hn::StoreU(sums[c], d32, to + c * kLanes16 * kParts / 4);
    if constexpr (!kNeighbours) hn::StoreU(others[c], d32, to + c * kLanes16 * kParts / 4 + kLanes16 / 2);
  }
}

// The columns from j on, whole.
template <class D>
HWY_INLINE hn::Vec<D> AddParts(D d, const std::int32_t* parts, std::size_t j) {
  hn::Vec<D> p0, p1;
  if constexpr (kNeighbours) {
    hn::LoadInterleaved2(d, parts + j * kParts, p0, p1);
  } else {
    hn::Vec<D> p2, p3;
    hn::LoadInterleaved4(d, parts + j * kParts, p0, p1, p2, p3);
    p0 = hn::Add(p0, p2);
    p1 = hn::Add(p1, p3);
  }
  return hn::Add(p0, p1);
}

template <std::size_t kRows>
HWY_INLINE void Int8Block(const Int8Tile& tile, std::size_t row, std::size_t panel) {
  const hn::ScalableTag<std::int16_t> d16;
  const hn::Rebind<std::int8_t, decltype(d16)> d8;
  const hn::RebindToUnsigned<decltype(d8)> du8;
  const hn::Repartition<std::uint32_t, decltype(du8)> four;
  const hn::Repartition<std::int32_t, decltype(d16)> d32;
  using Sum = hn::Vec<decltype(d32)>;
  const Int8Matrix& b = *tile.b;
  const std::size_t quads = b.quads();
  const std::int8_t* weights = b.panel(panel);
  const std::uint8_t* a = tile.a + row * tile.a_stride;
  Sum sums[kRows][kChunks], others[kRows][kChunks];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (std::size_t c = 0; c < kChunks; ++c) sums[r][c] = others[r][c] = hn::Zero(d32);
  }
  for (std::size_t quad = 0; quad < quads; ++quad) {
    hn::Vec<decltype(d16)> x[kRows];
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r) {
      std::uint32_t word;
      std::memcpy(&word, a + r * tile.a_stride + quad * 4, sizeof(word));
      x[r] = hn::PromoteTo(d16, hn::BitCast(du8, hn::Set(four, word)));
    }
#pragma GCC unroll 8
    for (std::size_t c = 0; c < kChunks; ++c) {
      const auto w = hn::PromoteTo(d16, hn::LoadU(d8, weights + quad * 64 + c * kLanes16));
#pragma GCC unroll 8
      for (std::size_t r = 0; r < kRows; ++r) {
        sums[r][c] = hn::ReorderWidenMulAccumulate(d32, x[r], w, sums[r][c], others[r][c]);
      }
    }
  }
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  const std::size_t column = panel * Int8Matrix::kPanel, left = std::min(b.n() - column, Int8Matrix::kPanel);
#pragma GCC unroll 8
  for (std::size_t r = 0; r < kRows; ++r) {
    HWY_ALIGN std::int32_t parts[Int8Matrix::kPanel * kParts];  // of each column, one after another
    StoreParts(sums[r], others[r], parts);
    for (std::size_t j = 0; j < left; j += kLanes) {
      const auto sum = hn::Add(AddParts(di, parts, j), hn::LoadU(di, b.offsets() + column + j));
      const auto scale = hn::Mul(hn::Set(d, tile.row_scales[row + r]), hn::LoadU(d, b.scales() + column + j));
      auto y = hn::Mul(hn::ConvertTo(d, sum), scale);
      float* to = tile.c + (row + r) * tile.c_stride + column + j;
      const float* bias = tile.bias == nullptr ? nullptr : tile.bias + column + j;
      if (left - j >= kLanes) {
        if (bias != nullptr) y = hn::Add(y, hn::LoadU(d, bias));
        hn::StoreU(y, d, to);
      } else {
        if (bias != nullptr) y = hn::Add(y, LoadFirst(d, bias, left - j));
        StoreFirst(y, d, to, left - j);
      }
    }
  }
}

// The rows from `row` on, of which there are at most kRows.
template <std::size_t kRows>
HWY_INLINE void Int8Rest(const Int8Tile& tile, std::size_t row, std::size_t panel) {
  if (tile.rows - row == kRows) {
    Int8Block<kRows>(tile, row, panel);
  } else if constexpr (kRows > 1) {
    Int8Rest<kRows - 1>(tile, row, panel);
  }
}

void Int8TileRun(const Int8Tile& tile) {
  for (std::size_t panel = tile.first_panel; panel < tile.end_panel; ++panel) {
    std::size_t row = 0;
    for (; row + kMostRows < tile.rows; row += kMostRows) Int8Block<kMostRows>(tile, row, panel);
    Int8Rest<kMostRows>(tile, row, panel);
  }
}

// offsets = −128 · Σ_k of a packed panel.
void Int8Offsets(const std::int8_t* panel, std::size_t quads, std::int32_t* offsets) {
  const hn::ScalableTag<std::int16_t> d16;
  const hn::Rebind<std::int8_t, decltype(d16)> d8;
  const hn::Repartition<std::int32_t, decltype(d16)> d32;
  hn::Vec<decltype(d32)> sums[kChunks], others[kChunks];
#pragma GCC unroll 8
  for (std::size_t c = 0; c < kChunks; ++c) sums[c] = others[c] = hn::Zero(d32);
  const auto factor = hn::Set(d16, std::int16_t{-128});
  for (std::size_t quad = 0; quad < quads; ++quad) {
#pragma GCC unroll 8
    for (std::size_t c = 0; c < kChunks; ++c) {
      const auto w = hn::PromoteTo(d16, hn::LoadU(d8, panel + quad * 64 + c * kLanes16));
      sums[c] = hn::ReorderWidenMulAccumulate(d32, factor, w, sums[c], others[c]);
    }
  }
  HWY_ALIGN std::int32_t parts[Int8Matrix::kPanel * kParts];
  StoreParts(sums, others, parts);
  const hn::CappedTag<std::int32_t, 16> di;
  for (std::size_t j = 0; j < Int8Matrix::kPanel; j += hn::MaxLanes(di))
    hn::StoreU(AddParts(di, parts, j), di, offsets + j);
}

// Four rows of 16 columns: the four bytes of each column come together.
void Int8Quads(const std::int8_t* from, std::size_t stride, std::size_t quads, std::int8_t* to) {
  const hn::Full128<std::uint8_t> d8;
  const hn::Full128<std::uint16_t> d16;
  for (std::size_t quad = 0; quad < quads; ++quad, from += 4 * stride, to += 64) {
    const auto row = [&](std::size_t r)
                         HWY_ATTR { return hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(from + r * stride)); };
    const auto put = [&](std::size_t i, auto v)
                         HWY_ATTR { hn::StoreU(hn::BitCast(d8, v), d8, reinterpret_cast<std::uint8_t*>(to + i * 16)); };
    const auto r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
    const auto low01 = hn::BitCast(d16, hn::InterleaveLower(d8, r0, r1));
    const auto low23 = hn::BitCast(d16, hn::InterleaveLower(d8, r2, r3));
    const auto high01 = hn::BitCast(d16, hn::InterleaveUpper(d8, r0, r1));
    const auto high23 = hn::BitCast(d16, hn::InterleaveUpper(d8, r2, r3));
    put(0, hn::InterleaveLower(d16, low01, low23));
    put(1, hn::InterleaveUpper(d16, low01, low23));
    put(2, hn::InterleaveLower(d16, high01, high23));
    put(3, hn::InterleaveUpper(d16, high01, high23));
  }
}

// y = byte · scale, one scale for all or one each.
void Int8Widen(const std::int8_t* q, const float* scales, bool one_scale, float* y, std::size_t count) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<std::int8_t, decltype(d)> d8;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto scale = one_scale ? hn::Set(d, scales[0]) : hn::LoadU(d, scales + i);
    hn::StoreU(hn::Mul(hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(d8, q + i))), scale), d, y + i);
  }
  for (; i < count; ++i) y[i] = static_cast<float>(q[i]) * scales[one_scale ? 0 : i];
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <algorithm>
#include <cassert>

#include "base/float_mode.h"
#include "base/pool.h"
#include "kernels/chunks.h"
#include "kernels/int8_vnni.h"
#include "kernels/scratch.h"

namespace regard {

HWY_EXPORT(QuantizeRows);
HWY_EXPORT(Int8TileRun);
HWY_EXPORT(Int8Offsets);
HWY_EXPORT(Int8Quads);
HWY_EXPORT(Int8Widen);

namespace {

std::string no_reason(std::size_t) { return ""; }

std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

// Multiply-adds below which a second thread costs more than it brings; a row more for reading the weights.
constexpr double kSerialWork = 700e3;

}  // namespace

Int8Matrix::Int8Matrix(MatrixOf<const std::int8_t> q, const float* scales) : k_(q.rows), n_(q.columns) {
  assert(k_ <= kInt8MostDepth);
  const std::size_t padded = panels() * kPanel, panel_bytes = quads() * kQuad * kPanel;
  memory_ = Tensor::empty({static_cast<std::int64_t>(panels() * panel_bytes)}, DType::kI8);
  scales_ = Tensor::zeros({static_cast<std::int64_t>(padded)});
  offsets_ = Tensor::zeros({static_cast<std::int64_t>(padded)}, DType::kI32);
  std::copy_n(scales, n_, scales_.data<float>());
  for_each_item(panels(), panels() * panel_bytes, [&](std::size_t panel) {
    std::int8_t* to = memory_.data<std::int8_t>() + panel * panel_bytes;
    const std::size_t column = panel * kPanel, columns = std::min(kPanel, n_ - column);
    if (columns < kPanel || k_ % kQuad != 0) std::memset(to, 0, panel_bytes);
    if (q.row_stride == 1) {
      for (std::size_t j = 0; j < columns; ++j) {
        const std::int8_t* from = &q.at(0, column + j);
        for (std::size_t k = 0; k < k_; k += kQuad) {
          std::memcpy(to + k * kPanel + j * kQuad, from + k, std::min(kQuad, k_ - k));
        }
      }
    } else {
      const std::size_t whole = columns == kPanel && q.column_stride == 1 ? k_ / kQuad : 0;
      if (whole > 0) HWY_DYNAMIC_DISPATCH(Int8Quads)(&q.at(0, column), q.row_stride, whole, to);
      for (std::size_t k = whole * kQuad; k < k_; ++k) {
        for (std::size_t j = 0; j < columns; ++j) {
          to[k / kQuad * kQuad * kPanel + j * kQuad + k % kQuad] = q.at(k, column + j);
        }
      }
    }
    HWY_DYNAMIC_DISPATCH(Int8Offsets)(to, quads(), offsets_.data<std::int32_t>() + panel * kPanel);
  });
}

bool quantize_columns(Matrix w, MatrixOf<std::int8_t> q, float* scales) {
  const FloatMode mode;
  std::vector<float> inverse(w.columns, 0.0f);  // first the peaks
  const auto each = [&](const auto& visit) {    // in the order of memory
    const bool by_rows = w.column_stride == 1;
    const std::size_t outer = by_rows ? w.rows : w.columns, inner = by_rows ? w.columns : w.rows;
    for (std::size_t o = 0; o < outer; ++o) {
      for (std::size_t i = 0; i < inner; ++i) by_rows ? visit(o, i) : visit(i, o);
    }
  };
  bool finite = true;
  each([&](std::size_t k, std::size_t j) {
    const float size = std::abs(w.at(k, j));
    finite &= std::isfinite(size);
    inverse[j] = std::max(inverse[j], size);
  });
  if (!finite) return false;
  for (std::size_t j = 0; j < w.columns; ++j) {
    const float peak = inverse[j];
    const bool zero = peak < kInt8Tiny;
    scales[j] = zero ? 0 : peak / kInt8Largest;
    inverse[j] = zero ? 0 : kInt8Largest / peak;
  }
  each([&](std::size_t k, std::size_t j) {
    q.at(k, j) = static_cast<std::int8_t>(std::nearbyint(w.at(k, j) * inverse[j]));
  });
  return true;
}

void widen_rows(RowsOf<const std::int8_t> q, const float* scales, bool scale_by_row, float* y) {
  in_row_chunks(q.count, q.width, [&](std::size_t begin, std::size_t count) {
    for (std::size_t i = begin; i < begin + count; ++i) {
      HWY_DYNAMIC_DISPATCH(Int8Widen)
      (q.row(i), scale_by_row ? scales + i : scales, scale_by_row, y + i * q.width, q.width);
    }
  });
}

namespace reference {

void int8_tile(const Int8Tile& tile) {
  const Int8Matrix& b = *tile.b;
  const std::size_t end = std::min(b.n(), tile.end_panel * Int8Matrix::kPanel);
  for (std::size_t i = 0; i < tile.rows; ++i) {
    for (std::size_t j = tile.first_panel * Int8Matrix::kPanel; j < end; ++j) {
      std::int64_t sum = 0;
      for (std::size_t k = 0; k < b.k(); ++k) {
        const std::int8_t* four = b.panel(j / 16) + k / 4 * 64 + j % 16 * 4;
        sum += (static_cast<std::int64_t>(tile.a[i * tile.a_stride + k]) - 128) * four[k % 4];
      }
      const float scale = tile.row_scales[i] * b.scales()[j];
      float y = static_cast<float>(sum) * scale;
      if (tile.bias != nullptr) y += tile.bias[j];
      tile.c[i * tile.c_stride + j] = y;
    }
  }
}

}  // namespace reference

const std::vector<Int8Kernel>& int8_kernels() {
  static const std::vector<Int8Kernel> all = {{"vnni", vnni::why_not, vnni::int8_tile},
                                              {"highway", no_reason,
                                               [](const Int8Tile& tile) {
                                                 HWY_DYNAMIC_DISPATCH(Int8TileRun)
                                                 (tile);
                                               }},
                                              {"reference", no_reason, reference::int8_tile}};
  return all;
}

const Int8Kernel& int8_kernel(std::size_t depth) {
  for (const Int8Kernel& each : int8_kernels()) {
    if (each.why_not(depth).empty()) return each;
  }
  return int8_kernels().back();
}

void int8_gemm(Matrix a, const Int8Matrix& b, MatrixOf<float> c, const float* bias) {
  int8_gemm(int8_kernel(a.columns), a, b, c, bias);
}

void int8_gemm(const Int8Kernel& kernel, Matrix a, const Int8Matrix& b, MatrixOf<float> c, const float* bias) {
  assert(a.rows == c.rows && a.columns == b.k() && b.n() == c.columns && a.column_stride == 1 && c.column_stride == 1);
  const std::size_t rows = a.rows, depth = a.columns, panels = b.panels();
  if (rows == 0 || panels == 0) return;
  const FloatMode mode;

  // Of all memory that is the caller's a part is the bytes of A, a part their scales.
  const std::size_t stride = divide_up(std::max<std::size_t>(depth, 1), 64) * 64;
  static thread_local Scratch scratch;
  float* const row_scales = scratch.reserve(divide_up(rows, 16) * 16 + rows * stride / sizeof(float));
  auto* const bytes = reinterpret_cast<std::uint8_t*>(row_scales + divide_up(rows, 16) * 16);
  in_row_chunks(rows, depth, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(QuantizeRows)(a, begin, count, bytes, stride, row_scales);
  });

  const auto run = [&](std::size_t row, std::size_t row_end, std::size_t panel, std::size_t panel_end) {
    kernel.run({.a = bytes + row * stride,
                .a_stride = stride,
                .row_scales = row_scales + row,
                .rows = row_end - row,
                .b = &b,
                .first_panel = panel,
                .end_panel = panel_end,
                .bias = bias,
                .c = c.data + row * c.row_stride,
                .c_stride = c.row_stride});
  };
  const double work = static_cast<double>(rows + 1) * static_cast<double>(b.n()) * static_cast<double>(depth);
  const std::size_t workers = work < kSerialWork ? 1 : static_cast<std::size_t>(threads());
  if (workers == 1) return run(0, rows, 0, panels);
  // Columns, whose weights are then read by one thread alone; of few columns rows.
  const std::size_t share = static_cast<std::size_t>(std::clamp(work / static_cast<double>(workers) / 50e6, 1.0, 4.0));
  const std::size_t wanted = workers * share;
  if (panels >= 8 * workers || rows < 12 * workers) {
    const std::size_t tile = divide_up(divide_up(panels, wanted), 4) * 4;
    parallel(divide_up(panels, tile),
             [&](std::size_t item) { run(0, rows, item * tile, std::min(panels, (item + 1) * tile)); });
  } else {
    const std::size_t tile = divide_up(divide_up(rows, wanted), 6) * 6;
    parallel(divide_up(rows, tile),
             [&](std::size_t item) { run(item * tile, std::min(rows, (item + 1) * tile), 0, panels); });
  }
}

}  // namespace regard
#endif
