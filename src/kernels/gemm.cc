// Matrix product: how the work is cut into tiles, and which of them are worth a thread. The arithmetic is in gemm-inl.h.
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

Scratch& scratch_of_this_thread() {
  static thread_local Scratch scratch;
  return scratch;
}

struct Grid {
  std::size_t row_tile, column_tile;
  std::size_t row_tiles, column_tiles;
};

// Work below which a second thread costs more than it brings: multiply-adds, a B that is read counting twice.
constexpr double kSerialWork = 250e3;

// Cuts C into at least `wanted` tiles, if it is large enough. What a tile does grows with its area; what it costs to
// read or pack A and B with its height and its width: `a_cost` and `b_cost` say how many multiply-adds that is worth.
Grid choose_grid(std::size_t rows, std::size_t columns, std::size_t wanted, double a_cost, double b_cost) {
  constexpr std::size_t kRowUnit = 6, kColumnUnit = 64;
  const std::size_t row_units = (rows + kRowUnit - 1) / kRowUnit;
  const std::size_t column_units = (columns + kColumnUnit - 1) / kColumnUnit;
  Grid best{rows, columns, 1, 1};
  double best_cost = 1e300;
  for (std::size_t column_splits = 1; column_splits <= std::min(wanted, column_units); ++column_splits) {
    const std::size_t row_splits = std::min((wanted + column_splits - 1) / column_splits, row_units);
    const std::size_t column_tile = round_up((columns + column_splits - 1) / column_splits, kPanelWidth);
    const std::size_t row_tile = (row_units + row_splits - 1) / row_splits * kRowUnit;
    const double r = static_cast<double>(std::min(row_tile, rows)), c = static_cast<double>(std::min(column_tile, columns));
    const double items = static_cast<double>(row_splits * column_splits);
    const double rounds = items < static_cast<double>(wanted) ? static_cast<double>(wanted) / items : 1;
    const double cost = rounds * (r * c + a_cost * r + b_cost * c);
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

// How B is read, and how k and the columns are cut, so that what is read again stays in the second cache (2 MB here).
void choose_blocks(Product& p) {
  const std::size_t rows = p.c.rows, columns = p.c.columns, depth = p.a.columns;
  const bool column_major_a = p.a.row_stride == 1 && p.a.column_stride != 1;
  std::size_t k_block = 2048, block = 128 * 1024;  // floats of B
  if (p.read_b == ReadB::kPack && p.b.column_stride == 1) {
    const bool aliased = p.b.row_stride % 1024 == 0;  // rows of B push each other out of the cache
    if (rows <= 6) {
      p.read_b = ReadB::kFar;
    } else if (column_major_a) {
      if (p.a.column_stride <= 256 && p.b.row_stride <= 256) {
        p.read_b = ReadB::kDirect;
        k_block = 128 * 1024 / (rows + columns) + 1;
      } else if (!aliased && rows <= LAB(1, std::size_t{512})) {
        p.read_b = ReadB::kDirect;
        k_block = LAB(8, std::size_t{256});
      }
    } else if (depth * columns <= LAB(2, std::size_t{512 * 1024}) && rows <= LAB(1, std::size_t{512})) {
      p.read_b = ReadB::kDirect;
    } else if (rows <= LAB(5, std::size_t{64})) {
      p.read_b = ReadB::kDirect;
      k_block = LAB(6, std::size_t{128});
      block = LAB(7, std::size_t{128}) * k_block;
    }
  }
  if (p.read_b == ReadB::kPack) {
    if (rows <= LAB(3, std::size_t{96})) {
      k_block = LAB(4, std::size_t{128});
      block = 64 * k_block;
    } else if (column_major_a) {
      k_block = 1024;
    }
  }
  p.pack_a = column_major_a && columns > 64 && rows > 6 && (depth > 32 || (depth > 4 && p.a.column_stride % 1024 == 0)) && (p.a.column_stride > 256 || p.read_b == ReadB::kPack);
  p.k_block = std::max<std::size_t>(1, std::min(depth, k_block));
  p.column_block = std::max<std::size_t>(64, block / p.k_block / 64 * 64);
}

void multiply(std::size_t count, Product product, std::size_t a_step, std::size_t b_step, std::size_t c_step) {
  const std::size_t rows = product.c.rows, columns = product.c.columns, depth = product.a.columns;
  if (count == 0 || rows == 0 || columns == 0) return;
  assert(product.c.column_stride == 1);
  choose_blocks(product);
  const double area = static_cast<double>(columns) * static_cast<double>(depth) * static_cast<double>(count);
  const std::size_t workers =
      area * static_cast<double>(rows + 2) < LAB(0, kSerialWork) ? 1 : static_cast<std::size_t>(threads());
  Grid grid{rows, columns, 1, 1};
  if (workers > 1) {
    const bool packs_b = product.read_b == ReadB::kPack;
    double share = 1;  // tiles a thread: more even out what disturbs it, but repeat what they pack
    if (!packs_b && !product.pack_a)
      share = std::clamp(area * static_cast<double>(rows) / static_cast<double>(workers) / 32e6, 1.0, 4.0);
    const std::size_t wanted = (workers * static_cast<std::size_t>(share) + count - 1) / count;
    if (wanted > 1) grid = choose_grid(rows, columns, wanted, product.pack_a ? 30 : 8, packs_b ? 28 : 8);
  }
  // Rows of A that stay in the second cache while the panels of B pass by.
  std::size_t pass_rows = grid.row_tile;
  if (!product.pack_a) {
    const std::size_t most = std::max<std::size_t>(96, 128 * 1024 / product.k_block / 6 * 6);
    const std::size_t passes = (grid.row_tile + most - 1) / most;
    if (passes > 1 && product.read_b == ReadB::kPacked) {
      std::size_t tiles = passes * grid.row_tiles;
      while (tiles * grid.column_tiles * count % workers != 0) ++tiles;  // ends: a multiple of the workers does it
      grid.row_tile = round_up((rows + tiles - 1) / tiles, 6);
      grid.row_tiles = (rows + grid.row_tile - 1) / grid.row_tile;
      pass_rows = grid.row_tile;
    } else if (passes > 1 && product.read_b == ReadB::kPack) {
      product.keep_panels = true;
      pass_rows = round_up((grid.row_tile + passes - 1) / passes, 6);
    }
  }
  const std::size_t a_floats = detail::packed_a_size(product, std::min(rows, grid.row_tile));
  const std::size_t b_floats = detail::packed_b_size(product, std::min(columns, grid.column_tile));
  const std::size_t tiles = grid.row_tiles * grid.column_tiles;
  const auto run = [&](std::size_t item) {
    Product mine = product;
    const std::size_t index = item / tiles, tile = item % tiles;
    mine.a.data += index * a_step;
    mine.b.data += index * b_step;
    mine.c.data += index * c_step;
    float* const packed_a = a_floats + b_floats == 0 ? nullptr : scratch_of_this_thread().reserve(a_floats + b_floats);
    float* const packed_b = packed_a + a_floats;
    const std::size_t row_end = std::min(rows, (tile % grid.row_tiles + 1) * grid.row_tile);
    TileRange range;
    range.column_begin = tile / grid.row_tiles * grid.column_tile;
    range.column_end = std::min(columns, range.column_begin + grid.column_tile);
    for (range.row_begin = tile % grid.row_tiles * grid.row_tile; range.row_begin < row_end;
         range.row_begin = range.row_end) {
      range.row_end = std::min(row_end, range.row_begin + pass_rows);
      HWY_DYNAMIC_DISPATCH(GemmTile)(mine, range, packed_a, packed_b);
      if (product.keep_panels) {  // from now on they are there
        mine.read_b = ReadB::kPacked;
        mine.panels = packed_b - range.column_begin * depth;
      }
    }
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

void gemm(Matrix a, Matrix b, MatrixOf<float> c, const Epilogue& epilogue) { gemm_batch(1, a, 0, b, 0, c, 0, epilogue); }

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
