// Gradients of tables that are looked up: only the rows that were used are written, and nothing else shows it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/elementwise.h"
#include "regard/autograd/ops.h"
#include "regard/nn/builder.h"
#include "regard/train/clip.h"
#include "regard/train/optimizer.h"
#include "regard/train/trainer.h"

namespace regard {
namespace {

constexpr std::int64_t kRows = 211, kWidth = 67;

Tensor ids_of(const std::vector<std::int32_t>& ids) {
  Tensor result = Tensor::empty({static_cast<std::int64_t>(ids.size())}, DType::kI32);
  std::copy(ids.begin(), ids.end(), result.data<std::int32_t>());
  return result;
}

std::vector<std::int32_t> batch(std::size_t step) {  // some rows twice, other rows every step
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < 9; ++i) ids.push_back(static_cast<std::int32_t>((step * 37 + i * i * 11) % kRows));
  return ids;
}

// Whether every row that is not in `used` is zeros, to the bit.
bool others_are_zero(const Tensor& gradient, const std::vector<std::int32_t>& used) {
  for (std::int64_t row = 0; row < gradient[0]; ++row) {
    if (std::find(used.begin(), used.end(), row) != used.end()) continue;
    for (std::int64_t c = 0; c < gradient[1]; ++c) {
      if (gradient.data<float>()[row * gradient[1] + c] != 0) return false;
    }
  }
  return true;
}

TEST(SparseGradient, KnowsItsRowsAndLeavesTheOthersZero) {
  Parameters parameters;
  const Parameter& table = parameters.add("table", uniform({kRows, kWidth}, 1, RandomKey(1)));
  Gradients gradients(parameters);
  Tape tape(gradients);
  for (std::size_t step = 0; step < 5; ++step) {
    gradients.zero();
    tape.backward(sum(tanh(embedding(tape.use(table), ids_of(batch(step))))));
    tape.backward(sum(embedding(tape.use(table), ids_of({7}))));  // adds another one
    tape.reset();
    gradients.settle();
    std::vector<std::int32_t> used = batch(step);
    used.push_back(7);
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    ASSERT_TRUE(gradients.rows(table).has_value());
    EXPECT_EQ(std::vector<std::int32_t>(gradients.rows(table)->begin(), gradients.rows(table)->end()), used);
    EXPECT_TRUE(others_are_zero(gradients.of(table), used)) << "step " << step;
    EXPECT_FALSE(others_are_zero(gradients.of(table), {}));
  }
  gradients.zero();  // nothing is looked up in this step
  gradients.settle();
  EXPECT_TRUE(others_are_zero(gradients.of(table), {}));
  EXPECT_TRUE(gradients.rows(table)->empty());
}

// The same model twice; one of them also uses its table in a way that adds a gradient of zeros to all of it.
TEST(SparseGradient, TrainsWithTheBitsOfADenseOne) {
  for (const bool with_adam : {true, false}) {
    std::vector<Tensor> tables;
    std::vector<double> norms[2];
    for (const bool dense : {false, true}) {
      Parameters parameters;
      Parameter& table = parameters.add("table", uniform({kRows, kWidth}, 1, RandomKey(1)));
      Parameter& weight = parameters.add("weight", uniform({kWidth, 5}, 1, RandomKey(2)));
      Adam adam(parameters, {.groups = {{"", {.decay = 0.01}}}});
      Sgd sgd(parameters, {.momentum = 0.9});
      Optimizer& optimizer = with_adam ? static_cast<Optimizer&>(adam) : sgd;
      Trainer trainer(parameters, optimizer, {.clip = 0.5});
      for (std::size_t step = 0; step < 6; ++step) {
        const StepResult result = trainer.step(0.05, [&](Tape& tape) {
          const Var used = tape.use(table);
          Var loss = sum(tanh(matmul(embedding(used, ids_of(batch(step))), tape.use(weight))));
          if (dense) loss = loss + number(tape, 0) * sum(used);
          return loss;
        });
        EXPECT_EQ(trainer.gradients().rows(table).has_value(), !dense);
        norms[dense ? 1 : 0].push_back(result.norm);
      }
      tables.push_back(table.value.clone());
    }
    EXPECT_EQ(std::memcmp(tables[0].raw(), tables[1].raw(), tables[0].bytes()), 0) << (with_adam ? "adam" : "sgd");
    EXPECT_EQ(norms[0], norms[1]);
  }
}

TEST(SparseGradient, OfATiedTableIsDenseAndTheSumOfBothUses) {
  Parameters parameters;
  const Parameter& table = parameters.add("table", uniform({kRows, kWidth}, 1, RandomKey(1)));
  const Tensor ids = ids_of(batch(1)), targets = ids_of(batch(2));
  const auto gradient = [&](bool looked_up, bool read_out) {
    Gradients gradients(parameters);
    gradients.zero();
    Tape tape(gradients);
    const Var used = tape.use(table), fixed = tape.constant(table.value);
    const Var x = embedding(looked_up ? used : fixed, ids);
    tape.backward(linear_cross_entropy(x, read_out ? used : fixed, {}, targets, {.transposed = true}).loss);
    gradients.settle();
    EXPECT_EQ(gradients.rows(table).has_value(), !read_out);
    return gradients.of(table).clone();
  };
  const Tensor both = gradient(true, true), first = gradient(true, false), second = gradient(false, true);
  for (std::int64_t i = 0; i < both.size(); ++i) {
    EXPECT_NEAR(both.data<float>()[i], first.data<float>()[i] + second.data<float>()[i], 1e-5);
  }
}

TEST(SparseGradient, IsDenseForAStepInWhichTheWholeTableIsUsed) {
  Parameters parameters;
  const Parameter& table = parameters.add("table", uniform({kRows, kWidth}, 1, RandomKey(1)));
  Gradients gradients(parameters);
  Tape tape(gradients);
  for (std::size_t step = 0; step < 6; ++step) {
    gradients.zero();
    if (step % 3 != 2) tape.backward(sum(embedding(tape.use(table), ids_of(batch(step)))));
    if (step % 3 != 0) tape.backward(sum(tape.use(table)));
    tape.reset();
    gradients.settle();
    EXPECT_EQ(gradients.rows(table).has_value(), step % 3 == 0) << "step " << step;
    const std::vector<std::int32_t> ids = step % 3 == 2 ? std::vector<std::int32_t>() : batch(step);
    for (std::int32_t row = 0; row < kRows; ++row) {
      const auto looked_up = std::count(ids.begin(), ids.end(), row);
      const float expected = static_cast<float>(looked_up) + (step % 3 == 0 ? 0.0f : 1.0f);
      ASSERT_EQ(gradients.of(table).data<float>()[row * kWidth + 5], expected) << "step " << step << ", row " << row;
    }
  }
}

TEST(SparseGradient, WhatAHookWritesElsewhereIsGoneInTheNextStep) {
  Parameters parameters;
  Parameter& table = parameters.add("table", uniform({kRows, kWidth}, 1, RandomKey(1)));
  Sgd optimizer(parameters);
  bool write = true;
  Trainer trainer(parameters, optimizer, {.reduce = [&](Gradients& gradients, StepTotals&) {
                    EXPECT_FALSE(gradients.rows(table).has_value());
                    if (write)
                      gradients.of(table).data<float>()[200 * kWidth] = 3;  // as if another process had used it
                  }});
  const auto look_up = [&](std::int32_t id) {
    return trainer.step(0.1, [&](Tape& tape) { return sum(embedding(tape.use(table), ids_of({id}))); }).norm;
  };
  EXPECT_EQ(look_up(3), std::sqrt(9.0 + kWidth));
  write = false;
  EXPECT_EQ(look_up(4), std::sqrt(double{kWidth}));
}

TEST(SparseGradient, NormLooksAtTheRowsAloneAndHasTheSameBits) {
  for (const std::size_t width : {1u, 3u, 64u, 1000u, 4096u, 5000u, 9001u}) {
    const std::size_t count = 41;
    std::vector<float> x(count * width, 0);
    const std::vector<std::int32_t> rows = {0, 3, 4, 17, 40};
    for (const std::int32_t row : rows) {
      for (std::size_t c = 0; c < width; ++c) {
        x[static_cast<std::size_t>(row) * width + c] =
            uniform(RandomKey(3), static_cast<std::uint64_t>(row) * width + c);
      }
    }
    const float* data = x.data();
    EXPECT_EQ(squared_norm(data, x.size(), rows, count), squared_norm(data, x.size())) << width;
    EXPECT_EQ(squared_norm(data, x.size(), std::vector<std::int32_t>(), count), 0) << width;
  }
}

}  // namespace
}  // namespace regard
