// Masks and lengths select: what is out never reaches what is in, whatever stands there, forward or backward.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/target.h"
#include "regard/attention/attend.h"
#include "regard/autograd/ops.h"
#include "regard/random.h"
#include "verify/checks.h"

namespace regard {
namespace {

using verify::same_bits;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor drawn(const Shape& shape, std::uint64_t seed) {
  Tensor result = Tensor::empty(shape);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    result.data<float>()[i] = 2 * uniform(RandomKey(seed), static_cast<std::uint64_t>(i)) - 1;
  }
  return result;
}

Tensor filled(const Shape& shape, float value) {
  Tensor result = Tensor::empty(shape);
  std::fill_n(result.data<float>(), result.size(), value);
  return result;
}

bool all_zero(const Tensor& x) {
  const Tensor dense = x.clone();
  return std::all_of(dense.data<float>(), dense.data<float>() + dense.size(), [](float each) { return each == 0; });
}

struct Attention {
  Tensor q, k, v, theta;
  std::vector<std::int32_t> lengths;
};

struct Outcome {
  Tensor context, dq, dk, dv, dtheta;
  std::vector<Tensor> weights;
};

Outcome run(const Attention& a, bool look = true) {
  Tape tape;
  const Var q = tape.variable(a.q), k = tape.variable(a.k), v = tape.variable(a.v), theta = tape.variable(a.theta);
  const Attended attended = attend_additive(q, k, v, theta, a.lengths);
  Outcome result;
  result.context = attended.context.value().clone();
  for (std::int64_t item = 0; look && item < a.q[0]; ++item)
    result.weights.push_back(
        attended.trace.weights({.item = item}).slice(1, 0, a.lengths[static_cast<std::size_t>(item)]).clone());
  tape.backward(attended.context, drawn(result.context.shape(), 99));
  result.dq = tape.gradient(q).clone();
  result.dk = tape.gradient(k).clone();
  result.dv = tape.gradient(v).clone();
  result.dtheta = tape.gradient(theta).clone();
  return result;
}

Attention attention(std::int64_t keys, const std::vector<std::int32_t>& lengths) {
  const auto batch = static_cast<std::int64_t>(lengths.size());
  return {drawn({batch, 3, 19}, 1), drawn({batch, keys, 19}, 2), drawn({batch, keys, 21}, 3), drawn({19}, 4), lengths};
}

class Masks : public testing::TestWithParam<std::string> {
 protected:
  Masks() : scope_(GetParam()) {}

