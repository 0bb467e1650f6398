#include "kernels/int8_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/float_mode.h"
#include "kernels/guarded.h"
#include "support/cases.h"

namespace regard {
namespace {

struct Weights {
  std::size_t k, n;
  std::vector<std::int8_t> q;
  std::vector<float> scales;

  Weights(std::size_t depth, std::size_t columns, const std::vector<float>& w)
      : k(depth), n(columns), q(k * n), scales(n) {
    EXPECT_TRUE(quantize_columns(matrix(w.data(), k, n), matrix(q.data(), k, n), scales.data()));
  }
  Weights(std::size_t depth, std::size_t columns, std::uint64_t seed)
      : Weights(depth, columns, random_floats(depth * columns, seed)) {}
  Int8Matrix packed() const { return Int8Matrix(matrix(q.data(), k, n), scales.data()); }
};

// From the formula, without packing.
std::vector<float> expected(const std::vector<float>& x, std::size_t rows, const Weights& w,
                            const std::vector<float>& bias) {
  const FloatMode mode;
  std::vector<float> y(rows * w.n);
  std::vector<std::uint8_t> p(w.k);
  for (std::size_t i = 0; i < rows; ++i) {
    const float scale = reference::quantize_row(x.data() + i * w.k, w.k, p.data());
    for (std::size_t j = 0; j < w.n; ++j) {
      std::int64_t sum = 0;
      for (std::size_t k = 0; k < w.k; ++k) sum += (static_cast<std::int64_t>(p[k]) - 128) * w.q[k * w.n + j];
      const float both = scale * w.scales[j], product = static_cast<float>(sum) * both;
      y[i * w.n + j] = bias.empty() ? product : product + bias[j];
    }
  }
  return y;
}

std::vector<float> computed(const Int8Kernel& kernel, const std::vector<float>& x, std::size_t rows,
                            const Int8Matrix& w, const std::vector<float>& bias) {
  const Guarded in(x), added(bias);
  Guarded out(rows * w.n(), -7);
  int8_gemm(kernel, matrix(in.data(), rows, w.k()), w, matrix(out.data(), rows, w.n()),
            bias.empty() ? nullptr : added.data());
  return out.values();
}

// Every kernel on every target with 1, 2 and 3 threads: the same bits, with no exception.
void expect_everywhere(const std::vector<float>& x, std::size_t rows, const Weights& w, const std::vector<float>& bias,
                       const std::vector<float>& right) {
  const Int8Matrix packed = w.packed();
  std::size_t ran = 0;
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (const Int8Kernel& kernel : int8_kernels()) {
      if (!kernel.why_not(w.k).empty()) continue;
      for (int count : {1, 2, 3}) {
        const ThreadLimit limit(count);
        ++ran;
        ASSERT_TRUE(same_bits(computed(kernel, x, rows, packed, bias), right))
            << kernel.name << " on " << name << ", " << count << " threads: " << rows << " x " << w.n << " x " << w.k;
      }
    }
  }
  EXPECT_GE(ran, 6 * targets().size());
}

TEST(Int8Gemm, EveryKernelHasTheBitsOfTheFormulaOnEveryTarget) {
  struct Size {
    std::size_t rows, columns, depth;
  };
  std::vector<Size> sizes = {{0, 5, 3},     {5, 0, 3},      {5, 3, 0},     {0, 0, 0},     {1, 1, 1},
                             {1, 129, 128}, {2, 128, 127},  {7, 65, 129},  {13, 200, 40}, {1, 700, 300},
                             {25, 63, 256}, {97, 128, 128}, {97, 15, 101}, {101, 1, 103}, {12, 1111, 64},
                             {5, 2000, 20}, {64, 257, 70},  {40, 300, 513}};
  constexpr std::size_t kSizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  11,  12,  13, 15,
                                    16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129};
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(cases(60)); ++i) {
    const auto pick = [&](std::uint64_t which) {
      return kSizes[random_below(RandomKey(1), 3 * i + which, std::size(kSizes))];
    };
    sizes.push_back({pick(0), pick(1), pick(2)});
  }
  for (const Size& s : sizes) {
    const Weights w(s.depth, s.columns, 2);
    const std::vector<float> x = random_floats(s.rows * s.depth, 3);
    for (const std::vector<float>& bias : {std::vector<float>(), random_floats(s.columns, 4)}) {
      expect_everywhere(x, s.rows, w, bias, expected(x, s.rows, w, bias));
    }
  }
}

TEST(Int8Gemm, TheLargestBytesDoNotOverflowOnTheirWay) {
  for (const std::size_t depth : {2u, 4u, 1024u, 4099u}) {
    for (const float a : {-1.0f, 1.0f}) {
      for (const float b : {-1.0f, 1.0f}) {
        const Weights w(depth, 17, std::vector<float>(depth * 17, 2 * b));
        const std::vector<float> x(7 * depth, 3 * a);
        const std::vector<float> right = expected(x, 7, w, {});
        EXPECT_NEAR(static_cast<double>(right[0]), 6.0 * a * b * static_cast<double>(depth),
                    1e-6 * static_cast<double>(6 * depth));
        expect_everywhere(x, 7, w, {}, right);
      }
    }
  }
  // −128 can only come from a file.
  Weights w(64, 16, 1);
  std::fill(w.q.begin(), w.q.end(), std::int8_t{-128});
  const std::vector<float> x(3 * 64, -5);
  expect_everywhere(x, 3, w, {}, expected(x, 3, w, {}));
}

