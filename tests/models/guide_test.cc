// Attention that is told where to look.
#include "models/guide.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "models/same_gradients.h"
#include "models/some_models.h"
#include "regard/error.h"
#include "support/finite.h"

namespace regard {
namespace {

std::vector<NamedModel> guided_models() {
  return {{"transformer", small_model("transformer")},
          {"additive", with(small_model("transformer"), {{"attention", "scaled_dot; additive"}})},
          {"bahdanau", small_model("bahdanau")},
          {"luong", small_model("luong")}};
}

// Some rows say where, some do not, of one pair nothing is known.
std::vector<SequencePair> told_pairs() {
  std::vector<SequencePair> pairs = {some_pair(20, 4, 5), some_pair(21, 6, 2), some_pair(22, 1, 3)};
  for (std::size_t i = 0; i < 2; ++i) {
    SequencePair& pair = pairs[i];
    pair.guide.assign(pair.target.size() * pair.source.size(), 0);
    for (std::size_t t = 0; t < pair.target.size(); ++t) {
      if (t % 3 == 2) continue;
      pair.guide[t * pair.source.size() + t % pair.source.size()] = 0.75f;
      pair.guide[t * pair.source.size() + pair.source.size() - 1] += 0.25f;
    }
  }
  return pairs;
}

TEST(Guide, IsInTheRowOfItsStepOrOfTheNextOne) {
  const std::vector<SequencePair> pairs = {{.id = 1, .source = {5}, .target = {6, 7}, .guide = {0.5f, 1}},
                                           {.id = 2, .source = {5, 6}, .target = {7}, .guide = {0.25f, 0.75f}},
                                           {.id = 3, .source = {5, 6}, .target = {7}}};
  for (const std::int64_t shift : {0, 1}) {
    const Batch batch = make_batch(pairs, {.guide_shift = shift});
    ASSERT_EQ(batch.guide.shape(), (Shape{3, 3, 2}));
    std::vector<float> expected(18, 0);
    const auto at = [&](std::int64_t step, std::size_t row) {  // rows: pairs 2, 3, 1
      return static_cast<std::size_t>(step + shift) * 6 + 2 * row;
    };
    expected[at(0, 0)] = 0.25f;
    expected[at(0, 0) + 1] = 0.75f;
    expected[at(0, 2)] = 0.5f;
    expected[at(1, 2)] = 1;
    EXPECT_EQ(std::vector<float>(batch.guide.data<float>(), batch.guide.data<float>() + 18), expected);
  }
  EXPECT_FALSE(make_batch(std::span(pairs).last(1), {}).guide.defined());
}

TEST(Guide, CostsWhatTheWeightsOfTheLastLookSayAndChangesNoWord) {
  for (const NamedModel& each : guided_models()) {
    SCOPED_TRACE(each.name);
    Parameters parameters;
    const auto model = make_model(Builder(parameters, RandomKey(3)), each.settings);
    const Batch batch = make_batch(told_pairs(), {.guide_shift = 1});
    Tape tape;
    const SequenceModel::Loss plain = model->loss(tape, batch), told = model->loss(tape, batch, {.guide = 0.5});
    const std::vector<Tensor> maps = model->attention(batch);  // the mean of the last layer
    double expected = 0;
    for (std::int64_t row = 0; row < batch.size(); ++row) {
      const Tensor& map = maps[static_cast<std::size_t>(row)];
      for (std::int64_t t = 0; t < map[0]; ++t) {
        for (std::int64_t s = 0; s < map[1]; ++s) {
          const float g = batch.guide.data<float>()[(t * batch.size() + row) * batch.guide[2] + s];
          expected -= 0.5 * static_cast<double>(g) * std::log(static_cast<double>(map.data<float>()[t * map[1] + s]));
        }
      }
    }
    EXPECT_GT(expected, 0.5);
    EXPECT_NEAR(told.sum.value().item() - plain.sum.value().item(), expected, 1e-3);
    for (std::int64_t i = 0; i < batch.targets.size(); ++i) {
      EXPECT_EQ(told.log_probabilities.data<float>()[i], plain.log_probabilities.data<float>()[i]);
    }
  }
}

TEST(Guide, GradientsMatchFiniteDifferencesInDouble) {
  for (const NamedModel& each : guided_models()) {
    SCOPED_TRACE(each.name);
    const ModelSettings tiny = with(each.settings, {{"embedding", "3"},
                                                    {"hidden", "4"},
                                                    {"attention_width", "3"},
                                                    {"readout", "5"},
                                                    {"ffn", "5"},
                                                    {"encoder_layers", "1"},
                                                    {"decoder_layers", each.name == "additive" ? "2" : "1"},
                                                    {"activation", "gelu"},
                                                    {"dropout", "0.2"}});
    Parameters parameters;
    const auto model = make_model(Builder(parameters, RandomKey(3), DType::kF64), tiny);
    const Batch batch = make_batch(told_pairs(), {.guide_shift = 1});
    expect_gradients_match(
        parameters,
        [&](Tape& tape) { return model->loss(tape, batch, {.training = true, .key = RandomKey(3), .guide = 2}).sum; },
        60);
  }
}

TEST(Guide, HasTheSameBitsOnAnyThreadsAndOnEveryTargetWithFusedMultiplyAdd) {
  for (const NamedModel& each : guided_models()) {
    SCOPED_TRACE(each.name);
    Parameters parameters;
    const auto model = make_model(Builder(parameters, RandomKey(3)), each.settings);
    const Batch batch = make_batch(told_pairs(), {.guide_shift = 1});
    expect_same_gradients_everywhere(
        parameters, [&](Tape& tape) { return model->loss(tape, batch, {.training = true, .guide = 1}).sum; });
  }
}

TEST(Guide, WeightsThatCannotBeToldAreErrors) {
  EXPECT_NO_THROW(check_guided("additive | window:3", 0));
  for (const char* line : {"dot | sparsemax", "scaled_dot | hard", "relative:4", "dot | uniform"}) {
    EXPECT_THROW(check_guided(line, 0), Error) << line;
  }
  EXPECT_THROW(check_guided("additive", 0.1f), Error);
}

}  // namespace
}  // namespace regard
