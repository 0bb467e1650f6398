// Models by name, settings as text, and that every preset can learn something by heart.
#include "models/presets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "kernels/target.h"
#include "models/some_models.h"
#include "regard/train/trainer.h"
#include "support/sanitized.h"
#include "train/fingerprint.h"

namespace regard {
namespace {

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Presets, AreThoseThatAreKnownByName) {
  std::vector<std::string> names;
  for (const Preset& each : presets()) names.emplace_back(each.name);
  EXPECT_EQ(names, (std::vector<std::string>{"rnn", "gru", "lstm", "gru-attention", "luong", "transformer-tiny",
                                             "transformer-base", "convs2s"}));
  EXPECT_EQ(preset("gru-attention").embedding, 256);
  EXPECT_EQ(preset("gru-attention").hidden, 512);
  const ModelSettings& tiny = preset("transformer-tiny");
  EXPECT_EQ((std::vector<std::int64_t>{tiny.encoder_layers, tiny.decoder_layers, tiny.hidden, tiny.ffn, tiny.heads}),
            (std::vector<std::int64_t>{4, 4, 128, 256, 4}));
  const ModelSettings& base = preset("transformer-base");
  EXPECT_EQ((std::vector<std::int64_t>{base.encoder_layers, base.decoder_layers, base.hidden, base.ffn, base.heads}),
            (std::vector<std::int64_t>{6, 6, 512, 2048, 8}));
  EXPECT_NE(error_of([] { preset("gru-atention"); }).find("did you mean 'gru-attention'"), std::string::npos);
}

TEST(Presets, FamiliesAreInTheRegistry) {
  std::vector<std::string> names;
  for (const ModelFamily& each : model_families()) names.emplace_back(each.name);
  EXPECT_EQ(names, (std::vector<std::string>{"bahdanau", "convs2s", "luong", "seq2seq", "transformer"}));
}

TEST(ModelSettings, AsTextGoForthAndBack) {
  std::vector<ModelSettings> all;
  for (const Preset& each : presets()) all.push_back(each.settings);
  for (const NamedModel& each : looking_models()) all.push_back(each.settings);
  all.push_back(with({}, {{"dropout", "0.30000000000000004"}, {"norm", "post"}, {"tie", "true"}, {"share", "true"}}));
  for (const ModelSettings& settings : all) {
    ModelSettings again;
    for (const auto& [key, value] : list(settings)) {
      set(again, key, value);
      EXPECT_FALSE(meaning(key).empty());
    }
    EXPECT_EQ(again, settings);
  }
  // Everything that is in the struct is in the list: a struct with all of it changed is another one key by key.
  EXPECT_EQ(list({}).size(), 25u);
}

TEST(ModelSettings, WhatIsWrongIsSaid) {
  ModelSettings settings;
  const auto error = [&](std::string_view key, std::string_view value) {
    return error_of([&] { set(settings, key, value); });
  };
  EXPECT_NE(error("hiden", "5").find("did you mean 'hidden'"), std::string::npos);
  EXPECT_EQ(error("hidden", "5x"), "model: hidden is '5x', expected a whole number from 1 to 65536");
  EXPECT_NE(error("hidden", "0"), "no error");
  EXPECT_NE(error("hidden", ""), "no error");
  EXPECT_NE(error("dropout", "1"), "no error");
  EXPECT_NE(error("dropout", "nan"), "no error");
  EXPECT_NE(error("tie", "yes"), "no error");
  EXPECT_NE(error("norm", "pro").find("known: pre, post"), std::string::npos);
  EXPECT_EQ(settings, ModelSettings());

  const auto made = [](const ModelSettings& of) {
    Parameters parameters;
    return error_of([&] { make_model(Builder(parameters, RandomKey(1)), of); });
  };
  EXPECT_NE(made(ModelSettings{.family = "transfomer"}).find("did you mean 'transformer'"), std::string::npos);
  EXPECT_NE(made(with(small_model("transformer"), {{"heads", "3"}})).find("does not divide"), std::string::npos);
  EXPECT_NE(made(with(small_model("transformer"), {{"share", "true"}})).find("share"), std::string::npos);
  EXPECT_NE(made(with(small_model("transformer"), {{"attention", "aditive"}})).find("additive"), std::string::npos);
  EXPECT_NE(made(with(small_model("transformer"), {{"attention", "dot; dot; dot"}})).find("3 lines for 2"),
            std::string::npos);
  EXPECT_NE(made(with(small_model("transformer"), {{"decoder_attention", "dot | local_p:3"}})).find("local_p"),
            std::string::npos);
  EXPECT_NE(made(with(small_model("seq2seq"), {{"attention", "dot"}})).find("has none"), std::string::npos);
  EXPECT_NE(made(with(small_model("luong"), {{"attention", "none"}})), "no error");
  EXPECT_NE(made(with(small_model("bahdanau"), {{"encoder_layers", "1"}})).find("as many"), std::string::npos);
  EXPECT_NE(made(with(small_model("bahdanau"), {{"tie", "true"}, {"readout", "5"}})).find("tied"), std::string::npos);
  ModelSettings damaged = small_model("transformer");
  damaged.dropout = -1;
  EXPECT_NE(made(damaged).find("dropout"), std::string::npos);
}

// The likeliest word at every step, the first of equals.
std::vector<std::vector<std::int32_t>> greedy_words(const SequenceModel& model, const Batch& batch) {
  const auto decoding = model.decode(batch);
  std::vector<std::vector<std::int32_t>> written(static_cast<std::size_t>(batch.size()));
  std::vector<std::int32_t> sources, origins, previous;
  for (std::int32_t i = 0; i < batch.size(); ++i) sources.push_back(i);
  previous.assign(sources.size(), 0);
  for (int step = 0; step < 20 && !sources.empty(); ++step) {
    const Tensor logits = decoding->step(sources, origins, previous);
    std::vector<std::int32_t> running;
    origins.clear();
    previous.clear();
    for (std::size_t row = 0; row < sources.size(); ++row) {
      const float* from = logits.data<float>() + static_cast<std::int64_t>(row) * logits[1];
      const auto word = static_cast<std::int32_t>(std::max_element(from, from + logits[1]) - from);
      if (word == 1) continue;
      written[static_cast<std::size_t>(sources[row])].push_back(word);
      running.push_back(sources[row]);
      origins.push_back(static_cast<std::int32_t>(row));
      previous.push_back(word);
    }
    sources = running;
  }
  return written;
}

std::vector<SequencePair> fifty_pairs() {
  std::vector<SequencePair> pairs(50);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const RandomKey key = RandomKey(17).at(i);
    pairs[i].id = i;
    const std::uint64_t source = 3 + random_below(key, 0, 5), target = 3 + random_below(key, 1, 5);
    for (std::uint64_t j = 0; j < source; ++j) {
      pairs[i].source.push_back(static_cast<std::int32_t>(2 + random_below(key, 10 + j, 28)));
    }
    for (std::uint64_t j = 0; j < target; ++j) {
      pairs[i].target.push_back(static_cast<std::int32_t>(2 + random_below(key, 30 + j, 28)));
    }
  }
  return pairs;
}

