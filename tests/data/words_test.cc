// Words and characters.
#include "data/words.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/characters.h"
#include "data/prepare.h"
#include "data/tokenizers.h"
#include "data/unicode.h"
#include "support/cases.h"
#include "support/error_of.h"
#include "support/folder.h"

#if REGARD_TEXT_LIBRARIES
namespace regard {
namespace {

using Texts = std::vector<std::string>;

EachText each_of(Texts texts) {
  return [texts = std::move(texts)](const std::function<void(std::string_view)>& use) {
    for (const std::string& text : texts) use(text);
  };
}

Texts parts(const Tokenizer& tokenizer, const std::string& text) {
  Texts out;
  for (const Token& token : tokenizer.encode(text)) out.push_back(text.substr(token.begin, token.end - token.begin));
  return out;
}

const Texts kChinese = {"我们喜欢苹果", "他们喜欢香蕉", "你喜欢什么",     "我们在看书",   "他们在学校", "你在看什么书",
                        "我喜欢看书",   "他在看苹果",   "苹果很好吃",     "香蕉也很好吃", "我们去学校", "学校在那里",
                        "他喜欢学校",   "什么书很好",   "你们喜欢苹果吗", "书在学校"};

TEST(Words, AreSplitByTheirClasses) {
  const auto words = build_words(each_of({"x"}));
  EXPECT_EQ(parts(*words, "They are watching."), (Texts{"They", "are", "watching", "."}));
  EXPECT_EQ(parts(*words, "don't (3.14)"), (Texts{"don", "'", "t", "(", "3", ".", "14", ")"}));
  EXPECT_EQ(parts(*words, "e\xCC\x81te\xCC\x81, n\xCC\x83"), (Texts{"e\xCC\x81te\xCC\x81", ",", "n\xCC\x83"}));
  EXPECT_EQ(parts(*words, "👩‍👩‍👧👍🏽🇫🇷"), (Texts{"👩‍👩‍👧", "👍🏽", "🇫🇷"}));
  EXPECT_EQ(parts(*words, "Linux用户。"), (Texts{"Linux", "用", "户", "。"}));
  EXPECT_EQ(parts(*words, " \t　"), Texts{});
}

TEST(Words, ComeBackAsTheyWere) {
  const Texts texts = {"They are watching.",
                       "Don't stop-over, (please) — \"now\"!",
                       "He said: 'yes' / 'no' .",
                       "a ,b",
                       "( a )",
                       "3.14 is 1,000 %",
                       "l’homme « so »",
                       "他们在看。",
                       "我用Linux 写 代码，你呢？",
                       "👩‍👩‍👧 👍🏽🇫🇷!",
                       "x ￭ ▁y 1 2",
                       "été e\xCC\x81",
                       "¿Qué?"};
  const auto words = build_words(each_of(texts));
  for (const std::string& text : texts) EXPECT_EQ(words->decode(words->ids(text)), text);
  EXPECT_EQ(words->decode(words->ids("  They \t are\nwatching .")), "They are watching .");
  EXPECT_EQ(words->decode(words->ids("They are sleeping.")), "They are ⁇.");
  EXPECT_EQ(words->decode(std::vector<std::int32_t>{1, 3, 2}), "");
  EXPECT_NE(error_of([&] { words->decode(std::vector<std::int32_t>{-1}); }).find("no token -1"), std::string::npos);
  EXPECT_FALSE(
      error_of([&] { words->decode(std::vector<std::int32_t>{static_cast<std::int32_t>(words->size())}); }).empty());
}

TEST(Words, AWordWithUnusualBlanksIsStillKnown) {
  const auto words = build_words(each_of({"one two . three", "one two three"}));
  const std::int32_t known = words->ids("two")[0];
  EXPECT_GT(known, 3);
  EXPECT_EQ(words->ids("one.two")[2], known);
  EXPECT_EQ(words->piece(words->ids("two .")[1]), "▁.");
  EXPECT_EQ(words->piece(words->ids("two.")[1]), ".");
}

TEST(Words, TheMostFrequentAreKnown) {
  const auto words = build_words(each_of({"b b b a a c c d", "B"}), {.size = 7});
  EXPECT_EQ(words->size(), 7);
  EXPECT_EQ(words->ids("b a c d B"), (std::vector<std::int32_t>{4, 5, 6, 0, 0}));
  const auto lower = build_words(each_of({"b b b a a c c d", "B C C"}), {.size = 100, .least_count = 3, .lower = true});
  EXPECT_EQ(lower->size(), 6);
  EXPECT_EQ(lower->ids("B C a"), (std::vector<std::int32_t>{4, 5, 0}));
  EXPECT_EQ(lower->decode(lower->ids("B C")), "b c");
  EXPECT_FALSE(error_of([] { build_words(each_of({}), {.size = 4}); }).empty());
}

TEST(Words, WordsBeyondAllMeasureAreUnknown) {
  const std::string longest(kMostWordBytes, 'a'), longer(kMostWordBytes + 1, 'a');
  const auto words = build_words(each_of({longest + ' ' + longer + ", " + longer + " b"}));
  EXPECT_EQ(words->size(), 7);
  EXPECT_NE(words->ids(longest)[0], 0);
  EXPECT_EQ(words->ids("b " + longer + ",")[1], 0);
  EXPECT_EQ(words->decode(words->ids("b " + longer + ", b")), "b ⁇, b");
}

TEST(Words, ASurveyCountsLongUnknownWordsAndDoesNotKeepThem) {
  const auto words = build_words(each_of({"a"}));
  LinePair pair;
  pair.source = "a z " + std::string(kMostWordBytes + 1, 'x');
  pair.target = "a";
  PairList pairs({pair}, "here");
  const Survey survey = survey_pairs(pairs, *words, *words, 10, {});
  EXPECT_EQ(survey.source.unknown, 2u);
  ASSERT_EQ(survey.source.missed.size(), 1u);
  EXPECT_EQ(survey.source.missed[0].first, "z");
}

// The bytes count, not how many they are; what is frequent stays.
TEST(Words, OfMoreThanThereIsRoomForTheRarestAreForgotten) {
  for (const std::size_t length : {10u, 200u}) {
    Texts texts;
    for (int i = 0; i < 2000; ++i) {
      const std::string number = std::to_string(1000 + i);
      texts.push_back(std::string(length - number.size(), 'x') + number + (i % 3 == 0 ? " often" : " ever"));
    }
    const EachText each = each_of(texts);
    EXPECT_EQ(build_words(each, {.counted_bytes = 2100 * (100 + length)})->size(), 4 + 2002);
    const auto words = build_words(each, {.counted_bytes = 100 * (100 + length)});
    EXPECT_LE(words->size(), 4 + 110);
    EXPECT_EQ(words->ids("ever often"), (std::vector<std::int32_t>{4, 5}));
  }
}

TEST(Words, ChineseIsCutByWhatTheTextItselfTells) {
  const auto words = build_words(each_of(kChinese));
  EXPECT_EQ(parts(*words, "我们喜欢学校。"), (Texts{"我", "们", "喜欢", "学校", "。"}));
  EXPECT_EQ(parts(*words, "苹果abc学校"), (Texts{"苹果", "abc", "学校"}));
}

TEST(Words, TheUsersDictionaryCounts) {
  const Folder folder;
  const std::string file = folder.write("names", "# names\n\n我们\n香蕉很 1000000\n");
  const auto words = build_words(each_of(kChinese), {.user = read_user_words(file)});
  EXPECT_EQ(parts(*words, "我们喜欢香蕉很"), (Texts{"我们", "喜欢", "香蕉很"}));
  const auto bad = [&](const std::string& text) {
    return error_of([&] { read_user_words(folder.write("bad", text)); });
  };
  EXPECT_NE(bad("good 1\n我们 x\n").find("line 2"), std::string::npos) << bad("good 1\n我们 x\n");
  for (const char* text : {"a 0", "a -1", "a 1 2", "a 99999999999999", "\xFF 1", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}) {
    EXPECT_FALSE(bad(text).empty()) << text;
  }
  EXPECT_EQ(bad("a\t3\nb  4 \n"), "");
}

TEST(Words, TheBestCutIsFoundAmongAll) {
  const Texts vocabulary = {"甲", "乙", "丙", "甲乙", "乙丙", "丙甲", "甲乙丙", "乙乙"};
  std::vector<UserWord> user;
  for (std::size_t i = 0; i < vocabulary.size(); ++i) user.push_back({vocabulary[i], 3 + i * i * 7 % 50});
  const Segmenter segmenter = SegmenterBuilder().build(user);
  double total = 0;
  for (const UserWord& each : user) total += static_cast<double>(each.count);
  const auto score = [&](const std::string& word) {
    for (const UserWord& each : user) {
      if (each.word == word) return std::log(static_cast<double>(each.count) / total);
    }
    return -1e9;
  };
  const Texts letters = {"甲", "乙", "丙"};
  for (int code = 0; code < 729; ++code) {
    Texts run;
    for (int i = 0, rest = code; i < 6; ++i, rest /= 3) run.push_back(letters[static_cast<std::size_t>(rest % 3)]);
    double best = -1e18;
    for (int cuts = 0; cuts < 32; ++cuts) {
      double sum = 0;
      std::string word = run[0];
      for (int i = 1; i < 6; ++i) {
        if (cuts >> (i - 1) & 1) {
          sum += score(word);
          word.clear();
        }
        word += run[static_cast<std::size_t>(i)];
      }
      best = std::max(best, sum + score(word));
    }
    std::string text;
    for (const std::string& letter : run) text += letter;
    double found = 0;
    std::size_t begin = 0;
    for (const std::size_t end : segmenter.cut(text)) {
      found += score(text.substr(begin, end - begin));
      begin = end;
    }
    EXPECT_EQ(begin, text.size());
    EXPECT_NEAR(found, best, 1e-4) << text;
  }
}

TEST(Words, OffsetsCoverAllButBlanks) {
  const auto words = build_words(each_of(hostile_texts()), {.size = 500});
  for (const std::string& text : hostile_texts()) {
    const std::string left = uncovered(*words, text);
    for (std::size_t at = 0; at < left.size();) {
      const utf8::Letter letter = utf8::read(left, at);
      if (utf8::valid(text)) {
        EXPECT_EQ(letter_class(letter.code), LetterClass::kSpace) << text;
      }
      at += letter.length;
    }
    EXPECT_TRUE(utf8::valid(words->decode(words->ids(text))));
  }
}

TEST(Words, StoredBytesGiveTheSameTokenizer) {
  Texts texts = kChinese;
  texts.insert(texts.end(), {"They are watching. They see.", "don't"});
  const auto words = build_words(each_of(texts), {.lower = true});
  const auto again = Tokenizer::from(words->bytes());
  EXPECT_EQ(again->kind(), "words");
  EXPECT_EQ(again->bytes(), words->bytes());
  EXPECT_EQ(again->size(), words->size());
  for (std::int32_t id = 0; id < words->size(); ++id) EXPECT_EQ(again->piece(id), words->piece(id));
  for (const std::string& text : texts) EXPECT_EQ(again->encode(text), words->encode(text));
  for (const std::string& text : hostile_texts()) EXPECT_EQ(again->encode(text), words->encode(text));
}

TEST(Words, HostileBytesDoNoHarm) {
  Texts texts = kChinese;
  texts.insert(texts.end(), {"They are watching. They see.", "don't"});
  expect_hostile_bytes_do_no_harm(*build_words(each_of(texts), {.size = 60}), static_cast<std::uint64_t>(cases(4000)));
}

TEST(Characters, GiveBackEveryByte) {
  const Texts texts = {"They are  watching.\t", "他们在看。", "👩‍👩‍👧 e\xCC\x81\n"};
  const auto letters = build_characters(each_of(texts));
  for (const std::string& text : texts) {
    EXPECT_EQ(letters->decode(letters->ids(text)), text);
    EXPECT_EQ(uncovered(*letters, text), "");
  }
  EXPECT_EQ(letters->ids("他们").size(), 2u);
  EXPECT_EQ(letters->decode(letters->ids("他z看")), "他⁇看");
  for (const std::string& text : hostile_texts()) {
    EXPECT_EQ(uncovered(*letters, text), "");
    EXPECT_TRUE(utf8::valid(letters->decode(letters->ids(text))));
  }
}

TEST(Characters, TheMostFrequentAreKnownInLowerCaseIfWanted) {
  const auto letters = build_characters(each_of({"aaBbbcc", "Ä"}), {.size = 6, .lower = true});
  EXPECT_EQ(letters->ids("bAc"), (std::vector<std::int32_t>{4, 5, 0}));  // of a and c, both twice, a comes first
  EXPECT_EQ(letters->size(), 6);
  EXPECT_EQ(letters->ids("A"), letters->ids("a"));
  EXPECT_EQ(letters->ids("c")[0], 0);
}

TEST(Characters, StoredBytesAreSafe) {
  const auto letters = build_characters(each_of({"They are watching. 他们在看 it!"}), {.lower = true});
  const auto again = Tokenizer::from(letters->bytes());
  EXPECT_EQ(again->bytes(), letters->bytes());
  for (const std::string& text : hostile_texts()) EXPECT_EQ(again->encode(text), letters->encode(text));
  expect_hostile_bytes_do_no_harm(*letters, static_cast<std::uint64_t>(cases(4000)));
}

}  // namespace
}  // namespace regard
#endif
