// What the table of operations does not see: ids, ties, parts, and what masks keep out.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "regard/autograd/ops.h"
#include "regard/error.h"

namespace regard {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<std::int32_t> ids_of(const Tensor& x) {
  return {x.data<std::int32_t>(), x.data<std::int32_t>() + x.size()};
}
std::vector<float> values_of(const Tensor& x) { return {x.data<float>(), x.data<float>() + x.size()}; }

TEST(TopK, GivesPlacesLargestFirstAndTheFirstOfEquals) {
  Tape tape;
  const Var x = tape.variable(Tensor::of({2, 5}, {1.0f, 3.0f, 2.0f, 3.0f, 0.0f, 7.0f, 7.0f, kNan, 7.0f, 9.0f}));
  const Chosen top = top_k(x, 3);
  EXPECT_EQ(ids_of(top.ids), (std::vector<std::int32_t>{1, 3, 2, 2, 4, 0}));
  EXPECT_EQ(top.values.value().data<float>()[2], 2);
  EXPECT_EQ(ids_of(arg_max(x)), (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(ids_of(max(x).ids), ids_of(arg_max(x)));
}

TEST(TopK, OfEverythingIsAStableSort) {
  Tape tape;
  Tensor x = Tensor::empty({1, 200});
  for (std::int64_t i = 0; i < 200; ++i) x.data<float>()[i] = static_cast<float>(i * 37 % 11);
  const std::vector<std::int32_t> order = ids_of(top_k(tape.constant(x), 200).ids);
  for (std::size_t i = 1; i < order.size(); ++i) {
    const float before = x.data<float>()[order[i - 1]], now = x.data<float>()[order[i]];
    EXPECT_TRUE(before > now || (before == now && order[i - 1] < order[i])) << i;
  }
}

TEST(MaskedFill, WhatIsFilledOverNeverComesThroughNeitherWay) {
  Tape tape;
  const Var x = tape.variable(Tensor::of({3}, {kNan, 2.0f, kNan}));
  const Var y = masked_fill(x, Tensor::of<std::int8_t>({3}, {0, 1, 0}), -1);
  EXPECT_EQ(values_of(y.value()), (std::vector<float>{-1, 2, -1}));
  tape.backward(y, Tensor::of({3}, {kNan, 5.0f, kNan}));
  EXPECT_EQ(values_of(tape.gradient(x)), (std::vector<float>{0, 5, 0}));
}

TEST(Split, GivesPartsThatConcatPutsTogetherAgain) {
  Tape tape;
  Tensor numbers = Tensor::empty({2, 6});
  for (std::int64_t i = 0; i < 12; ++i) numbers.data<float>()[i] = static_cast<float>(i);
  const Var x = tape.variable(numbers);
  const std::int64_t sizes[] = {1, 0, 3, 2};
  const std::span<const Var> parts = split(x, 1, sizes);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[1].shape(), (Shape{2, 0}));
  EXPECT_EQ(values_of(parts[2].value()), (std::vector<float>{1, 2, 3, 7, 8, 9}));
  EXPECT_EQ(values_of(concat(parts, 1).value()), values_of(numbers));
  tape.backward(concat({parts[3], parts[0]}, 1), Tensor::of({2, 3}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}));
  EXPECT_EQ(values_of(tape.gradient(x)), (std::vector<float>{3, 0, 0, 0, 1, 2, 6, 0, 0, 0, 4, 5}));
  EXPECT_EQ(split(x, 1, 3)[2].shape(), (Shape{2, 2}));
}

TEST(Split, PartsThatDoNotAddUpAreErrors) {
  Tape tape;
  const Var x = tape.variable(Tensor::zeros({2, 6}));
  const std::int64_t few[] = {1, 2}, negative[] = {7, -1};
  EXPECT_THROW(split(x, 1, few), Error);
  EXPECT_THROW(split(x, 1, negative), Error);
  EXPECT_THROW(split(x, 1, 4), Error);
  EXPECT_THROW(split(x, 1, 0), Error);
}

}  // namespace
}  // namespace regard
