// Long texts are cut where it hurts least, nothing of them is lost, and parts go together again.
#include "data/sentences.h"

#include <gtest/gtest.h>

#include "data/characters.h"
#include "support/error_of.h"

namespace regard {
namespace {

// A token a word, or a Chinese character.
std::vector<Token> words(std::string_view text) {
  std::vector<Token> tokens;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == ' ') {
      ++at;
      continue;
    }
    std::size_t end = at;
    if (static_cast<unsigned char>(text[at]) >= 0x80) {
      end = at + 3;
    } else {
      while (end < text.size() && text[end] != ' ' && static_cast<unsigned char>(text[end]) < 0x80) ++end;
    }
    tokens.push_back({0, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(end)});
    at = end;
  }
  return tokens;
}

std::vector<std::string> cut(std::string_view text, std::size_t most) {
  std::vector<std::string> parts;
  for (const TextPart& part : cut_long(text, words(text), most))
    parts.emplace_back(text.substr(part.begin, part.end - part.begin));
  return parts;
}

using Parts = std::vector<std::string>;

TEST(Sentences, AShortTextStaysWhole) {
  EXPECT_EQ(cut("  One two. Three. ", 3), Parts{"  One two. Three. "});
  EXPECT_EQ(cut("", 1), Parts{""});
}

TEST(Sentences, AreCutAtTheirEndsThenAtCommasThenBetweenWords) {
  EXPECT_EQ(cut("One two. Three four, five. Six", 5), (Parts{"One two. Three four, five.", "Six"}));
  EXPECT_EQ(cut("One two. Three four, five. Six", 4), (Parts{"One two.", "Three four, five. Six"}));
  EXPECT_EQ(cut("one, two three four", 3), (Parts{"one,", "two three four"}));
  EXPECT_EQ(cut("a b c d e", 2), (Parts{"a b", "c d", "e"}));
  EXPECT_EQ(cut("Pi is 3.14 or so and more", 5), (Parts{"Pi is 3.14 or so", "and more"}));
  EXPECT_EQ(cut("He said \"no.\" Then he left", 5), (Parts{"He said \"no.\"", "Then he left"}));
}

TEST(Sentences, ChineseHasMarksOfItsOwnAndNoBlanks) {
  EXPECT_EQ(cut("他们在看。我也在看，你呢？好", 8), (Parts{"他们在看。", "我也在看，你呢？", "好"}));
  EXPECT_EQ(cut("他说：“好。”我走了", 8), (Parts{"他说：“好。”", "我走了"}));
  EXPECT_EQ(cut("一二三四五", 2), (Parts{"一二", "三四", "五"}));
}

TEST(Sentences, NothingIsLostWhateverTheLimit) {
  const std::string text = "One, two. 三四。 five six; “seven.” 八九十！ eleven twelve 13.5 ? end";
  std::string want;
  for (const char each : text) want += each == ' ' ? "" : std::string(1, each);
  for (std::size_t most = 1; most < 25; ++most) {
    std::string all;
    for (const std::string& part : cut(text, most)) {
      if (most < words(text).size()) {
        EXPECT_LE(words(part).size(), most) << part;
      }
      for (const char each : part) all += each == ' ' ? "" : std::string(1, each);
    }
    EXPECT_EQ(all, want) << most;
  }
  EXPECT_NE(error_of([&] { cut_long(text, words(text), 0); }), "");
}

TEST(Sentences, GoTogetherWithABlankWhereTheLanguageHasOne) {
  std::string english = "One.", chinese = "他们在看。", none;
  EXPECT_EQ(join(english, "Two."), 5u);
  EXPECT_EQ(english, "One. Two.");
  EXPECT_EQ(join(chinese, "我也是。"), std::string("他们在看。").size());
  EXPECT_EQ(chinese, "他们在看。我也是。");
  EXPECT_EQ(join(none, "x"), 0u);
  EXPECT_EQ(join(none, ""), 1u);
  EXPECT_EQ(none, "x");
}

}  // namespace
}  // namespace regard
