// What every family promises.
#include "models/sequence_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "autograd/int8_weights.h"
#include "base/pool.h"
#include "kernels/target.h"
#include "models/same_gradients.h"
#include "models/some_models.h"
#include "support/finite.h"
#include "support/sanitized.h"

namespace regard {
namespace {

struct Made {
  explicit Made(const ModelSettings& settings, DType type = DType::kF32, bool int8 = false)
      : model(make_model(Builder(parameters, RandomKey(3), type), settings)) {
    if (int8) use_int8(parameters);
  }
  Parameters parameters;
  std::unique_ptr<SequenceModel> model;
};

std::vector<NamedModel> all_models() {
  std::vector<NamedModel> all = small_models();
  for (NamedModel& each : looking_models()) all.push_back(std::move(each));
  return all;
}

// The log-probabilities of the targets of one pair of the batch, the end included.
std::vector<float> log_probabilities(const SequenceModel& model, const Batch& batch, std::size_t pair,
                                     const LossOptions& options = {}) {
  Tape tape;
  const Tensor all = model.loss(tape, batch, options).log_probabilities;
  std::vector<float> result;
  const auto row = std::find(batch.order.begin(), batch.order.end(), pair) - batch.order.begin();
  for (std::int64_t t = 0; t < batch.targets[0]; ++t) {
    const std::int64_t at = t * batch.size() + row;
    if (batch.target_weights.data<float>()[at] != 0) result.push_back(all.data<float>()[at]);
  }
  return result;
}

TEST(SequenceModel, TheLossIsTheSumOfWhatTheTargetsCost) {
  for (const NamedModel& each : all_models()) {
    SCOPED_TRACE(each.name);
    const Made made(each.settings);
    const Batch batch = make_batch(some_pairs(), {});
    Tape tape;
    const SequenceModel::Loss loss = made.model->loss(tape, batch);
    const Var logits = made.model->logits(tape, batch);
    ASSERT_EQ(logits.shape(), (Shape{batch.targets.size(), made.model->target_words()}));
    const Tensor log_p = log_softmax(logits).value();
    double sum = 0;
    for (std::int64_t i = 0; i < batch.targets.size(); ++i) {
      const float got = loss.log_probabilities.data<float>()[i];
      if (batch.target_weights.data<float>()[i] == 0) continue;
      sum -= static_cast<double>(got);
      EXPECT_NEAR(got, log_p.data<float>()[i * log_p[1] + batch.targets.data<std::int32_t>()[i]], 2e-6);
    }
    EXPECT_NEAR(loss.sum.value().item(), sum, 1e-4);
    EXPECT_NEAR(sum / static_cast<double>(batch.target_count), std::log(9.0), 1.5);
  }
}

TEST(SequenceModel, ASentenceIsTheSameAloneInABatchAndWithMorePadding) {
  for (const NamedModel& each : all_models()) {
    SCOPED_TRACE(each.name);
    const Made made(with(each.settings, {{"dropout", "0.3"}, {"attention_dropout", "0.2"}}));
    const std::vector<SequencePair> pairs = some_pairs();
    const Batch together = make_batch(pairs, {}), padded = make_batch(pairs, {.least_time = 12, .least_steps = 11});
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const Batch alone = make_batch({&pairs[i], 1}, {});
      for (const bool training : {false, true}) {  // what is dropped depends on the example, not on its place
        const LossOptions options{.training = training, .key = RandomKey(7)};
        const std::vector<float> expected = log_probabilities(*made.model, alone, 0, options);
        ASSERT_EQ(expected.size(), pairs[i].target.size() + 1);
        EXPECT_EQ(log_probabilities(*made.model, together, i, options), expected) << training << ", pair " << i;
        EXPECT_EQ(log_probabilities(*made.model, padded, i, options), expected) << training << ", pair " << i;
      }
    }
  }
}

TEST(SequenceModel, DropoutIsDrawnAnewForEveryKeyAndOnlyInTraining) {
  for (const NamedModel& each : small_models()) {
    SCOPED_TRACE(each.name);
    const Made made(with(each.settings, {{"dropout", "0.3"}}));
    const Batch batch = make_batch(some_pairs(), {});
    const auto loss = [&](bool training, std::uint64_t key) {
      Tape tape;
      return made.model->loss(tape, batch, {.training = training, .key = RandomKey(key)}).sum.value().item();
    };
    EXPECT_EQ(loss(false, 1), loss(false, 2));
    EXPECT_EQ(loss(true, 1), loss(true, 1));
    EXPECT_NE(loss(true, 1), loss(true, 2));
    EXPECT_NE(loss(true, 1), loss(false, 1));
  }
}

// Hypotheses of every source, decoded together while rows change places, split and end; the forced pass knows them all.
TEST(SequenceModel, StepsGiveTheLogitsOfTheForcedPassWhateverBecomesOfRows) {
  constexpr std::int64_t kWidth = 3, kSteps = 6;
  const std::vector<SequencePair> sources = {some_pair(1, 7, 0), some_pair(2, 5, 0), some_pair(3, 4, 0),
                                             some_pair(4, 1, 0), some_pair(5, 0, 0)};
  const auto count = static_cast<std::int64_t>(sources.size());
  // Of hypothesis h the words until step 2 are those of hypothesis 0.
  const auto hypothesis = [&](std::int64_t source, std::int64_t h) {
    SequencePair pair = sources[static_cast<std::size_t>(source)];
    for (std::int64_t t = 0; t + 1 < kSteps; ++t) {
      const auto place = static_cast<std::uint64_t>(100 * source + 10 * (t < 2 ? 0 : h) + t);
      pair.target.push_back(static_cast<std::int32_t>(2 + random_below(RandomKey(9), place, 7)));
    }
    return pair;
  };
  std::vector<SequencePair> forced;
  for (std::int64_t s = 0; s < count; ++s) {
    for (std::int64_t h = 0; h < kWidth; ++h) forced.push_back(hypothesis(s, h));
  }
  std::vector<std::pair<NamedModel, bool>> models;  // each as it is, and with weights of 8 bits
  for (const NamedModel& each : all_models()) {
    for (const bool int8 : {false, true}) models.emplace_back(each, int8);
  }
  for (const auto& [each, int8] : models) {
    SCOPED_TRACE(each.name + (int8 ? ", int8" : ""));
    const Made made(each.settings, DType::kF32, int8);
    const std::int64_t words = made.model->target_words();
    const Batch whole = make_batch(forced, {});
    Tape tape;
    const Tensor expected = made.model->logits(tape, whole).value();
    const Batch batch = make_batch(sources, {});
    ASSERT_TRUE(std::is_sorted(batch.order.begin(), batch.order.end()));  // rows of the batch are the sources here
    const std::unique_ptr<Decoding> decoding = made.model->decode(batch);
    // Row r of a source follows hypothesis (r + step) mod width; with a width of 1 the first step.
    std::vector<std::int32_t> running;
    for (std::int64_t t = 0; t < kSteps; ++t) {
      const std::int64_t width = t == 0 ? 1 : kWidth, before = t == 1 ? 1 : kWidth;
      const std::vector<std::int32_t> last = running;
      running.clear();
      for (std::int32_t s = 0; s < count; ++s) {
        if (t < 3 || (s != 1 && (t < 4 || s != 4))) running.push_back(s);  // two end on the way
      }
      std::vector<std::int32_t> origins, previous;
      std::vector<std::int64_t> followed;
      for (std::size_t i = 0; i < running.size(); ++i) {
        const auto source = static_cast<std::size_t>(running[i]);
        const std::int64_t group = std::find(last.begin(), last.end(), running[i]) - last.begin();
        for (std::int64_t r = 0; r < width; ++r) {
          const std::int64_t h = (r + t) % kWidth;
          // As long as all are alike any row of the source will do.
          const std::int64_t place = before == 1 ? 0 : t <= 2 ? 1 : (h - (t - 1) + 2 * kWidth) % kWidth;
          origins.push_back(static_cast<std::int32_t>(group * before + place));
          const std::size_t at = source * kWidth + static_cast<std::size_t>(h);
          previous.push_back(t == 0 ? 0 : forced[at].target[static_cast<std::size_t>(t - 1)]);
          followed.push_back(static_cast<std::int64_t>(at));
        }
      }
      const Tensor logits = decoding->step(running, origins, previous);
      ASSERT_EQ(logits.shape(), (Shape{static_cast<std::int64_t>(previous.size()), words}));
      for (std::size_t r = 0; r < followed.size(); ++r) {
        const auto row = std::find(whole.order.begin(), whole.order.end(), static_cast<std::size_t>(followed[r])) -
                         whole.order.begin();
        EXPECT_EQ(std::memcmp(logits.data<float>() + static_cast<std::int64_t>(r) * words,
                              expected.data<float>() + (t * whole.size() + row) * words,
                              static_cast<std::size_t>(words) * sizeof(float)),
                  0)
            << "step " << t << ", row " << r;
      }
    }
  }
}

TEST(SequenceModel, StepsThatCannotBeAreErrors) {
  const Made made(small_model("transformer"));
  const std::vector<SequencePair> pairs = {some_pair(1, 3, 0), some_pair(2, 2, 0)};
  const auto decoding = made.model->decode(make_batch(pairs, {}));
  using List = std::vector<std::int32_t>;
  EXPECT_THROW(decoding->step(List{0, 2}, List{}, List{0, 0}), Error);     // no such source
  EXPECT_THROW(decoding->step(List{1, 0}, List{}, List{0, 0}), Error);     // not in order
  EXPECT_THROW(decoding->step(List{0, 1}, List{}, List{0, 0, 0}), Error);  // not as many of each
  EXPECT_NO_THROW(decoding->step(List{0, 1}, List{}, List{0, 0, 0, 0}));
  EXPECT_THROW(decoding->step(List{0, 1}, List{0, 1}, List{0, 0, 0, 0}), Error);  // origins are missing
  EXPECT_THROW(decoding->step(List{0, 1}, List{0, 1}, List{0, 0}), Error);        // from a row of another source
  EXPECT_NO_THROW(decoding->step(List{1}, List{2}, List{0}));
  EXPECT_THROW(decoding->step(List{0, 1}, List{0, 0}, List{0, 0}), Error);  // it had left
  EXPECT_THROW(decoding->step(List{1}, List{0}, List{99}), Error);          // no such word
}

TEST(SequenceModel, GradientsMatchFiniteDifferencesInDouble) {
  std::vector<NamedModel> all = small_models();
  all.push_back(
      {"mixture", with(small_model("transformer"), {{"decoder_attention", "mixture(random_synth:9, scaled_dot)"},
                                                    {"attention", "additive | local_p:2"}})});
  all.push_back({"mapped", with(small_model("bahdanau"), {{"attention", "scaled_dot | window:2"}})});
  for (std::size_t i = 0; i < all.size(); i += REGARD_SANITIZED != 0 ? 4 : 1) {
    const NamedModel& each = all[i];
    SCOPED_TRACE(each.name);
    const bool tied = each.settings.tie;
    ModelSettings tiny = with(each.settings, {{"embedding", "3"},
                                              {"hidden", "4"},
                                              {"attention_width", "3"},
                                              {"readout", tied ? "3" : "5"},
                                              {"ffn", "5"},
                                              {"longest", "9"},
                                              {"source_words", "5"},
                                              {"target_words", "5"},
                                              {"activation", "gelu"},  // relu has a kink
                                              {"dropout", "0.2"},
                                              {"attention_dropout", "0.1"}});
    if (each.settings.family == "transformer" || each.settings.family == "convs2s") tiny.encoder_layers = 1;
    Made made(tiny, DType::kF64);
    const std::vector<SequencePair> pairs = {{.id = 1, .source = {3, 1, 4}, .target = {2, 3}},
                                             {.id = 2, .source = {2}, .target = {4}}};
    const Batch batch = make_batch(pairs, {});
    expect_gradients_match(
        made.parameters,
        [&](Tape& tape) {
          return made.model->loss(tape, batch, {.label_smoothing = 0.1, .training = true, .key = RandomKey(3)}).sum;
        },
        60);
  }
}

// Of hard attention nothing comes to the scores through what was read: they learn by how well it went.
TEST(SequenceModel, HardAttentionIsToldHowItWent) {
  const std::vector<NamedModel> all = {
      {"attention", with(small_model("bahdanau"), {{"attention", "additive | hard"}})},
      {"attention", with(small_model("luong"), {{"attention", "general | hard"}})},
      {"decoder.layer0.attention", with(small_model("convs2s"), {{"attention", "general | hard"}})},
      {"decoder.layer0.cross.query", with(small_model("transformer"), {{"attention", "scaled_dot | hard"}})},
      {"decoder.layer1.self.query", with(small_model("transformer"), {{"decoder_attention", "scaled_dot | hard"}})},
      {"encoder.layer1.self.key", with(small_model("transformer"), {{"encoder_attention", "scaled_dot | hard"}})}};
  for (const NamedModel& each : all) {
    SCOPED_TRACE(each.settings.family + " " + each.name);
    const Made made(each.settings);
    const Batch batch = make_batch(some_pairs(), {});
    Gradients gradients(made.parameters);
    Tape tape(gradients);
    tape.backward(made.model->loss(tape, batch, {.training = true, .key = RandomKey(4)}).sum);
    gradients.settle();
    int found = 0, live = 0;
    for (const Parameter& parameter : made.parameters) {
      if (!parameter.name.starts_with(each.name)) continue;
      const float* g = gradients.of(parameter).data<float>();
      live += std::any_of(g, g + parameter.value.size(), [](float x) { return std::fabs(x) > 1e-6f; }) ? 1 : 0;
      EXPECT_TRUE(std::all_of(g, g + parameter.value.size(), [](float x) { return std::isfinite(x); }));
      ++found;
    }
    EXPECT_GE(found, 1);
    EXPECT_GE(live, 1);
  }
}

TEST(SequenceModel, HasRoomForWhatItSaysAndForNothingLonger) {
  const auto pair = [](std::int64_t source, std::int64_t target) {
    return std::vector<SequencePair>{{.id = 1,
                                      .source = std::vector<std::int32_t>(static_cast<std::size_t>(source), 3),
                                      .target = std::vector<std::int32_t>(static_cast<std::size_t>(target - 1), 4)}};
  };
  int limited = 0;
  for (const NamedModel& each : all_models()) {
    SCOPED_TRACE(each.name);
    const Made made(each.settings);
    const Room room = made.model->room();
    const std::int64_t source = std::min<std::int64_t>(30, room.source),
                       target = std::min<std::int64_t>(30, room.target);
    const auto said = [&](std::int64_t more_source, std::int64_t more_target) -> std::string {
      const Batch batch = make_batch(pair(source + more_source, target + more_target), {});
      try {
        Tape tape;
        made.model->logits(tape, batch);
        const auto steps = made.model->decode(batch);
        const std::int32_t only = 0, word = 4;
        for (std::int64_t t = 0; t < target + more_target; ++t) steps->step({&only, 1}, {&only, 1}, {&word, 1});
        return "";
      } catch (const Error& error) {
        return error.what();
      }
    };
    const auto expect = [&](const std::string& error, std::int64_t most) {
      if (most == kEndless) {
        EXPECT_EQ(error, "");
      } else {
        EXPECT_TRUE(error.find("is made for at most ") != std::string::npos || error.starts_with("Position: "))
            << error;
      }
    };
    EXPECT_EQ(said(0, 0), "");
    expect(said(1, 0), room.source);
    expect(said(0, 1), room.target);
    if (room.source != kEndless) ++limited;
  }
  EXPECT_GT(limited, 5);
  EXPECT_EQ(to_text(Room{11, 11}), "10 tokens");
  EXPECT_EQ(to_text(Room{11, kEndless}), "10 tokens of a source");
  EXPECT_EQ(to_text(Room{kEndless, 21}), "20 tokens of a target");
  EXPECT_EQ(to_text(Room{11, 21}), "10 tokens of a source and 20 of a target");
}

TEST(SequenceModel, EmptySourcesAndEmptyBatchesAreFine) {
  for (const NamedModel& each : all_models()) {
    SCOPED_TRACE(each.name);
    const Made made(each.settings);
    Gradients gradients(made.parameters);
    Tape tape(gradients);
    const std::vector<SequencePair> some = {some_pair(1, 0, 3), some_pair(2, 4, 2)}, none = {some_pair(1, 0, 0)};
    for (const std::vector<SequencePair>& pairs : {some, none}) {
      const Var loss = made.model->loss(tape, make_batch(pairs, {})).sum;
      EXPECT_TRUE(std::isfinite(loss.value().item()));
      EXPECT_NO_THROW(tape.backward(loss));
      tape.reset();
    }
    gradients.settle();
    for (const Parameter& parameter : made.parameters) {
      const float* g = gradients.of(parameter).data<float>();
      EXPECT_TRUE(std::all_of(g, g + parameter.value.size(), [](float x) { return std::isfinite(x); }))
          << parameter.name;
    }
    const Batch empty = make_batch({}, {});
    const SequenceModel::Loss loss = made.model->loss(tape, empty);
    EXPECT_EQ(loss.sum.value().item(), 0);
    EXPECT_NO_THROW(tape.backward(loss.sum));
    EXPECT_EQ(made.model->decode(empty)->step({}, {}, {}).shape(), (Shape{0, made.model->target_words()}));
    EXPECT_TRUE(made.model->attention(empty).empty());
  }
}

TEST(SequenceModel, MapsHaveARowAStepAndWeightsThatSumToOne) {
  for (const NamedModel& each : small_models()) {
    SCOPED_TRACE(each.name);
    const Made made(each.settings);
    const Batch batch = make_batch(some_pairs(), {});
    const std::vector<Tensor> maps = made.model->attention(batch);
    if (each.settings.family == "seq2seq" || each.settings.attention == "none") {
      EXPECT_TRUE(maps.empty());
      continue;
    }
    ASSERT_EQ(maps.size(), batch.ids.size());
    for (std::size_t row = 0; row < maps.size(); ++row) {
      const auto steps = static_cast<std::int64_t>(some_pairs()[batch.order[row]].target.size()) + 1;
      ASSERT_EQ(maps[row].shape(), (Shape{steps, batch.lengths[row]}));
      for (std::int64_t t = 0; t < steps && batch.lengths[row] > 0; ++t) {
        const float* weights = maps[row].data<float>() + t * maps[row][1];
        EXPECT_NEAR(std::accumulate(weights, weights + maps[row][1], 0.0), 1, 1e-5);
      }
    }
    EXPECT_THROW(made.model->attention(batch, {.layer = 2}), Error);
    EXPECT_THROW(made.model->attention(batch, {.head = 2}), Error);
    EXPECT_EQ(made.model->attention(batch, {.layer = 0, .head = 0}).size(), maps.size());
  }
}

// Weights are 0 further than D from where local_p says, and somewhere nearer they are not.
TEST(SequenceModel, PlacesAreWhereLocalPLooks) {
  int saying = 0;
  for (const NamedModel& each : all_models()) {
    SCOPED_TRACE(each.name);
    const Made made(each.settings);
    const Batch batch = make_batch(some_pairs(), {});
    const std::vector<Tensor> places = made.model->places(batch), weights = made.model->all_attention(batch);
    if (each.settings.attention.find("local_p:2") == std::string::npos) {
      EXPECT_TRUE(places.empty());
      continue;
    }
    ++saying;
    ASSERT_EQ(places.size(), weights.size());
    for (std::size_t row = 0; row < places.size(); ++row) {
      const Tensor& map = weights[row];
      ASSERT_EQ(places[row].shape(), (Shape{map[0], map[1], map[2]}));
      for (std::int64_t at = 0; at < places[row].size(); ++at) {
        const double place = static_cast<double>(places[row].data<float>()[at]);
        EXPECT_GE(place, 0);
        EXPECT_LE(place, static_cast<double>(map[3]));
        double seen = 0;
        for (std::int64_t j = 0; j < map[3]; ++j) {
          const float weight = map.data<float>()[at * map[3] + j];
          const bool far = std::abs(static_cast<double>(j) - place) > 2 + 1e-5;
          EXPECT_TRUE(!far || weight == 0) << j << ' ' << place;
          seen += static_cast<double>(weight);
        }
        EXPECT_TRUE(map[3] == 0 || seen > 0);
      }
    }
  }
  EXPECT_EQ(saying, 4);  // a model of each family
}

TEST(SequenceModel, EveryMapHasTheLooksAtTheSourceAndOfTransformersTheLooksAtThemselves) {
  for (const NamedModel& each : all_models()) {
    SCOPED_TRACE(each.name);
    const Made made(each.settings);
    const std::vector<SequencePair> pairs = some_pairs();
    const Batch batch = make_batch(pairs, {});
    const std::vector<EveryMap> all = made.model->every_attention(batch);
    const std::vector<Tensor> cross = made.model->all_attention(batch);
    ASSERT_EQ(all.size(), pairs.size());
    for (std::size_t row = 0; row < all.size(); ++row) {
      if (cross.empty()) {
        EXPECT_FALSE(all[row].cross.weights.defined());
      } else {
        ASSERT_EQ(all[row].cross.weights.shape(), cross[row].shape());
        EXPECT_EQ(std::memcmp(all[row].cross.weights.raw(), cross[row].raw(), cross[row].bytes()), 0);
      }
      const bool looks_at_itself = each.settings.family == "transformer";
      EXPECT_EQ(all[row].encoder.weights.defined(), looks_at_itself);
      EXPECT_EQ(all[row].decoder.weights.defined(), looks_at_itself);
      if (!looks_at_itself) continue;
      const std::int64_t source = batch.lengths[row], heads = each.settings.heads,
                         steps = static_cast<std::int64_t>(pairs[batch.order[row]].target.size()) + 1;
      EXPECT_EQ(all[row].encoder.weights.shape(), (Shape{each.settings.encoder_layers, heads, source, source}));
      EXPECT_EQ(all[row].decoder.weights.shape(), (Shape{each.settings.decoder_layers, heads, steps, steps}));
      EXPECT_EQ(all[row].cross.norms.shape(), (Shape{each.settings.decoder_layers, heads, source}));
      EXPECT_EQ(all[row].encoder.norms.shape(), (Shape{each.settings.encoder_layers, heads, source}));
      EXPECT_EQ(all[row].decoder.norms.shape(), (Shape{each.settings.decoder_layers, heads, steps}));
      for (std::int64_t i = 0; i < all[row].decoder.weights.size(); ++i) {
        const std::int64_t query = i / steps % steps, key = i % steps;
        const float weight = all[row].decoder.weights.data<float>()[i];
        EXPECT_TRUE(key <= query ? weight >= 0 : weight == 0) << query << ' ' << key << ' ' << weight;
      }
      // Alone it is the same.
      const Batch alone = make_batch({&pairs[batch.order[row]], 1}, {});
      const EveryMap own = made.model->every_attention(alone)[0];
      for (HeadMaps EveryMap::*kind : {&EveryMap::cross, &EveryMap::encoder, &EveryMap::decoder}) {
        const HeadMaps &a = own.*kind, &b = all[row].*kind;
        EXPECT_EQ(std::memcmp(a.weights.raw(), b.weights.raw(), b.weights.bytes()), 0);
        EXPECT_EQ(std::memcmp(a.norms.raw(), b.norms.raw(), b.norms.bytes()), 0);
      }
    }
  }
}

TEST(SequenceModel, TheMeanMapIsThatOfTheHeads) {
  const Made made(small_model("transformer"));
  const Batch batch = make_batch(some_pairs(), {});
  const std::vector<Tensor> mean = made.model->attention(batch, {.layer = 0}),
                            first = made.model->attention(batch, {.layer = 0, .head = 0}),
                            second = made.model->attention(batch, {.layer = 0, .head = 1});
  bool differ = false;
  for (std::size_t row = 0; row < mean.size(); ++row) {
    for (std::int64_t i = 0; i < mean[row].size(); ++i) {
      const float a = first[row].data<float>()[i], b = second[row].data<float>()[i];
      EXPECT_EQ(mean[row].data<float>()[i], (a + b) / 2);
      differ |= a != b;
    }
  }
  EXPECT_TRUE(differ);
}

TEST(SequenceModel, ResultsHaveTheSameBitsOnAnyThreadsAndOnEveryTargetWithFusedMultiplyAdd) {
  for (const NamedModel& each : small_models()) {
    SCOPED_TRACE(each.name);
    const Made made(with(each.settings, {{"dropout", "0.1"}}));
    const Batch batch = make_batch(some_pairs(), {});
    expect_same_gradients_everywhere(made.parameters, [&](Tape& tape) {
      return made.model->loss(tape, batch, {.label_smoothing = 0.1, .training = true}).sum;
    });
  }
}

TEST(SequenceModel, WeightsOf8BitsGiveTheSameBitsAloneInABatchOnAnyThreadsAndOnEveryTarget) {
  for (const NamedModel& each : small_models()) {
    SCOPED_TRACE(each.name);
    const Made made(each.settings, DType::kF32, true);
    Made rounded(each.settings);  // the same values, multiplied as f32
    for (Parameter& parameter : rounded.parameters) parameter.value = made.parameters[parameter.index].value;
    const std::vector<SequencePair> pairs = some_pairs();
    const Batch batch = make_batch(pairs, {});
    const auto all = [&](const Made& model) {
      std::vector<std::vector<float>> result;
      for (std::size_t i = 0; i < pairs.size(); ++i) result.push_back(log_probabilities(*model.model, batch, i));
      return result;
    };
    const std::vector<std::vector<float>> expected = all(made), others = all(rounded);
    EXPECT_NE(expected, others);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      for (std::size_t t = 0; t < expected[i].size(); ++t) EXPECT_NEAR(expected[i][t], others[i][t], 0.25);
      EXPECT_EQ(log_probabilities(*made.model, make_batch({&pairs[i], 1}, {}), 0), expected[i]);
    }
    for (const std::string& name : targets()) {
      if (name == "sse4") continue;
      const TargetScope target(name);
      for (const int limit : {1, 3}) {
        const ThreadLimit scope(limit);
        EXPECT_EQ(all(made), expected) << name << ", " << limit << " threads";
      }
    }
  }
}

