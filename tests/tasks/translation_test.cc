// Translation from end to end: pairs of lines in, a model file out, translations and maps from that file.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "data/corpus.h"
#include "data/train_pieces.h"
#include "io/file.h"
#include "io/model_file.h"
#include "models/attention_maps.h"
#include "support/error_of.h"
#include "support/files.h"
#include "support/sanitized.h"
#include "tasks/train_translation.h"
#include "tasks/translator.h"
#include "train/without_times.h"

namespace regard {
namespace {

ModelSettings small(std::string_view name) {
  ModelSettings model = preset(name);
  model.hidden = model.family == "transformer" ? 32 : 48;
  model.embedding = 32;
  model.ffn = 48;
  model.heads = 2;
  model.encoder_layers = std::min<std::int64_t>(model.encoder_layers, 2);
  model.decoder_layers = std::min<std::int64_t>(model.decoder_layers, 2);
  model.dropout = 0.1;
  return model;
}

TranslationSettings quick() {
  TranslationSettings settings;
  settings.tokenizer = "words";
  settings.batch_tokens = 400;
  settings.warmup = 20;
  settings.stop_after = "12u";
  settings.valid_every = "6u";
  settings.report_every = "3u";
  settings.best_by = "loss";
  return settings;
}

TranslationData builtin() { return {.builtin = "zh-en", .builtin_lines = 120, .builtin_tests = 30}; }

std::string bytes_of(const std::string& path) {
  std::string bytes;
  EXPECT_EQ(disk().read(path, bytes).error, 0) << path;
  return bytes;
}

// The first short sentences of the built-in corpus, in a table.
std::vector<std::string> write_pairs(const std::string& path, std::size_t count) {
  std::ofstream out(path);
  std::vector<std::string> targets;
  const Corpus corpus("zh-en", 5, Corpus::Split::kTrain);
  for (std::uint64_t line = 0; targets.size() < count; ++line) {
    const Corpus::Example example = corpus.at(line);
    if (example.target.words.size() > 9) continue;
    out << example.source.text << '\t' << example.target.text << '\n';
    targets.push_back(example.target.text);
  }
  return targets;
}

std::vector<std::string> sources_of(const std::string& path) {
  std::vector<std::string> sources;
  PairReader reader({.source = path});
  for (LinePair pair; reader.next(pair);) sources.push_back(pair.source);
  return sources;
}

TEST(Translation, LearnsAFewSentencesByHeartAndShowsWhereItLooked) {
  if (REGARD_SANITIZED) GTEST_SKIP() << "takes minutes there";
  const Folder folder;
  const std::vector<std::string> targets = write_pairs(folder / "pairs.tsv", 20);
  ModelSettings model = small("gru-attention");
  model.dropout = 0;
  TranslationSettings settings = quick();
  settings.rate = 5e-3;
  settings.label_smoothing = 0;
  settings.stop_after = "400u";
  settings.valid_every = "1000u";
  TranslationData data;
  data.train = PairFiles{.source = folder / "pairs.tsv"};
  train_translation(data, model, settings, {.path = folder / "m.model"}, {});

  const Translator translator(folder / "m.model");
  const std::vector<std::string> sources = sources_of(folder / "pairs.tsv");
  for (const std::int64_t beam : {1, 4}) {
    const auto found = translator.translate(sources, {.beam = beam});
    ASSERT_EQ(found.size(), targets.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(found[i].best.at(0).text, targets[i])
          << sources[i] << ", beam " << beam << ", score " << found[i].best[0].score;
  }
  const auto one = translator.translate(std::span(sources).first(1), {.beam = 3, .best = 3});
  ASSERT_EQ(one[0].best.size(), 3u);
  EXPECT_GE(one[0].best[0].score, one[0].best[1].score);

  const Translator::Looked looked = translator.look(sources[0], one[0].best[0]);
  const Tensor map = map_of(looked.weights, {});
  ASSERT_EQ(map[0], static_cast<std::int64_t>(looked.target.size()) + 1);
  ASSERT_EQ(map[1], static_cast<std::int64_t>(looked.source.size()) + 1);
  for (std::int64_t i = 0; i < map[0]; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < map[1]; ++j) sum += static_cast<double>(map.data<float>()[i * map[1] + j]);
    EXPECT_NEAR(sum, 1, 2e-6);
  }

  std::vector<TextPair> pairs;  // what was found is as likely when it is given
  for (std::size_t i = 0; i < sources.size(); ++i) pairs.push_back({sources[i], targets[i]});
  const auto found = translator.translate(sources, {.beam = 3});
  const auto forced = translator.force(pairs);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_EQ(forced[i].tokens, found[i].best[0].tokens) << targets[i];
    EXPECT_NEAR(forced[i].log_probability, found[i].best[0].log_probability, 1e-5);
    EXPECT_NEAR(forced[i].score, found[i].best[0].score, 1e-6);
  }
}

TEST(Translation, EveryPresetTrainsIsSavedAndTranslates) {
  for (const Preset& each : presets()) {
    SCOPED_TRACE(each.name);
    const Folder folder;
    TranslationSettings settings = quick();
    settings.stop_after = "3u";
    settings.valid_every = "3u";
    settings.beam = 2;
    TranslationData data = builtin();
    data.builtin_lines = 60;
    const LoopResult result = train_translation(data, small(each.name), settings, {.path = folder / "m.model"}, {});
    EXPECT_EQ(result.reached.updates, 3);
    const Translator translator(folder / "m.model");
    const std::vector<std::string> lines = {"他们在看。", "", "没有人见过这个词"};
    const auto found = translator.translate(lines, {.beam = 2});
    ASSERT_EQ(found.size(), 3u);
    const Translator::Looked looked = translator.look(lines[0], found[0].best.at(0));
    EXPECT_EQ(looked.weights[0] > 0, each.settings.family != "seq2seq");
  }
}

TEST(Translation, SameFilesOnAnyNumberOfThreads) {
  const Folder folder;
  for (const int threads : {1, 2, 3}) {
    train_translation(builtin(), small("transformer-tiny"), quick(), {.path = folder / std::to_string(threads)},
                      {.threads = threads});
  }
  for (const char* other : {"2", "3"}) {
    EXPECT_EQ(bytes_of(folder / "1"), bytes_of(folder / other));
    EXPECT_EQ(bytes_of(checkpoint_of(folder / "1")), bytes_of(checkpoint_of(folder / other)));
    EXPECT_EQ(without_times(bytes_of(metrics_of(folder / "1"))), without_times(bytes_of(metrics_of(folder / other))));
  }
}

// Texts that are cut anew at every update.
TranslationSettings cut_anew() {
  TranslationSettings settings = quick();
  settings.tokenizer = "pieces";
  settings.vocabulary = 800;
  settings.piece_dropout = 0.3;
  return settings;
}

void expect_same_files_when_stopped(const TranslationSettings& settings) {
  const Folder folder;
  train_translation(builtin(), small("luong"), settings, {.path = folder / "straight"}, {});
  const std::string path = folder / "stopped";
  bool done = false;
  for (std::int64_t more = 1; !done; ++more) {  // after 1, then 2, then 3 … updates
    std::stop_source stop;
    std::int64_t seen = 0;
    TranslationRun run{.path = path, .resume = more > 1};
    run.on_update = [&](const UpdateReport&) {
      if (++seen == more) stop.request_stop();
    };
    try {
      train_translation(builtin(), small("luong"), settings, run, {.cancel = stop.get_token()});
      done = true;
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::kCancelled) << error.what();
      EXPECT_NE(std::string(error.what()).find("--resume"), std::string::npos) << error.what();
    }
    ASSERT_LT(more, 20);
  }
  EXPECT_EQ(bytes_of(folder / "straight"), bytes_of(path));
  EXPECT_EQ(bytes_of(checkpoint_of(folder / "straight")), bytes_of(checkpoint_of(path)));
  EXPECT_EQ(without_times(bytes_of(metrics_of(folder / "straight"))), without_times(bytes_of(metrics_of(path))));
}

