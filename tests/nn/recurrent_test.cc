#include "regard/nn/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "regard/error.h"
#include "regard/nn/attention_layer.h"
#include "regard/nn/embedding.h"
#include "regard/nn/linear.h"
#include "regard/random.h"

namespace regard {
namespace {

Tensor numbers(const Shape& shape, std::uint64_t seed, DType type = DType::kF32) {
  return uniform(shape, 1, RandomKey(seed)).to(type);
}

// The published equations in double, one sequence, one step after another; backwards if asked.
std::vector<std::vector<double>> plain_gru(const Parameters& all, const std::vector<std::vector<double>>& inputs,
                                           bool backward) {
  const auto find = [&](const char* name) -> const Tensor& { return const_cast<Parameters&>(all).find(name).value; };
  const Tensor &w = find("input.weight"), &wb = find("input.bias"), &u = find("recurrent.weight"),
               &ub = find("recurrent.bias");
  const auto width = static_cast<std::size_t>(u[0]);
  const auto value = [](const Tensor& x, std::size_t i) { return x.data<double>()[i]; };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  std::vector<std::vector<double>> states(inputs.size());
  std::vector<double> h(width, 0);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::size_t t = backward ? inputs.size() - 1 - i : i;
    std::vector<double> x(3 * width), g(3 * width), next(width);
    for (std::size_t c = 0; c < 3 * width; ++c) {
      x[c] = value(wb, c);
      g[c] = value(ub, c);
      for (std::size_t k = 0; k < inputs[t].size(); ++k) x[c] += inputs[t][k] * value(w, k * 3 * width + c);
      for (std::size_t k = 0; k < width; ++k) g[c] += h[k] * value(u, k * 3 * width + c);
    }
    for (std::size_t c = 0; c < width; ++c) {
      const double r = sigmoid(x[c] + g[c]), z = sigmoid(x[width + c] + g[width + c]);
      const double n = std::tanh(x[2 * width + c] + r * g[2 * width + c]);
      next[c] = (1 - z) * n + z * h[c];
    }
    states[t] = h = next;
  }
  return states;
}

TEST(Gru, FollowsItsEquationsInBothDirectionsForEveryLength) {
  constexpr std::int64_t kTime = 5, kBatch = 4, kInputs = 3, kWidth = 6;
  const std::vector<std::int32_t> lengths = {5, 3, 3, 1};
  Parameters parameters;
  const RecurrentLayer gru(Builder(parameters, RandomKey(3), DType::kF64), Cell::kGru, kInputs, kWidth);
  for (Parameter& parameter : parameters) {  // biases start as zeros, which would hide a mistake
    parameter.value.copy_from(numbers(parameter.value.shape(), parameter.index + 10, DType::kF64));
  }
  const Tensor x = numbers({kTime, kBatch, kInputs}, 1, DType::kF64);
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    Tape tape;
    const Recurrence result = gru(tape.constant(x), lengths, direction);
    ASSERT_EQ(result.states.shape(), (Shape{kTime, kBatch, kWidth}));
    for (std::int64_t row = 0; row < kBatch; ++row) {
      const std::int64_t length = lengths[static_cast<std::size_t>(row)];
      std::vector<std::vector<double>> inputs;
      for (std::int64_t t = 0; t < length; ++t) {
        const double* from = x.data<double>() + (t * kBatch + row) * kInputs;
        inputs.emplace_back(from, from + kInputs);
      }
      const auto expected = plain_gru(parameters, inputs, direction == Direction::kBackward);
      for (std::int64_t t = 0; t < kTime; ++t) {
        for (std::int64_t c = 0; c < kWidth; ++c) {
          const double got = result.states.value().data<double>()[(t * kBatch + row) * kWidth + c];
          const auto at = static_cast<std::size_t>(t), column = static_cast<std::size_t>(c);
          ASSERT_NEAR(got, t < length ? expected[at][column] : 0, 1e-12) << "row " << row << ", time " << t;
        }
      }
      const auto& last = direction == Direction::kForward ? expected.back() : expected.front();
      for (std::int64_t c = 0; c < kWidth; ++c) {
        ASSERT_NEAR(result.last.value().data<double>()[row * kWidth + c], last[static_cast<std::size_t>(c)], 1e-12);
      }
    }
  }
}

