#include "models/seq2seq.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "base/pool.h"
#include "kernels/target.h"
#include "regard/random.h"
#include "regard/train/trainer.h"
#include "train/fingerprint.h"

namespace regard {
namespace {

constexpr Seq2seqSettings kSmall = {
    .source_words = 11, .target_words = 9, .embedding = 8, .hidden = 19, .attention = 17, .readout = 13};

SequencePair pair_of(std::uint64_t id, std::uint32_t source, std::uint32_t target) {
  SequencePair pair{.id = id};
  const RandomKey key = RandomKey(5).at(id);
  for (std::uint32_t i = 0; i < source; ++i) pair.source.push_back(static_cast<std::int32_t>(random_below(key, i, 11)));
  for (std::uint32_t i = 0; i < target; ++i) {
    pair.target.push_back(static_cast<std::int32_t>(2 + random_below(key, 100 + i, 7)));
  }
  return pair;
}

std::vector<SequencePair> some_pairs() {
  return {pair_of(0, 3, 4), pair_of(1, 7, 2), pair_of(2, 1, 1), pair_of(3, 5, 6), pair_of(4, 7, 3), pair_of(5, 2, 0)};
}

// The log-probabilities of the targets of one pair of the batch, the end included.
std::vector<float> log_probabilities(const Seq2seq& model, const Batch& batch, std::size_t pair) {
  Tape tape;
  const Tensor all = model.loss(tape, batch).log_probabilities;
  std::vector<float> result;
  for (std::int64_t row = 0; row < batch.size(); ++row) {
    if (batch.order[static_cast<std::size_t>(row)] != pair) continue;
    for (std::int64_t t = 0; t < batch.targets[0]; ++t) {
      const std::int64_t at = t * batch.size() + row;
      if (batch.target_weights.data<float>()[at] != 0) result.push_back(all.data<float>()[at]);
    }
  }
  return result;
}

TEST(Batch, IsSortedPaddedAndKnowsWhereEachPairWent) {
  const std::vector<SequencePair> pairs = {{.id = 7, .source = {3}, .target = {4, 5}},
                                           {.id = 8, .source = {6, 7}, .target = {8}}};
  const Batch batch = make_batch(pairs, {.begin = 0, .end = 1});
  EXPECT_EQ(batch.lengths, (std::vector<std::int32_t>{2, 1}));
  EXPECT_EQ(batch.ids, (std::vector<std::uint64_t>{8, 7}));
  EXPECT_EQ(batch.order, (std::vector<std::size_t>{1, 0}));
  EXPECT_EQ(batch.target_count, 5);
  const auto list = [](const Tensor& x) {
    const std::int32_t* data = x.data<std::int32_t>();
    return std::vector<std::int32_t>(data, data + x.size());
  };
  EXPECT_EQ(list(batch.source), (std::vector<std::int32_t>{6, 3, 7, 0}));
  EXPECT_EQ(list(batch.previous), (std::vector<std::int32_t>{0, 0, 8, 4, 0, 5}));
  EXPECT_EQ(list(batch.targets), (std::vector<std::int32_t>{8, 4, 1, 5, 0, 1}));
}

TEST(Seq2seq, GradientMatchesFiniteDifferencesInDouble) {
  Parameters parameters;
  const Seq2seq model(
      Builder(parameters, RandomKey(3), DType::kF64),
      {.source_words = 11, .target_words = 9, .embedding = 3, .hidden = 4, .attention = 5, .readout = 3});
  const Batch batch = make_batch(some_pairs(), {});
  Gradients gradients(parameters);
  const auto loss = [&] {
    Tape tape;
    return model.loss(tape, batch).loss.value().item();
  };
  {
    Tape tape(gradients);
    tape.backward(model.loss(tape, batch).loss);
    gradients.settle();
  }
  int moving = 0;
  for (Parameter& parameter : parameters) {
    double* values = parameter.value.data<double>();
    const double* gradient = gradients.of(parameter).data<double>();
    const std::int64_t stride = std::max<std::int64_t>(1, parameter.value.size() / 7);
    for (std::int64_t i = 0; i < parameter.value.size(); i += stride) {
      constexpr double kStep = 1e-5;
      const double before = values[i];
      values[i] = before + kStep;
      const double above = loss();
      values[i] = before - kStep;
      const double below = loss();
      values[i] = before;
      const double expected = (above - below) / (2 * kStep);
      ASSERT_NEAR(gradient[i], expected, 1e-7 * std::max(1.0, std::fabs(expected)))
          << parameter.name << ", element " << i;
      moving += std::fabs(expected) > 1e-5 ? 1 : 0;
    }
  }
  EXPECT_GT(moving, 60);  // there was a gradient to find
}

// tests/golden/seq2seq.txt: loss, log-probabilities and gradients that PyTorch finds for the same weights.
void expect_golden(DType type, double tolerance, double gradient_tolerance) {
  Parameters parameters;
  const Seq2seq model(
      Builder(parameters, RandomKey(3), type),
      {.source_words = 11, .target_words = 9, .embedding = 5, .hidden = 6, .attention = 7, .readout = 4});
  std::map<std::string, Parameter*> sorted;
  for (Parameter& parameter : parameters) sorted[parameter.name] = &parameter;
  int number = 0;
  for (const auto& [name, parameter] : sorted) {
    Tensor values = Tensor::empty(parameter->value.shape(), DType::kF64);
    for (std::int64_t i = 0; i < values.size(); ++i) {
      values.data<double>()[i] = 0.6 * std::sin(1 + 1.7 * number + 0.9 * static_cast<double>(i));
    }
    parameter->value.copy_from(values.to(type));
    ++number;
  }
  const std::vector<SequencePair> pairs = {{.source = {3, 1, 4}, .target = {2, 5, 8, 3}},
                                           {.source = {1, 5, 9, 2, 6, 10, 0}, .target = {7, 2}},
                                           {.source = {8}, .target = {4}},
                                           {.source = {9, 7, 9, 3}, .target = {}}};
  const Batch batch = make_batch(pairs, {});
  Gradients gradients(parameters);
  Tape tape(gradients);
  const Seq2seq::Loss result = model.loss(tape, batch);
  const Tensor log_p = result.log_probabilities.to(DType::kF64);
  tape.backward(result.loss);
  gradients.settle();

  const auto expect = [](double got, double expected, double gate, const std::string& what) {
    EXPECT_NEAR(got, expected, gate + gate * std::fabs(expected)) << what;
  };
  std::ifstream golden(REGARD_SOURCE_DIR "/tests/golden/seq2seq.txt");
  std::size_t losses = 0, probabilities = 0, names = 0;
  for (std::string line; std::getline(golden, line);) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind;
    if (kind == "loss") {
      double expected = 0;
      words >> expected;
      expect(result.loss.value().item(), expected, tolerance, line);
      ++losses;
    } else if (kind == "log_probability") {
      std::size_t pair = 0;
      std::int64_t step = 0;
      double expected = 0;
      words >> pair >> step >> expected;
      const auto row = std::find(batch.order.begin(), batch.order.end(), pair) - batch.order.begin();
      expect(log_p.data<double>()[step * batch.size() + row], expected, tolerance, line);
      ++probabilities;
    } else if (kind == "gradient") {
      double sum = 0, squares = 0, first = 0, last = 0;
      words >> name >> sum >> squares >> first >> last;
      const Tensor gradient = gradients.of(*sorted.at(name)).to(DType::kF64);
      const double* g = gradient.data<double>();
      const std::int64_t count = gradient.size();
      expect(std::accumulate(g, g + count, 0.0), sum, gradient_tolerance, line);
      expect(std::inner_product(g, g + count, g, 0.0), squares, gradient_tolerance, line);
      expect(g[0], first, gradient_tolerance, line);
      expect(g[count - 1], last, gradient_tolerance, line);
      ++names;
    }
  }
  EXPECT_EQ(losses, 1u);
  EXPECT_EQ(probabilities, 11u);
  EXPECT_EQ(names, parameters.size());
}

TEST(Seq2seq, AgreesWithPyTorch) {
  expect_golden(DType::kF64, 1e-12, 1e-12);
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    expect_golden(DType::kF32, 1e-5, 1e-4);
  }
}

