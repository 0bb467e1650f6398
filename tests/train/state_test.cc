// What an optimiser and an average remember, taken out and put into others.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "regard/error.h"
#include "regard/nn/initial.h"
#include "regard/train/average.h"
#include "regard/train/optimizer.h"
#include "support/error_of.h"
#include "train/fingerprint.h"

namespace regard {
namespace {

struct Model {
  Parameters parameters;
  Gradients gradients;
  explicit Model(int first = 1) : gradients(fill(parameters, first)) {}
  static Parameters& fill(Parameters& parameters, int first) {
    parameters.add("a", normal({3, 5}, 1, RandomKey(static_cast<std::uint64_t>(first))));
    parameters.add("b", normal({7}, 1, RandomKey(9)).to(DType::kF64));
    parameters.add("late", Tensor::zeros({2})).frozen = true;
    parameters.add("nothing", Tensor::zeros({0, 2}));
    return parameters;
  }
  void step(Optimizer& optimizer, int number) {
    parameters.find("late").frozen = number < 3;
    gradients.zero();
    gradients.settle();
    for (const Parameter& parameter : parameters) {
      const Tensor drawn = normal(parameter.value.shape(), 1, RandomKey(50).at(static_cast<std::uint64_t>(number)));
      gradients.of(parameter).copy_from(drawn.to(parameter.value.dtype()));
    }
    optimizer.step(gradients, 0.01, 0.5);
  }
};

using Make = std::function<std::unique_ptr<Optimizer>(Parameters&)>;
const Make kAll[] = {
    [](Parameters& parameters) { return std::make_unique<Sgd>(parameters); },
    [](Parameters& parameters) { return std::make_unique<Sgd>(parameters, SgdSettings{.momentum = 0.9}); },
    [](Parameters& parameters) { return std::make_unique<Adadelta>(parameters); },
    [](Parameters& parameters) { return std::make_unique<Adam>(parameters); },
};

TEST(OptimizerState, GoesOnBitForBit) {
  for (const Make& make : kAll) {
    for (const int stop : {0, 2, 5}) {  // before the first step, before and after a parameter thaws
      Model straight, first;
      const auto whole = make(straight.parameters), before = make(first.parameters);
      for (int i = 0; i < 8; ++i) straight.step(*whole, i);
      for (int i = 0; i < stop; ++i) first.step(*before, i);

      Model second(2);
      for (Parameter& parameter : second.parameters) parameter.value = first.parameters[parameter.index].value.clone();
      const auto after = make(second.parameters);
      second.step(*after, 7);  // whatever it remembers is forgotten
      for (Parameter& parameter : second.parameters) parameter.value = first.parameters[parameter.index].value.clone();
      after->resume(before->state());
      EXPECT_EQ(after->steps(), stop);
      const std::uint64_t untouched = fingerprint(first.parameters);
      for (int i = stop; i < 8; ++i) second.step(*after, i);
      EXPECT_EQ(fingerprint(second.parameters), fingerprint(straight.parameters)) << after->state().kind << " " << stop;
      EXPECT_EQ(fingerprint(first.parameters), untouched);
    }
  }
}

TEST(OptimizerState, WhatDoesNotFitChangesNothing) {
  Model model, other;
  Adam adam(model.parameters), changed(other.parameters);
  for (int i = 0; i < 4; ++i) model.step(adam, i);
  for (int i = 0; i < 4; ++i) other.step(changed, i);
  const OptimizerState good = adam.state();
  const auto refused = [&](const std::function<void(OptimizerState&)>& spoil) {
    OptimizerState bad = good;
    spoil(bad);
    return error_of([&] { changed.resume(bad); });
  };
  EXPECT_EQ(refused([](OptimizerState& state) { state.kind = "sgd"; }), "optimiser: a state of sgd for adam");
  EXPECT_NE(refused([](OptimizerState& state) { state.steps = -1; }), "");
  EXPECT_NE(refused([](OptimizerState& state) { state.tensors["a/third"] = Tensor::zeros({1}); }), "");
  EXPECT_NE(refused([](OptimizerState& state) { state.tensors["b/second"] = Tensor::zeros({7}); }), "");  // not f64
  EXPECT_NE(refused([](OptimizerState& state) { state.counts.erase("b/steps"); }), "");
  EXPECT_NE(refused([](OptimizerState& state) { state.counts["b/steps"] = -4; }), "");
  EXPECT_NE(refused([](OptimizerState& state) { state.counts["c/steps"] = 4; }), "");
  model.step(adam, 4);
  other.step(changed, 4);
  EXPECT_EQ(fingerprint(model.parameters), fingerprint(other.parameters));
}

TEST(AverageState, GoesOnBitForBit) {
  Model straight, first;
  Sgd one(straight.parameters), two(first.parameters);
  Average whole(straight.parameters, 0.75), before(first.parameters, 0.75);
  for (int i = 0; i < 8; ++i) {
    straight.step(one, i);
    whole.update();
  }
  for (int i = 0; i < 2; ++i) {
    first.step(two, i);
    before.update();
  }
  std::map<std::string, Tensor> averages;
  for (const Parameter& parameter : first.parameters) {
    if (before.of(parameter).defined()) averages.emplace(parameter.name, before.of(parameter));
  }
  Average after(first.parameters, 0.75);
  after.update();
  after.resume(averages, before.updates());
  EXPECT_EQ(after.updates(), 2);
  for (int i = 2; i < 8; ++i) {
    first.step(two, i);
    after.update();
  }
  const AverageInUse use_one(whole), use_two(after);
  EXPECT_EQ(fingerprint(straight.parameters), fingerprint(first.parameters));
}

TEST(AverageState, WhatDoesNotFitIsRefused) {
  Model model;
  Average average(model.parameters, 0.5);
  EXPECT_THROW(average.resume({{"a", Tensor::zeros({3})}}, 1), Error);
  EXPECT_THROW(average.resume({{"x", Tensor::zeros({3})}}, 1), Error);
  EXPECT_THROW(average.resume({{"a", Tensor::zeros({3, 5})}}, 0), Error);
  EXPECT_THROW(average.resume({}, -1), Error);
  EXPECT_EQ(average.updates(), 0);
}

}  // namespace
}  // namespace regard
