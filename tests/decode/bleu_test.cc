// BLEU against sacreBLEU's numbers.
#include "decode/bleu.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "regard/error.h"
#include "support/paths.h"

namespace regard {
namespace {

TEST(Bleu, IsWhatSacreBleuSays) {
  std::ifstream file(source_path("/tests/golden/bleu.txt"));
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  int cases = 0;
  while (std::getline(file, line)) {
    std::istringstream head(line);
    std::string word, tokenizer;
    int lower = 0, sentences = 0, references = 0;
    head >> word >> tokenizer >> lower >> sentences >> references;
    ASSERT_EQ(word, "case") << line;
    const BleuSettings settings{.tokenizer = bleu_tokenizer(tokenizer), .lowercase = lower == 1};
    std::vector<std::vector<std::string>> texts(static_cast<std::size_t>(sentences));
    for (std::vector<std::string>& each : texts) {
      for (int i = 0; i <= references; ++i) {
        ASSERT_TRUE(std::getline(file, line));
        each.push_back(line);
      }
    }
    ASSERT_TRUE(std::getline(file, line));
    std::istringstream numbers(line);
    double score = -1, precisions[4] = {}, brevity = -1;
    std::int64_t hypothesis = -1, reference = -1;
    numbers >> score >> precisions[0] >> precisions[1] >> precisions[2] >> precisions[3] >> brevity >> hypothesis >>
        reference;
    ASSERT_TRUE(std::getline(file, line));
    ++cases;
#if !REGARD_TEXT_LIBRARIES
    if (settings.lowercase || settings.tokenizer == BleuTokenizer::kInternational) continue;
#endif
    Bleu bleu(settings);
    for (const std::vector<std::string>& each : texts)
      bleu.add(each[0], std::vector<std::string_view>(each.begin() + 1, each.end()));
    const BleuScore got = bleu.score();
    const std::string what = "case " + tokenizer + (lower ? " lower: " : ": ") + texts[0][0];
    EXPECT_NEAR(got.score, score, 1e-9) << what;
    for (std::size_t n = 0; n < 4; ++n) EXPECT_NEAR(got.precisions[n], precisions[n], 1e-9) << what;
    EXPECT_NEAR(got.brevity, brevity, 1e-12) << what;
    EXPECT_EQ(got.hypothesis_words, hypothesis) << what;
    EXPECT_EQ(got.reference_words, reference) << what;
    std::string words;
    for (const std::string& each : bleu_words(texts[0][0], settings)) words += (words.empty() ? "" : " ") + each;
    if (settings.tokenizer == BleuTokenizer::k13a || settings.tokenizer == BleuTokenizer::kChinese) {
      EXPECT_EQ(words, line) << what;
    }
  }
  EXPECT_GT(cases, 90);
}

TEST(Bleu, NothingWrittenIsZero) {
  Bleu bleu;
  EXPECT_EQ(bleu.score().score, 0);
  bleu.add("", "a b c");
  EXPECT_EQ(bleu.score().score, 0);
  EXPECT_EQ(bleu.score().brevity, 0);
  EXPECT_EQ(bleu.score().reference_words, 3);
}

TEST(Bleu, EqualTextsAreAHundred) {
  Bleu bleu;
  bleu.add("They are watching the birds.", "They are watching the birds.");
  EXPECT_NEAR(bleu.score().score, 100, 1e-9);
  EXPECT_EQ(
      bleu.score().text(bleu.signature()).find("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:regard-"),
      0u);
  EXPECT_NE(bleu.score().text("x").find(" = 100.00 100.0/100.0/100.0/100.0 (BP = 1.000 ratio = 1.000 hyp_len = 6"),
            std::string::npos)
      << bleu.score().text("x");
}

TEST(Bleu, BrokenUtf8IsCountedNotRefused) {
  Bleu bleu({.tokenizer = BleuTokenizer::kChinese});
  bleu.add("\xff\xfe 好 \xe4", "好 \xc0");
  EXPECT_GT(bleu.score().hypothesis_words, 0);
}

TEST(Bleu, NumbersOfReferencesAreInTheSignature) {
  Bleu bleu({.tokenizer = BleuTokenizer::kNone, .lowercase = false});
  const std::vector<std::string_view> two = {"a b", "b a"};
  bleu.add("a b", two);
  EXPECT_EQ(bleu.signature().find("nrefs:2|case:mixed|eff:no|tok:none|"), 0u) << bleu.signature();
  bleu.add("a b", "a b");
  EXPECT_EQ(bleu.signature().find("nrefs:var|"), 0u) << bleu.signature();
  EXPECT_THROW(bleu.add("a", std::vector<std::string_view>{}), Error);
}

TEST(Bleu, UnknownTokenizersAreNamed) {
  try {
    bleu_tokenizer("14b");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "bleu: unknown tokenizer '14b', expected 13a, zh, char, intl or none");
  }
}

}  // namespace
}  // namespace regard
