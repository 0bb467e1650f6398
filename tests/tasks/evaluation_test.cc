// Scores of translations, and the same by length.
#include "tasks/evaluation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "io/json.h"
#include "support/error_of.h"
#include "support/folder.h"
#include "tasks/train_translation.h"

namespace regard {
namespace {

TestSet some() {
  TestSet set;
  set.sources = {"他们在看。", "我昨天买的书很有意思，你想不想看？", "a b"};
  set.references = {"They are watching.", "The book I bought yesterday is interesting.", "A b."};
  set.lines = {1, 2, 3};
  set.read = 3;
  return set;
}

TEST(Evaluation, WhatIsRightIsAHundredEverywhere) {
  const TestSet set = some();
  const TranslationScores got = evaluate(set, set.references);
  EXPECT_EQ(got.sentences, 3);
  EXPECT_EQ(got.exact, 3);
  EXPECT_NEAR(got.bleu.score, 100, 1e-9);
  EXPECT_NEAR(got.chrf.score, 100, 1e-9);
  EXPECT_FALSE(got.loss.has_value());
  ASSERT_EQ(got.classes.size(), 2u);  // 5 and 2 words; 17
  EXPECT_EQ(to_text(got.classes[0]), "1–10");
  EXPECT_EQ(got.classes[0].sentences, 2);
  EXPECT_EQ(to_text(got.classes[1]), "11–20");
  EXPECT_EQ(got.classes[1].sentences, 1);
}

TEST(Evaluation, ClassesAddUpAndTheLastHasNoEnd) {
  const TestSet set = some();
  std::vector<std::string> written = set.references;
  written[1] = "Something else entirely, and wrong.";
  const TranslationScores got = evaluate(set, written, {.class_width = 2, .most_classes = 3});
  ASSERT_EQ(got.classes.size(), 2u);
  EXPECT_EQ(to_text(got.classes[0]), "1–2");
  EXPECT_EQ(to_text(got.classes[1]), "5…");
  EXPECT_EQ(got.classes[0].sentences + got.classes[1].sentences, 3);
  EXPECT_EQ(got.classes[0].exact + got.classes[1].exact, 2);
  EXPECT_GT(got.classes[0].chrf, got.classes[1].chrf);
}

TEST(Evaluation, ChineseIsCutIntoCharacters) {
  EXPECT_EQ(usual_bleu(std::vector<std::string>{"他们在看。ok"}), "zh");
  EXPECT_EQ(usual_bleu(std::vector<std::string>{"They said 好."}), "13a");
  TestSet set = some();
  std::swap(set.sources, set.references);
  EXPECT_NE(evaluate(set, set.references).bleu_signature.find("tok:zh"), std::string::npos);
  EXPECT_NE(evaluate(set, set.references, {.bleu = "char"}).bleu_signature.find("tok:char"), std::string::npos);
}

TEST(Evaluation, HypothesesStandBesideTheirSentencesAlsoWhenSomeAreLeftOut) {
  const Folder folder;
  folder.write("s", "eins\n\ndrei\n");
  folder.write("t", "one\ntwo\nthree\n");
  const TestSet set = read_test_set({.source = folder / "s", .target = folder / "t"});
  EXPECT_EQ(set.sources, (std::vector<std::string>{"eins", "drei"}));
  EXPECT_NE(set.left_out.find("empty"), std::string::npos);
  EXPECT_EQ(read_hypotheses(folder.write("h", "a\nb\nc\n"), set), (std::vector<std::string>{"a", "c"}));
  const std::string error = error_of([&] { read_hypotheses(folder.write("h", "a\nb\n"), set); });
  EXPECT_NE(error.find("has 2 lines, expected 3"), std::string::npos) << error;
}

TEST(Evaluation, TextJsonAndPictureTellTheSame) {
  const TestSet set = some();
  std::vector<Translator::Result> forced(3);
  for (Translator::Result& each : forced) {
    each.tokens.resize(4);
    each.log_probability = -5 * std::log(2.0);
  }
  const TranslationScores got = evaluate(set, set.references, {}, forced);
  EXPECT_NEAR(got.loss.value(), std::log(2.0), 1e-12);
  EXPECT_NEAR(got.perplexity().value(), 2, 1e-12);
  const std::string text = to_text(got);
  EXPECT_NE(text.find("loss 0.6931 per token, perplexity 2.000 (15 tokens)"), std::string::npos) << text;
  EXPECT_NE(text.find("exact 3 of 3 (100.0 %)"), std::string::npos) << text;
  const Json json = Json::parse(to_json(got), "json");
  EXPECT_NEAR(json.at("bleu").at("score").number(), 100, 1e-9);
  EXPECT_EQ(json.at("by_length").array().size(), 2u);
  EXPECT_NEAR(json.at("perplexity").number(), 2, 1e-12);
  const std::string svg = to_svg(got, "a & b");
  EXPECT_NE(svg.find("a &amp; b"), std::string::npos);
  EXPECT_NE(svg.find(">11–20</text>"), std::string::npos);
}

TEST(TestSets, WhoeverIsAskedToStopMakesUpNoMoreSentences) {
  std::stop_source stop;
  stop.request_stop();
  const Context context{.cancel = stop.get_token()};
  try {
    builtin_test_set("zh-en", 1'000'000, 1, context);
    FAIL() << "it went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
  }
}

TEST(Evaluation, OfAModelIsThatOfWhatItWrites) {
  const Folder folder;
  ModelSettings model = preset("gru-attention");
  model.hidden = model.embedding = 16;
  TranslationSettings settings;
  settings.tokenizer = "words";
  settings.stop_after = "2u";
  settings.valid_every = "2u";
  train_translation({.builtin = "zh-en", .builtin_lines = 40, .builtin_tests = 8}, model, settings,
                    {.path = folder / "m"}, {});
  const Translator translator(folder / "m");
  const TestSet set = builtin_test_set("zh-en", 8);
  std::vector<std::string> written;
  const TranslationScores got = evaluate(translator, set, {.search = {.beam = 1}}, {}, &written);
  ASSERT_EQ(written.size(), 8u);
  EXPECT_EQ(got.bleu.score, evaluate(set, written).bleu.score);
  double sum = 0;
  for (const Translator::Result& each : force_references(translator, set)) sum += each.log_probability;
  EXPECT_NEAR(got.loss.value() * static_cast<double>(got.tokens), -sum, 1e-9);
}

}  // namespace
}  // namespace regard
