#include "regard/nn/builder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "regard/context.h"
#include "support/error_of.h"

namespace regard {
namespace {

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

TEST(Builder, FirstValuesDependOnTheNameAndNotOnTheOrder) {
  Parameters one, other;
  const Builder first(one, RandomKey(7)), second(other, RandomKey(7));
  first.under("encoder").xavier("weight", {5, 8});
  first.under("decoder").xavier("weight", {5, 8});
  second.under("decoder").xavier("weight", {5, 8});
  second.xavier("another", {3});
  second.under("encoder").xavier("weight", {5, 8});
  EXPECT_TRUE(same(one.find("encoder.weight").value, other.find("encoder.weight").value));
  EXPECT_TRUE(same(one.find("decoder.weight").value, other.find("decoder.weight").value));
  EXPECT_FALSE(same(one.find("encoder.weight").value, one.find("decoder.weight").value));
}

TEST(Builder, AnotherSeedGivesOtherValues) {
  Parameters one, other;
  Builder(one, RandomKey(7)).xavier("weight", {5, 8});
  Builder(other, RandomKey(8)).xavier("weight", {5, 8});
  EXPECT_FALSE(same(one.find("weight").value, other.find("weight").value));
}

TEST(Builder, XavierFillsItsRangeEvenly) {
  const Tensor weight = xavier({200, 400}, RandomKey(1));
  const double limit = std::sqrt(6.0 / 600);
  double low = 0, high = 0, sum = 0, squares = 0;
  for (std::int64_t i = 0; i < weight.size(); ++i) {
    const double value = weight.data<float>()[i];
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(weight.size());
  EXPECT_GE(low, -limit);
  EXPECT_LE(high, limit);
  EXPECT_LT(low, -0.99 * limit);
  EXPECT_GT(high, 0.99 * limit);
  EXPECT_NEAR(sum / count, 0, 0.01 * limit);
  EXPECT_NEAR(squares / count, limit * limit / 3, 0.01 * limit * limit);
}

TEST(Builder, AGainMakesAllOfThemSmaller) {
  const Tensor whole = xavier({20, 30}, RandomKey(1)), half = xavier({20, 30}, RandomKey(1), 1, 0.5);
  for (std::int64_t i = 0; i < whole.size(); ++i) EXPECT_EQ(half.data<float>()[i], whole.data<float>()[i] / 2);
}

TEST(Builder, MatricesSideBySideAreCountedOneByOne) {
  const Tensor gates = xavier({10, 30}, RandomKey(1), 3);
  double high = 0;
  for (std::int64_t i = 0; i < gates.size(); ++i) high = std::max(high, std::fabs(double{gates.data<float>()[i]}));
  EXPECT_GT(high, std::sqrt(6.0 / 40));  // the limit if they were one matrix
  EXPECT_LE(high, std::sqrt(6.0 / 20));
}

TEST(Builder, NamesGroupAndTypeArriveAtTheParameter) {
  Parameters parameters;
  const Builder builder(parameters, RandomKey(1), DType::kF64);
  const Parameter& weight = builder.under("a").under("b").in_group("slow").zeros("bias", {4});
  EXPECT_EQ(weight.name, "a.b.bias");
  EXPECT_EQ(weight.group, "slow");
  EXPECT_EQ(weight.value.dtype(), DType::kF64);
}

TEST(Builder, BlankParametersHaveTheSameNamesShapesAndTypes) {
  Parameters drawn, blank;
  for (const Builder& builder : {Builder(drawn, RandomKey(1)), Builder::blank(blank)}) {
    const Builder inner = builder.under("a").in_group("slow");
    inner.xavier("xavier", {3, 4});
    inner.kaiming("kaiming", {3, 4});
    inner.orthogonal("orthogonal", {4, 4});
    inner.uniform("uniform", {5}, 1);
    inner.normal("normal", {0, 2}, 1);
    inner.constant("constant", {2, 2, 2}, 1);
    inner.zeros("zeros", {1});
  }
  ASSERT_EQ(blank.size(), drawn.size());
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    EXPECT_EQ(blank[i].name, drawn[i].name);
    EXPECT_EQ(blank[i].group, drawn[i].group);
    EXPECT_EQ(blank[i].value.shape(), drawn[i].value.shape());
    EXPECT_EQ(blank[i].value.dtype(), drawn[i].value.dtype());
  }
}

TEST(Builder, WhatDoesNotFitIsRefusedBeforeThereIsMemoryForIt) {
  const ContextScope scope({.memory_limit = 1 << 20});
  Parameters parameters;
  std::string asked;
  const Builder builder = Builder::blank(parameters, DType::kF32, [&](const std::string& name, const Shape& shape) {
    asked += text(name, ' ', shape);
    check(shape.size() < 100, "too large");
  });
  builder.under("a").zeros("bias", {4});
  EXPECT_EQ(error_of([&] { builder.under("a").xavier("weight", {1 << 20, 1 << 20}); }), "too large");
  EXPECT_EQ(asked, "a.bias [4]a.weight [1048576, 1048576]");
  EXPECT_EQ(parameters.size(), 1u);
}

}  // namespace
}  // namespace regard
