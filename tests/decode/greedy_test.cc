#include "decode/greedy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/target.h"
#include "regard/error.h"
#include "regard/random.h"

namespace regard {
namespace {

struct Model {
  Parameters parameters;
  Seq2seq model{Builder(parameters, RandomKey(3)),
                {.source_words = 20, .target_words = 12, .embedding = 8, .hidden = 19, .attention = 17, .readout = 13}};
  Model() {  // first weights say much the same everywhere: exaggerated, different sources get different answers
    for (Parameter& parameter : parameters) {
      for (std::int64_t i = 0; i < parameter.value.size(); ++i) parameter.value.data<float>()[i] *= 3;
    }
  }
};

std::vector<SequencePair> sources() {
  std::vector<SequencePair> pairs;
  for (std::uint64_t id = 0; id < 9; ++id) {
    SequencePair pair{.id = id};
    for (std::uint64_t i = 0; i < 1 + id * 3 % 8; ++i) {
      pair.source.push_back(static_cast<std::int32_t>(random_below(RandomKey(9).at(id), i, 20)));
    }
    pairs.push_back(pair);
  }
  return pairs;
}

struct Answer {
  std::vector<std::int32_t> words;
  std::vector<float> weights;
  bool operator==(const Answer&) const = default;
};

std::vector<Answer> answers(const Seq2seq& model, std::span<const SequencePair> pairs, const BatchSettings& settings) {
  Tape tape;
  const Batch batch = make_batch(pairs, settings);
  const Decoded decoded = greedy(model, tape, batch, {.longest = 10});
  std::vector<Answer> result(pairs.size());
  for (std::int64_t row = 0; row < batch.size(); ++row) {
    const Tensor weights = decoded.weights(row);
    result[batch.order[static_cast<std::size_t>(row)]] = {
        decoded.words(row), std::vector<float>(weights.data<float>(), weights.data<float>() + weights.size())};
  }
  return result;
}

TEST(Greedy, ASourceGetsTheSameAnswerAloneInABatchAndWithMorePadding) {
  const Model model;
  const std::vector<SequencePair> pairs = sources();
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    const std::vector<Answer> together = answers(model.model, pairs, {});
    EXPECT_EQ(answers(model.model, pairs, {.least_time = 23}), together) << name;
    std::size_t different = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      EXPECT_EQ(answers(model.model, {&pairs[i], 1}, {})[0], together[i]) << name << ", pair " << i;
      different += together[i].words != together[0].words ? 1u : 0u;
    }
    EXPECT_GT(different, 2u) << "the answers are all alike: nothing was tested";
  }
}

TEST(Greedy, WeightsOfEveryWordSumToOneOverTheWholeSource) {
  const Model model;
  Tape tape;
  const Batch batch = make_batch(sources(), {});
  const Decoded decoded = greedy(model.model, tape, batch, {.longest = 10});
  int rows = 0;
  for (std::int64_t row = 0; row < batch.size(); ++row) {
    const Tensor weights = decoded.weights(row);
    ASSERT_EQ(weights[0], static_cast<std::int64_t>(decoded.words(row).size()));
    for (std::int64_t i = 0; i < weights[0]; ++i, ++rows) {
      EXPECT_EQ(weights[1], batch.lengths[static_cast<std::size_t>(row)]);
      double sum = 0;
      for (std::int64_t j = 0; j < weights[1]; ++j) {
        const float weight = weights.data<float>()[i * weights[1] + j];
        EXPECT_GE(weight, 0);
        sum += weight;
      }
      EXPECT_NEAR(sum, 1, 2e-6) << "row " << row << ", word " << i;
    }
  }
  EXPECT_GT(rows, 20);
}

TEST(Greedy, AskingForWeightsChangesNothing) {
  const Model model;
  const Batch batch = make_batch(sources(), {});
  Tape tape;
  const Decoded quiet = greedy(model.model, tape, batch, {.longest = 10});
  const Decoded asked = greedy(model.model, tape, batch, {.longest = 10});
  std::vector<Tensor> first, second;
  for (std::int64_t row = 0; row < batch.size(); ++row) first.push_back(asked.weights(row));
  for (std::int64_t row = 0; row < batch.size(); ++row) second.push_back(asked.weights(row));
  const Decoded after = greedy(model.model, tape, batch, {.longest = 10});
  for (std::int64_t row = 0; row < batch.size(); ++row) {
    EXPECT_EQ(quiet.words(row), asked.words(row));
    EXPECT_EQ(quiet.words(row), after.words(row));
    const Tensor &a = first[static_cast<std::size_t>(row)], &b = second[static_cast<std::size_t>(row)];
    EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0);
  }
}

TEST(Greedy, WeightsAreGoneWhenTheStepIsOver) {
  const Model model;
  Tape tape;
  const Decoded decoded = greedy(model.model, tape, make_batch(sources(), {}), {.longest = 10});
  tape.reset();
  for (std::int64_t row = 0; row < decoded.size(); ++row) {
    if (!decoded.words(row).empty()) {
      EXPECT_THROW(decoded.weights(row), Error);
    }
  }
}

TEST(Greedy, StopsAtTheEndAndAtTheLongest) {
  Model model;
  Parameter& bias = model.parameters.find("output.bias");
  Tape tape;
  bias.value.data<float>()[1] = 1e6f;  // always the end
  const Batch batch = make_batch(sources(), {});
  const Decoded nothing = greedy(model.model, tape, batch, {.longest = 10});
  bias.value.data<float>()[1] = -1e6f;  // never
  ++bias.version;
  const Decoded all = greedy(model.model, tape, batch, {.longest = 4});
  for (std::int64_t row = 0; row < nothing.size(); ++row) {
    EXPECT_EQ(nothing.words(row).size(), 0u);
    EXPECT_EQ(nothing.weights(row).shape(), (Shape{0, batch.lengths[static_cast<std::size_t>(row)]}));
    EXPECT_EQ(all.words(row).size(), 4u);
  }
}

TEST(Greedy, OfEqualScoresTheFirstWordIsTaken) {
  Model model;
  for (const char* name : {"output.weight", "output.bias"}) {
    const Tensor& value = model.parameters.find(name).value;
    std::memset(value.raw(), 0, value.bytes());
  }
  Tape tape;
  const Decoded decoded = greedy(model.model, tape, make_batch(sources(), {}), {.longest = 3});
  EXPECT_EQ(decoded.words(0), (std::vector<std::int32_t>{0, 0, 0}));
}

TEST(Greedy, ADamagedModelIsAnErrorNotAnAnswer) {
  Model model;
  model.parameters.find("output.bias").value.data<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  Tape tape;
  EXPECT_THROW(greedy(model.model, tape, make_batch(sources(), {}), {}), Error);
}

TEST(Greedy, AnEmptyBatchIsFine) {
  const Model model;
  Tape tape;
  EXPECT_EQ(greedy(model.model, tape, make_batch({}, {}), {}).size(), 0);
}

}  // namespace
}  // namespace regard
