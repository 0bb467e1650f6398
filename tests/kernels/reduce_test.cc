// Sums of 16 lanes against a plain model of them, which must be met exactly.
#include <cmath>
#include <cstddef>
#include <vector>

#include "kernels/guarded.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce_test.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace {

float CallSum(const float* x, std::size_t n) { return Sum16(x, n); }
float CallSquares(const float* x, std::size_t n) { return SumSquares16(x, n); }
float CallMax(const float* x, std::size_t n) { return Max16(x, n); }
float CallDot(const float* x, const float* y, std::size_t n) { return Dot16(x, y, n); }
float CallSumOf(const float* x, const float* y, std::size_t n) {
  return SumOf16(
      n, [](auto d, auto v, auto w) HWY_ATTR { return hn::Add(hn::Mul(v, w), hn::Set(d, 1.0f)); }, x, y);
}
}  // namespace
}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(CallSum);
HWY_EXPORT(CallSquares);
HWY_EXPORT(CallMax);
HWY_EXPORT(CallDot);
HWY_EXPORT(CallSumOf);

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kSizes[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 257, 1000, 4097};

template <class Step>
float model(std::size_t n, Step step) {  // lane l takes l, l + 16, …; then 8, 4, 2, 1 apart
  float lanes[16] = {};
  for (std::size_t i = 0; i < n; ++i) lanes[i % 16] = step(lanes[i % 16], i);
  for (std::size_t apart : {8u, 4u, 2u, 1u}) {
    for (std::size_t l = 0; l < apart; ++l) lanes[l] = lanes[l] + lanes[l + apart];
  }
  return lanes[0];
}

TEST(Reduce, SumsAreThoseOfTheModelBitForBit) {
  for (const std::string& name : targets()) {
    SCOPED_TRACE(name);
    const TargetScope scope(name);
    const auto add_product = [&](float a, float b, float sum) {
      return name == "sse4" ? a * b + sum : std::fma(a, b, sum);
    };
    for (std::size_t n : kSizes) {
      SCOPED_TRACE(n);
      const Guarded x(random_floats(n, 1)), y(random_floats(n, 2));
      const float *a = x.data(), *b = y.data();
      EXPECT_EQ(HWY_DYNAMIC_DISPATCH(CallSum)(a, n), model(n, [&](float sum, std::size_t i) { return sum + a[i]; }));
      EXPECT_EQ(HWY_DYNAMIC_DISPATCH(CallSquares)(a, n),
                model(n, [&](float sum, std::size_t i) { return add_product(a[i], a[i], sum); }));
      EXPECT_EQ(HWY_DYNAMIC_DISPATCH(CallDot)(a, b, n),
                model(n, [&](float sum, std::size_t i) { return add_product(a[i], b[i], sum); }));
      EXPECT_EQ(HWY_DYNAMIC_DISPATCH(CallSumOf)(a, b, n),
                model(n, [&](float sum, std::size_t i) { return sum + (a[i] * b[i] + 1.0f); }));
    }
  }
}

TEST(Reduce, MaxFindsTheLargestWhereverItStands) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(CallMax)(nullptr, 0), -kInfinity);
    for (std::size_t n : {1u, 5u, 16u, 17u, 40u}) {
      for (std::size_t place = 0; place < n; ++place) {
        std::vector<float> x = random_floats(n, 3, -9, -8);
        x[place] = -2.5f;
        EXPECT_EQ(HWY_DYNAMIC_DISPATCH(CallMax)(x.data(), n), -2.5f) << n << " elements, at " << place;
      }
    }
  }
}

TEST(Reduce, MaxOfANotANumberIsOne) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (std::size_t n : {1u, 5u, 16u, 17u, 40u}) {
      for (std::size_t place = 0; place < n; ++place) {
        for (float others : {1.0f, kInfinity, -kInfinity}) {
          std::vector<float> x(n, others);
          x[place] = kNan;
          EXPECT_TRUE(std::isnan(HWY_DYNAMIC_DISPATCH(CallMax)(x.data(), n))) << n << " elements, at " << place;
        }
      }
    }
  }
}

}  // namespace
}  // namespace regard
#endif
