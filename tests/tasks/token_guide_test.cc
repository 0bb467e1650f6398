// A model that is told where to look by an aligner that learned from the same pairs.
#include "tasks/token_guide.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "regard/error.h"
#include "support/folder.h"
#include "tasks/alignment.h"
#include "tasks/train_translation.h"

namespace regard {
namespace {

class TokenGuides : public testing::Test {
 protected:
  TokenGuides() {
    std::ofstream out(folder_ / "pairs.tsv");
    const std::vector<std::pair<std::string, std::string>> words = {
        {"haus", "house"}, {"buch", "book"}, {"hund", "dog"}, {"tag", "day"}, {"weg", "way"}, {"baum", "tree"}};
    for (const auto& [a, b] : words) {
      for (const auto& [c, d] : words) out << a << ' ' << c << '\t' << d << ' ' << b << '\n';
    }
  }
  TranslationData data() const {
    TranslationData made;
    made.train = PairFiles{.source = folder_ / "pairs.tsv"};
    return made;
  }
  std::string train(const std::string& name, ModelSettings model, const std::string& stop, bool resume = false) const {
    TranslationSettings settings;
    settings.tokenizer = "words";
    settings.batch_tokens = 64;
    settings.guide = 2;
    settings.rate = 0.01;
    settings.warmup = 1;
    settings.stop_after = stop;
    settings.save_every = "10u";
    settings.report_every = settings.valid_every = "9999u";
    train_translation(data(), model, settings, {.path = folder_ / name, .resume = resume}, {});
    return folder_ / name;
  }
  static ModelSettings small(const char* name) {
    ModelSettings model = preset(name);
    model.hidden = model.embedding = model.ffn = 16;
    model.heads = 2;
    model.encoder_layers = model.decoder_layers = 1;
    model.dropout = model.attention_dropout = 0;
    return model;
  }

  Folder folder_;
};

TEST_F(TokenGuides, SayWhereTokensComeFromAndLeaveTheRestToTheEnd) {
  const OpenPairs open = open_pairs(*data().train);
  const TokenizerPair tokenizers = build_tokenizers(open, {.kind = "words"});
  const TokenGuide guide = TokenGuide::learn(open, tokenizers, 100, {});
  SequencePair pair{.source = tokenizers.source->ids("Haus baum"), .target = tokenizers.target->ids("tree house")};
  pair.source.push_back(tokenizers.source->special().end);
  std::vector<SequencePair> pairs = {pair};
  guide.add_to(pairs);
  const std::vector<float>& said = pairs[0].guide;
  ASSERT_EQ(said.size(), 6u);
  EXPECT_GT(said[1], 0.8f);  // tree from baum
  for (std::size_t row = 0; row < 2; ++row) {
    EXPECT_NEAR(std::accumulate(said.begin() + 3 * static_cast<std::ptrdiff_t>(row),
                                said.begin() + 3 * static_cast<std::ptrdiff_t>(row) + 3, 0.0f),
                1, 1e-6);
  }
}

TEST_F(TokenGuides, AModelThatIsToldAlignsAndKnowsItsChoice) {
  const Translator told(train("told", small("transformer-tiny"), "150u"));
  EXPECT_EQ(choice_of(told), (AlignmentChoice{.layer = 0, .head = -1, .shift = 1}));
  const std::vector<std::string> lines = {"haus baum", "weg hund"};
  const std::vector<Translator::Result> results = {{.text = "tree house", .tokens = told.target().encode("tree house")},
                                                   {.text = "dog way", .tokens = told.target().encode("dog way")}};
  for (const std::string& each : alignment_texts(told, lines, results, alignment_settings("hard"))) {
    EXPECT_EQ(each, "0-1 1-0");
  }
}

TEST_F(TokenGuides, ARunThatGoesOnHasTheBitsOfOneThatWasNotStopped) {
  train("whole", small("luong"), "20u");
  train("parts", small("luong"), "10u");
  train("parts", small("luong"), "20u", true);
  EXPECT_EQ(folder_.read("whole"), folder_.read("parts"));
}

TEST_F(TokenGuides, WhatCannotBeToldIsAnErrorBeforeAnythingIsRead) {
  EXPECT_THROW(train("none", small("gru"), "1u"), Error);
  EXPECT_THROW(train("convs2s", small("convs2s"), "1u"), Error);
  ModelSettings sparse = small("transformer-tiny");
  sparse.attention = "dot | sparsemax";
  EXPECT_THROW(train("sparse", sparse, "1u"), Error);
}

}  // namespace
}  // namespace regard