TEST(Gru, WhatStandsInThePaddingDoesNotMatter) {
  Parameters parameters;
  const RecurrentLayer gru(Builder(parameters, RandomKey(3)), Cell::kGru, 3, 17);
  const std::vector<std::int32_t> lengths = {4, 2};
  Tensor x = numbers({4, 2, 3}, 1), poisoned = x.clone();
  for (std::int64_t t = 2; t < 4; ++t) {
    for (std::int64_t c = 0; c < 3; ++c) poisoned.data<float>()[(t * 2 + 1) * 3 + c] = std::nanf("");
  }
  for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
    Tape tape;
    const Tensor clean = gru(tape.constant(x), lengths, direction).states.value();
    const Tensor other = gru(tape.constant(poisoned), lengths, direction).states.value();
    EXPECT_EQ(std::memcmp(clean.raw(), other.raw(), clean.bytes()), 0);
  }
}

TEST(Gru, EmptyBatchesAndSequencesAreFine) {
  Parameters parameters;
  const RecurrentLayer gru(Builder(parameters, RandomKey(3)), Cell::kGru, 3, 4);
  Tape tape;
  const std::vector<std::int32_t> none, zero = {0, 0};
  EXPECT_EQ(gru(tape.constant(Tensor::zeros({5, 0, 3})), none, Direction::kForward).states.shape(), (Shape{5, 0, 4}));
  EXPECT_EQ(gru(tape.constant(Tensor::zeros({0, 2, 3})), zero, Direction::kForward).states.shape(), (Shape{0, 2, 4}));
  const Recurrence nothing = gru(tape.constant(numbers({2, 2, 3}, 1)), zero, Direction::kBackward);
  for (std::int64_t i = 0; i < nothing.last.value().size(); ++i) EXPECT_EQ(nothing.last.value().data<float>()[i], 0);
}

TEST(Gru, UnsortedOrImpossibleLengthsAreErrors) {
  Parameters parameters;
  const RecurrentLayer gru(Builder(parameters, RandomKey(3)), Cell::kGru, 3, 4);
  Tape tape;
  const Var x = tape.constant(numbers({5, 2, 3}, 1));
  for (const std::vector<std::int32_t>& lengths : {std::vector<std::int32_t>{2, 5}, {6, 1}, {3, -1}, {3}}) {
    EXPECT_THROW(gru(x, lengths, Direction::kForward), Error);
  }
}

// The rows of one example: [time, directions·width] of states [time, batch, directions·width].
std::vector<float> of_row(const Tensor& states, std::int64_t row, std::int64_t time) {
  std::vector<float> all;
  for (std::int64_t t = 0; t < time; ++t) {
    const float* from = states.data<float>() + (t * states[1] + row) * states[2];
    all.insert(all.end(), from, from + states[2]);
  }
  return all;
}

