#include "kernels/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/pool.h"
#include "kernels/target.h"
#include "regard/random.h"

namespace regard {
namespace {

constexpr std::size_t kSizes[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 16383, 16384, 16385, 32769, 40001};
constexpr int kSteps = 5;

const SgdNumbers<double> kSgd = {.gradient_scale = 0.7, .momentum = 0.9, .rate = 0.05, .keep = 0.999};

AdamNumbers<double> adam_numbers(int step) {
  return {.gradient_scale = 0.7,
          .first_rest = 0.1,
          .second_keep = 0.99,
          .second_rest = 0.01,
          .rate = 0.01 / (1 - std::pow(0.9, step)),
          .root_scale = 1 / std::sqrt(1 - std::pow(0.99, step)),
          .epsilon = 1e-6,
          .keep = 0.999};
}

const AdadeltaNumbers<double> kAdadelta = {
    .gradient_scale = 0.7, .decay = 0.9, .rest = 0.1, .epsilon = 1e-6, .rate = 0.8, .keep = 0.999};
constexpr double kRest = 0.125;  // of the moving average

SgdNumbers<float> to_float(const SgdNumbers<double>& n) {
  return {static_cast<float>(n.gradient_scale), static_cast<float>(n.momentum), static_cast<float>(n.rate),
          static_cast<float>(n.keep)};
}
AdadeltaNumbers<float> to_float(const AdadeltaNumbers<double>& n) {
  return {static_cast<float>(n.gradient_scale), static_cast<float>(n.decay), static_cast<float>(n.rest),
          static_cast<float>(n.epsilon),        static_cast<float>(n.rate),  static_cast<float>(n.keep)};
}
AdamNumbers<float> to_float(const AdamNumbers<double>& n) {
  return {static_cast<float>(n.gradient_scale), static_cast<float>(n.first_rest), static_cast<float>(n.second_keep),
          static_cast<float>(n.second_rest),    static_cast<float>(n.rate),       static_cast<float>(n.root_scale),
          static_cast<float>(n.epsilon),        static_cast<float>(n.keep)};
}

template <class T>
std::vector<T> numbers(std::size_t count, std::uint64_t seed) {
  std::vector<T> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<T>(static_cast<float>(normal(RandomKey(seed), i)));
  return result;
}

// Weights and moments after a few steps.
template <class T>
struct State {
  explicit State(std::size_t count) : weight(numbers<T>(count, 1)), first(count), second(count) {}
  std::vector<T> weight, first, second;
  bool operator==(const State&) const = default;
};

State<float> run_adam(std::size_t count) {
  State<float> state(count);
  for (int step = 1; step <= kSteps; ++step) {
    const auto gradient = numbers<float>(count, static_cast<std::uint64_t>(10 + step));
    adam(gradient.data(), state.weight.data(), state.first.data(), state.second.data(), count,
         to_float(adam_numbers(step)));
  }
  return state;
}

State<float> run_sgd(std::size_t count, bool momentum) {
  State<float> state(count);
  for (int step = 1; step <= kSteps; ++step) {
    const auto gradient = numbers<float>(count, static_cast<std::uint64_t>(10 + step));
    sgd(gradient.data(), state.weight.data(), momentum ? state.first.data() : nullptr, count, to_float(kSgd));
  }
  return state;
}

State<float> run_adadelta(std::size_t count) {
  State<float> state(count);
  for (int step = 1; step <= kSteps; ++step) {
    const auto gradient = numbers<float>(count, static_cast<std::uint64_t>(10 + step));
    adadelta(gradient.data(), state.weight.data(), state.first.data(), state.second.data(), count, to_float(kAdadelta));
  }
  return state;
}

State<float> run_follow(std::size_t count) {
  State<float> state(count);
  for (int step = 1; step <= kSteps; ++step) {
    state.weight = numbers<float>(count, static_cast<std::uint64_t>(10 + step));
    follow(state.weight.data(), state.first.data(), count, static_cast<float>(kRest));
  }
  return state;
}

void expect_near(const std::vector<float>& got, const std::vector<double>& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], 2e-6 * (1 + std::fabs(expected[i]))) << what << ", element " << i;
  }
}

// run(count) in floats against `step(number, gradient, state)` in double, on every target and size.
template <class Run, class Step>
void expect_reference(Run run, Step step) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (const std::size_t count : kSizes) {
      State<double> expected(count);
      for (int number = 1; number <= kSteps; ++number) {
        step(number, numbers<double>(count, static_cast<std::uint64_t>(10 + number)), expected);
      }
      const State<float> got = run(count);
      const std::string what = name + ", " + std::to_string(count) + " elements";
      expect_near(got.weight, expected.weight, what);
      expect_near(got.first, expected.first, what);
      expect_near(got.second, expected.second, what);
    }
  }
}

TEST(OptimizerKernels, AdamFollowsTheReferenceInDouble) {
  expect_reference(run_adam, [](int number, const std::vector<double>& gradient, State<double>& state) {
    reference::adam(gradient.data(), state.weight.data(), state.first.data(), state.second.data(), gradient.size(),
                    adam_numbers(number));
  });
}

TEST(OptimizerKernels, SgdFollowsTheReferenceInDouble) {
  for (const bool momentum : {false, true}) {
    expect_reference([=](std::size_t count) { return run_sgd(count, momentum); },
                     [=](int, const std::vector<double>& gradient, State<double>& state) {
                       reference::sgd(gradient.data(), state.weight.data(), momentum ? state.first.data() : nullptr,
                                      gradient.size(), kSgd);
                     });
  }
}