TEST(Seq2seq, LossFallsToWhatCanBeLearnedByHeart) {
  Parameters parameters;
  const Seq2seq model(Builder(parameters, RandomKey(3)), kSmall);
  Adam adam(parameters);
  Trainer trainer(parameters, adam, {.clip = 1});
  const Batch batch = make_batch(some_pairs(), {});
  double first = 0, last = 0;
  for (int step = 0; step < 150; ++step) {
    last = trainer.step(0.01, [&](Tape& tape) { return model.loss(tape, batch).loss; }).loss;
    if (step == 0) first = last;
  }
  EXPECT_NEAR(first, std::log(9.0), 0.5);  // nothing known yet: all words alike
  EXPECT_LT(last, 0.05);
}

TEST(Seq2seq, ASentenceIsTheSameAloneInABatchAndWithMorePadding) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    Parameters parameters;
    const Seq2seq model(Builder(parameters, RandomKey(3)), kSmall);
    const std::vector<SequencePair> pairs = some_pairs();
    const Batch together = make_batch(pairs, {}), padded = make_batch(pairs, {.least_time = 12, .least_steps = 11});
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const Batch alone = make_batch({&pairs[i], 1}, {});
      const std::vector<float> expected = log_probabilities(model, alone, 0);
      ASSERT_EQ(expected.size(), pairs[i].target.size() + 1);
      EXPECT_EQ(log_probabilities(model, together, i), expected) << name << ", pair " << i;
      EXPECT_EQ(log_probabilities(model, padded, i), expected) << name << ", pair " << i;
    }
  }
}

