#include "regard/train/clip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/pool.h"
#include "kernels/target.h"
#include "regard/random.h"
#include "regard/train/optimizer.h"

namespace regard {
namespace {

struct Model {
  Parameters parameters;
  std::unique_ptr<Gradients> gradients;

  explicit Model(std::initializer_list<std::int64_t> sizes) {
    for (const std::int64_t size : sizes) {
      parameters.add("weight " + std::to_string(parameters.size()), Tensor::zeros({size}));
    }
    gradients = std::make_unique<Gradients>(parameters);
    gradients->settle();
    for (const Parameter& parameter : parameters) {
      for (std::int64_t i = 0; i < parameter.value.size(); ++i) {
        at(parameter.index, i) = static_cast<float>(normal(RandomKey(parameter.index), static_cast<std::uint64_t>(i)));
      }
    }
  }
  float& at(std::size_t parameter, std::int64_t i) { return gradients->of(parameters[parameter]).data<float>()[i]; }
  double exact_norm() {
    double sum = 0;
    for (const Parameter& parameter : parameters) {
      if (parameter.frozen) continue;
      for (std::int64_t i = 0; i < parameter.value.size(); ++i) {
        sum += static_cast<double>(at(parameter.index, i)) * at(parameter.index, i);
      }
    }
    return std::sqrt(sum);
  }
};

TEST(GlobalNorm, IsTheRootOfTheSumOfAllSquares) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    Model model({0, 1, 7, 65, 1000, 100'003});
    EXPECT_NEAR(global_norm(model.parameters, *model.gradients).norm, model.exact_norm(), 1e-6 * model.exact_norm())
        << name;
  }
}

TEST(GlobalNorm, BitsDependOnNeitherThreadsNorTarget) {
  Model model({3, 65'537, 200'001});
  const double expected = global_norm(model.parameters, *model.gradients).norm;
  for (const std::string& name : targets()) {
    if (name == "sse4") continue;
    const TargetScope target_scope(name);
    for (const int limit : {1, 2, 3}) {
      const ThreadLimit scope(limit);
      EXPECT_EQ(global_norm(model.parameters, *model.gradients).norm, expected) << name << ", " << limit << " threads";
    }
  }
}

TEST(GlobalNorm, LeavesFrozenParametersOut) {
  Model model({10, 20});
  model.parameters[0].frozen = true;
  EXPECT_NEAR(global_norm(model.parameters, *model.gradients).norm, model.exact_norm(), 1e-6);
}

TEST(GlobalNorm, NamesTheParameterThatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Model model({10, 33, 20});
    model.at(1, 32) = bad;
    const GradientNorm found = global_norm(model.parameters, *model.gradients);
    EXPECT_FALSE(std::isfinite(found.norm));
    ASSERT_NE(found.not_finite, nullptr);
    EXPECT_EQ(found.not_finite->name, "weight 1");
  }
}

TEST(Clip, BelowTheLimitNothingChanges) {
  Model model({5, 40});
  const double norm = model.exact_norm();
  const float before = model.at(1, 39);
  EXPECT_NEAR(clip_global_norm(model.parameters, *model.gradients, norm * 1.01), norm, 1e-5);
  EXPECT_EQ(model.at(1, 39), before);
  EXPECT_EQ(clip_scale(0.5, 1), 1);
  EXPECT_EQ(clip_scale(100, 0), 1);  // no limit
}

TEST(Clip, AboveTheLimitTheNormBecomesTheLimitAndTheDirectionStays) {
  Model model({5, 40, 70'000});
  const double norm = model.exact_norm();
  const float before = model.at(0, 3);
  EXPECT_NEAR(clip_global_norm(model.parameters, *model.gradients, 2), norm, 1e-5 * norm);
  EXPECT_NEAR(model.exact_norm(), 2, 1e-5);
  EXPECT_NEAR(model.at(0, 3), before * 2 / norm, 1e-6);
}

TEST(Clip, ScalingOnTheWayIntoTheOptimizerGivesTheSameBits) {
  Model in_place({5, 40, 70'001}), fused({5, 40, 70'001});
  const double norm = clip_global_norm(in_place.parameters, *in_place.gradients, 0.1);
  Adam(in_place.parameters).step(*in_place.gradients, 0.01);
  Adam(fused.parameters).step(*fused.gradients, 0.01, clip_scale(norm, 0.1));
  for (std::size_t i = 0; i < 3; ++i) {
    const Tensor &a = in_place.parameters[i].value, &b = fused.parameters[i].value;
    EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0) << "parameter " << i;
  }
}

}  // namespace
}  // namespace regard
