#include "kernels/arg_max.h"

#include <gtest/gtest.h>

#include <limits>

#include "kernels/guarded.h"

namespace regard {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

void expect_places(const std::vector<float>& x, std::size_t count, std::size_t width) {
  std::vector<std::int32_t> expected(count);
  reference::arg_max(rows(x.data(), count, width), expected.data());
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    std::vector<std::int32_t> got(count, -1);
    arg_max(rows(x.data(), count, width), got.data());
    EXPECT_EQ(got, expected) << count << " × " << width << " on " << name;
  }
}

TEST(ArgMax, MatchesTheReferenceOnEveryTarget) {
  for (const std::size_t width : {1u, 2u, 7u, 15u, 16u, 17u, 31u, 33u, 63u, 65u, 1000u}) {
    expect_places(random_floats(61 * width, width), 61, width);
    std::vector<float> coarse = random_floats(61 * width, width + 1, -2, 2);  // many equal ones
    for (float& x : coarse) x = std::round(x);
    expect_places(coarse, 61, width);
  }
  expect_places({}, 0, 5);
}

TEST(ArgMax, TakesTheFirstOfEqualsAndOfInfinities) {
  for (const float value : {0.0f, 3.0f, kInfinity, -kInfinity}) {
    std::int32_t place = -1;
    const std::vector<float> x(40, value);
    arg_max(rows(x.data(), 1, x.size()), &place);
    EXPECT_EQ(place, 0) << value;
  }
}

TEST(ArgMax, NotANumberIsLargerThanEverything) {
  for (std::size_t at = 0; at < 37; ++at) {
    std::vector<float> x = random_floats(37, 1);
    x[3] = kInfinity;
    x[at] = x[36] = kNan;
    std::int32_t place = -1;
    for (const std::string& name : targets()) {
      const TargetScope scope(name);
      arg_max(rows(static_cast<const float*>(x.data()), 1, x.size()), &place);
      EXPECT_EQ(place, static_cast<std::int32_t>(at)) << name;
    }
  }
}

}  // namespace
}  // namespace regard