TEST(OptimizerKernels, AdadeltaFollowsTheReferenceInDouble) {
  expect_reference(run_adadelta, [](int, const std::vector<double>& gradient, State<double>& state) {
    reference::adadelta(gradient.data(), state.weight.data(), state.first.data(), state.second.data(), gradient.size(),
                        kAdadelta);
  });
}

TEST(OptimizerKernels, TheAverageFollowsTheReferenceInDouble) {
  expect_reference(run_follow, [](int, const std::vector<double>& weight, State<double>& state) {
    state.weight = weight;
    reference::follow(weight.data(), state.first.data(), weight.size(), kRest);
  });
}

TEST(OptimizerKernels, BitsAreTheSameOnEveryTargetWithFusedMultiplyAdd) {
  for (const std::size_t count : kSizes) {
    const State<float> adam_before = run_adam(count), sgd_before = run_sgd(count, true),
                       adadelta_before = run_adadelta(count), average_before = run_follow(count);
    for (const std::string& name : targets()) {
      if (name == "sse4") continue;
      const TargetScope scope(name);
      EXPECT_EQ(run_adam(count), adam_before) << name << ", " << count << " elements";
      EXPECT_EQ(run_sgd(count, true), sgd_before) << name << ", " << count << " elements";
      EXPECT_EQ(run_adadelta(count), adadelta_before) << name << ", " << count << " elements";
      EXPECT_EQ(run_follow(count), average_before) << name << ", " << count << " elements";
    }
  }
}

TEST(OptimizerKernels, BitsDoNotDependOnTheThreads) {
  constexpr std::size_t kCount = 100'003;
  const State<float> expected = [] {
    const ThreadLimit one(1);
    return run_adam(kCount);
  }();
  for (const int limit : {2, 3, 7}) {
    const ThreadLimit scope(limit);
    EXPECT_EQ(run_adam(kCount), expected) << limit << " threads";
  }
}

TEST(OptimizerKernels, AnElementDoesNotDependOnItsPlace) {
  constexpr std::size_t kCount = 41;
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    const State<float> together = run_adam(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {  // alone it is a tail, together mostly part of a full vector
      State<float> alone(kCount);
      for (int step = 1; step <= kSteps; ++step) {
        const auto gradient = numbers<float>(kCount, static_cast<std::uint64_t>(10 + step));
        adam(gradient.data() + i, alone.weight.data() + i, alone.first.data() + i, alone.second.data() + i, 1,
             to_float(adam_numbers(step)));
      }
      EXPECT_EQ(alone.weight[i], together.weight[i]) << name << ", element " << i;
    }
  }
}

TEST(OptimizerKernels, NothingBehindTheLastElementIsTouched) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (std::size_t count = 0; count < 40; ++count) {
      const std::size_t all = count + 32;
      State<float> adam_state(all), sgd_state(all), adadelta_state(all), average(all);
      const State<float> before(all);
      const auto gradient = numbers<float>(all, 3);
      adam(gradient.data(), adam_state.weight.data(), adam_state.first.data(), adam_state.second.data(), count,
           to_float(adam_numbers(1)));
      sgd(gradient.data(), sgd_state.weight.data(), sgd_state.first.data(), count, to_float(kSgd));
      adadelta(gradient.data(), adadelta_state.weight.data(), adadelta_state.first.data(), adadelta_state.second.data(),
               count, to_float(kAdadelta));
      follow(gradient.data(), average.first.data(), count, 0.5f);
      for (std::size_t i = 0; i < all; ++i) {
        EXPECT_EQ(adam_state.weight[i] == before.weight[i], i >= count) << name << ", " << count << ", element " << i;
        EXPECT_EQ(sgd_state.weight[i] == before.weight[i], i >= count) << name << ", " << count << ", element " << i;
        EXPECT_EQ(adam_state.second[i] == 0, i >= count) << name << ", " << count << ", element " << i;
        EXPECT_EQ(adadelta_state.weight[i] == before.weight[i], i >= count) << name << ", " << count << ", " << i;
        EXPECT_EQ(adadelta_state.second[i] == 0, i >= count) << name << ", " << count << ", element " << i;
        EXPECT_EQ(average.first[i] == 0, i >= count) << name << ", " << count << ", element " << i;
      }
    }
  }
}

TEST(OptimizerKernels, NotANumberStaysOne) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    auto gradient = numbers<float>(20, 3);
    gradient[17] = std::numeric_limits<float>::quiet_NaN();
    State<float> state(20);
    adam(gradient.data(), state.weight.data(), state.first.data(), state.second.data(), 20, to_float(adam_numbers(1)));
    State<float> other(20), average(20);
    adadelta(gradient.data(), other.weight.data(), other.first.data(), other.second.data(), 20, to_float(kAdadelta));
    follow(gradient.data(), average.first.data(), 20, 0.5f);
    for (std::size_t i = 0; i < 20; ++i) {
      EXPECT_EQ(std::isnan(state.weight[i]), i == 17) << name << ", element " << i;
      EXPECT_EQ(std::isnan(other.weight[i]), i == 17) << name << ", element " << i;
      EXPECT_EQ(std::isnan(average.first[i]), i == 17) << name << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace regard