TEST(Seq2seq, WhatStandsInThePaddingChangesNothing) {
  Parameters parameters;
  const Seq2seq model(Builder(parameters, RandomKey(3)), kSmall);
  const std::vector<SequencePair> pairs = some_pairs();
  const Batch clean = make_batch(pairs, {}), other = make_batch(pairs, {});
  for (std::int64_t row = 0; row < other.size(); ++row) {
    for (std::int64_t t = other.lengths[static_cast<std::size_t>(row)]; t < other.source[0]; ++t) {
      other.source.data<std::int32_t>()[t * other.size() + row] = 10;
    }
  }
  for (std::int64_t i = 0; i < other.targets.size(); ++i) {
    if (other.target_weights.data<float>()[i] == 0) other.targets.data<std::int32_t>()[i] = 7;
  }
  const auto gradients_of = [&](const Batch& batch) {
    Gradients gradients(parameters);
    Tape tape(gradients);
    tape.backward(model.loss(tape, batch).loss);
    gradients.settle();
    std::vector<float> all;
    for (const Parameter& parameter : parameters) {
      const float* data = gradients.of(parameter).data<float>();
      all.insert(all.end(), data, data + parameter.value.size());
    }
    return all;
  };
  EXPECT_EQ(gradients_of(clean), gradients_of(other));
}

// Forced and stepwise: the same computation, once for all steps together and once a step.
TEST(Seq2seq, StepsGiveTheLogitsThatTheLossSees) {
  Parameters parameters;
  const Seq2seq model(Builder(parameters, RandomKey(3)), kSmall);
  const Batch batch = make_batch(some_pairs(), {});
  Tape tape;
  const Tensor expected = model.loss(tape, batch).log_probabilities;
  const Seq2seq::Encoded encoded = model.encode(tape, batch);
  Var state = encoded.first_state;
  for (std::int64_t t = 0; t < batch.targets[0]; ++t) {
    const Seq2seq::Step step = model.step(encoded, state, batch.previous.slice(0, t, t + 1).reshape({batch.size()}));
    state = step.state;
    const Tensor log_p = log_softmax(step.logits).value();
    for (std::int64_t row = 0; row < batch.size(); ++row) {
      const std::int64_t at = t * batch.size() + row, word = batch.targets.data<std::int32_t>()[at];
      EXPECT_NEAR(log_p.data<float>()[row * 9 + word], expected.data<float>()[at], 2e-6)
          << "step " << t << ", row " << row;
    }
  }
}

std::uint64_t weights_after_training(int steps) {
  Parameters parameters;
  const Seq2seq model(
      Builder(parameters, RandomKey(3)),
      {.source_words = 11, .target_words = 9, .embedding = 24, .hidden = 40, .attention = 33, .readout = 36});
  Adam adam(parameters);
  Trainer trainer(parameters, adam, {.clip = 0.5});
  for (int step = 0; step < steps; ++step) {
    std::vector<SequencePair> pairs;
    for (std::uint64_t i = 0; i < 20; ++i) {
      const std::uint64_t id = static_cast<std::uint64_t>(step) * 20 + i;
      pairs.push_back(pair_of(id, static_cast<std::uint32_t>(1 + id % 9), static_cast<std::uint32_t>(id % 7)));
    }
    const Batch batch = make_batch(pairs, {});
    trainer.step(0.01, [&](Tape& tape) { return model.loss(tape, batch).loss; });
  }
  return fingerprint(parameters);
}

TEST(Seq2seq, TrainingGivesTheSameBitsOnAnyThreadsAndOnEveryTargetWithFusedMultiplyAdd) {
  const ThreadLimit single(1);
  const std::uint64_t expected = weights_after_training(30);
  EXPECT_NE(expected, weights_after_training(29));
  for (const std::string& name : targets()) {
    if (name == "sse4") continue;
    const TargetScope target_scope(name);
    for (const int limit : {1, 2, 3}) {
      const ThreadLimit scope(limit);
      EXPECT_EQ(weights_after_training(30), expected) << name << ", " << limit << " threads";
    }
  }
}

TEST(Seq2seq, AnEmptySourceAndAnEmptyBatchAreFine) {
  Parameters parameters;
  const Seq2seq model(Builder(parameters, RandomKey(3)), kSmall);
  Gradients gradients(parameters);
  Tape tape(gradients);
  const std::vector<SequencePair> empty_source = {pair_of(1, 0, 3), pair_of(2, 4, 2)};
  const Var loss = model.loss(tape, make_batch(empty_source, {})).loss;
  EXPECT_TRUE(std::isfinite(loss.value().item()));
  EXPECT_NO_THROW(tape.backward(loss));
  tape.reset();
  EXPECT_EQ(model.loss(tape, make_batch({}, {})).loss.value().item(), 0);
}

TEST(Seq2seq, AnIdOutsideTheVocabularyIsAnError) {
  Parameters parameters;
  const Seq2seq model(Builder(parameters, RandomKey(3)), kSmall);
  Tape tape;
  const std::vector<SequencePair> pairs = {{.source = {11}, .target = {2}}};
  EXPECT_THROW(model.loss(tape, make_batch(pairs, {})), Error);
}

}  // namespace
}  // namespace regard