TEST(Recurrent, DropoutDependsOnTheExampleNotOnItsPlaceNorOnPadding) {
  const std::vector<std::int32_t> lengths = {4, 3, 2};
  const std::vector<std::uint64_t> ids = {70, 5, 9};
  const RandomKey key(11);
  for (const Cell cell : {Cell::kTanh, Cell::kGru, Cell::kLstm}) {
    Parameters parameters;
    const Recurrent stack(
        Builder(parameters, RandomKey(3)),
        {.cell = cell, .inputs = 3, .width = 9, .layers = 3, .both_directions = true, .dropout = 0.5f});
    const Tensor x = numbers({4, 3, 3}, 1);
    Tape tape;
    const Tensor together = stack(tape.constant(x), lengths, {.initial = {}, .key = &key, .ids = ids}).states.value();
    const Tensor without = stack(tape.constant(x), lengths).states.value();
    EXPECT_NE(of_row(together, 1, 3), of_row(without, 1, 3)) << "nothing was dropped";
    Tensor alone = Tensor::zeros({6, 1, 3});
    for (std::int64_t t = 0; t < 3; ++t) {
      for (std::int64_t c = 0; c < 3; ++c) alone.data<float>()[t * 3 + c] = x.data<float>()[(t * 3 + 1) * 3 + c];
    }
    const std::vector<std::int32_t> length = {3};
    const std::vector<std::uint64_t> id = {5}, other = {6};
    const auto run = [&](const std::vector<std::uint64_t>& which) {
      return of_row(stack(tape.constant(alone), length, {.initial = {}, .key = &key, .ids = which}).states.value(), 0,
                    3);
    };
    EXPECT_EQ(run(id), of_row(together, 1, 3));
    EXPECT_NE(run(other), of_row(together, 1, 3));
  }
}

TEST(Recurrent, IsItsLayersOneAfterAnother) {
  const std::vector<std::int32_t> lengths = {4, 2};
  Parameters parameters;
  const Recurrent lstm(Builder(parameters, RandomKey(3)),
                       {.cell = Cell::kLstm, .inputs = 3, .width = 5, .layers = 2, .both_directions = true});
  EXPECT_EQ(parameters.find("layer1.backward.input.weight").value.shape(), (Shape{10, 20}));
  Tape tape;
  const Var x = tape.constant(numbers({4, 2, 3}, 1));
  const Recurrence all = lstm(x, lengths);
  EXPECT_EQ(all.states.shape(), (Shape{4, 2, 10}));
  EXPECT_EQ(all.last.shape(), (Shape{4, 2, 5}));
  EXPECT_EQ(all.memory.shape(), (Shape{4, 2, 5}));
  // A forward direction ends at the end of a sequence, a backward one at its beginning.
  const float *states = all.states.value().data<float>(), *last = all.last.value().data<float>();
  for (std::int64_t c = 0; c < 5; ++c) {
    EXPECT_EQ(last[(2 * 2 + 0) * 5 + c], states[(3 * 2 + 0) * 10 + c]);
    EXPECT_EQ(last[(2 * 2 + 1) * 5 + c], states[(1 * 2 + 1) * 10 + c]);
    EXPECT_EQ(last[(3 * 2 + 1) * 5 + c], states[1 * 10 + 5 + c]);
  }
  EXPECT_THROW(lstm(x, lengths, {.initial = {tape.constant(numbers({2, 2, 5}, 1)), {}}, .ids = {}}), Error);
}

TEST(Recurrent, AStepIsAStepOfTheSequence) {
  for (const Cell cell : {Cell::kTanh, Cell::kGru, Cell::kLstm}) {
    Parameters parameters;
    const RecurrentLayer layer(Builder(parameters, RandomKey(3)), cell, 3, 17);
    Tape tape;
    const Var x = tape.constant(numbers({1, 2, 3}, 1));
    const Var h = tape.constant(numbers({2, 17}, 2)), c = tape.constant(numbers({2, 17}, 3));
    const RecurrentState before = {h, cell == Cell::kLstm ? c : Var()};
    const Recurrence all = layer(x, std::vector<std::int32_t>{1, 1}, Direction::kForward, before);
    const RecurrentState one = layer.step(reshape(layer.project(x), {2, layer.weights(tape).input[1]}), before);
    EXPECT_EQ(std::memcmp(one.state.value().raw(), all.last.value().raw(), one.state.value().bytes()), 0);
    if (cell != Cell::kLstm) continue;
    EXPECT_EQ(std::memcmp(one.memory.value().raw(), all.memory.value().raw(), one.memory.value().bytes()), 0);
  }
}

