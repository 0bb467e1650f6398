#include "regard/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "regard/autograd/ops.h"
#include "regard/error.h"
#include "train/fingerprint.h"

namespace regard {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The distance of a weight to a target, squared.
struct Problem {
  Parameters parameters;
  Parameter& weight = parameters.add("layer.weight", Tensor::of({2}, {1.0f, 2.0f}));
  Parameter& unused = parameters.add("unused", Tensor::of({1}, {7.0f}));
  Adam adam{parameters};

  auto toward(float target) {
    return [this, target](Tape& tape) {
      const Var gap = tape.use(weight) - number(tape, target);
      return sum(gap * gap);
    };
  }
};

TEST(Trainer, FindsTheMinimum) {
  Problem problem;
  Trainer trainer(problem.parameters, problem.adam);
  for (int step = 0; step < 300; ++step) trainer.step(0.05, problem.toward(3));
  EXPECT_NEAR(problem.weight.value.data<float>()[0], 3, 1e-2);
  EXPECT_NEAR(problem.weight.value.data<float>()[1], 3, 1e-2);
  EXPECT_EQ(*problem.unused.value.data<float>(), 7);
  EXPECT_EQ(trainer.steps(), 300);
}

TEST(Trainer, ReportsTheLossAndTheNormBeforeClipping) {
  Problem problem;
  Trainer trainer(problem.parameters, problem.adam, {.clip = 0.001});
  const StepResult result = trainer.step(0.1, problem.toward(0));
  EXPECT_EQ(result.loss, 5);                              // 1² + 2²
  EXPECT_NEAR(result.norm, std::sqrt(4.0 + 16.0), 1e-6);  // of (2, 4)
}

TEST(Trainer, ALossThatIsNotFiniteThrowsAndLeavesTheWeights) {
  Problem problem;
  Trainer trainer(problem.parameters, problem.adam);
  trainer.step(0.1, problem.toward(0));
  const std::uint64_t before = fingerprint(problem.parameters);
  try {
    trainer.step(0.1, [&](Tape& tape) { return sum(tape.use(problem.weight)) + number(tape, kInfinity); });
    FAIL() << "the gradient of this loss is finite, the loss is not";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("step 2"), std::string::npos) << text;
    EXPECT_NE(text.find("loss"), std::string::npos) << text;
  }
  EXPECT_EQ(fingerprint(problem.parameters), before);
  EXPECT_EQ(trainer.steps(), 1);
}

TEST(Trainer, AGradientThatIsNotFiniteThrowsNamesItsParameterAndLeavesTheWeights) {
  Problem problem;
  bool poison = false;
  Trainer trainer(problem.parameters, problem.adam, {.reduce = [&](Gradients& gradients, StepTotals&) {
                    if (poison) gradients.of(problem.weight).data<float>()[1] = kInfinity;
                  }});
  trainer.step(0.1, problem.toward(0));
  const std::uint64_t before = fingerprint(problem.parameters);
  poison = true;
  try {
    trainer.step(0.1, problem.toward(0));
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("step 2"), std::string::npos) << text;
    EXPECT_NE(text.find("'layer.weight'"), std::string::npos) << text;
  }
  EXPECT_EQ(fingerprint(problem.parameters), before);
  poison = false;

  Problem other;  // the failed step has left no trace: the next one is what it would have been
  Trainer undisturbed(other.parameters, other.adam);
  undisturbed.step(0.1, other.toward(0));
  undisturbed.step(0.1, other.toward(0));
  trainer.step(0.1, problem.toward(0));
  EXPECT_EQ(fingerprint(problem.parameters), fingerprint(other.parameters));
}

TEST(Trainer, TheHookSeesEveryGradientAndWhatItWritesCounts) {
  Problem problem;
  float seen = -1;
  Trainer trainer(problem.parameters, problem.adam, {.reduce = [&](Gradients& gradients, StepTotals&) {
                    seen = gradients.of(problem.weight).data<float>()[1];
                    EXPECT_EQ(*gradients.of(problem.unused).data<float>(), 0);
                    *gradients.of(problem.unused).data<float>() = 1;
                  }});
  trainer.step(0.1, problem.toward(0));
  EXPECT_EQ(seen, 4);
  EXPECT_LT(*problem.unused.value.data<float>(), 7);
}

TEST(Trainer, PartsTogetherAreTheMeanOverWhatTheyCount) {
  Problem whole, parts;
  Trainer one(whole.parameters, whole.adam, {.clip = 1}), two(parts.parameters, parts.adam, {.clip = 1});
  const auto far = [](Problem& problem, Tape& tape) { return problem.toward(-2)(tape) + problem.toward(5)(tape); };
  for (int step = 0; step < 5; ++step) {
    const StepResult expected =
        one.step(0.1, [&](Tape& tape) { return far(whole, tape) * number(tape, 0.25); });  // exact in binary
    two.begin();
    two.add([&](Tape& tape) { return LossPart{parts.toward(-2)(tape), 1}; });
    two.add([&](Tape& tape) { return LossPart{parts.toward(5)(tape), 3}; });
    const StepResult got = two.finish(0.1);
    EXPECT_NEAR(got.loss, expected.loss, 1e-6);
    EXPECT_NEAR(got.norm, expected.norm, 1e-6);
    EXPECT_EQ(got.count, 4);
  }
  EXPECT_NEAR(whole.weight.value.data<float>()[0], parts.weight.value.data<float>()[0], 1e-6);
  two.begin();
  EXPECT_THROW(two.finish(0.1), Error);  // nothing to learn from
}

TEST(Trainer, AfterSomethingThrewTheNextStepIsFresh) {
  Problem problem;
  Trainer trainer(problem.parameters, problem.adam);
  EXPECT_THROW(
      trainer.step(0.1, [&](Tape& tape) -> Var { return sum(tape.use(problem.weight)) + tape.use(problem.weight); }),
      Error);
  EXPECT_NO_THROW(trainer.step(0.1, problem.toward(0)));
}

}  // namespace
}  // namespace regard
