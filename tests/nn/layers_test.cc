// Layers that are little more than an operation and its parameters.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "regard/error.h"
#include "regard/nn/dropout.h"
#include "regard/nn/norm.h"

namespace regard {
namespace {

Tensor numbers(const Shape& shape) { return normal(shape, 2, RandomKey(9)); }

TEST(LayerNorm, MakesRowsOfMeanZeroAndVarianceOneThenScalesAndShifts) {
  Parameters parameters;
  const LayerNorm norm(Builder(parameters, RandomKey(1)).under("norm"), 16);
  Tape tape;
  const Tensor y = norm(tape.constant(numbers({3, 16}))).value();
  for (std::int64_t row = 0; row < 3; ++row) {
    double mean = 0, square = 0;
    for (std::int64_t c = 0; c < 16; ++c) {
      const double value = y.data<float>()[row * 16 + c];
      mean += value / 16;
      square += value * value / 16;
    }
    EXPECT_NEAR(mean, 0, 1e-6);
    EXPECT_NEAR(square, 1, 1e-4);
  }
  const float first = y.data<float>()[0];
  parameters.find("norm.weight").value.data<float>()[0] = 3;
  parameters.find("norm.bias").value.data<float>()[0] = 7;
  tape.reset();
  EXPECT_NEAR(norm(tape.constant(numbers({3, 16}))).value().data<float>()[0], 3 * first + 7, 1e-5);
}

TEST(RmsNorm, MakesRowsOfMeanSquareOneThenScales) {
  Parameters parameters;
  const RmsNorm norm(Builder(parameters, RandomKey(1)), 8);
  parameters.find("weight").value.data<float>()[7] = 0;
  Tape tape;
  const Tensor x = numbers({1, 8}), y = norm(tape.constant(x)).value();
  double square = 0;
  for (std::int64_t c = 0; c < 8; ++c) square += std::pow(x.data<float>()[c], 2) / 8;
  for (std::int64_t c = 0; c < 7; ++c) EXPECT_NEAR(y.data<float>()[c], x.data<float>()[c] / std::sqrt(square), 1e-5);
  EXPECT_EQ(y.data<float>()[7], 0);
  EXPECT_EQ(parameters.size(), 1u);
}

struct Dropped : testing::Test {
  Parameters parameters;
  Builder builder{parameters, RandomKey(1)};
  Tape tape;
  Var x = tape.constant(numbers({4, 64}));

  bool same(Var a, Var b) { return std::memcmp(a.value().raw(), b.value().raw(), a.value().bytes()) == 0; }
};

TEST_F(Dropped, DependsOnNameStepAndExample) {
  const Dropout one(builder.under("one"), 0.5f), other(builder.under("other"), 0.5f);
  EXPECT_TRUE(same(one(x, {.steps_done = 3}), one(x, {.steps_done = 3})));
  EXPECT_FALSE(same(one(x, {.steps_done = 3}), one(x, {.steps_done = 4})));
  EXPECT_FALSE(same(one(x, {.steps_done = 3}), other(x, {.steps_done = 3})));
  const std::vector<std::uint64_t> ids = {8, 5, 2, 0}, turned = {0, 2, 5, 8};
  const Var ahead = one(x, {.ids = ids}), back = one(x, {.ids = turned});
  for (std::int64_t i = 0; i < 64; ++i) {  // example 8 loses the same columns, wherever it stands
    EXPECT_EQ(ahead.value().data<float>()[i] == 0, back.value().data<float>()[3 * 64 + i] == 0) << i;
  }
}

TEST_F(Dropped, OutsideTrainingNothingIs) {
  const Dropout half(builder, 0.5f), none(builder, 0);
  EXPECT_TRUE(same(half(x, {.training = false}), x));
  EXPECT_TRUE(same(none(x, {}), x));
  EXPECT_FALSE(same(half(x, {}), x));
  EXPECT_EQ(parameters.size(), 0u);
}

TEST_F(Dropped, AProbabilityThatIsNoneIsAnError) {
  EXPECT_THROW(Dropout(builder, 1), Error);
  EXPECT_THROW(Dropout(builder, -0.1f), Error);
  EXPECT_THROW(Dropout(builder, std::nanf("")), Error);
}

}  // namespace
}  // namespace regard
