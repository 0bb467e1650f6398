// A model in use: what it finds, that asking changes nothing, and that a line is translated alike wherever it stands.
#include "tasks/translator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "base/check.h"
#include "data/corpus.h"
#include "io/model_file.h"
#include "models/attention_maps.h"
#include "support/error_of.h"
#include "support/files.h"
#include "tasks/box.h"
#include "tasks/small_translators.h"

namespace regard {
namespace {

class TranslatorTest : public SmallTranslators {};

void expect_same(const Translator::Result& a, const Translator::Result& b) {
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.score, b.score);
  EXPECT_EQ(a.log_probability, b.log_probability);
}

TEST_F(TranslatorTest, TheBestAreSortedDistinctAndAsLikelyWhenGiven) {
  for (const std::vector<std::string>& paths : {std::vector{path("gru-attention")},
                                                {path("transformer-tiny")},
                                                {path("gru-attention"), path("transformer-tiny")}}) {
    const Translator translator(paths);
    const std::vector<std::string> sources = lines(12);
    const auto found =
        translator.translate(sources, {.beam = 6, .best = 6, .length_penalty = 0.7, .longest_line = 200});
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_GT(found[i].best.size(), 1u);
      std::set<std::vector<std::int32_t>> distinct;
      for (std::size_t k = 0; k < found[i].best.size(); ++k) {
        const Translator::Result& each = found[i].best[k];
        distinct.insert(ids_of(each.tokens));
        EXPECT_GE(found[i].best[k == 0 ? 0 : k - 1].score, each.score);
        if (translator.target().ids(each.text) != ids_of(each.tokens)) continue;  // several ids may give one text
        const std::vector<TextPair> pair = {{sources[i], each.text}};
        const auto given = translator.force(pair, {.length_penalty = 0.7});
        EXPECT_NEAR(given[0].score, each.score, 1e-5);
        EXPECT_NEAR(given[0].log_probability, each.log_probability, 1e-4);
      }
      EXPECT_EQ(distinct.size(), found[i].best.size());
    }
  }
}

TEST_F(TranslatorTest, ALineIsTranslatedAlikeWhereverItStands) {
  const Translator translator(path("transformer-tiny"));
  const std::vector<std::string> sources = lines(20);
  for (const bool sample : {false, true}) {
    const Translator::Settings settings{.beam = 3, .best = 3, .sample = sample};
    const auto together = translator.translate(sources, settings);
    Translator::Settings small = settings;
    small.batch_tokens = 60;
    const auto apart = translator.translate(sources, small, {.threads = 2});
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const auto alone = translator.translate(std::span(sources).subspan(i, 1), settings, {.threads = 1});
      for (std::size_t k = 0; k < together[i].best.size(); ++k) {
        expect_same(together[i].best[k], apart[i].best.at(k));
        expect_same(together[i].best[k], alone[0].best.at(k));
      }
    }
  }
}

TEST_F(TranslatorTest, AskingWhereItLookedGivesTheSameAnywhereAndChangesNothing) {
  const Translator translator(std::vector{path("gru-attention"), path("transformer-tiny")});
  const std::vector<std::string> sources = lines(8);
  const auto found = translator.translate(sources, {.beam = 3});
  std::vector<Translator::Result> results;
  for (const auto& each : found) results.push_back(each.best[0]);
  const auto together = translator.look(sources, results);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Translator::Looked alone = translator.look(sources[i], results[i]);
    ASSERT_EQ(alone.weights.shape(), together[i].weights.shape());
    EXPECT_EQ(std::memcmp(alone.weights.raw(), together[i].weights.raw(), alone.weights.bytes()), 0);
    EXPECT_EQ(alone.weights.shape(),
              (Shape{3, 2, static_cast<std::int64_t>(results[i].tokens.size()) + 1,
                     static_cast<std::int64_t>(translator.source().encode(sources[i]).size()) + 1}));
  }
  const auto again = translator.translate(sources, {.beam = 3});
  for (std::size_t i = 0; i < sources.size(); ++i) expect_same(again[i].best[0], found[i].best[0]);
}

