#include "verify/scalar.h"

#include <gtest/gtest.h>

namespace regard::verify {
namespace {

TEST(Scalar, GradientFollowsTheChainRule) {
  ScalarTape tape;
  const Scalar a = tape.input(2), b = tape.input(3);
  const Scalar y = a * b + a / b - exp(a) * tanh(b);
  const double one = 1;
  tape.backward({&y, 1}, {&one, 1});
  const double t = std::tanh(3.0);
  EXPECT_NEAR(y.value, 6 + 2.0 / 3 - std::exp(2.0) * t, 1e-14);
  EXPECT_NEAR(tape.gradient(a), 3 + 1.0 / 3 - std::exp(2.0) * t, 1e-14);
  EXPECT_NEAR(tape.gradient(b), 2 - 2.0 / 9 - std::exp(2.0) * (1 - t * t), 1e-14);
}

// For sums of products the terms are what the same sums over magnitudes would give.
TEST(Scalar, TermsOfASumOfProductsAreItsMagnitudes) {
  ScalarTape tape;
  std::vector<Scalar> a, b;
  Scalar y(0);
  double magnitude = 0;
  for (int i = 0; i < 100; ++i) {
    a.push_back(tape.input(i % 2 == 0 ? 1.0 : -2.0));
    b.push_back(tape.input(i % 3 == 0 ? 0.5 : -0.25));
    y += a.back() * b.back();
    magnitude += std::abs(a.back().value * b.back().value);
  }
  EXPECT_DOUBLE_EQ(y.terms, magnitude);
  const double seed = -3;
  tape.backward({&y, 1}, {&seed, 1});
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_DOUBLE_EQ(tape.gradient_terms(a[i]), 3 * std::abs(b[i].value));
}

TEST(Scalar, TermsGoThroughFunctions) {
  ScalarTape tape;
  const Scalar a = tape.input(1000), b = tape.input(-999);
  const Scalar y = tanh(a + b);  // 1 is left of terms of 1999
  const double slope = 1 - y.value * y.value;
  EXPECT_NEAR(y.terms, 1999 * slope + y.value, 1e-9);
}

TEST(Scalar, ANumberReadTwiceAddsUpItsSeeds) {
  ScalarTape tape;
  const Scalar a = tape.input(1);
  const Scalar outputs[] = {a, a, a};
  const double seeds[] = {1, -2, 4};
  tape.backward(outputs, seeds);
  EXPECT_EQ(tape.gradient(a), 3);
  EXPECT_EQ(tape.gradient_terms(a), 7);
}

}  // namespace
}  // namespace regard::verify
