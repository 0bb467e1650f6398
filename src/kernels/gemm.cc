// Matrix product: how the work is cut into tiles, and which of them are worth a thread. The arithmetic is in
// gemm-inl.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm.cc"
#include "hwy/foreach_target.h"
#include "kernels/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

void GemmTile(const detail::Product& product, const detail::TileRange& range, float* packed_a, float* packed_b) {
  MultiplyTile(product, range, packed_a, packed_b);
}

void GemmPack(Matrix b, float* panels, std::size_t panel_stride) { PackPanels(b, panels, panel_stride); }

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <cassert>
#include <cstdlib>
#include <memory>
#include <new>

#include "base/float_mode.h"
#include "base/pool.h"

#ifdef REGARD_GEMM_LAB
extern "C" {
long lab[16] = {0};
}
#define LAB(i, value) (lab[i] ? static_cast<decltype(value)>(lab[i]) : (value))
#else
#define LAB(i, value) (value)
#endif

namespace regard {

HWY_EXPORT(GemmTile);
HWY_EXPORT(GemmPack);

namespace {

using detail::Product;
using detail::ReadB;
using detail::round_up;
using detail::TileRange;

// Memory that a thread keeps for its next product.
class Scratch {
 public:
  float* reserve(std::size_t floats) {
    if (floats > size_) {
      memory_.reset();
      size_ = 0;
      const std::size_t bytes = round_up(floats * sizeof(float), kAlignment);
      memory_.reset(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)));
      if (memory_ == nullptr) throw std::bad_alloc();
      size_ = floats;
    }
    return memory_.get();
  }

 private:
  static constexpr std::size_t kAlignment = 4096;
  struct Free {
    void operator()(float* memory) const { std::free(memory); }
  };
  std::unique_ptr<float, Free> memory_;
  std::size_t size_ = 0;
};

Scratch& tile_scratch() {
  static thread_local Scratch scratch;
  return scratch;
}
Scratch& panel_scratch() {
  static thread_local Scratch scratch;
  return scratch;
}

struct Grid {
  std::size_t row_tile, column_tile;
  std::size_t row_tiles, column_tiles;
};

// Flops below which waking a second thread costs more than it brings.
constexpr double kSerialFlops = 400e3;

Grid choose_grid(std::size_t rows, std::size_t columns, std::size_t wanted) {
  // Tiles as square as may be: what a tile reads grows with its sides, what it does with its area.
  constexpr std::size_t kRowUnit = 6, kColumnUnit = 64;
  const std::size_t row_units = (rows + kRowUnit - 1) / kRowUnit;
  const std::size_t column_units = (columns + kColumnUnit - 1) / kColumnUnit;
  Grid best{rows, columns, 1, 1};
  double best_cost = 1e300;
  for (std::size_t column_splits = 1; column_splits <= std::min(wanted, column_units); ++column_splits) {
    const std::size_t row_splits = std::min((wanted + column_splits - 1) / column_splits, row_units);
    const std::size_t column_tile = (column_units + column_splits - 1) / column_splits * kColumnUnit;
    const std::size_t row_tile = (row_units + row_splits - 1) / row_splits * kRowUnit;
    const double r = static_cast<double>(std::min(row_tile, rows)),
                 c = static_cast<double>(std::min(column_tile, columns));
    const double items = static_cast<double>(row_splits * column_splits);
    const double rounds = items < static_cast<double>(wanted) ? static_cast<double>(wanted) / items : 1;
    const double cost = rounds * (r * c + 8 * (r + c));
    if (cost < best_cost) {
      best_cost = cost;
      best = {row_tile, column_tile, (rows + row_tile - 1) / row_tile, (columns + column_tile - 1) / column_tile};
    }
  }
  return best;
}

