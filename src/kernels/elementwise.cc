#include "kernels/elementwise.h"

#include <atomic>
#include <cassert>

#include "kernels/chunks.h"
#include "kernels/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/map-inl.h"
#include "kernels/math-inl.h"
#include "kernels/reduce-inl.h"

#ifndef REGARD_KERNELS_ELEMENTWISE_ONCE
#define REGARD_KERNELS_ELEMENTWISE_ONCE
namespace regard {

// Some rows of a result of binary(): row i of an operand begins at data + i·row, its elements are `step` apart.
struct BinaryRows {
  struct Side {
    const float* data;
    std::size_t row, step;
  };
  std::size_t count, width;
  Side a, b;
  float* out;
  Path path;
};

inline constexpr std::size_t kSumBlock = 4096;  // elements of a long row that are added up at a time
inline constexpr std::size_t kColumnBlock =
    1024;  // columns of rows that are added up: the sums stay in the first cache

}  // namespace regard
#endif

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace {

void UnaryForward(Unary op, const float* x, float* y, std::size_t n, Path path) {
#define REGARD_CASE(name, value) \
  case Unary::name:              \
    return MapOn(                \
        path, []([[maybe_unused]] auto d, auto v) HWY_ATTR { return value; }, y, n, x)
  switch (op) {
    REGARD_CASE(kTanh, Tanh(d, v));
    REGARD_CASE(kSigmoid, Sigmoid(d, v));
    REGARD_CASE(kRelu, hn::IfThenZeroElse(hn::Lt(v, hn::Zero(d)), v));
    REGARD_CASE(kGelu, Gelu(d, v));
    REGARD_CASE(kGeluTanh, GeluTanh(d, v));
    REGARD_CASE(kSilu, Silu(d, v));
    REGARD_CASE(kErf, Erf(d, v));
    REGARD_CASE(kExp, Exp(d, v));
    REGARD_CASE(kLog, Log(d, v));
    REGARD_CASE(kNegate, hn::Neg(v));
  }
#undef REGARD_CASE
}

// `saved` is x or y, whichever the slope is computed from.
void UnaryBackward(Unary op, const float* saved, const float* dy, float* dx, std::size_t n, bool add, Path path) {
#define REGARD_CASE(name, value)                                                                                      \
  case Unary::name:                                                                                                   \
    return MapGradient(                                                                                               \
        path, []([[maybe_unused]] auto d, [[maybe_unused]] auto v, auto g) HWY_ATTR { return value; }, saved, dy, dx, \
        n, add)
  switch (op) {
    REGARD_CASE(kTanh, hn::Mul(g, hn::NegMulAdd(v, v, hn::Set(d, 1.0f))));
    REGARD_CASE(kSigmoid, hn::Mul(g, hn::NegMulAdd(v, v, v)));
    REGARD_CASE(kRelu, hn::IfThenZeroElse(hn::Le(v, hn::Zero(d)), g));
    REGARD_CASE(kGelu, hn::Mul(g, GeluSlope(d, v)));
    REGARD_CASE(kGeluTanh, hn::Mul(g, GeluTanhSlope(d, v)));
    REGARD_CASE(kSilu, hn::Mul(g, SiluSlope(d, v)));
    REGARD_CASE(kErf, hn::Mul(g, hn::Mul(hn::Set(d, 1.12837917f), Exp(d, hn::Neg(hn::Mul(v, v))))));
    REGARD_CASE(kExp, hn::Mul(g, v));
    REGARD_CASE(kLog, hn::Div(g, v));
    REGARD_CASE(kNegate, hn::Neg(g));
  }
#undef REGARD_CASE
}

// One row; each side is either contiguous or one element.
template <class F>
HWY_INLINE void BinaryRow(Path path, F f, const float* a, std::size_t a_step, const float* b, std::size_t b_step,
                          float* out, std::size_t n) {
  if (a_step != 0 && b_step != 0) {
    MapOn(path, f, out, n, a, b);
  } else if (a_step != 0) {
    MapOn(
        path, [f, b](auto d, auto v) HWY_ATTR { return f(d, v, hn::Set(d, *b)); }, out, n, a);
  } else if (b_step != 0) {
    MapOn(
        path, [f, a](auto d, auto w) HWY_ATTR { return f(d, hn::Set(d, *a), w); }, out, n, b);
  } else {
    MapOn(
        path, [f, a, b](auto d) HWY_ATTR { return f(d, hn::Set(d, *a), hn::Set(d, *b)); }, out, n);
  }
}

template <class F>
HWY_INLINE void MapBinary(F f, const BinaryRows& rows) {
  const bool plain = rows.a.step <= 1 && rows.b.step <= 1;
  for (std::size_t i = 0; i < rows.count; ++i) {
    const float* a = rows.a.data + i * rows.a.row;
    const float* b = rows.b.data + i * rows.b.row;
    float* out = rows.out + i * rows.width;
    if (plain) {
      BinaryRow(rows.path, f, a, rows.a.step, b, rows.b.step, out, rows.width);
      continue;
    }
    constexpr std::size_t kPiece = 256;  // a side with a stride is first collected
    float gathered_a[kPiece], gathered_b[kPiece];
    for (std::size_t begin = 0; begin < rows.width; begin += kPiece) {
      const std::size_t count = rows.width - begin < kPiece ? rows.width - begin : kPiece;
      for (std::size_t k = 0; k < count; ++k) {
        gathered_a[k] = a[(begin + k) * rows.a.step];
        gathered_b[k] = b[(begin + k) * rows.b.step];
      }
      Map(f, out + begin, count, gathered_a, gathered_b);
    }
  }
}

void BinaryForward(Binary op, const BinaryRows& rows) {
  switch (op) {
    case Binary::kAdd:
      return MapBinary([](auto, auto v, auto w) HWY_ATTR { return hn::Add(v, w); }, rows);
    case Binary::kSubtract:
      return MapBinary([](auto, auto v, auto w) HWY_ATTR { return hn::Sub(v, w); }, rows);
    case Binary::kMultiply:
      return MapBinary([](auto, auto v, auto w) HWY_ATTR { return hn::Mul(v, w); }, rows);
    case Binary::kDivide:
      return MapBinary([](auto, auto v, auto w) HWY_ATTR { return hn::Div(v, w); }, rows);
  }
}

float SumRow(const float* x, std::size_t n) { return Sum16(x, n); }
float SumSquares(const float* x, std::size_t n) { return SumSquares16(x, n); }

// out (= or +=) the sum of the rows, in their order; width ≤ kColumnBlock.
void SumRows(const float* x, std::size_t rows, std::size_t stride, std::size_t width, float* out, bool add) {
  HWY_ALIGN float sums[kColumnBlock];
  const auto plus = [](auto, auto sum, auto... v) HWY_ATTR {
    ((sum = hn::Add(sum, v)), ...);
    return sum;
  };
  Map([](auto d) HWY_ATTR { return hn::Zero(d); }, sums, width);
  std::size_t row = 0;
  for (; row + 4 <= rows; row += 4) {  // four at a time: fewer trips of the sums through the cache
    const float* four = x + row * stride;
    Map(plus, sums, width, sums, four, four + stride, four + 2 * stride, four + 3 * stride);
  }
  for (; row < rows; ++row) Map(plus, sums, width, sums, x + row * stride);
  if (add) {
    Map(plus, out, width, out, sums);
  } else {
    Map([](auto, auto v) HWY_ATTR { return v; }, out, width, sums);
  }
}

void Scale(const float* x, float factor, float* y, std::size_t n, Path path) {
  MapOn(
      path, [factor](auto d, auto v) HWY_ATTR { return hn::Mul(v, hn::Set(d, factor)); }, y, n, x);
}

void AddScaled(const float* x, float factor, float* y, std::size_t n) {
  Map([factor](auto d, auto v, auto old) HWY_ATTR { return hn::MulAdd(v, hn::Set(d, factor), old); }, y, n, x, y);
}

bool AllFinite(const float* x, std::size_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const std::size_t lanes = hn::Lanes(d);
  auto largest = hn::Zero(di);  // the bits of |x| are in the order of |x|, with ∞ and NaN on top
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) largest = hn::Max(largest, hn::BitCast(di, hn::Abs(hn::LoadU(d, x + i))));
  if (i < n) largest = hn::Max(largest, hn::BitCast(di, hn::Abs(LoadFirst(d, x + i, n - i))));
  return hn::AllTrue(di, hn::Lt(largest, hn::Set(di, 0x7F800000)));
}

}  // namespace
}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(UnaryForward);
HWY_EXPORT(UnaryBackward);
HWY_EXPORT(BinaryForward);
HWY_EXPORT(SumRow);
HWY_EXPORT(SumSquares);
HWY_EXPORT(SumRows);
HWY_EXPORT(Scale);
HWY_EXPORT(AddScaled);
HWY_EXPORT(AllFinite);

