// Positions: what is added to embeddings, and what distances cost.
#include "regard/nn/position.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "regard/context.h"
#include "regard/error.h"

namespace regard {
namespace {

Tensor numbers(const Shape& shape) { return normal(shape, 1, RandomKey(9)); }

TEST(Position, NoneHandsOnWhatItGets) {
  Parameters parameters;
  const Position position(Builder(parameters, RandomKey(1)), {.kind = PositionKind::kNone});
  Tape tape;
  const Var x = tape.constant(numbers({2, 3, 4}));
  EXPECT_EQ(position(x, 1000).value().raw(), x.value().raw());
  EXPECT_EQ(parameters.size(), 0u);
}

TEST(Position, SinusoidsFollowTheFormulaFromTheFirstPositionOn) {
  Parameters parameters;
  const Position position(Builder(parameters, RandomKey(1)), {.width = 5, .longest = 9});
  EXPECT_EQ(parameters.size(), 0u);
  Tape tape;
  const Tensor y = position(tape.constant(Tensor::zeros({2, 3, 5})), 6).value();
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const std::int64_t place = 6 + i / 5 % 3, first_of_pair = i % 5 / 2 * 2;
    const double angle = static_cast<double>(place) / std::pow(10000, static_cast<double>(first_of_pair) / 5);
    EXPECT_NEAR(y.data<float>()[i], i % 5 % 2 == 0 ? std::sin(angle) : std::cos(angle), 1e-6) << i;
  }
}

TEST(Position, SinusoidsHaveTheSameBitsHoweverManyThereAreYet) {
  Parameters parameters;
  const Position position(Builder(parameters, RandomKey(1)), {.width = 6, .longest = 1000});
  const Tensor rows = sinusoids(1000, 6);
  for (const DType type : {DType::kF32, DType::kF64}) {
    const Tensor expected = rows.to(type);
    Tape tape;
    for (const std::int64_t first : {3, 400, 0, 990}) {
      const Var x = tape.constant(Tensor::zeros({10, 6}, type));
      std::vector<std::int32_t> places(10);
      std::iota(places.begin(), places.end(), static_cast<std::int32_t>(first));
      const Tensor in_a_row = position(x, first).value(), one_by_one = position(x, places).value();
      const std::byte* from = expected.slice(0, first, first + 10).raw();
      EXPECT_EQ(std::memcmp(in_a_row.raw(), from, in_a_row.bytes()), 0) << first;
      EXPECT_EQ(std::memcmp(one_by_one.raw(), from, in_a_row.bytes()), 0) << first;
    }
  }
}

TEST(Position, MemoryIsTakenForSinusoidsThatAreUsedAndNoOthers) {
  const ContextScope scope({.memory_limit = 8 << 20});
  Parameters parameters;
  const Position position(Builder(parameters, RandomKey(1)), {.width = 1024, .longest = 1 << 20});
  Tape tape;
  EXPECT_NO_THROW(position(tape.constant(Tensor::zeros({3, 1024}))));
}

TEST(Position, SeveralThreadsMayUseItAtOnce) {
  Parameters parameters;
  const Position position(Builder(parameters, RandomKey(1)), {.width = 4, .longest = 2000});
  const Tensor expected = sinusoids(2000, 4).to(DType::kF32);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (std::int64_t first = 0; first < 2000; first += 10) {
        Tape tape;
        const Tensor y = position(tape.constant(Tensor::zeros({10, 4})), first).value();
        wrong += std::memcmp(y.raw(), expected.slice(0, first, first + 10).raw(), y.bytes()) != 0 ? 1 : 0;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Position, LearnedRowsAreAddedAndGetTheGradientOfTheirPlace) {
  Parameters parameters;
  const Position position(Builder(parameters, RandomKey(1)),
                          {.kind = PositionKind::kLearned, .width = 2, .longest = 4});
  const Parameter& table = parameters.find("table");
  ASSERT_EQ(table.value.shape(), (Shape{4, 2}));
  Gradients gradients(parameters);
  Tape tape(gradients);
  const Tensor x = numbers({3, 2, 2});
  const Var y = position(tape.constant(x), 1);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(y.value().data<float>()[i], x.data<float>()[i] + table.value.data<float>()[2 + i % 4]) << i;
  }
  tape.backward(sum(y));
  gradients.settle();
  for (std::int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(gradients.of(table).data<float>()[i], i >= 2 && i < 6 ? 3 : 0) << i;  // three items
  }
}

TEST(Position, RowsWithPlacesOfTheirOwnGiveTheBitsOfPlacesInARow) {
  for (const PositionKind kind : {PositionKind::kNone, PositionKind::kSinusoidal, PositionKind::kLearned}) {
    Parameters parameters;
    const Position position(Builder(parameters, RandomKey(1)), {.kind = kind, .width = 3, .longest = 7});
    Tape tape;
    const Tensor x = numbers({4, 3});
    const Tensor in_a_row = position(tape.constant(x), 2).value();
    const Tensor places = position(tape.constant(x), std::vector<std::int32_t>{2, 3, 4, 5}).value();
    EXPECT_EQ(std::memcmp(in_a_row.raw(), places.raw(), in_a_row.bytes()), 0);
    if (kind == PositionKind::kNone) continue;
    EXPECT_THROW(position(tape.constant(x), std::vector<std::int32_t>{2, 3, 4, 7}), Error);
    EXPECT_THROW(position(tape.constant(x), std::vector<std::int32_t>{2, 3, 4, -1}), Error);
    EXPECT_THROW(position(tape.constant(x), std::vector<std::int32_t>{2, 3, 4}), Error);
  }
}

TEST(Position, WhatDoesNotFitIsAnError) {
  Parameters parameters;
  const Builder builder(parameters, RandomKey(1));
  const Position position(builder, {.width = 4, .longest = 3});
  Tape tape;
  EXPECT_NO_THROW(position(tape.constant(numbers({1, 3, 4}))));
  EXPECT_NO_THROW(position(tape.constant(Tensor::zeros({0, 0, 4})), 3));
  EXPECT_THROW(position(tape.constant(numbers({1, 4, 4}))), Error);
  EXPECT_THROW(position(tape.constant(numbers({1, 3, 4})), 1), Error);
  EXPECT_THROW(position(tape.constant(numbers({1, 1, 4})), -1), Error);
  EXPECT_THROW(position(tape.constant(numbers({3, 5}))), Error);
  EXPECT_THROW(Position(builder, {.width = -1}), Error);
}

TEST(Rotary, ProductsDependOnTheDistanceAlone) {
  Tape tape;
  const Var q = tape.constant(numbers({1, 6}).to(DType::kF64)), k = tape.constant(numbers({1, 6}).to(DType::kF64));
  const auto product = [&](std::int64_t i, std::int64_t j) {
    return matmul(rotary(q, {.first = i}), rotary(k, {.first = j}), {.transpose_b = true}).value().item();
  };
  EXPECT_NEAR(product(5, 2), product(103, 100), 1e-12);
  EXPECT_NEAR(product(5, 2), product(70003, 70000), 1e-9);  // beyond what is kept
  EXPECT_GT(std::abs(product(5, 2) - product(5, 3)), 1e-3);
}

TEST(Rotary, PositionsOfTheirOwnGiveTheBitsOfPositionsInARow) {
  Tape tape;
  const Var x = tape.constant(numbers({2, 3, 8}));
  const Tensor in_row = rotary(x, {.first = 4}).value();
  const Tensor own = rotary(x, {.positions = Tensor::of({3}, {4, 5, 6})}).value();
  EXPECT_EQ(std::memcmp(in_row.raw(), own.raw(), own.bytes()), 0);
}

// The slopes that the code of the paper prints.

}  // namespace
}  // namespace regard
