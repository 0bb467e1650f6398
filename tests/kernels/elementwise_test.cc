#include "kernels/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/guarded.h"

namespace regard {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kSizes[] = {0, 1, 3, 15, 16, 17, 31, 63, 64, 65, 1001, 40000};
constexpr Unary kAll[] = {Unary::kTanh, Unary::kSigmoid, Unary::kRelu, Unary::kGelu, Unary::kGeluTanh,
                          Unary::kSilu, Unary::kErf,     Unary::kExp,  Unary::kLog,  Unary::kNegate};

std::vector<float> inputs(Unary op, std::size_t n) {
  return op == Unary::kLog ? random_floats(n, 11, 0.1f, 6) : random_floats(n, 11, -6, 6);
}

TEST(Unary, MatchesTheReference) {
  for (Unary op : kAll) {
    for (std::size_t n : kSizes) {
      SCOPED_TRACE(testing::Message() << "op " << static_cast<int>(op) << ", " << n << " elements");
      const Guarded x(inputs(op, n));
      std::vector<double> exact(n);
      reference::unary(op, doubles(x.values()).data(), exact.data(), n);
      on_every_target(
          [&] {
            Guarded y(n);
            unary(op, x.data(), y.data(), n);
            return y.values();
          },
          [&](const auto& y) { expect_close(y, exact, {}); });
    }
  }
}

TEST(Unary, GradientMatchesTheReference) {
  for (Unary op : kAll) {
    for (std::size_t n : kSizes) {
      for (bool add : {false, true}) {
        SCOPED_TRACE(testing::Message() << "op " << static_cast<int>(op) << ", " << n << " elements, add " << add);
        const Guarded x(inputs(op, n)), dy(random_floats(n, 12)), before(random_floats(n, 13));
        Guarded y(n);
        unary(op, x.data(), y.data(), n);
        std::vector<double> exact = doubles(before.values());
        reference::unary_backward(op, doubles(x.values()).data(), doubles(y.values()).data(),
                                  doubles(dy.values()).data(), exact.data(), n, add);
        const bool input = slope_reads_input(op);
        on_every_target(
            [&] {
              Guarded dx = before;
              unary_backward(op, input ? x.data() : nullptr, input ? nullptr : y.data(), dy.data(), dx.data(), n, add);
              return dx.values();
            },
            [&](const auto& dx) { expect_close(dx, exact, {}); });
      }
    }
  }
}

TEST(Unary, ReferenceSlopeIsThatOfTheReferenceFunction) {
  for (Unary op : kAll) {
    for (double x : {-3.0, -1.1, -0.3, 0.2, 0.9, 2.5}) {
      if (op == Unary::kLog && x < 0) continue;
      const double h = 1e-6;
      const double measured = (reference::unary(op, x + h) - reference::unary(op, x - h)) / (2 * h);
      EXPECT_NEAR(reference::slope(op, x, reference::unary(op, x)), measured, 1e-8 * std::max(1.0, std::fabs(measured)))
          << "op " << static_cast<int>(op) << " at " << x;
    }
  }
}

TEST(Unary, OutputMayBeTheInput) {
  for (Unary op : kAll) {
    const std::vector<float> x = inputs(op, 1001);
    std::vector<float> apart(x.size()), same = x;
    unary(op, x.data(), apart.data(), x.size());
    unary(op, same.data(), same.data(), same.size());
    EXPECT_TRUE(same_bits(apart, same)) << "op " << static_cast<int>(op);
    std::vector<float> dx(x.size()), dy = random_floats(x.size(), 5);
    unary_backward(op, x.data(), apart.data(), dy.data(), dx.data(), x.size(), false);
    unary_backward(op, x.data(), apart.data(), dy.data(), dy.data(), x.size(), false);
    EXPECT_TRUE(same_bits(dx, dy)) << "op " << static_cast<int>(op);
  }
}

// Where an element stands does not change it: in a vector, in the rest of one, or in another thread's piece.
TEST(Unary, AnElementDoesNotDependOnItsPlace) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (Unary op : kAll) {
      const std::vector<float> x = inputs(op, 20000);
      std::vector<float> all(x.size()), some(37);
      unary(op, x.data(), all.data(), x.size());
      for (std::size_t begin : {1u, 100u, 8190u, 19963u}) {
        unary(op, x.data() + begin, some.data(), some.size());
        EXPECT_EQ(std::memcmp(some.data(), all.data() + begin, some.size() * sizeof(float)), 0);
      }
    }
  }
}

TEST(Unary, ReluLetsNotANumberThrough) {
  const float x[] = {kNan, -1, 2}, one[] = {1, 1, 1};
  float y[3], dx[3];
  unary(Unary::kRelu, x, y, 3);
  unary_backward(Unary::kRelu, nullptr, y, one, dx, 3, false);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 0.0f);
  EXPECT_EQ(dx[1], 0.0f);
  EXPECT_EQ(dx[2], 1.0f);
}