TEST(Translation, ARunThatWasStoppedAnywhereEndsWithTheSameFiles) { expect_same_files_when_stopped(quick()); }

TEST(Translation, PieceDropoutIsTheSameOnAnyNumberOfThreadsAndWhenARunGoesOn) {
  if (find_pieces_module() == nullptr) GTEST_SKIP() << "SentencePiece was not there when this was built";
  expect_same_files_when_stopped(cut_anew());
  const Folder folder;
  TranslationSettings plain = cut_anew();
  plain.piece_dropout = 0;
  train_translation(builtin(), small("gru-attention"), plain, {.path = folder / "plain"}, {});
  for (const int threads : {1, 3}) {
    train_translation(builtin(), small("gru-attention"), cut_anew(), {.path = folder / std::to_string(threads)},
                      {.threads = threads});
  }
  const auto diary = [&](const char* name) { return without_times(bytes_of(metrics_of(folder / name))); };
  EXPECT_EQ(bytes_of(folder / "1"), bytes_of(folder / "3"));
  EXPECT_EQ(diary("1"), diary("3"));
  EXPECT_NE(diary("1"), diary("plain"));
}

TEST(Translation, WhatCannotWorkIsSaidBeforeTheDataIsRead) {
  const Folder folder;
  const std::string path = folder / "m.model";
  const auto train = [&](const TranslationData& data, const ModelSettings& model, const TranslationSettings& settings,
                         const std::string& to) {
    return error_of([&] { train_translation(data, model, settings, {.path = to}, {}); });
  };
  const auto says = [](const std::string& error, std::string_view part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  TranslationData missing;
  missing.train = PairFiles{.source = folder / "none.tsv"};
  ModelSettings odd = small("gru-attention");
  odd.attention = "aditive";
  says(train(missing, odd, quick(), path), "did you mean 'additive'");
  says(train(missing, small("gru"), quick(), folder / "there/is/none"), "there is no folder");
  says(train(missing, small("gru"), quick(), path), "none.tsv");
  TranslationSettings settings = quick();
  settings.stop_after = "12 parsecs";
  says(train(builtin(), small("gru"), settings, path), "stop_after");
  settings = quick();
  settings.piece_dropout = 0.1;
  says(train(builtin(), small("gru-attention"), settings, path), "piece_dropout is for tokenizer pieces");
  settings.tokenizer = "pieces";
  settings.guide = 1;
  says(train(builtin(), small("gru-attention"), settings, path), "do not go together");
  std::ofstream(folder / "empty.tsv").close();
  missing.train = PairFiles{.source = folder / "empty.tsv"};
  says(train(missing, small("gru"), quick(), path), "no pair");
  std::ofstream(path) << "somebody's work";
  says(train(builtin(), small("gru"), quick(), path), "exists");
  EXPECT_EQ(bytes_of(path), "somebody's work");
  says(error_of([&] { Translator translator(path); }), "m.model");
}

TEST(Translation, GoingOnWithOtherSettingsIsRefused) {
  const Folder folder;
  const std::string path = folder / "m.model";
  train_translation(builtin(), small("gru"), quick(), {.path = path}, {});
  TranslationSettings other = quick();
  other.label_smoothing = 0.2;
  const std::string before = bytes_of(path);
  const std::string error =
      error_of([&] { train_translation(builtin(), small("gru"), other, {.path = path, .resume = true}, {}); });
  EXPECT_NE(error.find("label_smoothing"), std::string::npos) << error;
  EXPECT_EQ(bytes_of(path), before);
  TranslationSettings longer = quick();
  longer.stop_after = "15u";
  EXPECT_EQ(train_translation(builtin(), small("gru"), longer, {.path = path, .resume = true}, {}).reached.updates, 15);
}

// With weights of 8 bits the same holds as without: what was found is as likely when it is given, and was looked at in
// the same way in any company.
TEST(Translation, WeightsOf8BitsTranslateAlikeFromAFileOrMadeAtLoading) {
  const Folder folder;
  for (const char* name : {"transformer-tiny", "gru-attention"}) {
    SCOPED_TRACE(name);
    const std::string path = folder / name;
    write_pairs(folder / "pairs.tsv", 20);
    TranslationSettings settings = quick();
    settings.rate = 5e-3;
    settings.stop_after = REGARD_SANITIZED ? "5u" : "150u";  // there, what it learned is not looked at
    settings.valid_every = "1000u";
    TranslationData data;
    data.train = PairFiles{.source = folder / "pairs.tsv"};
    train_translation(data, small(name), settings, {.path = path}, {});
    load_model(disk(), path).save_as(disk(), path + ".int8", Storage::kInt8);
    load_model(disk(), path).save_as(disk(), path + ".bf16", Storage::kBF16);
    const Translator plain(path), file(path + ".int8"), made(path, true), half(path + ".bf16");
    const std::vector<std::string> sources = sources_of(folder / "pairs.tsv");
    const auto of_plain = plain.translate(sources, {.beam = 3}), of_file = file.translate(sources, {.beam = 3}),
               of_made = made.translate(sources, {.beam = 3}), of_half = half.translate(sources, {.beam = 3});
    std::size_t same = 0, same_half = 0;
    bool differs = false;
    std::vector<TextPair> pairs;
    std::vector<Translator::Result> results;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      EXPECT_EQ(of_file[i].best[0].text, of_made[i].best[0].text);
      EXPECT_EQ(of_file[i].best[0].score, of_made[i].best[0].score);  // bit for bit
      same += of_file[i].best[0].text == of_plain[i].best[0].text;
      same_half += of_half[i].best[0].text == of_plain[i].best[0].text;
      differs |= of_file[i].best[0].score != of_plain[i].best[0].score;
      pairs.push_back({sources[i], of_file[i].best[0].text});
      results.push_back(of_file[i].best[0]);
    }
    EXPECT_TRUE(differs);
    if (!REGARD_SANITIZED) {
      EXPECT_GE(same, sources.size() / 2);
      EXPECT_GE(same_half, sources.size() / 2);
    }
    const auto forced = file.force(pairs);
    const auto together = file.look(sources, results);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (forced[i].tokens == results[i].tokens) {
        EXPECT_NEAR(forced[i].log_probability, results[i].log_probability, 1e-5);
      }
      const Tensor alone = file.look(sources[i], results[i]).weights;
      ASSERT_EQ(alone.shape(), together[i].weights.shape());
      EXPECT_EQ(std::memcmp(alone.raw(), together[i].weights.raw(), alone.bytes()), 0);
    }
  }
}

}  // namespace
}  // namespace regard
