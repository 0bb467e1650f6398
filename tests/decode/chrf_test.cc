// chrF against sacreBLEU's numbers.
#include "decode/chrf.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "regard/error.h"
#include "support/error_of.h"
#include "support/paths.h"

namespace regard {
namespace {

TEST(Chrf, IsWhatSacreBleuSays) {
  std::ifstream file(source_path("/tests/golden/chrf.txt"));
  std::string line;
  ASSERT_TRUE(std::getline(file, line));
  int cases = 0;
  for (; std::getline(file, line); ++cases) {
    std::istringstream head(line);
    std::string word;
    std::int64_t order = 0;
    int lower = 0, sentences = 0, references = 0;
    head >> word >> order >> lower >> sentences >> references;
    ASSERT_EQ(word, "case") << line;
    Chrf chrf({.word_order = order, .lowercase = lower == 1});
    std::string first;
    for (int i = 0; i < sentences; ++i) {
      std::vector<std::string> texts(static_cast<std::size_t>(references) + 1);
      for (std::string& each : texts) ASSERT_TRUE(std::getline(file, each));
      chrf.add(texts[0], std::vector<std::string_view>(texts.begin() + 1, texts.end()));
      if (i == 0) first = texts[0];
    }
    std::string name;
    double score = -1;
    ASSERT_TRUE(std::getline(file, line));
    std::istringstream(line) >> name >> score;
#if !REGARD_TEXT_LIBRARIES
    if (lower == 1) continue;
#endif
    EXPECT_NEAR(chrf.score().score, score, 1e-9) << "case " << order << ": " << first;
    EXPECT_EQ(chrf.score().name, name);
  }
  EXPECT_GT(cases, 120);
}

TEST(Chrf, TellsHowItWasComputed) {
  Chrf chrf;
  EXPECT_EQ(chrf.score().score, 0);
  chrf.add("They are watching.", "They are watching.");
  EXPECT_EQ(chrf.score().score, 100);
  EXPECT_EQ(chrf.signature().find("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:regard-"), 0u);
  EXPECT_EQ(chrf.score().text("x"), "chrF2|x = 100.00");
  Chrf two({.word_order = 2, .lowercase = true});
  two.add("a b", std::vector<std::string_view>{"a b", "b a"});
  EXPECT_EQ(two.signature().find("nrefs:2|case:lc|eff:yes|nc:6|nw:2|"), 0u);
  EXPECT_EQ(two.score().text("x"), "chrF2++|x = 100.00");
}

TEST(Chrf, BlanksAreNotCounted) {
  Chrf chrf;
  chrf.add("他们 在 看。", "他们在看。");
  EXPECT_EQ(chrf.score().score, 100);
}

TEST(Chrf, BrokenUtf8IsCountedNotRefused) {
  Chrf chrf;
  chrf.add("\xff好", "\xff好");
  EXPECT_EQ(chrf.score().score, 100);
}

TEST(Chrf, WrongOrdersAreNamed) {
  EXPECT_EQ(error_of([] { Chrf({.word_order = 3}); }), "chrf: word order 3, expected 0 to 2");
  EXPECT_EQ(error_of([] { Chrf().add("a", std::vector<std::string_view>{}); }), "chrf: a sentence without a reference");
}

}  // namespace
}  // namespace regard