void pack_into(Matrix b, float* panels) {
  const std::size_t panel_stride = b.rows * kPanelWidth;
  // Items of about 16 thousand elements: some microseconds.
  const std::size_t columns = std::max<std::size_t>(
      kPanelWidth, std::min<std::size_t>(64, (std::size_t{1} << 14) / (b.rows + 1) / kPanelWidth * kPanelWidth));
  const std::size_t items = (b.columns + columns - 1) / columns;
  if (b.rows * b.columns < (std::size_t{1} << 15)) {
    HWY_DYNAMIC_DISPATCH(GemmPack)(b, panels, panel_stride);
    return;
  }
  parallel(items, [&](std::size_t item) {
    Matrix part = b;
    part.data += item * columns * b.column_stride;
    part.columns = std::min(columns, b.columns - item * columns);
    HWY_DYNAMIC_DISPATCH(GemmPack)(part, panels + item * columns * b.rows, panel_stride);
  });
}

void multiply(std::size_t count, Product product, std::size_t a_step, std::size_t b_step, std::size_t c_step) {
  const std::size_t rows = product.c.rows, columns = product.c.columns, depth = product.a.columns;
  if (count == 0 || rows == 0 || columns == 0) return;
  assert(product.c.column_stride == 1);
  const double flops = 2.0 * static_cast<double>(count) * static_cast<double>(rows) * static_cast<double>(columns) *
                       static_cast<double>(depth);
  const std::size_t workers = flops < LAB(0, kSerialFlops) ? 1 : static_cast<std::size_t>(threads());

  // k in blocks, so that a strip of B stays in the second cache.
  product.k_block = std::max<std::size_t>(1, std::min<std::size_t>(depth, LAB(1, std::size_t{2048})));
  std::size_t wanted = 1;
  if (workers > 1) {
    const double share = flops / static_cast<double>(workers) / LAB(3, 4e6);
    wanted = workers * static_cast<std::size_t>(std::clamp(share, 1.0, static_cast<double>(LAB(4, 4))));
    wanted = (wanted + count - 1) / count;
  }
  Grid grid = choose_grid(rows, columns, wanted);
  const std::size_t most_rows = std::max<std::size_t>(48, LAB(2, std::size_t{256 * 1024}) / product.k_block / 6 * 6);
  if (grid.row_tile > most_rows) {
    const std::size_t tiles = (rows + most_rows - 1) / most_rows;
    grid.row_tile = round_up((rows + tiles - 1) / tiles, 6);
    grid.row_tiles = (rows + grid.row_tile - 1) / grid.row_tile;
  }
  const bool column_major_a = product.a.row_stride == 1 && product.a.column_stride != 1;
  product.pack_a = column_major_a && columns > 64;
  if (product.read_b == ReadB::kPack) {
    if (product.b.column_stride == 1 && rows <= LAB(5, std::size_t{12})) {
      product.read_b = ReadB::kDirect;
    } else if (grid.row_tiles > 1) {
      // The tiles of a column would each pack the same panels.
      if (count == 1 || b_step == 0) {
        float* panels = panel_scratch().reserve(packed_size(depth, columns));
        pack_into(product.b, panels);
        product.panels = panels;
        product.read_b = ReadB::kPacked;
      }
    }
  }
  const std::size_t a_floats = detail::packed_a_size(product, std::min(rows, grid.row_tile));
  const std::size_t b_floats = detail::packed_b_size(product);
  const std::size_t tiles = grid.row_tiles * grid.column_tiles;
  const auto run = [&](std::size_t item) {
    Product mine = product;
    const std::size_t index = item / tiles, tile = item % tiles;
    mine.a.data += index * a_step;
    mine.b.data += index * b_step;
    mine.c.data += index * c_step;
    const std::size_t row = tile % grid.row_tiles * grid.row_tile, column = tile / grid.row_tiles * grid.column_tile;
    float* scratch = a_floats + b_floats == 0 ? nullptr : tile_scratch().reserve(a_floats + b_floats);
    const TileRange range{row, std::min(rows, row + grid.row_tile), column,
                          std::min(columns, column + grid.column_tile)};
    HWY_DYNAMIC_DISPATCH(GemmTile)(mine, range, scratch, scratch + a_floats);
  };
  if (workers == 1) {
    const FloatMode mode;
    for (std::size_t item = 0; item < count * tiles; ++item) run(item);
  } else {
    parallel(count * tiles, run);
  }
}

}  // namespace

PackedMatrix pack(Matrix b, float* panels) {
  pack_into(b, panels);
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
