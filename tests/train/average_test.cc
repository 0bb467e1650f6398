#include "regard/train/average.h"

#include <gtest/gtest.h>

#include "regard/autograd/ops.h"
#include "regard/error.h"

namespace regard {
namespace {

float value(const Tensor& tensor) { return *tensor.data<float>(); }

TEST(Average, TheFirstUpdateCopiesAndLaterOnesFollow) {
  Parameters parameters;
  Parameter& weight = parameters.add("weight", Tensor::of({1}, {4.0f}));
  Average average(parameters, 0.75);
  EXPECT_FALSE(average.of(weight).defined());
  average.update();
  EXPECT_EQ(value(average.of(weight)), 4);
  *weight.value.data<float>() = 8;
  average.update();
  EXPECT_EQ(value(average.of(weight)), 5);
  EXPECT_EQ(value(weight.value), 8);
  EXPECT_EQ(average.updates(), 2);
}

TEST(Average, WhileInUseTheModelComputesWithTheAverages) {
  Parameters parameters;
  Parameter& weight = parameters.add("weight", Tensor::of({1, 1}, {1.0f}));
  Average average(parameters, 0.5);
  average.update();
  *weight.value.data<float>() = 3;
  ++weight.version;
  average.update();  // 2
  Tape tape;
  const auto product = [&] {  // through the packed copy of the weight
    tape.reset();
    return value(matmul(tape.constant(Tensor::of({1, 1}, {10.0f})), tape.use(weight)).value());
  };
  EXPECT_EQ(product(), 30);
  {
    const AverageInUse use(average);
    EXPECT_EQ(product(), 20);
    EXPECT_THROW(average.update(), Error);
    EXPECT_THROW(AverageInUse{average}, Error);
  }
  EXPECT_EQ(product(), 30);
  EXPECT_NO_THROW(average.update());
}

TEST(Average, FrozenParametersAreLeftAlone) {
  Parameters parameters;
  Parameter& weight = parameters.add("weight", Tensor::of({1}, {4.0f}));
  weight.frozen = true;
  parameters.add("other", Tensor::zeros({0}));
  Average average(parameters, 0.5);
  average.update();
  EXPECT_FALSE(average.of(weight).defined());
  const AverageInUse use(average);
  EXPECT_EQ(value(weight.value), 4);
}

TEST(Average, MistakesAreErrors) {
  Parameters parameters;
  parameters.add("weight", Tensor::zeros({1}));
  EXPECT_THROW(Average(parameters, 1), Error);
  EXPECT_THROW(Average(parameters, -0.5), Error);
  Average average(parameters, 0.5);
  EXPECT_THROW(AverageInUse{average}, Error);  // nothing there yet
  Parameter& late = parameters.add("late", Tensor::zeros({1}));
  EXPECT_THROW(average.update(), Error);
  EXPECT_THROW(average.of(late), Error);
}

}  // namespace
}  // namespace regard