// Buffers of this file, one a use: they are in use at the same time.
enum Use { kRowSums, kEvenColumnSums, kOddColumnSums, kNorm, kFirst, kSecond };
float* scratch(Use use, std::size_t n) {
  static thread_local Scratch all[kSecond + 1];
  return all[use].reserve(n);
}

// One dimension of a result, with the strides of both operands.
struct Dimension {
  std::size_t size, a, b;
};

// The same loops in as few dimensions as possible; the last one first.
ShortList<Dimension> collapse(std::span<const std::size_t> shape, std::span<const std::size_t> a,
                              std::span<const std::size_t> b) {
  ShortList<Dimension> out;
  for (std::size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) continue;
    if (!out.empty() && a[d] == out.back().a * out.back().size && b[d] == out.back().b * out.back().size) {
      out.back().size *= shape[d];
    } else {
      out.push_back({shape[d], a[d], b[d]});
    }
  }
  while (out.size() < 2) out.push_back({1, 0, 0});
  return out;
}

// y[i] (= or +=) Σ x[i, :]
void sum_rows(const float* x, std::size_t rows, std::size_t width, float* y, bool add) {
  const auto put = [&](std::size_t row, float sum) { y[row] = add ? y[row] + sum : sum; };
  if (width <= kSumBlock) {
    in_row_chunks(rows, width, [&](std::size_t begin, std::size_t count) {
      for (std::size_t row = begin; row < begin + count; ++row)
        put(row, HWY_DYNAMIC_DISPATCH(SumRow)(x + row * width, width));
    });
    return;
  }
  const std::size_t blocks = (width + kSumBlock - 1) / kSumBlock;
  float* sums = scratch(kRowSums, rows * blocks);
  for_each_item(rows * blocks, rows * width, [&](std::size_t item) {
    const std::size_t row = item / blocks, begin = item % blocks * kSumBlock;
    sums[item] = HWY_DYNAMIC_DISPATCH(SumRow)(x + row * width + begin, std::min(kSumBlock, width - begin));
  });
  for (std::size_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::size_t block = 0; block < blocks; ++block) sum += static_cast<double>(sums[row * blocks + block]);
    put(row, static_cast<float>(sum));
  }
}

