// Scores of given pairs.
#include "tasks/scoring.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "support/folder.h"
#include "tasks/train_translation.h"

namespace regard {
namespace {

std::string trained(const Folder& folder, const std::string& name) {
  ModelSettings model = preset(name);
  model.hidden = model.embedding = model.ffn = 16;
  model.encoder_layers = model.decoder_layers = 1;
  model.longest = 300;
  TranslationSettings settings;
  settings.tokenizer = "words";
  settings.longest_text = 20;
  settings.stop_after = "2u";
  settings.valid_every = "2u";
  train_translation({.builtin = "zh-en", .builtin_lines = 40, .builtin_tests = 8}, model, settings,
                    {.path = folder / "m"}, {});
  return folder / "m";
}

struct Scored {
  std::vector<std::string> lines;
  ScoringReport report;
};
Scored scored(const Translator& translator, const PairFiles& files, const ScoringSettings& settings) {
  PairReader pairs(files);
  Scored made;
  made.report = score_pairs(translator, pairs, settings, [&](std::string_view line) { made.lines.emplace_back(line); });
  return made;
}

TEST(Scoring, ALineAPairInOrderAlsoForThoseThatCannotBeScored) {
  const Folder folder;
  const Translator translator(trained(folder, "transformer-tiny"));
  std::string longer;
  for (int i = 0; i < 400; ++i) longer += "birds ";
  folder.write("s", "\n他们在看。\n\xff\n小红在看什么？\n他们在看。\n\n");
  folder.write("t", "a\nThey are watching.\nb\nc\n" + longer + "\nx\n");
  const PairFiles files{.source = folder / "s", .target = folder / "t"};
  const Scored all = scored(translator, files, {});
  ASSERT_EQ(all.lines.size(), 6u);
  EXPECT_EQ(all.report.pairs, 6u);
  EXPECT_EQ(all.report.scored, 2u);
  for (const std::size_t i : {0u, 2u, 4u, 5u}) EXPECT_EQ(all.lines[i], "nan") << i;
  EXPECT_LT(std::stod(all.lines[1]), 0);
  EXPECT_LT(std::stod(all.lines[3]), 0);
  EXPECT_NE(all.report.left_out.find("not UTF-8"), std::string::npos) << all.report.left_out;
  EXPECT_NE(all.report.left_out.find("1 pair with a side of more than 299 tokens, the first at line 5"),
            std::string::npos)
      << all.report.left_out;
  for (const std::size_t together : {1u, 2u, 3u}) {  // neighbours do not matter
    EXPECT_EQ(scored(translator, files, {.together = together}).lines, all.lines);
  }
}

TEST(Scoring, TokensAddUpToTheirSentence) {
  const Folder folder;
  const Translator translator(trained(folder, "gru-attention"));
  folder.write("p.tsv", "他们在看。\tThey are watching.\n");
  const PairFiles files{.source = folder / "p.tsv"};
  const double sum = std::stod(scored(translator, files, {}).lines[0]);
  const double mean = std::stod(scored(translator, files, {.normalize = true}).lines[0]);
  std::istringstream line(scored(translator, files, {.per_token = true}).lines[0]);
  std::string word;
  double first = 0, added = 0;
  int tokens = 0;
  line >> first >> word;
  EXPECT_EQ(word, "|||");
  for (; line >> word; ++tokens) added += std::stod(word.substr(word.rfind(':') + 1));
  EXPECT_EQ(tokens, 5) << "They are watching . and the end";
  EXPECT_EQ(first, sum);
  EXPECT_NEAR(added, sum, 1e-3);
  EXPECT_NEAR(mean, sum / tokens, 1e-4);
  const auto forced = translator.force(std::vector<TextPair>{{"他们在看。", "They are watching."}});
  EXPECT_NEAR(forced[0].log_probability, sum, 1e-4);
}

}  // namespace
}  // namespace regard
