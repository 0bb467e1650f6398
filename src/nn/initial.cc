#include "regard/nn/initial.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "kernels/chunks.h"

namespace regard {
namespace {

std::int64_t rows_of(const Shape& shape) { return shape.rank() == 1 ? 1 : shape[-2]; }

void check_matrix(const char* who, const Shape& shape, std::int64_t parts = 1) {
  check(shape.rank() >= 1, who, ": a single number has no rows and columns");
  check(parts >= 1 && shape[-1] % parts == 0, who, ": ", shape[-1], " columns are not ", parts, " equal parts");
}

// Four sums side by side, which keeps the processor busy; always in the same order.
double dot(const double* a, const double* b, std::size_t count) {
  double sums[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Makes the vectors orthonormal, one after another (Gram and Schmidt, modified), in double: for random vectors that
// leaves far less than what f32 can hold. At most `width` vectors.
void orthonormalize(std::vector<double>& vectors, std::size_t count, std::size_t width) {
  for (std::size_t i = 0; i < count; ++i) {
    double* one = vectors.data() + i * width;
    const double scale = 1 / std::sqrt(dot(one, one, width));
    for (std::size_t c = 0; c < width; ++c) one[c] *= scale;
    const std::size_t others = count - i - 1;
    for_each_item(others, others * width, [&](std::size_t item) {
      double* other = one + (item + 1) * width;
      const double share = dot(one, other, width);
      for (std::size_t c = 0; c < width; ++c) other[c] -= share * one[c];
    });
  }
}

}  // namespace

Tensor uniform(const Shape& shape, double limit, RandomKey key) {
  Tensor result = Tensor::empty(shape);
  float* values = result.data<float>();
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const double place = uniform(key, static_cast<std::uint64_t>(i));
    values[i] = static_cast<float>(limit * (2 * place - 1));
  }
  return result;
}

Tensor normal(const Shape& shape, double deviation, RandomKey key) {
  Tensor result = Tensor::empty(shape);
  float* values = result.data<float>();
  for (std::int64_t i = 0; i < result.size(); ++i) {
    values[i] = static_cast<float>(deviation * normal(key, static_cast<std::uint64_t>(i)));
  }
  return result;
}

Tensor xavier(const Shape& shape, RandomKey key, std::int64_t parts, double gain) {
  check_matrix("xavier", shape, parts);
  const std::int64_t both = rows_of(shape) + shape[-1] / parts;
  return uniform(shape, gain * std::sqrt(6.0 / static_cast<double>(both)), key);
}

Tensor kaiming(const Shape& shape, RandomKey key) {
  check_matrix("kaiming", shape);
  return uniform(shape, std::sqrt(6.0 / static_cast<double>(std::max<std::int64_t>(1, rows_of(shape)))), key);
}

Tensor orthogonal(const Shape& shape, RandomKey key, double gain, std::int64_t parts) {
  check_matrix("orthogonal", shape, parts);
  check(shape.rank() <= 2, "orthogonal: shape ", shape, ", expected a matrix");
  Tensor result = Tensor::empty(shape);
  const auto rows = static_cast<std::size_t>(rows_of(shape)), all = static_cast<std::size_t>(shape[-1]),
             columns = all / static_cast<std::size_t>(parts);
  const std::size_t count = std::min(rows, columns), width = std::max(rows, columns);
  std::vector<double> vectors(count * width);
  for (std::size_t part = 0; part < static_cast<std::size_t>(parts); ++part) {
    const RandomKey place = key.at(part);
    for (std::size_t i = 0; i < vectors.size(); ++i) vectors[i] = normal(place, i);
    orthonormalize(vectors, count, width);
    float* to = result.data<float>() + part * columns;
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        const std::size_t at = rows <= columns ? row * width + column : column * width + row;
        to[row * all + column] = static_cast<float>(gain * vectors[at]);
      }
    }
  }
  return result;
}

}  // namespace regard
