// How texts are cut into what alignments count.
#include "tasks/text_units.h"

#include <gtest/gtest.h>

#include <string>

#include "data/words.h"
#include "support/error_of.h"

namespace regard {
namespace {

std::string shown(std::string_view text, const std::vector<TextUnit>& units) {
  std::string made;
  for (const TextUnit& each : units) {
    if (!made.empty()) made += '|';
    made += text.substr(each.begin, each.end - each.begin);
  }
  return made;
}

std::string automatic(std::string_view text, std::span<const Token> words = {}) {
  return shown(text, words_of(text, WordCut::kAutomatic, words));
}

std::string blanks(std::string_view text) { return shown(text, words_of(text, WordCut::kBlanks)); }

TEST(WordsOf, AreWhatStandsBetweenBlanks) {
  EXPECT_EQ(automatic(""), "");
  EXPECT_EQ(automatic("  \t "), "");
  EXPECT_EQ(automatic("They are  here. "), "They|are|here.");
  EXPECT_EQ(blanks(""), "");
  EXPECT_EQ(blanks(" a  b\tc "), "a|b|c");
  EXPECT_EQ(blanks("他们在看。 x"), "他们在看。|x");
  EXPECT_EQ(blanks("a\u00A0b\u3000c \u0301d"), "a\u00A0b\u3000c|\u0301d");
}

TEST(WordsOf, ChineseAsItIsWrittenIsCutByCharacters) {
  EXPECT_EQ(automatic("他们在看。"), "他|们|在|看|。");
  EXPECT_EQ(automatic("我用iPhone 15拍照。 好！"), "我|用|iPhone|15|拍|照|。|好|！");
  EXPECT_EQ(automatic("他　说：“好”"), "他|说|：|“|好|”");
  EXPECT_EQ(automatic("他说\"好\""), "他|说|\"|好|\"");
}

TEST(WordsOf, ChineseWithBlanksIsCutThereAndNowhereElse) {
  EXPECT_EQ(automatic("他们 在 看 。"), "他们|在|看|。");
  EXPECT_EQ(automatic("你好 。"), "你好|。");
  EXPECT_EQ(automatic("在 2019年 ，"), "在|2019年|，");
  EXPECT_EQ(automatic("2019年 的 iPhone手机"), "2019年|的|iPhone手机");
}

TEST(WordsOf, ATokenizerThatKnowsWordsSaysWhereChineseIsCut) {
  const std::unique_ptr<Tokenizer> words = build_words(
      [](const std::function<void(std::string_view)>& use) {
        use("他们在看。");
        use("他们来了，iPhone也来了");
      },
      {.user = {{"他们", 100}, {"来了", 100}, {"在", 100}, {"看", 100}}});
  const std::string text = "他们在看iPhone，他们来了";
  EXPECT_EQ(automatic(text, words->encode(text)), "他们|在|看|iPhone|，|他们|来了");
  const std::string english = "They're here.";  // words are still what stands between blanks
  EXPECT_EQ(automatic(english, words->encode(english)), "They're|here.");
}

TEST(CharactersOf, AreCountedAsCodePointsAndBlanksStandForNothing) {
  const std::string text = "a 看\u3000é";
  const std::vector<TextUnit> units = characters_of(text);
  ASSERT_EQ(units.size(), 5u);
  EXPECT_EQ(shown(text, units), "a||看||é");
  EXPECT_TRUE(characters_of("").empty());
}

TEST(Joined, IsWhatOneWouldWrite) {
  for (const auto& [cut, written] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", ""},
           {"他们 在 看 。", "他们在看。"},
           {" They  are watching , too . ", "They are watching, too."},
           {"我 用 iPhone 拍照 。", "我用iPhone拍照。"},
           {"( it 's here )", "(it's here)"},
       }) {
    const JoinedText made = joined(cut);
    EXPECT_EQ(made.text, written);
    EXPECT_EQ(shown(made.text, made.words), blanks(cut));
  }
}

TEST(WordCutNames, AreTwo) {
  EXPECT_EQ(word_cut("auto"), WordCut::kAutomatic);
  EXPECT_EQ(word_cut("blanks"), WordCut::kBlanks);
  EXPECT_NE(error_of([] { word_cut("blank"); }), "");
}

}  // namespace
}  // namespace regard