TEST_F(TranslatorTest, TokensStandWhereTheTextHasThem) {
  const Translator translator(path("gru-attention"));
  for (const auto& each : translator.translate(lines(10), {.beam = 1})) {
    const Translator::Result& result = each.best.at(0);
    std::uint32_t before = 0;
    for (const Token& token : result.tokens) {
      EXPECT_GE(token.begin, before);
      EXPECT_GE(token.end, token.begin);
      const std::string_view seen = std::string_view(result.text).substr(token.begin, token.end - token.begin);
      EXPECT_NE(translator.target().piece(token.id).find(seen), std::string::npos) << seen;
      before = token.end;
    }
    EXPECT_EQ(before, result.text.size());
  }
}

TEST_F(TranslatorTest, ALongLineIsItsSentencesOneAfterAnother) {
  const Translator translator(path("transformer-tiny"));
  const std::vector<std::string> parts = {"他们在看。", "医生昨天在图书馆看了三本书。", "你们喜欢茶吗？"};
  const std::vector<std::string> whole = {parts[0] + parts[1] + parts[2]};
  const auto apart = translator.translate(parts, {.beam = 2, .best = 2});
  std::size_t tokens = 0;
  for (const std::string& part : parts) tokens = std::max(tokens, translator.source().ids(part).size());
  const Translator::Settings settings{.beam = 2, .best = 2, .longest_line = static_cast<std::int64_t>(tokens)};
  const auto joined = translator.translate(whole, settings);
  for (std::size_t k = 0; k < 2; ++k) {
    const Translator::Result& result = joined[0].best.at(k);
    ASSERT_EQ(result.parts.size(), 3u);
    std::string want;
    double score = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      want += (want.empty() ? "" : " ") + apart[i].best[k].text;
      score += apart[i].best[k].score;
      EXPECT_EQ(whole[0].substr(result.parts[i].begin, result.parts[i].end - result.parts[i].begin), parts[i]);
    }
    EXPECT_EQ(result.text, want);
    EXPECT_NEAR(result.score, score, 1e-12);
  }
  // What looked at what stays within a sentence; the rows of each still sum to one.
  const Translator::Looked looked = translator.look(whole[0], joined[0].best[0]);
  const Tensor map = map_of(looked.weights, {});
  const auto columns = static_cast<std::size_t>(map[1]);
  std::size_t row = 0;
  for (const Translator::Part& part : joined[0].best[0].parts) {
    for (std::size_t i = 0; i < part.tokens; ++i, ++row) {
      double inside = 0;
      for (std::size_t j = 0; j < columns; ++j) {
        const double weight = static_cast<double>(map.data<float>()[row * columns + j]);
        const bool end = j + 1 == columns;
        if (end || (looked.source[j].begin >= part.begin && looked.source[j].end <= part.end)) {
          inside += weight;
        } else {
          EXPECT_EQ(weight, 0);
        }
      }
      EXPECT_NEAR(inside, 1, 1e-5);
    }
  }
}

TEST_F(TranslatorTest, NothingIsTranslatedByNothing) {
  const Translator translator(path("gru-attention"));
  const std::vector<std::string> sources = {"", "他们在看。", "   "};
  const auto found = translator.translate(sources, {.beam = 2});
  EXPECT_EQ(found[0].best.at(0).text, "");
  EXPECT_EQ(found[2].best.at(0).text, "");
  EXPECT_NE(found[1].best.at(0).text, "");
  EXPECT_EQ(translator.look(sources[0], found[0].best[0]).weights.shape(), (Shape{1, 1, 1, 1}));
  EXPECT_TRUE(translator.translate({}).empty());
}

TEST_F(TranslatorTest, LimitsAreKept) {
  const Translator translator(path("gru-attention"));
  for (const auto& each : translator.translate(lines(10), {.beam = 2, .longest = 3, .longest_line = 200}))
    EXPECT_LE(each.best.at(0).tokens.size(), 3u);
}

