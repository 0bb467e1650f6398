// What the table is too small for, and numbers at the ends of the range.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/target.h"
#include "regard/autograd/ops.h"
#include "regard/random.h"
#include "verify/checks.h"

namespace regard {
namespace {

Tensor drawn(const Shape& shape, std::uint64_t seed) {
  Tensor result = Tensor::empty(shape);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    result.data<float>()[i] = 2 * uniform(RandomKey(seed), static_cast<std::uint64_t>(i)) - 1;
  }
  return result;
}

class Edges : public testing::TestWithParam<std::string> {
 protected:
  Edges() : scope_(GetParam()) {}

 private:
  TargetScope scope_;
};
INSTANTIATE_TEST_SUITE_P(All, Edges, testing::ValuesIn(targets()), [](const auto& each) { return each.param; });

// A vocabulary so large that the rows go through in several chunks, against the loss put together in f64 from matmul,
// log_softmax and a table of the targets, which knows no chunks.
TEST_P(Edges, ALossInChunksIsTheLossOfAllRows) {
  constexpr std::int64_t kRows = 600, kWidth = 3, kWords = 16411;
  const Tensor x = drawn({kRows, kWidth}, 1), weight = drawn({kWidth, kWords}, 2), bias = drawn({kWords}, 3);
  const Tensor targets = Tensor::empty({kRows}, DType::kI32), token_weights = Tensor::empty({kRows});
  const Tensor chosen = Tensor::zeros({kRows, kWords}, DType::kF64);  // −weight at the target
  for (std::int64_t i = 0; i < kRows; ++i) {
    targets.data<std::int32_t>()[i] = static_cast<std::int32_t>(i * 997 % kWords);
    token_weights.data<float>()[i] = static_cast<float>(i % 3) * 0.5f;
    chosen.data<double>()[i * kWords + targets.data<std::int32_t>()[i]] =
        -static_cast<double>(token_weights.data<float>()[i]);
  }
  Tape tape, wide;
  const Var inputs[] = {tape.variable(x), tape.variable(weight), tape.variable(bias)};
  const CrossEntropy got =
      linear_cross_entropy(inputs[0], inputs[1], inputs[2], targets, {.token_weights = token_weights});
  tape.backward(got.loss);
  const Var exact[] = {wide.variable(x.to(DType::kF64)), wide.variable(weight.to(DType::kF64)),
                       wide.variable(bias.to(DType::kF64))};
  const Var logits = matmul(exact[0], exact[1], {.bias = exact[2]});
  wide.keep(logits);
  const Var logarithms = log_softmax(logits);
  const Var loss = sum(logarithms * wide.constant(chosen));
  wide.backward(loss);
  const double total = loss.value().item();
  EXPECT_NEAR(got.loss.value().item(), total, 2e-6 * (1 + total));  // all terms have one sign
  const Tensor d_logits = wide.gradient(logits).clone();
  for (int input = 0; input < 3; ++input) {
    const Tensor have = tape.gradient(inputs[input]).to(DType::kF64), want = wide.gradient(exact[input]);
    // Σ|terms| of an element: over the words for x, over the rows for weight and bias.
    double worst = 0;
    for (std::int64_t i = 0; i < have.size(); ++i) {
      double terms = 0;
      if (input == 0) {
        for (std::int64_t v = 0; v < kWords; ++v) {
          terms += std::abs(d_logits.data<double>()[i / kWidth * kWords + v]) *
                   std::abs(static_cast<double>(weight.data<float>()[i % kWidth * kWords + v]));
        }
      } else {
        for (std::int64_t row = 0; row < kRows; ++row) {
          const double factor =
              input == 1 ? std::abs(static_cast<double>(x.data<float>()[row * kWidth + i / kWords])) : 1.0;
          terms += factor * std::abs(d_logits.data<double>()[row * kWords + i % kWords]);
        }
      }
      worst = std::max(worst, std::abs(have.data<double>()[i] - want.data<double>()[i]) / (2e-6 * (1 + terms)));
    }
    // The gradient of x is a chain of 16411 products. Each step rounds the sum so far, by 2⁻²⁴/√3 of it on average: in
    // all √K·3.4e-8, which reaches the usual bound at K = 3400 and passes it here.
    EXPECT_LE(worst, input == 0 ? std::sqrt(kWords / 3400.0) : 1) << "input " << input;
  }
}

TEST_P(Edges, LogProbabilitiesAreThoseOfTheLoss) {
  constexpr std::int64_t kRows = 3, kWidth = 5, kWords = 37;
  Tape tape;
  const Var x = tape.constant(drawn({kRows, kWidth}, 1)), weight = tape.constant(drawn({kWidth, kWords}, 2));
  const Tensor targets = Tensor::of<std::int32_t>({kRows}, {3, 0, 36});
  const CrossEntropy got = linear_cross_entropy(x, weight, Var(), targets);
  const Tensor rows = log_softmax(matmul(x, weight)).value();
  double sum = 0;
  for (std::int64_t i = 0; i < kRows; ++i) {
    const float expected = rows.data<float>()[i * kWords + targets.data<std::int32_t>()[i]];
    EXPECT_NEAR(got.log_probabilities.data<float>()[i], expected, 2e-6);
    sum -= static_cast<double>(got.log_probabilities.data<float>()[i]);
  }
  EXPECT_NEAR(got.loss.value().item(), sum, 1e-5);
}

// Subnormal numbers count as zero, read and written: the same on every target and thread, and never slow.
TEST_P(Edges, SubnormalNumbersCountAsZero) {
  const std::int64_t count = 20001;  // more than one thread's share
  Tensor tiny = Tensor::empty({count}), small = Tensor::empty({count}), large = Tensor::empty({count});
  std::fill_n(tiny.data<float>(), count, 1e-40f);
  std::fill_n(small.data<float>(), count, 1e-30f);
  std::fill_n(large.data<float>(), count, 1e30f);
  Tape tape;
  const Var a = tape.constant(tiny), b = tape.constant(small), c = tape.constant(large);
  const auto zero = [&](Var y) {
    for (std::int64_t i = 0; i < y.value().size(); ++i) {
      if (y.value().data<float>()[i] != 0) return false;
    }
    return true;
  };
  EXPECT_TRUE(zero(a * c)) << "read";
  EXPECT_TRUE(zero(b * b)) << "written";
  EXPECT_TRUE(zero(a + a));
  EXPECT_TRUE(zero(sum(a)));
  EXPECT_TRUE(zero(matmul(reshape(a, {1, count}), reshape(c, {count, 1}))));
}

TEST_P(Edges, InfinityGoesThroughAsInfinity) {
  const float infinity = std::numeric_limits<float>::infinity();
  Tape tape;
  const Var x = tape.constant(Tensor::of<float>({3}, {infinity, -infinity, 0}));
  const auto at = [](Var y, int i) { return y.value().data<float>()[i]; };
  EXPECT_EQ(at(tanh(x), 0), 1);
  EXPECT_EQ(at(tanh(x), 1), -1);
  EXPECT_EQ(at(sigmoid(x), 0), 1);
  EXPECT_EQ(at(sigmoid(x), 1), 0);
  EXPECT_EQ(at(exp(x), 0), infinity);
  EXPECT_EQ(at(exp(x), 1), 0);
  EXPECT_EQ(at(log(x), 0), infinity);
  EXPECT_TRUE(std::isnan(at(log(x), 1)));
  EXPECT_EQ(at(log(x), 2), -infinity);
  EXPECT_EQ(at(relu(x), 0), infinity);
  EXPECT_EQ(at(relu(x), 1), 0);
  EXPECT_EQ(at(gelu(x), 0), infinity);
  EXPECT_EQ(at(silu(x), 0), infinity);
  EXPECT_EQ(at(x + tape.constant(Tensor::of<float>({}, {1})), 0), infinity);
  EXPECT_TRUE(std::isnan(at(x - x, 0)));
  EXPECT_TRUE(std::isnan(static_cast<float>(sum(x).value().item())));
}

}  // namespace
}  // namespace regard
