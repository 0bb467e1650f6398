// Attention that looks at what it did before: gradients against finite differences, masks.
#include "regard/nn/step_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "regard/error.h"
#include "regard/nn/multi_dimensional.h"
#include "support/finite.h"

namespace regard {
namespace {

constexpr std::int64_t kBatch = 3, kKeys = 5, kSteps = 3;
const std::vector<std::int32_t> kLengths = {5, 2, 0};
const StepWidths kWidths = {.query = 3, .key = 4, .hidden = 6};

// Three steps of both mechanisms on inputs that are parameters; a number that depends on all that comes out.
struct Steps {
  Parameters parameters;
  Builder builder{parameters, RandomKey(5), DType::kF64};
  LocationAwareAttention location{builder.under("location"), kWidths, 2, 3};
  CoverageAttention coverage{builder.under("coverage"), kWidths};
  MultiDimensionalAttention features{builder.under("features"), {.query = 3, .key = 4, .value = 2, .hidden = 5}};
  Parameter& queries = builder.normal("queries", {kSteps, kBatch, 3}, 1);
  Parameter& keys = builder.normal("keys", {kBatch, kKeys, 4}, 1);
  Parameter& values = builder.normal("values", {kBatch, kKeys, 2}, 1);

  Var query(Tape& tape, std::int64_t step) { return reshape(slice(tape.use(queries), 0, step, step + 1), {kBatch, 3}); }
  Var loss(Tape& tape, std::vector<Stepped>* seen = nullptr) {
    const StepMemory first = location.memory(tape.use(keys), tape.use(values), kLengths);
    const StepMemory second = coverage.memory(tape.use(keys), tape.use(values), kLengths);
    Var before, covered, total = number(tape, 0, DType::kF64);
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const Stepped one = location(query(tape, step), first, before);
      const Stepped two = coverage(query(tape, step), second, covered);
      if (seen != nullptr) seen->insert(seen->end(), {one, two});
      if (covered.defined()) total = total + sum(coverage_loss(two.weights, covered));
      before = one.weights;
      covered = covered.defined() ? covered + two.weights : two.weights;
      total = total + sum(one.context * one.context) + sum(two.context * two.context);
    }
    const auto all = features(transpose(tape.use(queries), 0, 1), tape.use(keys), tape.use(values), kLengths);
    return total + sum(all.context * all.context);
  }
};

TEST(StepAttention, GradientsMatchFiniteDifferences) {
  Steps run;
  expect_gradients_match(
      run.parameters, [&](Tape& tape) { return run.loss(tape); }, 81);
}

TEST(StepAttention, WeightsSumToOneOverWhatIsVisible) {
  Steps run;
  Tape tape;
  std::vector<Stepped> seen;
  run.loss(tape, &seen);
  ASSERT_EQ(seen.size(), 6u);
  for (const Stepped& each : seen) {
    for (std::int64_t b = 0; b < kBatch; ++b) {
      double total = 0;
      const std::int32_t length = kLengths[static_cast<std::size_t>(b)];
      for (std::int64_t j = 0; j < kKeys; ++j) {
        const double weight = each.weights.value().data<double>()[b * kKeys + j];
        EXPECT_EQ(weight == 0, j >= length);
        total += weight;
      }
      EXPECT_NEAR(total, length > 0 ? 1 : 0, 1e-12);
    }
    for (std::int64_t c = 0; c < 2; ++c) EXPECT_EQ(each.context.value().data<double>()[2 * 2 + c], 0);
  }
}

TEST(StepAttention, NotANumberBehindTheEndReachesNothing) {
  Steps run;
  const auto all = [&] {
    Gradients gradients(run.parameters);
    Tape tape(gradients);
    const Var loss = run.loss(tape);
    std::vector<double> result = {loss.value().item()};
    tape.backward(loss);
    gradients.settle();
    for (const Parameter& each : run.parameters) {
      const Tensor& gradient = gradients.of(each);
      result.insert(result.end(), gradient.data<double>(), gradient.data<double>() + gradient.size());
    }
    return result;
  };
  const std::vector<double> clean = all();
  for (std::int64_t j = 2; j < kKeys; ++j) {  // item 1 sees two keys
    run.keys.value.data<double>()[(kKeys + j) * 4] = std::numeric_limits<double>::quiet_NaN();
    run.values.value.data<double>()[(kKeys + j) * 2] = std::numeric_limits<double>::infinity();
  }
  EXPECT_EQ(all(), clean);
}

TEST(StepAttention, TheStepBeforeMatters) {
  Steps run;
  Tape tape;
  const StepMemory memory = run.coverage.memory(tape.use(run.keys), tape.use(run.values), kLengths);
  const Var query = run.query(tape, 0);
  const Stepped first = run.coverage(query, memory), second = run.coverage(query, memory, first.weights);
  EXPECT_GT(std::abs(first.weights.value().data<double>()[0] - second.weights.value().data<double>()[0]), 1e-6);
}

// Weights of every feature sum to one over what is visible, and the context is the sum of the values by them.
TEST(MultiDimensionalAttention, HasASoftmaxForEveryFeature) {
  Steps run;
  Tape tape;
  const auto [context, weights, scores] =
      run.features(transpose(tape.use(run.queries), 0, 1), tape.use(run.keys), tape.use(run.values), kLengths);
  ASSERT_EQ(context.shape(), (Shape{kBatch, kSteps, 2}));
  ASSERT_EQ(weights.shape(), (Shape{kBatch, kSteps, kKeys, 2}));
  double apart = 0;
  for (std::int64_t row = 0; row < kBatch * kSteps; ++row) {
    const std::int64_t b = row / kSteps;
    const std::int32_t length = kLengths[static_cast<std::size_t>(b)];
    for (std::int64_t c = 0; c < 2; ++c) {
      double total = 0, expected = 0;
      for (std::int64_t j = 0; j < kKeys; ++j) {
        const double weight = weights.value().data<double>()[(row * kKeys + j) * 2 + c];
        EXPECT_EQ(weight == 0, j >= length);
        EXPECT_EQ(std::isinf(scores.value().data<double>()[(row * kKeys + j) * 2 + c]), j >= length);
        total += weight;
        expected += weight * run.values.value.data<double>()[(b * kKeys + j) * 2 + c];
      }
      EXPECT_NEAR(total, length > 0 ? 1 : 0, 1e-12);
      EXPECT_NEAR(context.value().data<double>()[row * 2 + c], expected, 1e-12);
    }
    const double* first = weights.value().data<double>() + row * kKeys * 2;
    apart += std::abs(first[0] - first[1]);
  }
  EXPECT_GT(apart, 1e-3);  // features differ
  const std::vector<std::int32_t> long_one = {5, 2, 6};
  const Var keys = tape.use(run.keys);
  EXPECT_THROW(run.features(keys, keys, keys, long_one), Error);
}

TEST(CoverageLoss, IsTheSumOfTheSmaller) {
  Tape tape;
  const Var p = tape.constant(Tensor::of({2, 3}, {0.5f, 0.25f, 0.25f, 0.0f, 1.0f, 0.0f}));
  const Var c = tape.constant(Tensor::of({2, 3}, {0.25f, 1.0f, 0.0f, 0.0f, 0.5f, 2.0f}));
  const Tensor loss = coverage_loss(p, c).value();
  EXPECT_EQ(loss.shape(), (Shape{2}));
  EXPECT_EQ(loss.data<float>()[0], 0.5f);
  EXPECT_EQ(loss.data<float>()[1], 0.5f);
}

TEST(StepAttention, WhatDoesNotFitIsAnError) {
  Steps run;
  Tape tape;
  const Var keys = tape.use(run.keys), values = tape.use(run.values);
  const std::vector<std::int32_t> few = {5, 2}, long_one = {5, 2, 6}, negative = {5, 2, -1};
  for (const auto& lengths : {few, long_one, negative}) EXPECT_THROW(run.coverage.memory(keys, values, lengths), Error);
  EXPECT_THROW(run.coverage.memory(keys, slice(values, 1, 0, 4), kLengths), Error);
  const StepMemory memory = run.coverage.memory(keys, values, kLengths);
  EXPECT_THROW(run.coverage(slice(run.query(tape, 0), 0, 0, 2), memory), Error);
}

}  // namespace
}  // namespace regard
