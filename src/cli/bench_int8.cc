// bench matmul_int8: y [rows, columns] = x [rows, depth] · w [depth, columns] with weights of 8 bits, making bytes of x
// included, and beside it the same with weights of f32; both packed once, outside the timing. The layers and the output
// of transformer-tiny and transformer-base, for one sentence and for a batch, greedy and with a beam of five.
#include <cstring>

#include "cli/bench.h"
#include "kernels/gemm.h"
#include "kernels/int8_gemm.h"

namespace regard::cli {
namespace {

struct Size {
  std::size_t rows, columns, depth;
};

constexpr std::size_t kRows[] = {1, 5, 64, 320};
constexpr Size kWeights[] = {{0, 128, 128}, {0, 256, 128},  {0, 128, 256},  {0, 8000, 128},
                             {0, 512, 512}, {0, 2048, 512}, {0, 512, 2048}, {0, 10000, 512}};

struct Data {
  explicit Data(const Size& s)
      : x(random_numbers(s.rows * s.depth, 1)), w(random_numbers(s.depth * s.columns, 2)), y(s.rows * s.columns) {
    a = matrix<const float>(x->data(), s.rows, s.depth);
    b = matrix<const float>(w->data(), s.depth, s.columns);
    c = matrix(y.data(), s.rows, s.columns);
  }
  std::shared_ptr<Floats> x, w;
  Floats y;
  Matrix a, b;
  MatrixOf<float> c;
};

Job with_floats(const Size& size) {
  auto data = std::make_shared<Data>(size);
  auto panels = std::make_shared<Floats>(packed_size(size.depth, size.columns));
  const PackedMatrix packed = pack(data->b, panels->data());
  return {.run = [=] { gemm(data->a, packed, data->c); },
          .gap = [] { return 0.0; },  // bench matmul looks at it
          .memory = {data, panels}};
}

Job with_bytes(const Size& size) {
  auto data = std::make_shared<Data>(size);
  std::vector<std::int8_t> bytes(size.depth * size.columns);
  std::vector<float> scales(size.columns);
  quantize_columns(data->b, matrix(bytes.data(), size.depth, size.columns), scales.data());
  auto packed =
      std::make_shared<Int8Matrix>(matrix<const std::int8_t>(bytes.data(), size.depth, size.columns), scales.data());
  return {.run = [=] { int8_gemm(data->a, *packed, data->c); },
          .gap =
              [=] {  // the bits of the reference, nothing less
                Floats y(data->y.size());
                int8_gemm(int8_kernels().back(), data->a, *packed, matrix(y.data(), data->c.rows, data->c.columns));
                return std::memcmp(y.data(), data->y.data(), y.size() * sizeof(float)) == 0 ? 0.0 : 2.0;
              },
          .memory = {data, packed}};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Size& weights : kWeights) {
    for (const std::size_t rows : kRows) {
      const Size size{rows, weights.columns, weights.depth};
      const std::string name =
          std::to_string(rows) + "x" + std::to_string(size.columns) + "x" + std::to_string(size.depth);
      const double flops = 2.0 * static_cast<double>(rows * size.columns * size.depth);
      all.push_back({.name = "f32_" + name, .operation = "matmul", .flops = flops, .prepare = [size] {
                       return with_floats(size);
                     }});
      all.push_back({.name = "int8_" + name, .operation = "matmul_int8", .flops = flops, .prepare = [size] {
                       return with_bytes(size);
                     }});
    }
  }
  return all;
}

const AddBench add({.name = "matmul_int8",
                    .summary = "a linear layer with weights of 8 bits, beside f32",
                    .cases = cases});

}  // namespace
}  // namespace regard::cli