 private:
  TargetScope scope_;
};
INSTANTIATE_TEST_SUITE_P(All, Masks, testing::ValuesIn(targets()), [](const auto& each) { return each.param; });

TEST_P(Masks, WhatStandsInHiddenKeysAndValuesDoesNotMatter) {
  const Attention clean = attention(18, {18, 5, 0, 17});
  const Outcome expected = run(clean);
  for (const float poison : {kNan, kInfinity, -kInfinity, 1e38f}) {
    Attention dirty = clean;
    dirty.k = clean.k.clone();
    dirty.v = clean.v.clone();
    for (std::int64_t item = 0; item < 4; ++item) {
      for (std::int64_t key = clean.lengths[static_cast<std::size_t>(item)]; key < 18; ++key) {
        std::fill_n(dirty.k.data<float>() + (item * 18 + key) * 19, 19, poison);
        std::fill_n(dirty.v.data<float>() + (item * 18 + key) * 21, 21, poison);
      }
    }
    const Outcome got = run(dirty);
    EXPECT_TRUE(same_bits(got.context, expected.context)) << poison;
    EXPECT_TRUE(same_bits(got.dq, expected.dq)) << poison;
    EXPECT_TRUE(same_bits(got.dk, expected.dk)) << poison;
    EXPECT_TRUE(same_bits(got.dv, expected.dv)) << poison;
    EXPECT_TRUE(same_bits(got.dtheta, expected.dtheta)) << poison;
    for (std::size_t item = 0; item < 4; ++item) EXPECT_TRUE(same_bits(got.weights[item], expected.weights[item]));
  }
  for (std::int64_t item = 0; item < 4; ++item) {
    const std::int64_t length = clean.lengths[static_cast<std::size_t>(item)];
    EXPECT_TRUE(all_zero(expected.dk.slice(0, item, item + 1).slice(1, length, 18))) << "hidden keys of item " << item;
    EXPECT_TRUE(all_zero(expected.dv.slice(0, item, item + 1).slice(1, length, 18)))
        << "hidden values of item " << item;
  }
}

TEST_P(Masks, PaddingTheKeysDoesNotMatter) {
  const Attention tight = attention(17, {17, 5});
  const Outcome expected = run(tight);
  for (const std::int64_t more : {1, 15, 64, 200}) {
    Attention padded = tight;
    padded.k = filled({2, 17 + more, 19}, 3);
    padded.v = filled({2, 17 + more, 21}, 3);
    padded.k.slice(1, 0, 17).copy_from(tight.k);
    padded.v.slice(1, 0, 17).copy_from(tight.v);
    const Outcome got = run(padded);
    EXPECT_TRUE(same_bits(got.context, expected.context)) << more;
    EXPECT_TRUE(same_bits(got.dq, expected.dq)) << more;
    EXPECT_TRUE(same_bits(got.dk.slice(1, 0, 17).clone(), expected.dk)) << more;
    EXPECT_TRUE(same_bits(got.dv.slice(1, 0, 17).clone(), expected.dv)) << more;
    EXPECT_TRUE(same_bits(got.dtheta, expected.dtheta)) << more;
  }
}

TEST_P(Masks, AQueryThatSeesNoKeyReadsZeros) {
  const Outcome got = run(attention(7, {0, 7, 0}));
  for (const std::int64_t item : {0, 2}) {
    EXPECT_TRUE(all_zero(got.context.slice(0, item, item + 1)));
    EXPECT_TRUE(all_zero(got.dq.slice(0, item, item + 1)));
    EXPECT_TRUE(all_zero(got.dk.slice(0, item, item + 1)));
    EXPECT_TRUE(all_zero(got.dv.slice(0, item, item + 1)));
    EXPECT_EQ(got.weights[static_cast<std::size_t>(item)].shape(), (Shape{3, 0}));
  }
  EXPECT_FALSE(all_zero(got.context.slice(0, 1, 2)));
}

TEST_P(Masks, NanInAVisibleKeyReachesItsItemOnly) {
  Attention dirty = attention(9, {9, 9, 4});
  const Outcome expected = run(dirty);
  dirty.k = dirty.k.clone();
  dirty.k.data<float>()[(9 + 3) * 19 + 5] = kNan;  // item 1, key 3
  const Outcome got = run(dirty);
  for (const std::int64_t item : {0, 2}) {
    EXPECT_TRUE(
        same_bits(got.context.slice(0, item, item + 1).clone(), expected.context.slice(0, item, item + 1).clone()));
    EXPECT_TRUE(same_bits(got.dk.slice(0, item, item + 1).clone(), expected.dk.slice(0, item, item + 1).clone()));
  }
  for (std::int64_t i = 0; i < 3 * 21; ++i) EXPECT_TRUE(std::isnan(got.context.data<float>()[3 * 21 + i]));
}

TEST_P(Masks, WeightsSumToOneAndAskingChangesNothing) {
  const Attention a = attention(33, {33, 1, 16});
  const Outcome looked = run(a, true), plain = run(a, false);
  EXPECT_TRUE(same_bits(looked.context, plain.context));
  EXPECT_TRUE(same_bits(looked.dq, plain.dq));
  EXPECT_TRUE(same_bits(looked.dk, plain.dk));
  EXPECT_TRUE(same_bits(looked.dtheta, plain.dtheta));
  for (std::size_t item = 0; item < 3; ++item) {
    const Tensor& map = looked.weights[item];
    ASSERT_EQ(map.shape(), (Shape{3, a.lengths[item]}));
    for (std::int64_t query = 0; query < 3; ++query) {
      double sum = 0;
      std::vector<double> read(21, 0.0);
      for (std::int64_t key = 0; key < map[1]; ++key) {
        const double weight = map.data<float>()[query * map[1] + key];
        EXPECT_GT(weight, 0);
        sum += weight;
        for (std::size_t c = 0; c < 21; ++c) {
          read[c] +=
              weight *
              a.v.data<float>()[(static_cast<std::int64_t>(item) * 33 + key) * 21 + static_cast<std::int64_t>(c)];
        }
      }
      EXPECT_NEAR(sum, 1, 1e-6);
      for (std::size_t c = 0; c < 21; ++c) {
        const std::int64_t at = (static_cast<std::int64_t>(item) * 3 + query) * 21 + static_cast<std::int64_t>(c);
        EXPECT_NEAR(looked.context.data<float>()[at], read[c], 1e-6);
      }
    }
  }
}

// Scores far from zero: τ is kept relative to the peak, so that weights do not lose their digits.
TEST_P(Masks, WeightsKeepTheirDigitsAtLargeScores) {
  Attention a = attention(5, {5});
  a.theta = filled({19}, 600);
  a.q = filled({1, 3, 19}, 20);  // tanh is 1 everywhere: scores of 11400
  const Outcome got = run(a);
  for (std::int64_t i = 0; i < got.weights[0].size(); ++i) EXPECT_NEAR(got.weights[0].data<float>()[i], 0.2, 1e-6);
}

TEST_P(Masks, WhatDoesNotFitIsAnErrorThatSaysWhatWasGot) {
  Tape tape;
  const auto error = [&](const Shape& q, const Shape& k, const Shape& v, const Shape& theta,
                         const std::vector<std::int32_t>& lengths) -> std::string {
    const auto blank = [&](const Shape& shape) { return tape.constant(Tensor::zeros(shape)); };
    try {
      attend_additive(blank(q), blank(k), blank(v), blank(theta), lengths);
    } catch (const Error& each) {
      return each.what();
    }
    return "";
  };
  EXPECT_EQ(error({2, 3, 4}, {2, 5, 4}, {2, 5, 7}, {4}, {5, 1}), "");
  EXPECT_NE(error({2, 3, 4}, {2, 5, 4}, {2, 6, 7}, {4}, {5, 1}).find("differ in length"), std::string::npos);
  EXPECT_NE(error({2, 3, 3}, {2, 5, 4}, {2, 5, 7}, {4}, {5, 1}).find("differ in width"), std::string::npos);
  EXPECT_NE(error({1, 3, 4}, {2, 5, 4}, {2, 5, 7}, {4}, {5, 1}).find("batch sizes differ"), std::string::npos);
  EXPECT_NE(error({2, 3, 4}, {2, 5, 4}, {2, 5, 7}, {3}, {5, 1}).find("theta is [3], expected [4]"), std::string::npos);
  EXPECT_NE(error({2, 3, 4}, {2, 5, 4}, {2, 5, 7}, {4}, {5}).find("1 lengths for a batch of 2"), std::string::npos);
  EXPECT_NE(error({2, 3, 4}, {2, 5, 4}, {2, 5, 7}, {4}, {5, 6}).find("length 6, expected 0 to 5"), std::string::npos);
  EXPECT_NE(error({2, 3}, {2, 5, 4}, {2, 5, 7}, {4}, {5, 1}).find("three dimensions"), std::string::npos);
}

TEST_P(Masks, ATraceThrowsOnceItsStepHasEnded) {
  const Attention a = attention(5, {5, 2});
  Tape tape;
  const AttendTrace trace =
      attend_additive(tape.constant(a.q), tape.constant(a.k), tape.constant(a.v), tape.constant(a.theta), a.lengths)
          .trace;
  EXPECT_EQ(trace.weights({.item = 1}).shape(), (Shape{3, 5}));
  EXPECT_THROW(trace.weights({.item = 2}), Error);
  EXPECT_THROW(trace.weights({.item = -1}), Error);
  EXPECT_THROW(AttendTrace().weights({}), Error);
  tape.reset();
  EXPECT_THROW(trace.weights({.item = 0}), Error);
  attend_additive(tape.constant(a.q), tape.constant(a.k), tape.constant(a.v), tape.constant(a.theta), a.lengths);
  EXPECT_THROW(trace.weights({.item = 0}), Error) << "also when the memory holds a new step";
}

TEST_P(Masks, RowsThatHaveEndedKeepTheirStateAndReachNothing) {
  constexpr std::int64_t kBatch = 6, kWidth = 19, kActive = 4;
  const Tensor input = drawn({kBatch, 3 * kWidth}, 1), state = drawn({kBatch, kWidth}, 2);
  const Tensor recurrent = drawn({kWidth, 3 * kWidth}, 3), bias = drawn({3 * kWidth}, 4),
               seed = drawn({kBatch, kWidth}, 5);
  struct Step {
    Tensor y, d_input, d_state, d_recurrent, d_bias;
  };
  const auto step = [&](const Tensor& x, const Tensor& h) {
    Tape tape;
    const Var a = tape.variable(x), b = tape.variable(h), c = tape.variable(recurrent), d = tape.variable(bias);
    const Var y = gru_cell(a, b, c, d, kActive);
    tape.backward(y, seed);
    return Step{y.value().clone(), tape.gradient(a).clone(), tape.gradient(b).clone(), tape.gradient(c).clone(),
                tape.gradient(d).clone()};
  };
  const Step expected = step(input, state);
  EXPECT_TRUE(same_bits(expected.y.slice(0, kActive, kBatch).clone(), state.slice(0, kActive, kBatch).clone()));
  EXPECT_TRUE(same_bits(expected.d_state.slice(0, kActive, kBatch).clone(), seed.slice(0, kActive, kBatch).clone()));
  EXPECT_TRUE(all_zero(expected.d_input.slice(0, kActive, kBatch)));
  for (const float poison : {kNan, kInfinity, 1e38f}) {
    const Tensor dirty_input = input.clone(), dirty_state = state.clone();
    std::fill_n(dirty_input.data<float>() + kActive * 3 * kWidth, (kBatch - kActive) * 3 * kWidth, poison);
    std::fill_n(dirty_state.data<float>() + kActive * kWidth, (kBatch - kActive) * kWidth, poison);
    const Step got = step(dirty_input, dirty_state);
    EXPECT_TRUE(same_bits(got.y.slice(0, 0, kActive).clone(), expected.y.slice(0, 0, kActive).clone())) << poison;
    EXPECT_TRUE(same_bits(got.y.slice(0, kActive, kBatch).clone(), dirty_state.slice(0, kActive, kBatch).clone()));
    EXPECT_TRUE(same_bits(got.d_input, expected.d_input)) << poison;
    EXPECT_TRUE(same_bits(got.d_state, expected.d_state)) << poison;
    EXPECT_TRUE(same_bits(got.d_recurrent, expected.d_recurrent)) << poison;
    EXPECT_TRUE(same_bits(got.d_bias, expected.d_bias)) << poison;
  }
}

TEST_P(Masks, RowsOfWeightZeroDoNotReachTheLoss) {
  constexpr std::int64_t kRows = 5, kWidth = 7, kWords = 19;
  const Tensor x = drawn({kRows, kWidth}, 1), weight = drawn({kWidth, kWords}, 2), bias = drawn({kWords}, 3);
  const Tensor targets = Tensor::of<std::int32_t>({kRows}, {3, 0, 18, 7, 7});
  const Tensor token_weights = Tensor::of<float>({kRows}, {1, 0, 0.5f, 0, 2});
  struct Step {
    Tensor loss, dx, dw, db;
  };
  const auto step = [&](const Tensor& rows) {
    Tape tape;
    const Var a = tape.variable(rows), b = tape.variable(weight), c = tape.variable(bias);
    const Var loss = linear_cross_entropy(a, b, c, targets, {.token_weights = token_weights}).loss;
    tape.backward(loss);
    return Step{loss.value().clone(), tape.gradient(a).clone(), tape.gradient(b).clone(), tape.gradient(c).clone()};
  };
  const Step expected = step(x);
  EXPECT_TRUE(all_zero(expected.dx.slice(0, 1, 2)));
  EXPECT_TRUE(all_zero(expected.dx.slice(0, 3, 4)));
  for (const float poison : {kNan, kInfinity, 1e38f}) {
    const Tensor dirty = x.clone();
    for (const std::int64_t row : {1, 3}) std::fill_n(dirty.data<float>() + row * kWidth, kWidth, poison);
    const Step got = step(dirty);
    EXPECT_TRUE(same_bits(got.loss, expected.loss)) << poison;
    EXPECT_TRUE(same_bits(got.dx, expected.dx)) << poison;
    EXPECT_TRUE(same_bits(got.dw, expected.dw)) << poison;
    EXPECT_TRUE(same_bits(got.db, expected.db)) << poison;
  }
}

struct Rowwise {
  Tensor y, dx;
};
Rowwise rowwise(Var (*call)(Var), const Tensor& x) {
  Tape tape;
  const Var input = tape.variable(x), y = call(input);
  tape.backward(y, drawn(x.shape(), 9));
  return {y.value().clone(), tape.gradient(input).clone()};
}

TEST_P(Masks, ARowOfMinusInfinityHasNoWeightsAndNoGradient) {
  for (const std::int64_t width : {1, 5, 16, 33, 100}) {
    const Tensor x = drawn({3, width}, 1);
    std::fill_n(x.data<float>() + width, width, -kInfinity);
    const Rowwise weights = rowwise(softmax, x), logarithms = rowwise(log_softmax, x);
    EXPECT_TRUE(all_zero(weights.y.slice(0, 1, 2))) << width;
    EXPECT_TRUE(all_zero(weights.dx.slice(0, 1, 2))) << width;
    for (std::int64_t i = 0; i < width; ++i) EXPECT_EQ(logarithms.y.data<float>()[width + i], -kInfinity) << width;
    EXPECT_TRUE(all_zero(logarithms.dx.slice(0, 1, 2))) << width;
  }
}

TEST_P(Masks, AnElementOfMinusInfinityHasNoWeight) {
  for (const std::int64_t width : {2, 5, 17, 33, 100}) {
    const Tensor x = drawn({1, width}, 1);
    const Tensor rest = x.slice(1, 0, width - 1).clone();
    x.data<float>()[width - 1] = -kInfinity;
    const Rowwise got = rowwise(softmax, x);
    EXPECT_EQ(got.y.data<float>()[width - 1], 0);
    EXPECT_EQ(got.dx.data<float>()[width - 1], 0);
    const Rowwise without = rowwise(softmax, rest);
    for (std::int64_t i = 0; i < width - 1; ++i) EXPECT_NEAR(got.y.data<float>()[i], without.y.data<float>()[i], 1e-6);
    EXPECT_EQ(rowwise(log_softmax, x).y.data<float>()[width - 1], -kInfinity);
  }
}

TEST_P(Masks, LargeLogitsDoNotOverflow) {
  const Tensor x = Tensor::of<float>({2, 3}, {1e38f, 1e38f, -1e38f, -3e38f, -3e38f, -3e38f});
  const Rowwise got = rowwise(softmax, x);
  const float third = 1.0f / 3;
  const float expected[] = {0.5f, 0.5f, 0, third, third, third};
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(got.y.data<float>()[i], expected[i], 1e-6) << i;
}

TEST_P(Masks, PlusInfinityIsNotHidden) {
  const Rowwise got = rowwise(softmax, Tensor::of<float>({1, 3}, {0, kInfinity, 1}));
  EXPECT_TRUE(std::isnan(got.y.data<float>()[1]));
}

}  // namespace
}  // namespace regard
