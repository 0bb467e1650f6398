#include "regard/train/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "regard/error.h"

namespace regard {
namespace {

void set_gradient(Gradients& gradients, const Parameter& parameter, const std::vector<float>& values) {
  gradients.settle();
  std::copy(values.begin(), values.end(), gradients.of(parameter).data<float>());
}

std::vector<float> values_of(const Parameter& parameter) {
  const float* data = parameter.value.data<float>();
  return {data, data + parameter.value.size()};
}

TEST(Sgd, WithoutMomentumSubtractsTheScaledGradient) {
  Parameters parameters;
  Parameter& weight = parameters.add("weight", Tensor::of({3}, {1.0f, 2.0f, 3.0f}));
  Gradients gradients(parameters);
  Sgd sgd(parameters);
  set_gradient(gradients, weight, {1, -2, 4});
  sgd.step(gradients, 0.5);
  EXPECT_EQ(values_of(weight), (std::vector<float>{0.5f, 3, 1}));
}

TEST(Sgd, MomentumAddsUpEarlierGradients) {
  Parameters parameters;
  Parameter& weight = parameters.add("weight", Tensor::of({1}, {0.0f}));
  Gradients gradients(parameters);
  Sgd sgd(parameters, {.momentum = 0.5});
  const float expected[] = {-1, -2.5f, -4.25f, -6.125f};  // moments 1, 1.5, 1.75, 1.875
  for (const float value : expected) {
    set_gradient(gradients, weight, {1});
    sgd.step(gradients, 1);
    EXPECT_EQ(values_of(weight)[0], value);
  }
}

TEST(Adam, FirstStepIsTheRateWhateverTheGradientsSize) {
  for (const float gradient : {1e-3f, 1.0f, -1e4f}) {
    Parameters parameters;
    Parameter& weight = parameters.add("weight", Tensor::of({1}, {0.0f}));
    Gradients gradients(parameters);
    Adam adam(parameters, {.epsilon = 1e-12});
    set_gradient(gradients, weight, {gradient});
    adam.step(gradients, 0.01);
    EXPECT_NEAR(values_of(weight)[0], gradient > 0 ? -0.01 : 0.01, 1e-8) << gradient;
  }
}

// The published algorithm in double, with its moments spelled out, over gradients that change.
TEST(Adam, FollowsTheAlgorithmOfThePaper) {
  constexpr double kRate = 0.02, kBeta1 = 0.8, kBeta2 = 0.95, kEpsilon = 1e-6;
  Parameters parameters;
  Parameter& weight = parameters.add("weight", Tensor::of({2}, {0.5f, -1.5f}));
  Gradients gradients(parameters);
  Adam adam(parameters, {.beta1 = kBeta1, .beta2 = kBeta2, .epsilon = kEpsilon});
  double w[] = {0.5, -1.5}, m[] = {0, 0}, v[] = {0, 0};
  for (int t = 1; t <= 60; ++t) {
    const double g[] = {std::sin(t), 3 * std::cos(2 * t)};
    set_gradient(gradients, weight, {static_cast<float>(g[0]), static_cast<float>(g[1])});
    adam.step(gradients, kRate);
    for (int i = 0; i < 2; ++i) {
      m[i] = kBeta1 * m[i] + (1 - kBeta1) * g[i];
      v[i] = kBeta2 * v[i] + (1 - kBeta2) * g[i] * g[i];
      const double m_hat = m[i] / (1 - std::pow(kBeta1, t)), v_hat = v[i] / (1 - std::pow(kBeta2, t));
      w[i] -= kRate * m_hat / (std::sqrt(v_hat) + kEpsilon);
      ASSERT_NEAR(values_of(weight)[static_cast<std::size_t>(i)], w[i], 1e-5) << "step " << t;
    }
  }
  EXPECT_EQ(adam.steps(), 60);
}

TEST(Adam, DecayShrinksTheWeightApartFromTheGradient) {
  Parameters parameters;
  Parameter& weight = parameters.add("weight", Tensor::of({1}, {2.0f}));
  Gradients gradients(parameters);
  Adam adam(parameters, {.groups = {{"", {.decay = 0.5}}}});
  set_gradient(gradients, weight, {0});
  adam.step(gradients, 0.1);
  EXPECT_EQ(values_of(weight)[0], 2.0f * static_cast<float>(1 - 0.1 * 0.5));
}

TEST(Adadelta, StepsGrowFromNothingWhateverTheGradientsSize) {
  for (const float gradient : {1e-1f, 1.0f, -1e4f}) {
    Parameters parameters;
    Parameter& weight = parameters.add("weight", Tensor::of({1}, {0.0f}));
    Gradients gradients(parameters);
    Adadelta adadelta(parameters);
    set_gradient(gradients, weight, {gradient});
    adadelta.step(gradients, 1);
    // √ε/√(0.1·g²): as if the gradient had length 1/√0.1
    EXPECT_NEAR(values_of(weight)[0], (gradient > 0 ? -1 : 1) * std::sqrt(1e-6 / 0.1), 1e-5) << gradient;
    const float before = values_of(weight)[0];
    set_gradient(gradients, weight, {gradient});
    adadelta.step(gradients, 1);
    EXPECT_EQ(values_of(weight)[0]<before, gradient> 0);
  }
}

TEST(Adadelta, SettingsThatMakeNoSenseAreErrors) {
  Parameters parameters;
  EXPECT_THROW(Adadelta(parameters, {.decay = 1}), Error);
  EXPECT_THROW(Adadelta(parameters, {.decay = -0.1}), Error);
  EXPECT_THROW(Adadelta(parameters, {.epsilon = 0}), Error);
}

TEST(Optimizer, GroupsHaveTheirOwnRateAndDecay) {
  Parameters parameters;
  Parameter& plain = parameters.add("plain", Tensor::of({1}, {1.0f}));
  Parameter& slow = parameters.add("slow", Tensor::of({1}, {1.0f}), "slow");
  Parameter& still = parameters.add("still", Tensor::of({1}, {1.0f}), "still");
  Gradients gradients(parameters);
  Sgd sgd(parameters, {.groups = {{"slow", {.rate_factor = 0.25, .decay = 1}}, {"still", {.rate_factor = 0}}}});
  for (const Parameter* parameter : {&plain, &slow, &still}) set_gradient(gradients, *parameter, {1});
  sgd.step(gradients, 0.5);
  EXPECT_EQ(values_of(plain)[0], 0.5f);
  EXPECT_EQ(values_of(slow)[0], 0.75f);  // 1·(1 − 0.125) − 0.125
  EXPECT_EQ(values_of(still)[0], 1);
}

TEST(Optimizer, AGroupThatNobodyBelongsToIsAnError) {
  Parameters parameters;
  parameters.add("weight", Tensor::zeros({1}), "decoder");
  try {
    const Adam adam(parameters, {.groups = {{"decodr", {}}}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'decodr'"), std::string::npos) << error.what();
  }
}

TEST(Optimizer, LeavesFrozenParametersAloneAndLetsThemThaw) {
  Parameters parameters;
  Parameter& weight = parameters.add("weight", Tensor::of({1}, {1.0f}));
  Parameter& other = parameters.add("other", Tensor::of({1}, {1.0f}));
  Gradients gradients(parameters);
  Adam adam(parameters, {.epsilon = 1e-12, .groups = {{"", {.decay = 0.1}}}});
  weight.frozen = true;
  for (int step = 0; step < 10; ++step) {
    set_gradient(gradients, weight, {1});
    set_gradient(gradients, other, {1});
    adam.step(gradients, 0.01);
  }
  EXPECT_EQ(values_of(weight)[0], 1);
  EXPECT_EQ(weight.version, 0u);
  EXPECT_LT(values_of(other)[0], 0.95f);
  weight.frozen = false;
  adam.step(gradients, 0.01);  // its first step: bias correction starts now
  EXPECT_NEAR(values_of(weight)[0], 1 - 0.01 - 0.001, 1e-6);
}

TEST(Optimizer, EveryChangeRaisesTheVersion) {
  Parameters parameters;
  Parameter& weight = parameters.add("weight", Tensor::zeros({1}));
  Gradients gradients(parameters);
  Sgd sgd(parameters);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    sgd.step(gradients, 0.1);
    EXPECT_EQ(weight.version, step);
  }
}

TEST(Optimizer, GradientsThatNothingReachedCountAsZero) {
  Parameters parameters;
  Parameter& weight = parameters.add("weight", Tensor::of({1}, {1.0f}));
  Gradients gradients(parameters);
  set_gradient(gradients, weight, {5});
  gradients.zero();
  Sgd sgd(parameters);
  sgd.step(gradients, 0.1);
  EXPECT_EQ(values_of(weight)[0], 1);
}

TEST(Optimizer, TrainsInDoubleToo) {
  Parameters parameters;
  Parameter& weight = parameters.add("weight", Tensor::of({1}, {1.0}));
  Gradients gradients(parameters);
  gradients.settle();
  *gradients.of(weight).data<double>() = 1;
  Adam adam(parameters, {.epsilon = 1e-12});
  adam.step(gradients, 0.1);
  EXPECT_NEAR(*weight.value.data<double>(), 0.9, 1e-12);
}

TEST(Optimizer, AParameterAddedLaterIsAnErrorNotACrash) {
  Parameters parameters;
  parameters.add("weight", Tensor::zeros({1}));
  Adam adam(parameters);
  parameters.add("late", Tensor::zeros({1}));
  Gradients gradients(parameters);
  EXPECT_THROW(adam.step(gradients, 0.1), Error);
}

TEST(Optimizer, EmptyParametersAreFine) {
  Parameters parameters;
  parameters.add("empty", Tensor::zeros({0, 4}));
  Gradients gradients(parameters);
  Adam adam(parameters);
  EXPECT_NO_THROW(adam.step(gradients, 0.1));
}

}  // namespace
}  // namespace regard