TEST(Int8Gemm, IsCloseToTheProductOfFloats) {
  const std::size_t rows = 9, depth = 130, columns = 33;
  const std::vector<float> weights = random_floats(depth * columns, 5), x = random_floats(rows * depth, 6);
  const Weights w(depth, columns, weights);
  const std::vector<float> y = computed(int8_kernel(depth), x, rows, w.packed(), {});
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      double sum = 0, sizes = 0;
      for (std::size_t k = 0; k < depth; ++k) {
        const double a = x[i * depth + k], b = weights[k * columns + j];
        sum += a * b;
        sizes += std::abs(a) + std::abs(b);
      }
      EXPECT_NEAR(static_cast<double>(y[i * columns + j]), sum, sizes * 3 / 127 / 2 * 1.01);  // half a step each
    }
  }
}

TEST(Int8Gemm, RowsDoNotDependOnTheirNeighbours) {
  const std::size_t rows = 77, depth = 100, columns = 150;
  const Weights w(depth, columns, 7);
  const Int8Matrix packed = w.packed();
  std::vector<float> x = random_floats(rows * depth, 8);
  for (std::size_t k = 0; k < depth; ++k) x[3 * depth + k] *= 1e6f;
  const std::vector<float> together = computed(int8_kernel(depth), x, rows, packed, {});
  for (std::size_t i = 0; i < rows; ++i) {
    const auto from = x.begin() + static_cast<std::ptrdiff_t>(i * depth);
    const std::vector<float> alone = computed(int8_kernel(depth), {from, from + depth}, 1, packed, {});
    const auto at = together.begin() + static_cast<std::ptrdiff_t>(i * columns);
    EXPECT_TRUE(same_bits(alone, {at, at + columns})) << i;
  }
}

TEST(Int8Gemm, WhatIsNotFiniteIsNaNInItsOwnRowAndZerosAreZeros) {
  const std::size_t depth = 37, columns = 20;
  const Weights w(depth, columns, 9);
  std::vector<float> x = random_floats(6 * depth, 10);
  x[0 * depth + 36] = std::numeric_limits<float>::quiet_NaN();
  x[1 * depth + 3] = std::numeric_limits<float>::infinity();
  x[2 * depth + 0] = -std::numeric_limits<float>::infinity();
  std::fill_n(x.begin() + 3 * depth, depth, 0.0f);
  std::fill_n(x.begin() + 4 * depth, depth, 1e-38f);
  const std::vector<float> bias = random_floats(columns, 11);
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (const Int8Kernel& kernel : int8_kernels()) {
      if (!kernel.why_not(depth).empty()) continue;
      const std::vector<float> y = computed(kernel, x, 6, w.packed(), bias);
      for (std::size_t j = 0; j < columns; ++j) {
        for (std::size_t i : {0u, 1u, 2u}) EXPECT_TRUE(std::isnan(y[i * columns + j])) << kernel.name << " " << i;
        for (std::size_t i : {3u, 4u}) EXPECT_EQ(y[i * columns + j], bias[j]) << kernel.name << " " << i;
        EXPECT_TRUE(std::isfinite(y[5 * columns + j])) << kernel.name;
      }
    }
  }
}

TEST(Int8Gemm, OutputRowsMayHaveGaps) {
  const Weights w(50, 30, 12);
  const Int8Matrix packed = w.packed();
  const std::vector<float> x = random_floats(5 * 50, 13);
  const std::vector<float> right = expected(x, 5, w, {});
  Guarded out(5 * 37, -7);
  int8_gemm(matrix(x.data(), 5, 50), packed, MatrixOf<float>{out.data(), 5, 30, 37, 1});
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < 37; ++j) EXPECT_EQ(out[i * 37 + j], j < 30 ? right[i * 30 + j] : -7);
  }
}

TEST(Int8Gemm, WeightsMayLieByRowsOrByColumns) {
  const std::size_t depth = 45, columns = 35;
  const std::vector<float> w = random_floats(depth * columns, 14);
  const Weights plain(depth, columns, w);
  std::vector<float> turned(w.size());
  for (std::size_t k = 0; k < depth; ++k) {
    for (std::size_t j = 0; j < columns; ++j) turned[j * depth + k] = w[k * columns + j];
  }
  std::vector<std::int8_t> q(w.size());
  std::vector<float> scales(columns);
  ASSERT_TRUE(quantize_columns(matrix<const float>(turned.data(), columns, depth).transposed(),
                               matrix(q.data(), columns, depth).transposed(), scales.data()));
  EXPECT_EQ(scales, plain.scales);
  const Int8Matrix packed(matrix<const std::int8_t>(q.data(), columns, depth).transposed(), scales.data());
  const std::vector<float> x = random_floats(4 * depth, 15);
  EXPECT_TRUE(same_bits(computed(int8_kernel(depth), x, 4, packed, {}), expected(x, 4, plain, {})));
}

TEST(Int8Gemm, QuantizingRefusesWhatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    std::vector<float> w = random_floats(12, 16);
    w[0] = bad;  // numbers that follow do not hide it
    std::vector<std::int8_t> q(12);
    std::vector<float> scales(4);
    EXPECT_FALSE(quantize_columns(matrix<const float>(w.data(), 3, 4), matrix(q.data(), 3, 4), scales.data()));
  }
}

}  // namespace
}  // namespace regard