// With a digest that fits, as by ill will.
TEST_F(TranslatorTest, LoadingTakesMemoryForWhatTheFileHasAndNotForWhatItSays) {
  const Folder folder;
  const auto forged = [&](const char* name, const std::vector<std::pair<std::string, std::string>>& changes) {
    const std::string made = folder.write("forged.model", read_file(disk(), path(name)));
    change_config(disk(), made, [&](const Json& config) {
      std::string all = config.to_json();
      for (const auto& [key, value] : changes) {
        const std::size_t begin = all.find(text('"', key, "\":\"")) + key.size() + 4;
        EXPECT_LT(begin, all.size());
        all.replace(begin, all.find('"', begin) - begin, value);
      }
      return all;
    });
    return made;
  };
  const ContextScope scope({.memory_limit = 64 << 20});
  for (const auto& [name, key] : std::vector<std::pair<const char*, const char*>>{{"gru-attention", "hidden"},
                                                                                  {"gru-attention", "embedding"},
                                                                                  {"transformer-tiny", "hidden"},
                                                                                  {"transformer-tiny", "ffn"}}) {
    const std::string made = forged(name, {{key, "65536"}, {"longest", "1048576"}});
    const std::string error = error_of([&] { Translator translator(made); });
    EXPECT_NE(error.find("forged.model': weights"), std::string::npos) << name << ' ' << key << ": " << error;
  }
  const std::string layers = error_of([&] { Translator(forged("transformer-tiny", {{"decoder_layers", "64"}})); });
  EXPECT_NE(layers.find("no weights 'decoder.layer2."), std::string::npos) << layers;
  const Translator longer(forged("transformer-tiny", {{"longest", "1048576"}})), usual(path("transformer-tiny"));
  const std::vector<std::string> sources = lines(3);
  const auto expected = usual.translate(sources), found = longer.translate(sources);
  for (std::size_t i = 0; i < sources.size(); ++i) expect_same(found[i].best.at(0), expected[i].best.at(0));
}

TEST_F(TranslatorTest, SamplesDependOnTheSeedAlone) {
  const Translator translator(path("gru-attention"));
  const std::vector<std::string> sources = lines(6);
  const auto first = translator.translate(sources, {.best = 4, .sample = true, .seed = 1});
  const auto again = translator.translate(sources, {.best = 4, .sample = true, .seed = 1});
  const auto other = translator.translate(sources, {.best = 4, .sample = true, .seed = 2});
  bool differ = false;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    ASSERT_EQ(first[i].best.size(), 4u);
    for (std::size_t k = 0; k < 4; ++k) {
      expect_same(first[i].best[k], again[i].best[k]);
      differ |= first[i].best[k].text != other[i].best[k].text;
    }
  }
  EXPECT_TRUE(differ);
}

TEST_F(TranslatorTest, ModelsWithDifferentWordsCannotTranslateTogether) {
  const Folder folder;
  ModelSettings model = preset("gru-attention");
  model.hidden = model.embedding = 16;
  TranslationSettings settings;
  settings.tokenizer = "characters";
  settings.stop_after = "1u";
  settings.valid_every = "100u";
  train_translation({.builtin = "zh-en", .builtin_lines = 20, .builtin_tests = 2}, model, settings,
                    {.path = folder / "m.model"}, {});
  const std::string error = error_of([&] { Translator both({path("gru-attention"), folder / "m.model"}); });
  EXPECT_NE(error.find("different tokenizers"), std::string::npos) << error;
  EXPECT_NE(error_of([] { Translator none(std::vector<std::string>{}); }), "");
}

TEST(Box, IsChosenByTheLettersOfALine) {
  EXPECT_EQ(direction_of("他们在看。"), "zh-en");
  EXPECT_EQ(direction_of("They are watching 他."), "zh-en");
  EXPECT_EQ(direction_of("They are watching."), "en-zh");
  EXPECT_EQ(direction_of(""), "en-zh");
  EXPECT_EQ(direction_of("\xff\xfe"), "en-zh");
  for (const std::string& place : boxed_model_places("zh-en")) EXPECT_TRUE(place.ends_with("/zh-en.model")) << place;
}

}  // namespace
}  // namespace regard