class Preset64 : public testing::TestWithParam<std::pair<std::string, int>> {};

TEST_P(Preset64, LearnsFiftyPairsByHeart) {
  if (REGARD_SANITIZED != 0) GTEST_SKIP() << "too slow here";
  const auto& [name, updates] = GetParam();
  ModelSettings settings = preset(name);
  settings.source_words = settings.target_words = 30;
  settings.hidden = settings.embedding = 64;
  settings.ffn = 128;
  settings.dropout = 0;
  settings.longest = 16;
  const std::vector<SequencePair> pairs = fifty_pairs();
  Parameters parameters;
  const auto model = make_model(Builder(parameters, RandomKey(3)), settings);
  Adam adam(parameters);
  Trainer trainer(parameters, adam, {.clip = 1});
  const Batch batch = make_batch(pairs, {});
  double loss = 0;
  for (int step = 0; step < updates; ++step) {
    const double rate = 0.004 * std::min(1.0, (step + 1) / 20.0);
    loss = trainer
               .step(rate,
                     [&](Tape& tape) {
                       const Var sum = model->loss(tape, batch).sum;
                       return sum * number(tape, 1 / static_cast<double>(batch.target_count));
                     })
               .loss;
  }
  EXPECT_LT(loss, 0.1);
  const std::vector<std::vector<std::int32_t>> written = greedy_words(*model, batch);
  int right = 0;
  for (std::size_t row = 0; row < written.size(); ++row)
    right += written[row] == pairs[batch.order[row]].target ? 1 : 0;
  EXPECT_EQ(right, 50);
}

// As many updates as it needs, and half as many again.
INSTANTIATE_TEST_SUITE_P(All, Preset64,
                         testing::Values(std::pair("rnn", 100), std::pair("gru", 100), std::pair("lstm", 100),
                                         std::pair("gru-attention", 100), std::pair("luong", 100),
                                         std::pair("transformer-tiny", 80), std::pair("transformer-base", 70),
                                         std::pair("convs2s", 150)),
                         [](const auto& each) {
                           std::string name = each.param.first;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// The weights after a few updates, of g++ and of clang: tape and parameters have one order, and no product is fused by
// a compiler's own will.
TEST(Presets, TrainedWeightsDoNotDependOnTheCompiler) {
  if (target() != "avx2" && target() != "avx512") GTEST_SKIP() << "this processor has bits of its own";
  const std::map<std::string, std::uint64_t> known = {{"rnn", 0x2547502c6b5f5195u},
                                                      {"gru", 0x8d0c8b5f23ec6918u},
                                                      {"lstm", 0xab8382d8a47696bu},
                                                      {"gru-attention", 0x1e4b40f621b7f54du},
                                                      {"luong", 0x9839587e2bfce415u},
                                                      {"transformer-tiny", 0xa63d012ca13bee7u},
                                                      {"transformer-base", 0xb0ee1b1dd955fb99u},
                                                      {"convs2s", 0x970cd5278ca4b934u}};
  const Batch batch = make_batch(fifty_pairs(), {});
  for (const Preset& each : presets()) {
    ModelSettings settings = each.settings;
    settings.source_words = settings.target_words = 30;
    settings.hidden = settings.embedding = 32;
    settings.ffn = 48;
    settings.heads = 2;
    settings.longest = 16;
    Parameters parameters;
    const auto model = make_model(Builder(parameters, RandomKey(3)), settings);
    Adam adam(parameters);
    Trainer trainer(parameters, adam, {.clip = 1});
    for (std::uint64_t step = 0; step < 4; ++step) {
      trainer.step(0.004, [&](Tape& tape) {
        return model->loss(tape, batch, {.label_smoothing = 0.1, .training = true, .key = RandomKey(step)}).sum;
      });
    }
    EXPECT_EQ(fingerprint(parameters), known.at(std::string(each.name)))
        << each.name << ": " << std::hex << "0x" << fingerprint(parameters);
  }
}

}  // namespace
}  // namespace regard