// y[i, j] (= or +=) Σ_r x[i, r, j], in blocks of rows whose sums are added in their order
void sum_columns(const float* x, std::size_t outer, std::size_t rows, std::size_t width, float* y, bool add,
                 int depth = 0) {
  if (rows > kRowBlock) {
    const std::size_t blocks = (rows + kRowBlock - 1) / kRowBlock;
    const std::size_t pieces = (width + kColumnBlock - 1) / kColumnBlock;
    float* sums = scratch(depth % 2 == 0 ? kEvenColumnSums : kOddColumnSums, outer * blocks * width);
    for_each_item(outer * blocks * pieces, outer * rows * width, [&](std::size_t item) {
      const std::size_t column = item % pieces * kColumnBlock, block = item / pieces % blocks,
                        i = item / pieces / blocks;
      const std::size_t row = block * kRowBlock;
      HWY_DYNAMIC_DISPATCH(SumRows)
      (x + (i * rows + row) * width + column, std::min(kRowBlock, rows - row), width,
       std::min(kColumnBlock, width - column), sums + (i * blocks + block) * width + column, false);
    });
    return sum_columns(sums, outer, blocks, width, y, add, depth + 1);
  }
  const std::size_t pieces = (width + kColumnBlock - 1) / kColumnBlock;
  for_each_item(outer * pieces, outer * rows * width, [&](std::size_t item) {
    const std::size_t column = item % pieces * kColumnBlock, i = item / pieces;
    HWY_DYNAMIC_DISPATCH(SumRows)
    (x + i * rows * width + column, rows, width, std::min(kColumnBlock, width - column), y + i * width + column, add);
  });
}