TEST(Linear, IsAProductAndABias) {
  Parameters parameters;
  const Linear linear(Builder(parameters, RandomKey(3)), 2, 3);
  parameters.find("weight").value.copy_from(Tensor::of({2, 3}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}));
  parameters.find("bias").value.copy_from(Tensor::of({3}, {10.0f, 20.0f, 30.0f}));
  Tape tape;
  const Tensor y = linear(tape.constant(Tensor::of({1, 1, 2}, {1.0f, -1.0f}))).value();
  EXPECT_EQ(y.shape(), (Shape{1, 1, 3}));
  EXPECT_EQ(y.data<float>()[0], 7);
  EXPECT_EQ(y.data<float>()[1], 17);
  EXPECT_EQ(y.data<float>()[2], 27);
}

TEST(Embedding, TakesTheRowsThatAreAskedFor) {
  Parameters parameters;
  const Embedding words(Builder(parameters, RandomKey(3)), 4, 2);
  parameters.find("table").value.copy_from(Tensor::of({4, 2}, {0.0f, 1.0f, 10.0f, 11.0f, 20.0f, 21.0f, 30.0f, 31.0f}));
  Tape tape;
  const Tensor y = words(tape, Tensor::of({2, 1}, {3, 1})).value();
  EXPECT_EQ(y.shape(), (Shape{2, 1, 2}));
  EXPECT_EQ(y.data<float>()[1], 31);
  EXPECT_EQ(y.data<float>()[2], 10);
}

// c = Σ_j p_j v_j with p = softmax(θᵀ tanh(q·W_q + k_j·W_k + b)) over the visible keys, in double.
TEST(AttentionLayer, ReadsTheWeightedMeanOfWhatIsVisible) {
  constexpr std::int64_t kBatch = 2, kKeys = 5, kQuery = 3, kKey = 4, kHidden = 6;
  const std::vector<std::int32_t> lengths = {5, 2};
  Parameters parameters;
  const AttentionLayer attention(Builder(parameters, RandomKey(3), DType::kF64), "additive | lengths",
                                 {.query_token = kQuery, .key_token = kKey, .hidden = kHidden});
  const Tensor query = numbers({kBatch, 1, 1, kQuery}, 1, DType::kF64),
               keys = numbers({kBatch, 1, kKeys, kKey}, 2, DType::kF64);
  parameters.find("bias").value.copy_from(numbers({kHidden}, 3, DType::kF64));
  Tape tape;
  const Var annotations = tape.constant(keys);
  const Tensor got = attention(tape.constant(query), {}, annotations,
                               {.lengths = lengths, .prepared_keys = attention.prepare_keys(annotations)})
                         .context.value();
  const double *w_q = parameters.find("query").value.data<double>(), *w_k = parameters.find("key").value.data<double>(),
               *theta = parameters.find("theta").value.data<double>(),
               *bias = parameters.find("bias").value.data<double>();
  for (std::int64_t b = 0; b < kBatch; ++b) {
    std::vector<double> weights;
    double total = 0;
    for (std::int64_t j = 0; j < lengths[static_cast<std::size_t>(b)]; ++j) {
      double score = 0;
      for (std::int64_t h = 0; h < kHidden; ++h) {
        double inner = bias[h];
        for (std::int64_t c = 0; c < kQuery; ++c) inner += query.data<double>()[b * kQuery + c] * w_q[c * kHidden + h];
        for (std::int64_t c = 0; c < kKey; ++c)
          inner += keys.data<double>()[(b * kKeys + j) * kKey + c] * w_k[c * kHidden + h];
        score += theta[h] * std::tanh(inner);
      }
      weights.push_back(std::exp(score));
      total += weights.back();
    }
    for (std::int64_t c = 0; c < kKey; ++c) {
      double expected = 0;
      for (std::size_t j = 0; j < weights.size(); ++j) {
        expected += weights[j] / total * keys.data<double>()[(b * kKeys + static_cast<std::int64_t>(j)) * kKey + c];
      }
      EXPECT_NEAR(got.data<double>()[b * kKey + c], expected, 1e-12) << "item " << b << ", column " << c;
    }
  }
}

}  // namespace
}  // namespace regard