TEST(SequenceModel, TrainingNeverUsesWeightsOf8Bits) {
  const Made made(small_model("transformer"), DType::kF32, true);
  Made rounded(small_model("transformer"));
  for (Parameter& parameter : rounded.parameters) parameter.value = made.parameters[parameter.index].value;
  const Batch batch = make_batch(some_pairs(), {});
  const auto loss = [&](const Made& model) {
    Gradients gradients(model.parameters);
    Tape tape(gradients);
    const Var sum = model.model->loss(tape, batch).sum;
    tape.backward(sum);
    gradients.settle();
    std::vector<float> all = {static_cast<float>(sum.value().item())};
    for (const Parameter& parameter : model.parameters) {
      const float* data = gradients.of(parameter).data<float>();
      all.insert(all.end(), data, data + parameter.value.size());
    }
    return all;
  };
  EXPECT_EQ(loss(made), loss(rounded));
}

TEST(SequenceModel, ANewValueIsNotMultipliedByOldBytes) {
  Made made(small_model("transformer"), DType::kF32, true);
  const Made plain(small_model("transformer"));
  const Batch batch = make_batch(some_pairs(), {});
  const auto loss = [&](const Made& model) {
    Tape tape;
    return model.model->loss(tape, batch).sum.value().item();
  };
  EXPECT_NE(loss(made), loss(plain));
  for (Parameter& parameter : made.parameters) {  // as an optimiser does it
    parameter.value.copy_from(plain.parameters[parameter.index].value);
    ++parameter.version;
  }
  EXPECT_EQ(loss(made), loss(plain));
}

}  // namespace
}  // namespace regard