// Σ x², in blocks whose sums are added in their order; blocks that hold nothing but zeros may be left out.
template <class Wanted>
double norm_of_blocks(const float* x, std::size_t n, Wanted wanted) {
  const std::size_t blocks = (n + kSumBlock - 1) / kSumBlock;
  float* sums = scratch(kNorm, blocks);
  for_each_item(blocks, n, [&](std::size_t block) {
    const std::size_t begin = block * kSumBlock;
    sums[block] = wanted(block) ? HWY_DYNAMIC_DISPATCH(SumSquares)(x + begin, std::min(kSumBlock, n - begin)) : 0.0f;
  });
  double sum = 0;
  for (std::size_t block = 0; block < blocks; ++block) sum += static_cast<double>(sums[block]);
  return sum;
}

}  // namespace

void unary(Unary op, const float* x, float* y, std::size_t n) {
  const Path path = path_for(n, x == y);
  in_chunks(n, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(UnaryForward)(op, x + begin, y + begin, count, path);
    finish_stores(path);
  });
}

void unary_backward(Unary op, const float* x, const float* y, const float* dy, float* dx, std::size_t n, bool add) {
  const float* saved = op == Unary::kNegate ? dy : slope_reads_input(op) ? x : y;
  const Path path = path_for(n, add || dx == dy || dx == saved);
  in_chunks(n, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(UnaryBackward)(op, saved + begin, dy + begin, dx + begin, count, add, path);
    finish_stores(path);
  });
}

void binary(Binary op, std::span<const std::size_t> shape, Operand<float> a, Operand<float> b, float* out) {
  assert(shape.size() <= kMaxRank && a.strides.size() == shape.size() && b.strides.size() == shape.size());
  const ShortList<Dimension> loops = collapse(shape, a.strides, b.strides);
  std::size_t elements = 1;
  for (const Dimension& loop : loops) elements *= loop.size;
  if (elements == 0) return;

  const Path path = path_for(elements, out == a.data || out == b.data);
  // A piece is a part of one row, or some whole rows.
  const Dimension& inner = loops[0];
  if (inner.size == elements && elements <= kSmallWork) {  // divisions would take longer
    const FloatMode mode;
    HWY_DYNAMIC_DISPATCH(BinaryForward)
    (op,
     {.count = 1, .width = elements, .a = {a.data, 0, inner.a}, .b = {b.data, 0, inner.b}, .out = out, .path = path});
    return;
  }
  const std::size_t rows = elements / inner.size;
  const std::size_t chunk = chunk_size(elements), pieces = (inner.size + chunk - 1) / chunk;
  const std::size_t rows_each = pieces > 1 ? 1 : std::max<std::size_t>(1, chunk / inner.size);
  for_each_item((rows + rows_each - 1) / rows_each * pieces, elements, [&](std::size_t item) {
    const std::size_t begin = item % pieces * chunk, width = std::min(chunk, inner.size - begin);
    const std::size_t last = std::min(rows, (item / pieces + 1) * rows_each);
    for (std::size_t row = item / pieces * rows_each; row < last;) {
      std::size_t rest = row, place_a = begin * inner.a, place_b = begin * inner.b;
      for (std::size_t d = 1; d < loops.size(); ++d) {
        place_a += rest % loops[d].size * loops[d].a;
        place_b += rest % loops[d].size * loops[d].b;
        rest /= loops[d].size;
      }
      const std::size_t count = std::min(last - row, loops[1].size - row % loops[1].size);
      HWY_DYNAMIC_DISPATCH(BinaryForward)
      (op, {.count = count,
            .width = width,
            .a = {a.data + place_a, loops[1].a, inner.a},
            .b = {b.data + place_b, loops[1].b, inner.b},
            .out = out + row * inner.size + begin,
            .path = path});
      row += count;
    }
    finish_stores(path);
  });
}

