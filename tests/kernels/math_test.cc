#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/float_mode.h"
#include "kernels/guarded.h"
#include "kernels/math_bounds.h"

namespace regard {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Floats of every exponent and sign, more of those where the functions are not flat, and the ends of their ranges.
std::vector<float> sample() {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 40009) {
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  for (float limit : {0.5f, 4.0f, 15.0f, 90.0f}) {
    const std::vector<float> more = random_floats(30000, static_cast<std::uint64_t>(limit * 2), -limit, limit);
    x.insert(x.end(), more.begin(), more.end());
  }
  for (float end : {88.72283f, 88.3763f, 87.9f, 87.33654f, 87.68f, 88.0f, 9.02f, 3.94f, 13.26f, 12.0f, 1.0f,
                    0.70710677f, 1.41421354f, 0.625f, 0.875f, 0.3125f, std::numeric_limits<float>::min(),
                    std::numeric_limits<float>::max(), std::numeric_limits<float>::denorm_min()}) {
    for (float sign : {-1.0f, 1.0f}) {
      float below = sign * end, above = sign * end;
      for (int step = 0; step < 20; ++step) {
        x.push_back(below);
        x.push_back(above);
        below = std::nextafter(below, -kInfinity);
        above = std::nextafter(above, kInfinity);
      }
    }
  }
  for (float special : {0.0f, -0.0f, kInfinity, -kInfinity, kNan, -kNan}) x.push_back(special);
  return x;
}

float at(Unary op, float x) {
  float y = 0;
  unary(op, &x, &y, 1);
  return y;
}

float slope_at(Unary op, float x) {
  float dx = 0;
  const float one = 1;
  unary_backward(op, &x, nullptr, &one, &dx, 1, false);
  return dx;
}

TEST(Math, ErrorsStayWithinThePublishedBounds) {
  const std::vector<float> x = sample();
  for (const MathFunction& f : math_functions()) {
    std::vector<double> exact(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) exact[i] = exact_value(f, x[i]);
    for (const std::string& name : targets()) {
      SCOPED_TRACE(f.name + " on " + name);
      const TargetScope scope(name);
      std::vector<float> y(x.size());
      compute(f, x.data(), y.data(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_TRUE(math_error(f, x[i], y[i], exact[i], name != "sse4").allowed)
            << f.name << "(" << x[i] << ") gives " << y[i] << " instead of " << exact[i];
      }
    }
  }
}

TEST(Math, TargetsWithFusedMultiplyAddAgreeBitForBit) {
  const std::vector<float> x = sample();
  for (const MathFunction& f : math_functions()) {
    SCOPED_TRACE(f.name);
    on_every_target(
        [&] {
          std::vector<float> y(x.size());
          compute(f, x.data(), y.data(), x.size());
          return y;
        },
        [](const auto&) {});
  }
}

TEST(Math, NotANumberStaysOne) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (const MathFunction& f : math_functions()) {
      for (std::uint32_t bits : {0x7FC00000u, 0xFFC00000u, 0x7F800001u, 0x7FFFFFFFu, 0xFF800001u, 0x7FA5A5A5u}) {
        const auto x = std::bit_cast<float>(bits);
        EXPECT_TRUE(std::isnan(f.slope ? slope_at(f.op, x) : at(f.op, x))) << f.name << " of bits " << bits;
      }
    }
  }
}

TEST(Math, LimitsAreExact) {
  for (const std::string& name : targets()) {
    SCOPED_TRACE(name);
    const TargetScope scope(name);
    EXPECT_EQ(at(Unary::kExp, kInfinity), kInfinity);
    EXPECT_EQ(at(Unary::kExp, -kInfinity), 0.0f);
    EXPECT_EQ(at(Unary::kExp, 88.8f), kInfinity);
    EXPECT_EQ(at(Unary::kExp, 3e38f), kInfinity);
    EXPECT_EQ(at(Unary::kExp, -87.34f), 0.0f);
    EXPECT_EQ(at(Unary::kExp, 0.0f), 1.0f);
    EXPECT_EQ(at(Unary::kExp, -0.0f), 1.0f);
    EXPECT_EQ(at(Unary::kLog, 0.0f), -kInfinity);
    EXPECT_EQ(at(Unary::kLog, -0.0f), -kInfinity);
    EXPECT_EQ(at(Unary::kLog, 1e-40f), -kInfinity) << "a subnormal counts as zero";
    EXPECT_EQ(at(Unary::kLog, -1e-40f), -kInfinity);
    EXPECT_TRUE(std::isnan(at(Unary::kLog, -1e-30f)));
    EXPECT_TRUE(std::isnan(at(Unary::kLog, -kInfinity)));
    EXPECT_EQ(at(Unary::kLog, kInfinity), kInfinity);
    EXPECT_EQ(at(Unary::kLog, 1.0f), 0.0f);
    for (Unary op : {Unary::kTanh, Unary::kErf}) {
      for (float x : {10.0f, 1e30f, kInfinity}) {
        EXPECT_EQ(at(op, x), 1.0f);
        EXPECT_EQ(at(op, -x), -1.0f);
      }
    }
    for (Unary op : {Unary::kGelu, Unary::kGeluTanh, Unary::kSilu}) {
      EXPECT_EQ(at(op, kInfinity), kInfinity);
      EXPECT_EQ(at(op, -kInfinity), 0.0f);
      EXPECT_EQ(at(op, -1e30f), 0.0f);
      EXPECT_EQ(at(op, 0.0f), 0.0f);
      EXPECT_EQ(at(op, 1e30f), 1e30f);
      EXPECT_EQ(slope_at(op, kInfinity), 1.0f);
      EXPECT_EQ(slope_at(op, -kInfinity), 0.0f);
      EXPECT_EQ(slope_at(op, 1e30f), 1.0f);
    }
    EXPECT_EQ(at(Unary::kSigmoid, kInfinity), 1.0f);
    EXPECT_EQ(at(Unary::kSigmoid, -kInfinity), 0.0f);
    EXPECT_EQ(at(Unary::kSigmoid, 0.0f), 0.5f);
    EXPECT_EQ(at(Unary::kRelu, -kInfinity), 0.0f);
    EXPECT_EQ(at(Unary::kRelu, kInfinity), kInfinity);
    EXPECT_TRUE(std::isnan(at(Unary::kRelu, -kNan)));
  }
}

TEST(Math, TanhAndErfAreOdd) {
  const std::vector<float> x = random_floats(10000, 5, 0, 12);
  std::vector<float> minus = x, positive(x.size()), negative(x.size());
  for (float& v : minus) v = -v;
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (Unary op : {Unary::kTanh, Unary::kErf}) {
      unary(op, x.data(), positive.data(), x.size());
      unary(op, minus.data(), negative.data(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(positive[i], -negative[i]) << x[i];
    }
  }
}

}  // namespace
}  // namespace regard