struct Broadcast {
  std::vector<std::size_t> shape, a, b;
};

std::size_t span_of(const std::vector<std::size_t>& shape, const std::vector<std::size_t>& strides) {
  std::size_t last = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return 0;
    last += (shape[d] - 1) * strides[d];
  }
  return last + 1;
}

const Broadcast kBroadcasts[] = {
    {{}, {}, {}},
    {{0}, {1}, {1}},
    {{1}, {1}, {0}},
    {{37}, {1}, {1}},
    {{37}, {1}, {0}},
    {{37}, {0}, {1}},
    {{37}, {0}, {0}},
    {{37}, {2}, {1}},            // every second
    {{5, 17}, {17, 1}, {0, 1}},  // a row for all rows
    {{5, 17}, {17, 1}, {1, 0}},  // a column for all columns
    {{5, 17}, {1, 0}, {0, 1}},   // outer sum
    {{5, 17}, {17, 1}, {1, 5}},  // transposed
    {{5, 0, 17}, {0, 17, 1}, {0, 0, 1}},
    {{3, 1, 17}, {17, 17, 1}, {17, 0, 1}},
    {{2, 3, 4, 5, 6, 7}, {2520, 840, 210, 42, 7, 1}, {2520, 840, 210, 42, 7, 1}},
    {{2, 3, 4, 5, 6, 7}, {2520, 840, 210, 42, 7, 1}, {0, 28, 7, 0, 0, 1}},
    {{2, 3, 4, 5, 6, 7}, {105, 35, 0, 7, 0, 1}, {0, 24, 6, 0, 1, 0}},
    {{300, 129}, {129, 1}, {0, 1}},
    {{3, 20000}, {20000, 1}, {0, 1}},  // rows longer than a piece
    {{20000, 3}, {3, 1}, {1, 0}},
    {{150, 300}, {300, 1}, {1, 150}},
};

TEST(Binary, MatchesTheReference) {
  for (const Broadcast& c : kBroadcasts) {
    std::size_t n = 1;
    for (std::size_t size : c.shape) n *= size;
    const Guarded a(random_floats(span_of(c.shape, c.a), 21)), b(random_floats(span_of(c.shape, c.b), 22, 0.5f, 3));
    for (Binary op : {Binary::kAdd, Binary::kSubtract, Binary::kMultiply, Binary::kDivide}) {
      SCOPED_TRACE(testing::Message() << "shape " << testing::PrintToString(c.shape) << " op " << static_cast<int>(op));
      std::vector<float> exact(n);  // one operation: the same bits
      reference::binary<float>(op, c.shape, {a.data(), c.a}, {b.data(), c.b}, exact.data());
      on_every_target(
          [&] {
            Guarded out(n);
            binary(op, c.shape, {a.data(), c.a}, {b.data(), c.b}, out.data());
            return out.values();
          },
          [&](const auto& out) { EXPECT_TRUE(same_bits(out, exact)); });
    }
  }
}

TEST(Binary, OutputMayBeADenseInput) {
  const std::vector<std::size_t> shape = {130, 77}, dense = {77, 1}, row = {0, 1};
  const std::vector<float> a = random_floats(130 * 77, 23), b = random_floats(77, 24);
  std::vector<float> apart(a.size()), same = a;
  binary(Binary::kMultiply, shape, Operand<float>{a.data(), dense}, {b.data(), row}, apart.data());
  binary(Binary::kMultiply, shape, Operand<float>{same.data(), dense}, {b.data(), row}, same.data());
  EXPECT_TRUE(same_bits(apart, same));
}

struct Sum {
  std::vector<std::size_t> shape;
  unsigned summed;
};

const Sum kSums[] = {
    {{}, 0},
    {{1}, 1},
    {{0}, 1},
    {{0, 5}, 1},
    {{5, 0}, 1},
    {{5, 0}, 2},
    {{17}, 0},
    {{17}, 1},
    {{100000}, 1},
    {{4097}, 1},
    {{3, 5000}, 2},
    {{40, 33}, 1},
    {{40, 33}, 2},
    {{40, 33}, 3},
    {{64, 33}, 1},
    {{65, 33}, 1},
    {{5000, 7}, 1},
    {{130, 2100}, 1},
    {{4, 70, 30}, 2},
    {{4, 70, 30}, 5},
    {{4, 70, 30}, 6},
    {{4, 70, 30}, 3},
    {{1, 70, 1}, 2},
    {{9, 1, 8}, 4},
    {{2, 3, 4, 5, 6, 7}, 0b010101},
    {{2, 3, 4, 5, 6, 7}, 0b101010},
    {{2, 3, 4, 5, 6, 7}, 0b110011},
    {{300, 3, 70}, 5},
};

