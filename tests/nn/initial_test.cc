#include "regard/nn/initial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/pool.h"
#include "kernels/target.h"
#include "regard/error.h"

namespace regard {
namespace {

struct Moments {
  double low = 0, high = 0, mean = 0, square = 0;
};

Moments moments(const Tensor& x) {
  Moments found;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const double value = x.data<float>()[i];
    found.low = std::min(found.low, value);
    found.high = std::max(found.high, value);
    found.mean += value / static_cast<double>(x.size());
    found.square += value * value / static_cast<double>(x.size());
  }
  return found;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

TEST(Initial, KaimingLooksAtTheRowsAlone) {
  for (const Shape& shape : {Shape{300, 200}, Shape{300, 400}}) {
    const Moments found = moments(kaiming(shape, RandomKey(1)));
    const double limit = std::sqrt(6.0 / 300);
    EXPECT_GE(found.low, -limit);
    EXPECT_LE(found.high, limit);
    EXPECT_NEAR(found.mean, 0, 0.01 * limit);
    EXPECT_NEAR(found.square, 2.0 / 300, 0.02 * 2.0 / 300);
  }
}

TEST(Initial, NormalHasItsDeviation) {
  const Moments found = moments(normal({200, 400}, 0.5, RandomKey(1)));
  EXPECT_NEAR(found.mean, 0, 0.01);
  EXPECT_NEAR(found.square, 0.25, 0.005);
  EXPECT_LT(found.low, -1.5);
  EXPECT_GT(found.high, 1.5);
}

// What rows or columns, whichever are fewer, give when multiplied with each other: gain² on the diagonal, else nothing.
void expect_orthogonal(const Tensor& w, std::int64_t first, std::int64_t columns, double gain) {
  const std::int64_t rows = w.rank() == 1 ? 1 : w[0], all = w[-1], count = std::min(rows, columns);
  const auto at = [&](std::int64_t i, std::int64_t c) -> double {
    const std::int64_t row = rows <= columns ? i : c, column = rows <= columns ? c : i;
    return w.data<float>()[row * all + first + column];
  };
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      double sum = 0;
      for (std::int64_t c = 0; c < std::max(rows, columns); ++c) sum += at(i, c) * at(j, c);
      ASSERT_NEAR(sum, i == j ? gain * gain : 0, 1e-6 * gain * gain) << to_text(w) << ", " << i << " and " << j;
    }
  }
}

TEST(Initial, OrthogonalIsOrthogonal) {
  for (const Shape& shape : {Shape{0, 3}, Shape{1}, Shape{7}, Shape{1, 5}, Shape{5, 1}, Shape{17, 17}, Shape{31, 64},
                             Shape{67, 13}, Shape{200, 200}}) {
    expect_orthogonal(orthogonal(shape, RandomKey(2)), 0, shape[-1], 1);
    expect_orthogonal(orthogonal(shape, RandomKey(2), 1.5), 0, shape[-1], 1.5);
  }
}

TEST(Initial, MatricesSideBySideAreEachOrthogonal) {
  const Tensor gates = orthogonal({20, 60}, RandomKey(3), 1, 3);
  for (std::int64_t part = 0; part < 3; ++part) expect_orthogonal(gates, part * 20, 20, 1);
  EXPECT_NE(gates.data<float>()[0], gates.data<float>()[20]);
}

TEST(Initial, NeitherThreadsNorTargetChangeABit) {
  const auto all = [] {
    return std::vector<Tensor>{orthogonal({200, 150}, RandomKey(4)), xavier({33, 9}, RandomKey(4)),
                               kaiming({33, 9}, RandomKey(4)), normal({33, 9}, 1, RandomKey(4)),
                               uniform({33, 9}, 1, RandomKey(4))};
  };
  const std::vector<Tensor> expected = all();
  for (const std::string& name : targets()) {
    const TargetScope target(name);
    for (const int limit : {1, 2, 3}) {
      const ThreadLimit scope(limit);
      const std::vector<Tensor> got = all();
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same(got[i], expected[i])) << i << " on " << name;
    }
  }
}

TEST(Initial, AnotherKeyGivesOtherValues) {
  EXPECT_FALSE(same(orthogonal({9, 9}, RandomKey(1)), orthogonal({9, 9}, RandomKey(2))));
  EXPECT_FALSE(same(kaiming({9, 9}, RandomKey(1)), kaiming({9, 9}, RandomKey(2))));
  EXPECT_FALSE(same(normal({9, 9}, 1, RandomKey(1)), normal({9, 9}, 1, RandomKey(2))));
}

TEST(Initial, ShapesWithoutRowsAndColumnsAreErrors) {
  EXPECT_THROW(xavier({}, RandomKey(1)), Error);
  EXPECT_THROW(kaiming({}, RandomKey(1)), Error);
  EXPECT_THROW(orthogonal({2, 3, 4}, RandomKey(1)), Error);
  EXPECT_THROW(orthogonal({4, 5}, RandomKey(1), 1, 2), Error);
  EXPECT_THROW(xavier({4, 6}, RandomKey(1), 0), Error);
}

}  // namespace
}  // namespace regard
