// Matrix product: how the work is cut into tiles, which of them are worth a thread, and how a tile reads A and B. The
// arithmetic is in gemm-inl.h; nothing in here changes a bit of the result. All figures are from bench matmul and
// bench matmul_backward, f32, AVX-512, two threads, caches of 48 KB and 2 MB a core, 0 … 370 GFLOP/s.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm.cc"
#include "hwy/foreach_target.h"
#include "kernels/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

void GemmTile(const regard::gemm_detail::Product& product, const regard::gemm_detail::TileRange& range, float* packed_a,
              float* packed_b) {
  gemm_detail::MultiplyTile(product, range, packed_a, packed_b);
}

void GemmPack(Matrix b, float* panels, std::size_t panel_stride) { gemm_detail::PackPanels(b, panels, panel_stride); }

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <cassert>

#include "base/float_mode.h"
#include "base/flops.h"
#include "base/pool.h"
#include "kernels/scratch.h"

namespace regard {

HWY_EXPORT(GemmTile);
HWY_EXPORT(GemmPack);

namespace {

using gemm_detail::divide_up;
using gemm_detail::kAliased;
using gemm_detail::kTurnedColumns;
using gemm_detail::Product;
using gemm_detail::ReadB;
using gemm_detail::round_up;
using gemm_detail::TileRange;

constexpr std::size_t kRowUnit = 6, kColumnUnit = 64;  // a register block of AVX-512

// Work below which a second thread costs more than it brings: multiply-adds, those of two rows more for reading B.
// About 1.2 µs: 5×256×128 takes 1.9 µs with two threads, 2.9 with one (Zen 4); 16×128×128 gains a third.
constexpr double kSerialWork = 200e3;

// Elements that a second thread helps to pack.
constexpr std::size_t kSerialPacking = 32 * 1024;

// Floats that may stay in the second cache beside what passes through.
constexpr std::size_t kCached = 128 * 1024;

// Multiply-adds that reading or packing one row (or column) of a tile costs for each k.
constexpr double kReadCost = 8, kPackCost = 28;

// Products of so few k write more than they calculate.
constexpr std::size_t kThinDepth = 16;

// Chooses how B is read and how k and the columns are cut.
void choose_blocks(Product& p, std::size_t workers) {
  const std::size_t rows = p.c.rows, columns = p.c.columns, depth = p.a.columns;
  const bool column_major_a = p.a.row_stride == 1 && p.a.column_stride != 1;
  const bool narrow = p.a.column_stride <= 256 && p.b.row_stride <= 256;
  const bool plain = p.epilogue.bias == nullptr && p.epilogue.activation == Activation::kNone;
  std::size_t k_block = 2048, cached_b = kCached;
  if (p.read_b == ReadB::kPacked) {
    if (column_major_a) k_block = 512;
  } else if (plain && p.b.row_stride == 1 && rows <= kRowUnit && columns % kTurnedColumns == 0) {
    p.read_b = ReadB::kTurn;  // 1×512×2048: 60 µs, packed 78; 5×512×2048: 91 and 98
  } else if (plain && p.b.column_stride == 1 && depth <= kThinDepth && columns % kPanelWidth == 0 && rows > kRowUnit) {
    p.read_b = ReadB::kThin;  // 512×512×5: 212, in blocks 105; 512×2048×16: 329 and 269
    cached_b = 6 * 1024;      // B within the first cache
  } else if (p.b.column_stride == 1) {
    if (rows <= kRowUnit) {
      p.read_b = ReadB::kFar;
    } else if (column_major_a) {  // the gradient of weights: both operands pass by once
      if (narrow) {
        p.read_b = ReadB::kDirect;
        k_block = kCached / (rows + columns) + 1;
      } else if (depth <= 64 || (p.b.row_stride % kAliased != 0 && rows <= 512)) {
        p.read_b = ReadB::kDirect;  // 512×512×4096: 315, packed 295; 512×2048×64: 342 and 333
        k_block = 256;
      }
    } else if (depth * columns <= 2 * kCached * workers && rows <= 512) {
      p.read_b = ReadB::kDirect;  // 64×512×512: 366, packed 300
    } else if (rows <= 64) {
      p.read_b = ReadB::kDirect;  // 16×2048×512: 265, packed 260; 24×2048×512: 317 and 284
      k_block = 128;
      cached_b = 128 * k_block;
    }
  }
  if (p.read_b == ReadB::kPack) {
    if (rows <= 96) {  // long pieces of its columns are fetched in time; Zen 4, 64×512×2048: 208, with 128 193
      k_block = 512;
      cached_b = kColumnUnit * k_block;
    } else if (column_major_a) {
      k_block = 1024;
    } else if (depth > k_block) {
      k_block = 512;  // A stays in the second cache while B passes by: 256×512×32768: 310, with 2048 235
    }
  }
  const bool far_apart = depth > 32 || (depth > 4 && p.a.column_stride % kAliased == 0);
  p.pack_a = column_major_a && rows > kRowUnit && columns > kColumnUnit && far_apart &&
             !(p.read_b == ReadB::kDirect && narrow);
  p.k_block = std::max<std::size_t>(1, std::min(depth, k_block));
  p.column_block = std::max(kColumnUnit, cached_b / p.k_block / kColumnUnit * kColumnUnit);
}

struct Grid {
  std::size_t row_tile, column_tile;
  std::size_t row_tiles, column_tiles;
};

// Cuts C into at least `wanted` tiles, if it is large enough, for `workers` threads. What a tile does grows with its
// area, counted in whole register blocks (a column tile of 80 is one block of 64 and one of 16, which is hardly
// faster); what it costs to read or pack A and B with its height and its width. Tiles side by side write to the same
// rows, and what a processor fetches ahead is what another one writes: this costs something for each row, whatever the
// depth (1024×512×16: 178 side by side, 280 one below the other).
Grid choose_grid(std::size_t rows, std::size_t columns, std::size_t wanted, std::size_t workers, double a_cost,
                 double b_cost, double beside_cost) {
  const std::size_t row_units = divide_up(rows, kRowUnit), column_units = divide_up(columns, kColumnUnit);
  Grid best{rows, columns, 1, 1};
  double best_cost = -1;
  const std::size_t step = divide_up(wanted, 32);  // of hundreds of ways not all need a look
  for (std::size_t column_splits = 1; column_splits <= std::min(wanted, column_units); column_splits += step) {
    Grid grid;
    grid.column_tile = divide_up(column_units, column_splits) * kColumnUnit;
    grid.column_tiles = divide_up(columns, grid.column_tile);
    grid.row_tile = divide_up(row_units, std::min(divide_up(wanted, grid.column_tiles), row_units)) * kRowUnit;
    grid.row_tiles = divide_up(rows, grid.row_tile);
    const std::size_t rounds = divide_up(grid.row_tiles * grid.column_tiles, workers);
    const double height = static_cast<double>(std::min(grid.row_tile, rows));
    const double width = static_cast<double>(std::min(grid.column_tile, round_up(columns, kPanelWidth)));
    const double row_cost = a_cost + (grid.column_tiles > 1 ? beside_cost : 0);
    const double cost = static_cast<double>(rounds) * (height * width + row_cost * height + b_cost * width);
    if (best_cost < 0 || cost < best_cost) {
      best_cost = cost;
      best = grid;
    }
  }
  return best;
}

void multiply(std::size_t count, Product product, std::size_t a_step, std::size_t b_step, std::size_t c_step) {
  const std::size_t rows = product.c.rows, columns = product.c.columns, depth = product.a.columns;
  if (count == 0 || rows == 0 || columns == 0) return;
  assert(product.c.column_stride == 1);
  const double area = static_cast<double>(count) * static_cast<double>(columns) * static_cast<double>(depth);
  const std::size_t workers =
      area * static_cast<double>(rows + 2) < kSerialWork ? 1 : static_cast<std::size_t>(threads());
  if (counts_flops()) count_flops(2 * area * static_cast<double>(rows));
  choose_blocks(product, workers);
  const bool packs_b = product.read_b == ReadB::kPack;
  Grid grid{rows, columns, 1, 1};
  if (workers > 1) {
    // One tile a thread; in long products several, which even out disturbances, unless they would pack the same again.
    double share = 1;
    if (!packs_b && !product.pack_a)
      share = std::clamp(area * static_cast<double>(rows) / static_cast<double>(workers) / 32e6, 1.0, 4.0);
    const std::size_t wanted = divide_up(workers * static_cast<std::size_t>(share), count);
    if (wanted > 1) {
      grid = choose_grid(rows, columns, wanted, divide_up(workers, count), product.pack_a ? kPackCost : kReadCost,
                         packs_b ? kPackCost : kReadCost, 1024.0 / static_cast<double>(depth + 1));
    }
  }

  // As many rows of A stay in the second cache while the panels of B pass by; with more rows B passes by several times.
  std::size_t pass_rows = grid.row_tile;
  const std::size_t most_rows = std::max<std::size_t>(96, kCached / product.k_block / kRowUnit * kRowUnit);
  const std::size_t passes = divide_up(grid.row_tile, most_rows);
  if (passes > 1 && !product.pack_a) {
    if (product.read_b == ReadB::kPacked) {  // each can be a tile of its own
      std::size_t row_tiles = passes * grid.row_tiles;
      while (row_tiles * grid.column_tiles * count % workers != 0)
        ++row_tiles;  // the last round keeps all threads busy
      grid.row_tile = pass_rows = round_up(divide_up(rows, row_tiles), kRowUnit);
      grid.row_tiles = divide_up(rows, grid.row_tile);
    } else if (packs_b) {
      product.keep_panels = true;
      pass_rows = round_up(divide_up(grid.row_tile, passes), kRowUnit);
    }
  }

  const std::size_t a_floats = gemm_detail::packed_a_size(product, std::min(rows, grid.row_tile));
  const std::size_t b_floats = gemm_detail::packed_b_size(product, std::min(columns, grid.column_tile));
  const std::size_t tiles = grid.row_tiles * grid.column_tiles;
  // All memory is the caller's: a worker that meets its first large product late takes nothing from the heap for it.
  static thread_local Scratch scratch;
  const std::size_t floats = round_up(a_floats + b_floats, kAliased) + kPanelWidth;
  float* const memory = scratch.reserve(floats * workers);
  const auto run = [&](std::size_t item, int worker) {
    float* const packed_a = memory + static_cast<std::size_t>(worker) * floats;
    float* const packed_b = packed_a + a_floats;
    const std::size_t index = item / tiles, tile = item % tiles;
    Product mine = product;
    mine.a.data += index * a_step;
    mine.b.data += index * b_step;
    mine.c.data += index * c_step;
    const std::size_t first_row = tile % grid.row_tiles * grid.row_tile;
    const std::size_t row_end = std::min(rows, first_row + grid.row_tile);
    TileRange range;
    range.column_begin = tile / grid.row_tiles * grid.column_tile;
    range.column_end = std::min(columns, range.column_begin + grid.column_tile);
    for (std::size_t row = first_row; row < row_end; row += pass_rows) {
      range.row_begin = row;
      range.row_end = std::min(row_end, row + pass_rows);
      HWY_DYNAMIC_DISPATCH(GemmTile)(mine, range, packed_a, packed_b);
      if (product.keep_panels) {  // the first pass has made them
        mine.read_b = ReadB::kPacked;
        mine.panels = packed_b;
        mine.panels_begin = range.column_begin;
      }
    }
  };
  if (workers == 1) {
    const FloatMode mode;
    for (std::size_t item = 0; item < count * tiles; ++item) run(item, 0);
  } else {
    parallel(count * tiles, run);
  }
}

}  // namespace

PackedMatrix pack(Matrix b, float* panels) {
  const std::size_t panel_stride = b.rows * kPanelWidth;
  if (b.rows * b.columns < kSerialPacking) {
    HWY_DYNAMIC_DISPATCH(GemmPack)(b, panels, panel_stride);
  } else {
    parallel(divide_up(b.columns, kColumnUnit), [&](std::size_t item) {
      Matrix part = b;
      part.data += item * kColumnUnit * b.column_stride;
      part.columns = std::min(kColumnUnit, b.columns - item * kColumnUnit);
      HWY_DYNAMIC_DISPATCH(GemmPack)(part, panels + item * kColumnUnit * b.rows, panel_stride);
    });
  }
  return {panels, b.rows, b.columns};
}

void gemm(Matrix a, PackedMatrix b, MatrixOf<float> c, const Epilogue& epilogue) {
  assert(a.rows == c.rows && a.columns == b.k && b.n == c.columns);
  Product product;
  product.a = a;
  product.panels = b.panels;
  product.c = c;
  product.epilogue = epilogue;
  product.read_b = ReadB::kPacked;
  multiply(1, product, 0, 0, 0);
}

void gemm(Matrix a, Matrix b, MatrixOf<float> c, const Epilogue& epilogue) {
  gemm_batch(1, a, 0, b, 0, c, 0, epilogue);
}

void gemm_batch(std::size_t count, Matrix a, std::size_t a_step, Matrix b, std::size_t b_step, MatrixOf<float> c,
                std::size_t c_step, const Epilogue& epilogue) {
  assert(a.rows == c.rows && a.columns == b.rows && b.columns == c.columns);
  Product product;
  product.a = a;
  product.b = b;
  product.c = c;
  product.epilogue = epilogue;
  product.read_b = ReadB::kPack;
  multiply(count, product, a_step, b_step, c_step);
}

}  // namespace regard
#endif