TEST(SumDimensions, MatchesTheReference) {
  for (const Sum& c : kSums) {
    std::size_t n = 1, outputs = 1;
    for (std::size_t d = 0; d < c.shape.size(); ++d) {
      n *= c.shape[d];
      if ((c.summed >> d & 1) == 0) outputs *= c.shape[d];
    }
    const Guarded x(random_floats(n, 31)), before(random_floats(outputs, 32));
    for (bool add : {false, true}) {
      SCOPED_TRACE(testing::Message() << testing::PrintToString(c.shape) << " over " << c.summed << ", add " << add);
      std::vector<double> exact = doubles(before.values()), terms = exact, magnitudes = doubles(x.values());
      for (double& v : magnitudes) v = std::fabs(v);
      for (double& v : terms) v = std::fabs(v);
      reference::sum_dimensions(c.shape, c.summed, doubles(x.values()).data(), exact.data(), add);
      reference::sum_dimensions(c.shape, c.summed, magnitudes.data(), terms.data(), true);
      on_every_target(
          [&] {
            Guarded y = before;
            sum_dimensions(c.shape, c.summed, x.data(), y.data(), add);
            return y.values();
          },
          [&](const auto& y) { expect_close(y, exact, terms); });
    }
  }
}

TEST(ReduceToShape, IsTheGradientOfBroadcasting) {
  const std::size_t shape[] = {2, 3, 4}, strides[] = {4, 0, 1};
  std::vector<float> dout(24), doperand(8, 100.0f);
  std::iota(dout.begin(), dout.end(), 0.0f);
  reduce_to_shape<float>(shape, strides, dout.data(), doperand.data(), false);
  EXPECT_EQ(doperand, (std::vector<float>{12, 15, 18, 21, 48, 51, 54, 57}));
  reduce_to_shape<float>(shape, strides, dout.data(), doperand.data(), true);
  EXPECT_EQ(doperand, (std::vector<float>{24, 30, 36, 42, 96, 102, 108, 114}));
}

TEST(Buffers, FillScaleAndAddScaled) {
  for (std::size_t n : kSizes) {
    const Guarded x(random_floats(n, 41)), old(random_floats(n, 42));
    on_every_target(
        [&] {
          Guarded filled(n), scaled(n), added = old;
          fill(filled.data(), n, 2.5f);
          scale(x.data(), -1.5f, scaled.data(), n);
          add_scaled(x.data(), 0.3f, added.data(), n);
          std::vector<float> all = filled.values();
          for (const Guarded* part : {&scaled, &added}) {
            const std::vector<float> values = part->values();
            all.insert(all.end(), values.begin(), values.end());
          }
          return all;
        },
        [&](const auto& all) {
          for (std::size_t i = 0; i < n; ++i) {
            ASSERT_EQ(all[i], 2.5f);
            ASSERT_EQ(all[n + i], -1.5f * x.data()[i]);
            if (target() != "sse4") {
              ASSERT_EQ(all[2 * n + i], std::fma(x.data()[i], 0.3f, old.data()[i]));
            }
          }
        });
  }
}

TEST(SquaredNorm, MatchesTheReferenceWhateverTheThreads) {
  for (std::size_t n : {0u, 1u, 17u, 4095u, 4096u, 4097u, 300001u}) {
    const Guarded x(random_floats(n, 51));
    const double exact = reference::squared_norm(x.data(), n);
    on_every_target([&] { return std::vector<float>{static_cast<float>(squared_norm(x.data(), n))}; },
                    [&](const auto& norm) { EXPECT_NEAR(static_cast<double>(norm[0]), exact, 2e-6 * (1 + exact)); });
  }
}

TEST(AllFinite, FindsASingleBadElement) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    EXPECT_TRUE(all_finite(static_cast<const float*>(nullptr), 0));
    for (std::size_t n : {1u, 16u, 17u, 100u, 50001u}) {
      Guarded x(random_floats(n, 61));
      x[0] = std::numeric_limits<float>::max();
      EXPECT_TRUE(all_finite(x.data(), n));
      for (std::size_t place : {std::size_t{0}, n / 2, n - 1}) {
        for (float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
          const float good = x[place];
          x[place] = bad;
          EXPECT_FALSE(all_finite(x.data(), n)) << bad << " at " << place << " of " << n;
          x[place] = good;
        }
      }
    }
  }
}

TEST(Elementwise, DoubleIsTheReference) {
  const std::vector<double> x = {-1.5, 0.25, 3};
  std::vector<double> y(3), expected(3);
  unary(Unary::kGelu, x.data(), y.data(), 3);
  reference::unary(Unary::kGelu, x.data(), expected.data(), 3);
  EXPECT_EQ(y, expected);
  const std::size_t shape[] = {3}, one[] = {1}, none[] = {0};
  binary(Binary::kSubtract, shape, Operand<double>{x.data(), one}, {x.data(), none}, y.data());
  EXPECT_EQ(y, (std::vector<double>{0, 1.75, 4.5}));
  double sum = 0;
  sum_dimensions(shape, 1, x.data(), &sum, false);
  EXPECT_EQ(sum, 1.75);
}

}  // namespace
}  // namespace regard
