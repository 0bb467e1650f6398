// bench matmul: y [rows, columns] = x [rows, depth] · w [depth, columns], the weights packed once, outside the timing.
// bench matmul_backward: dx = dy · wᵀ, packing counted since weights change every step, and dw = xᵀ · dy.
#include <algorithm>
#include <cmath>

#include "cli/bench.h"
#include "kernels/gemm.h"

namespace regard::cli {
namespace {

struct Size {
  std::int64_t rows, columns, depth;
};

constexpr std::int64_t kRows[] = {1, 5, 16, 64, 256, 1024, 4096};
constexpr Size kWeights[] = {{0, 128, 128},  {0, 256, 128},  {0, 128, 256}, {0, 512, 512},
                             {0, 2048, 512}, {0, 512, 2048}, {0, 8192, 512}};

std::vector<Size> sizes() {
  std::vector<Size> all;
  for (const Size& weights : kWeights) {
    for (const std::int64_t rows : kRows) all.push_back({rows, weights.columns, weights.depth});
  }
  return all;
}

using Values = std::shared_ptr<Floats>;

// The distance of c from a·b in double, in units of the allowed 2e-6 · (1 + Σ|terms|); of a large product only some
// thousand elements are looked at, evenly spread.
double product_gap(Matrix a, Matrix b, const Floats& c) {
  const std::size_t step = 1 + c.size() * a.columns / 20'000'000;
  double gap = 0;
  for (std::size_t at = 0; at < c.size(); at += step) {
    const std::size_t i = at / b.columns, j = at % b.columns;
    double sum = 0, terms = 0;
    for (std::size_t k = 0; k < a.columns; ++k) {
      const double term = static_cast<double>(a.at(i, k)) * b.at(k, j);
      sum += term;
      terms += std::abs(term);
    }
    const double apart = std::abs(c[at] - sum) / (2e-6 * (1 + terms));
    if (!(apart <= gap)) gap = apart;  // NaN stays
  }
  return gap;
}

std::string name_of(const Size& size) {
  return std::to_string(size.rows) + "x" + std::to_string(size.columns) + "x" + std::to_string(size.depth);
}

Case product(std::string name, std::string operation, const Size& size, std::int64_t terms,
             std::vector<std::string> peers) {
  return {.name = std::move(name),
          .operation = std::move(operation),
          .parameters = {{"rows", size.rows}, {"columns", size.columns}, {"depth", size.depth}},
          .flops = 2.0 * static_cast<double>(size.rows * size.columns * size.depth),
          .limit = "limits/fma",
          .peers = std::move(peers),
          .tolerance = 2e-6 * (1 + static_cast<double>(terms)),  // of numbers in [−1, 1)
          .prepare = {}};
}

std::size_t area(std::int64_t a, std::int64_t b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); }

Matrix view(const Values& values, std::int64_t rows, std::int64_t columns) {
  return matrix<const float>(values->data(), static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
}

// One of the three products of a layer: c = a·b where `b` is packed beforehand or by every call.
Job job(Matrix a, Matrix b, bool packed_before, const std::vector<std::pair<std::string, Values>>& inputs) {
  auto c = std::make_shared<Floats>(a.rows * b.columns);
  const MatrixOf<float> to = matrix(c->data(), a.rows, b.columns);
  Job made;
  if (packed_before) {
    auto panels = std::make_shared<Floats>(packed_size(b.rows, b.columns));
    const PackedMatrix packed = pack(b, panels->data());
    made.run = [=] { gemm(a, packed, to); };
    made.memory.push_back(panels);
  } else {
    made.run = [=] { gemm(a, b, to); };
  }
  made.gap = [=] { return product_gap(a, b, *c); };
  made.output = [=]() -> std::span<const float> { return *c; };
  for (const auto& [name, values] : inputs) {
    made.inputs.push_back({name, *values});
    made.memory.push_back(values);
  }
  return made;
}

std::vector<Case> forward() {
  std::vector<Case> all;
  for (const Size& size : sizes()) {
    Case each = product(name_of(size), "matmul", size, size.depth, {"onednn", "torch"});
    each.prepare = [size] {
      const Values x = random_numbers(area(size.rows, size.depth), 1);
      const Values w = random_numbers(area(size.depth, size.columns), 2);
      return job(view(x, size.rows, size.depth), view(w, size.depth, size.columns), true, {{"x", x}, {"w", w}});
    };
    all.push_back(std::move(each));
  }
  return all;
}

std::vector<Case> backward() {
  std::vector<Case> all;
  for (const Size& size : sizes()) {
    Case dx = product("dx_" + name_of(size), "matmul_dx", size, size.columns, {"torch"});
    dx.prepare = [size] {
      const Values dy = random_numbers(area(size.rows, size.columns), 3);
      const Values w = random_numbers(area(size.depth, size.columns), 2);
      return job(view(dy, size.rows, size.columns), view(w, size.depth, size.columns).transposed(), false,
                 {{"dy", dy}, {"w", w}});
    };
    all.push_back(std::move(dx));
    Case dw = product("dw_" + name_of(size), "matmul_dw", size, size.rows, {"torch"});
    dw.prepare = [size] {
      const Values x = random_numbers(area(size.rows, size.depth), 1);
      const Values dy = random_numbers(area(size.rows, size.columns), 3);
      return job(view(x, size.rows, size.depth).transposed(), view(dy, size.rows, size.columns), false,
                 {{"x", x}, {"dy", dy}});
    };
    all.push_back(std::move(dw));
  }
  return all;
}

const AddBench add_forward({.name = "matmul",
                            .summary = "a linear layer: x·w, weights packed beforehand",
                            .cases = forward});
const AddBench add_backward({.name = "matmul_backward",
                             .summary = "its gradients: dy·wᵀ and xᵀ·dy, packing included",
                             .cases = backward});

}  // namespace
}  // namespace regard::cli