void sum_dimensions(std::span<const std::size_t> shape, unsigned summed, const float* x, float* y, bool add) {
  assert(shape.size() <= kMaxRank);
  struct Run {  // neighbouring dimensions that are all summed or all kept
    std::size_t size;
    bool sum;
  };
  ShortList<Run> runs;
  std::size_t elements = 1, outputs = 1, sums = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const bool sum = (summed >> d & 1) != 0;
    elements *= shape[d];
    if (!sum) outputs *= shape[d];
    if (shape[d] == 1) continue;
    if (!runs.empty() && runs.back().sum == sum) {
      runs.back().size *= shape[d];
    } else {
      runs.push_back({shape[d], sum});
      sums += sum ? 1 : 0;
    }
  }
  if (elements == 0) {
    if (!add) fill(y, outputs, 0.0f);
    return;
  }
  if (sums == 0) {
    if (add) {
      add_scaled(x, 1.0f, y, outputs);
    } else {
      scale(x, 1.0f, y, outputs);
    }
    return;
  }
  // The summed run nearest to the end goes first; what is left is smaller and dense.
  for (; sums > 0; --sums) {
    const bool rows = runs.back().sum;
    const std::size_t count = runs[runs.size() - (rows ? 1 : 2)].size;
    const std::size_t left = elements / count;
    float* to = y;
    if (sums > 1) to = scratch(sums % 2 == 0 ? kFirst : kSecond, left);
    if (rows) {
      sum_rows(x, left, count, to, add && sums == 1);
      runs.pop_back();
    } else {
      const std::size_t width = runs.back().size;
      sum_columns(x, left / width, count, width, to, add && sums == 1);
      runs.erase(runs.size() - 2);
      if (runs.size() > 1) {  // two kept runs have become neighbours
        runs.pop_back();
        runs.back().size *= width;
      }
    }
    elements = left;
    x = to;
  }
}

void fill(float* y, std::size_t n, float value) {
  in_chunks(n, [&](std::size_t begin, std::size_t count) { std::fill_n(y + begin, count, value); });
}

void scale(const float* x, float factor, float* y, std::size_t n) {
  const Path path = path_for(n, x == y);
  in_chunks(n, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(Scale)(x + begin, factor, y + begin, count, path);
    finish_stores(path);
  });
}

void add_scaled(const float* x, float factor, float* y, std::size_t n) {
  in_chunks(n, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(AddScaled)(x + begin, factor, y + begin, count);
  });
}

double squared_norm(const float* x, std::size_t n) {
  return norm_of_blocks(x, n, [](std::size_t) { return true; });
}

double squared_norm(const float* x, std::size_t n, std::span<const std::int32_t> rows, std::size_t count) {
  const std::size_t width = std::max<std::size_t>(1, count == 0 ? n : n / count);
  return norm_of_blocks(x, n, [&](std::size_t block) {  // whether a row reaches into it
    const std::size_t begin = block * kSumBlock;
    const auto first = std::lower_bound(rows.begin(), rows.end(), static_cast<std::int32_t>(begin / width));
    return first != rows.end() && static_cast<std::size_t>(*first) * width < begin + kSumBlock;
  });
}

bool all_finite(const float* x, std::size_t n) {
  std::atomic<bool> finite{true};
  in_chunks(n, [&](std::size_t begin, std::size_t count) {
    if (!HWY_DYNAMIC_DISPATCH(AllFinite)(x + begin, count)) finite.store(false, std::memory_order_relaxed);
  });
  return finite;
}

}  // namespace regard
#endif
