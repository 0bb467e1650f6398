// bench elementwise: what is done to activations between two products, within the caches and beyond them. All of it is
// bound by memory at best, so a copy of the same size is the limit.
#include <algorithm>
#include <cmath>

#include "cli/bench.h"
#include "kernels/dropout.h"
#include "kernels/elementwise.h"
#include "kernels/norm.h"
#include "kernels/softmax.h"

namespace regard::cli {
namespace {

using Values = std::shared_ptr<Floats>;

struct Size {
  std::size_t rows, width;
  std::size_t count() const { return rows * width; }
};

constexpr float kEpsilon = 1e-5f;
constexpr float kDropped = 0.1f;

Values numbers(std::size_t count, std::uint64_t seed, float scale) {
  Values values = random_numbers(count, seed);
  for (float& each : *values) each *= scale;
  return values;
}

// The largest |y − expected| / (2e-6 · (1 + |expected|)). `expected` fills one row in double.
template <class Expected>
double rows_gap(const Size& size, const Floats& y, Expected expected) {
  std::vector<double> row(size.width);
  double gap = 0;
  for (std::size_t i = 0; i < size.rows; i += 1 + size.rows / 512) {
    expected(i, row.data());
    for (std::size_t c = 0; c < size.width; ++c) {
      const double apart = std::abs(y[i * size.width + c] - row[c]) / (2e-6 * (1 + std::abs(row[c])));
      if (!(apart <= gap)) gap = apart;  // NaN stays
    }
  }
  return gap;
}

Case bare(const char* operation, const Size& size, const char* limit) {
  return {
      .name = std::string(operation) + "_" + std::to_string(size.rows) + "x" + std::to_string(size.width),
      .operation = operation,
      .parameters = {{"rows", static_cast<std::int64_t>(size.rows)}, {"width", static_cast<std::int64_t>(size.width)}},
      .bytes = 8.0 * static_cast<double>(size.count()),
      .limit = limit,
      .peers = {"torch"},
      .tolerance = 1e-5,
      .prepare = {}};
}

Case function(const char* name, Unary op, const Size& size, const char* limit) {
  Case made = bare(name, size, limit);
  made.prepare = [=] {
    const Values x = numbers(size.count(), 1, 4);
    auto y = std::make_shared<Floats>(size.count());
    return Job{.run = [=] { unary(op, static_cast<const float*>(x->data()), y->data(), size.count()); },
               .gap =
                   [=] {
                     const std::vector<double> wide(x->begin(), x->end());
                     return rows_gap(size, *y, [&](std::size_t i, double* row) {
                       unary(op, wide.data() + i * size.width, row, size.width);  // in double: the reference
                     });
                   },
               .inputs = {{"x", *x}},
               .output = [=]() -> std::span<const float> { return *y; },
               .memory = {x, y}};
  };
  return made;
}

Case softmax_rows(const Size& size, const char* limit) {
  Case made = bare("softmax", size, limit);
  made.prepare = [=] {
    const Values x = numbers(size.count(), 1, 4);
    auto y = std::make_shared<Floats>(size.count());
    const Rows from = rows<const float>(x->data(), size.rows, size.width);
    const Tile to = rows(y->data(), size.rows, size.width);
    return Job{.run = [=] { softmax(from, to); },
               .gap =
                   [=] {
                     return rows_gap(size, *y, [&](std::size_t i, double* row) {
                       const std::vector<double> wide(from.row(i), from.row(i) + size.width);
                       softmax(rows<const double>(wide.data(), 1, size.width), rows(row, 1, size.width));
                     });
                   },
               .inputs = {{"x", *x}},
               .output = [=]() -> std::span<const float> { return *y; },
               .memory = {x, y}};
  };
  return made;
}

Case layer_norm_rows(const Size& size, const char* limit) {
  Case made = bare("layer_norm", size, limit);
  made.prepare = [=] {
    const Values x = numbers(size.count(), 1, 4), w = numbers(size.width, 2, 1), b = numbers(size.width, 3, 1);
    auto y = std::make_shared<Floats>(size.count());
    auto kept = std::make_shared<Floats>(2 * size.rows);  // mean and scale of every row
    const Rows from = rows<const float>(x->data(), size.rows, size.width);
    const Tile to = rows(y->data(), size.rows, size.width);
    return Job{.run =
                   [=] {
                     layer_norm(from, static_cast<const float*>(w->data()), static_cast<const float*>(b->data()),
                                kEpsilon, to, kept->data(), kept->data() + size.rows);
                   },
               .gap =
                   [=] {
                     const std::vector<double> wide_w(w->begin(), w->end()), wide_b(b->begin(), b->end());
                     return rows_gap(size, *y, [&](std::size_t i, double* row) {
                       const std::vector<double> wide(from.row(i), from.row(i) + size.width);
                       double mean = 0, scale = 0;
                       layer_norm(rows<const double>(wide.data(), 1, size.width), wide_w.data(), wide_b.data(),
                                  static_cast<double>(kEpsilon), rows(row, 1, size.width), &mean, &scale);
                     });
                   },
               .inputs = {{"x", *x}, {"w", *w}, {"b", *b}},
               .output = [=]() -> std::span<const float> { return *y; },
               .memory = {x, w, b, y}};
  };
  return made;
}

Case dropped_rows(const Size& size, const char* limit) {
  Case made = bare("dropout", size, limit);
  made.compare = "dropout";
  made.prepare = [=] {
    const Values x = numbers(size.count(), 1, 4);
    auto y = std::make_shared<Floats>(size.count());
    auto keys = std::make_shared<std::vector<RandomKey>>();
    for (std::size_t i = 0; i < size.rows; ++i) keys->push_back(RandomKey(7).at(i));
    const Rows from = rows<const float>(x->data(), size.rows, size.width);
    const Tile to = rows(y->data(), size.rows, size.width);
    return Job{.run = [=] { dropout_rows(from, to, kDropped, static_cast<const RandomKey*>(keys->data()), false); },
               .gap =
                   [=] {
                     return rows_gap(size, *y, [&](std::size_t i, double* row) {
                       const std::vector<double> wide(from.row(i), from.row(i) + size.width);
                       dropout_rows(rows<const double>(wide.data(), 1, size.width), rows(row, 1, size.width), kDropped,
                                    static_cast<const RandomKey*>(keys->data() + i), false);
                     });
                   },
               .inputs = {{"x", *x}},
               .output = [=]() -> std::span<const float> { return *y; },
               .memory = {x, y}};
  };
  return made;
}

std::vector<Case> cases() {
  constexpr Size kNear{64, 512}, kFar{4096, 4096};
  const char* near = "limits/copy_64x512";
  const char* far = "limits/copy_4096x4096";
  return {function("tanh", Unary::kTanh, kNear, near),
          function("tanh", Unary::kTanh, kFar, far),
          function("gelu", Unary::kGelu, kNear, near),
          function("gelu", Unary::kGelu, kFar, far),
          softmax_rows(kNear, near),
          softmax_rows({32768, 512}, far),
          softmax_rows(kFar, far),
          layer_norm_rows(kNear, near),
          layer_norm_rows({32768, 512}, far),
          dropped_rows(kNear, near),
          dropped_rows(kFar, far)};
}

const AddBench add({.name = "elementwise", .summary = "tanh, gelu, softmax, layer norm, dropout", .cases = cases});

}  // namespace
}  // namespace regard::cli
