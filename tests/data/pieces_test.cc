// Pieces: the same ids, offsets and texts as SentencePiece's library gives, from models that no stranger can make
// harmful.
#include "data/pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "data/piece_model.h"
#include "data/prepare.h"
#include "data/tokenizers.h"
#include "data/train_pieces.h"
#include "support/cases.h"
#include "support/paths.h"

namespace regard {
namespace {

using Texts = std::vector<std::string>;

// Sentences of three made-up languages that share the habits of English, German and Chinese: words of syllables with
// endings, some joined, some far more frequent than others; characters without blanks, some of them in pairs.
Texts sentences(std::uint64_t seed, int count) {
  static const Texts kStarts = {"th", "s", "w", "m", "b", "Sch", "fr", "gr", "st", "k", "l", "p"};
  static const Texts kMiddles = {"e", "a", "i", "o", "ü", "ei", "au", "oo"};
  static const Texts kEnds = {"n", "t", "r", "ng", "s", "", "ch", "ll"};
  static const Texts kTails = {"", "", "", "s", "ing", "ed", "en", "ung", "'s"};
  const auto pick = [](const Texts& from, std::uint32_t bits) {  // low ones more often
    const std::uint64_t squared = std::uint64_t{bits >> 16} * (bits & 0xFFFF) >> 16;
    return from[static_cast<std::size_t>(squared * from.size() >> 16)];
  };
  Texts out;
  for (int i = 0; i < count; ++i) {
    const RandomKey key = RandomKey(seed).at(static_cast<std::uint64_t>(i));
    std::uint64_t drawn = 0;
    const auto draw = [&] { return random_bits(key, drawn++); };
    std::string text;
    const std::uint32_t words = 1 + draw() % 14;
    const bool wide = i % 3 == 2;
    for (std::uint32_t word = 0; word < words; ++word) {
      if (wide) {
        const std::uint64_t squared = std::uint64_t{draw() >> 16} * (draw() >> 16) >> 16;
        const auto code = static_cast<char32_t>(0x4E00 + (squared * 150 >> 16));
        utf8::append(text, code);
        if (draw() % 3 == 0) utf8::append(text, code + 200);
        if (draw() % 9 == 0) text += "，";
      } else {
        if (word > 0) text += ' ';
        for (std::uint32_t syllables = draw() % 3 == 0 ? 2 : 1; syllables-- > 0;) {
          text += pick(kStarts, draw()) + pick(kMiddles, draw()) + pick(kEnds, draw());
        }
        text += pick(kTails, draw());
        if (draw() % 11 == 0) text += ',';
      }
    }
    out.push_back(text + (wide ? "。" : draw() % 5 == 0 ? "!" : "."));
  }
  return out;
}

EachText each_of(const Texts& texts) {
  return [&texts](const std::function<void(std::string_view)>& use) {
    for (const std::string& text : texts) use(text);
  };
}

// The library itself.
class Library {
 public:
  explicit Library(const std::string& model)
      : module_(pieces_module()), opened_(module_.open({model.data(), model.size()})) {
    EXPECT_NE(opened_, nullptr);
  }
  ~Library() { module_.close(opened_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  std::vector<Token> encode(const std::string& text) const {
    std::vector<Token> out;
    module_.encode(
        opened_, {text.data(), text.size()},
        [](void* user, int id, unsigned begin, unsigned end) {
          static_cast<std::vector<Token>*>(user)->push_back({id, begin, end});
        },
        &out);
    return out;
  }
  std::string decode(const std::vector<std::int32_t>& ids) const {
    std::string out;
    EXPECT_EQ(
        module_.decode(
            opened_, ids.data(), ids.size(),
            [](void* user, RegardPiecesText text) { static_cast<std::string*>(user)->assign(text.data, text.size); },
            &out),
        1);
    return out;
  }

 private:
  const RegardPiecesModule& module_;
  void* opened_;
};

std::string trained(const Texts& texts, const std::string& options) {
  struct State {
    const Texts& texts;
    std::size_t at = 0;
    std::string model = {};
  } state{texts};
  char error[300] = {};
  const int well = pieces_module().train(
      (options + " --minloglevel=2 --num_threads=2").c_str(),
      [](void* user, RegardPiecesText* text) {
        auto& from = *static_cast<State*>(user);
        if (from.at == from.texts.size()) return 0;
        const std::string& next = from.texts[from.at++];
        *text = {next.data(), next.size()};
        return 1;
      },
      [](void* user, RegardPiecesText model) { static_cast<State*>(user)->model.assign(model.data, model.size); },
      &state, error, sizeof(error));
  EXPECT_EQ(well, 1) << options << ": " << error;
  return state.model;
}

#define NEEDS_THE_MODULE() \
  if (find_pieces_module() == nullptr) GTEST_SKIP() << "SentencePiece was not there when this was built"

TEST(Pieces, IdsOffsetsAndTextsAreThoseOfTheLibrary) {
  NEEDS_THE_MODULE();
  const Texts learn = sentences(1, 1000);
  Texts tests = sentences(2, cases(600));
  for (const std::string& text : hostile_texts()) {
    if (text.find('\0') == std::string::npos) tests.push_back(text);
  }
  // The same letter many times: which of equal pairs is joined first shows here.
  for (const char* text :
       {"ooo loooool ooooooo", "lll allll", "sss ngngng aaa ththth", "一一一 丁丁丁丁丁", "nnnnn ttt eee"}) {
    tests.emplace_back(text);
  }
  const Texts variants = {
      "--vocab_size=700",
      "--vocab_size=900 --byte_fallback=true --character_coverage=0.98 --normalization_rule_name=nmt_nfkc_cf",
      "--vocab_size=700 --character_coverage=0.98 --user_defined_symbols=than,一丁,sthan "
      "--remove_extra_whitespaces=false "
      "--normalization_rule_name=identity",
      "--vocab_size=700 --treat_whitespace_as_suffix=true --add_dummy_prefix=false --normalization_rule_name=nfkc",
  };
  for (const std::string type : {"bpe", "unigram"}) {
    for (const std::string& variant : variants) {
      const std::string options = "--model_type=" + type + " --hard_vocab_limit=false " + variant;
      SCOPED_TRACE(options);
      const std::string model = trained(learn, type == "bpe" ? "--model_type=bpe " + variant : options);
      ASSERT_FALSE(model.empty());
      const auto ours = read_pieces(model);
      const Library library(model);
      const bool bytes = variant.find("byte_fallback") != std::string::npos;
      int differing = 0;
      std::size_t tokens = 0;
      for (const std::string& text : tests) {
        const std::vector<Token> own = ours->encode(text), theirs = library.encode(text);
        bool same = own.size() == theirs.size();
        std::vector<std::int32_t> ids;
        for (std::size_t i = 0; same && i < own.size(); ++i) {
          // Of the bytes of a character the library gives only the last a place.
          same = own[i].id == theirs[i].id && own[i].begin == theirs[i].begin &&
                 (own[i].end == theirs[i].end || (bytes && theirs[i].begin == theirs[i].end));
          ids.push_back(own[i].id);
        }
        tokens += own.size();
        if (same) same = ours->decode(ids) == library.decode(ids);
        differing += same ? 0 : 1;
        EXPECT_TRUE(same) << text.substr(0, 200);
        if (differing > 3) break;
      }
      EXPECT_GT(tokens, tests.size());
      // Ids in any order, not only in that of a text.
      for (std::uint64_t i = 0; i < 200; ++i) {
        std::vector<std::int32_t> ids;
        for (std::uint64_t j = 0; j < 12; ++j) {
          const auto most =
              static_cast<std::uint32_t>(j % 2 == 0 ? ours->size() : std::min<std::int64_t>(ours->size(), 270));
          ids.push_back(static_cast<std::int32_t>(random_below(RandomKey(8).at(i), j, most)));
        }
        EXPECT_EQ(ours->decode(ids), library.decode(ids));
      }
    }
  }
}

TEST(Pieces, AreTheSameEachTimeTheyAreLearned) {
  NEEDS_THE_MODULE();
  const Texts learn = sentences(3, 1000);
  for (const bool unigram : {false, true}) {
    const PieceSettings settings = {.size = 500, .unigram = unigram};
    const auto pieces = train_pieces(each_of(learn), settings);
    EXPECT_EQ(pieces->bytes(), train_pieces(each_of(learn), settings)->bytes());
    EXPECT_EQ(pieces->size(), 500);
    EXPECT_EQ(pieces->special().unknown, 0);
    EXPECT_EQ(pieces->special().begin, 1);
    EXPECT_EQ(pieces->special().end, 2);
    EXPECT_EQ(pieces->special().padding, 3);
    EXPECT_EQ(pieces->piece(3), "<pad>");
    for (const std::string& text : sentences(4, 100)) {
      if (text.find("，") != std::string::npos || text.find("。") != std::string::npos) continue;
      EXPECT_EQ(pieces->decode(pieces->ids(text)), text);
    }
  }
}

TEST(Pieces, LearnInLowerCaseAndFromAPartOfTheTextIfAsked) {
  NEEDS_THE_MODULE();
  const Texts learn = sentences(3, 900);
  const auto lower = train_pieces(each_of(learn), {.size = 600, .lower = true, .byte_fallback = true});
  EXPECT_EQ(lower->ids("SCHAN Than."), lower->ids("schan than."));
  EXPECT_EQ(lower->decode(lower->ids("Schan 👍Q")), "schan 👍q");
  std::uint64_t bytes = 0;
  for (const std::string& text : learn) bytes += text.size();
  const auto part = train_pieces(each_of(learn), {.size = 500, .most_bytes = bytes / 3 + 1});
  Texts third;
  for (std::size_t i = 0; i < learn.size(); i += 3) third.push_back(learn[i]);
  EXPECT_EQ(part->bytes(), train_pieces(each_of(third), {.size = 500})->bytes());
}

TEST(Pieces, OfTheTargetKeepTheMarksOfItsTexts) {
  NEEDS_THE_MODULE();
  const std::string chinese = "你好，你在看ＴＶ吗？（是的！）", plain = "你好,你在看TV吗?(是的!)";
  const std::vector<LinePair> pairs = {{1, chinese, chinese}, {2, chinese, chinese}};
  const OpenPairs open = [&] { return std::make_unique<PairList>(pairs, "pairs"); };
  for (const char* kind : {"pieces", "unigram"}) {
    const TokenizerPair both = build_tokenizers(open, {.kind = kind, .size = 200});
    EXPECT_EQ(both.source->ids(chinese), both.source->ids(plain));
    EXPECT_EQ(both.source->decode(both.source->ids(chinese)), plain);
    EXPECT_EQ(both.target->decode(both.target->ids(chinese)), chinese);
    EXPECT_NE(both.target->ids(chinese), both.target->ids(plain));
    const TokenizerPair joint = build_tokenizers(open, {.kind = kind, .size = 200, .joint = true});
    EXPECT_EQ(joint.target->decode(joint.target->ids(chinese)), plain);
  }
}

TEST(Pieces, OfBothSidesAreLearnedFromWholePairs) {
  NEEDS_THE_MODULE();
  std::vector<LinePair> pairs;
  std::uint64_t bytes = 0;
  for (std::uint64_t line = 1; line <= 60; ++line) {
    pairs.push_back({line, "abcdefghij " + std::string(line % 7 + 1, 'a'), "АБВГДЕЖЗИК ЛМНОПРСТУФ"});
    bytes += pairs.back().source.size() + pairs.back().target.size();
  }
  const OpenPairs open = [&] { return std::make_unique<PairList>(pairs, "pairs"); };
  for (const std::uint64_t stride : {1, 2, 3, 4}) {
    const TokenizerPair joint =
        build_tokenizers(open, {.size = 200, .joint = true, .most_bytes = bytes / stride + stride});
    const Survey survey = survey_pairs(*open(), *joint.source, *joint.target);
    EXPECT_EQ(survey.source.unknown, 0u) << "one of " << stride;
    EXPECT_EQ(survey.target.unknown, 0u) << "one of " << stride;
  }
  std::vector<LinePair> half;
  for (std::size_t i = 0; i < pairs.size(); i += 2) half.push_back(pairs[i]);
  const OpenPairs open_half = [&] { return std::make_unique<PairList>(half, "half of the pairs"); };
  EXPECT_TRUE(build_tokenizers(open, {.size = 200, .joint = true, .most_bytes = bytes / 2 + 1}).source->bytes() ==
              build_tokenizers(open_half, {.size = 200, .joint = true}).source->bytes());
}

TEST(Pieces, LittleTextHasFewerThanAskedFor) {
  NEEDS_THE_MODULE();
  const Texts few = {"a b c", "a bc"};
  for (const bool unigram : {false, true}) {
    const auto pieces = train_pieces(each_of(few), {.size = 5000, .unigram = unigram});
    EXPECT_LT(pieces->size(), 20);
    EXPECT_EQ(pieces->decode(pieces->ids("c a b")), "c a b");
  }
}

TEST(Pieces, WhatCannotBeLearnedIsAnError) {
  NEEDS_THE_MODULE();
  const Texts none, learn = sentences(3, 300);
  EXPECT_THROW(train_pieces(each_of(none), {.size = 100}), Error);
  EXPECT_THROW(train_pieces(each_of(learn), {.size = 20}), Error);  // fewer than there are characters
  EXPECT_THROW(train_pieces(each_of(learn), {.size = 0}), Error);
  EXPECT_THROW(train_pieces(each_of(learn), {.size = 100, .coverage = 0.5}), Error);
}

// Models and ids that the library's own tools made: tests/golden/pieces.sh.
std::string golden(const std::string& name) {
  std::ifstream file(source_path("/tests/golden/pieces/") + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

const Texts& golden_models() {
  static const Texts all = {"pairs", "unigram", "bytes"};
  return all;
}

TEST(Pieces, IdsAreTheGoldenOnes) {
  Texts texts;
  std::istringstream lines(golden("texts.txt"));
  for (std::string line; std::getline(lines, line);) texts.push_back(line);
  EXPECT_GT(texts.size(), 20u);
  for (const std::string& name : golden_models()) {
    const auto pieces = read_pieces(golden(name + ".model"));
    std::istringstream expected(golden(name + ".ids"));
    for (const std::string& text : texts) {
      std::string line, ours;
      std::getline(expected, line);
      for (const std::int32_t id : pieces->ids(text)) ours += (ours.empty() ? "" : " ") + std::to_string(id);
      EXPECT_EQ(ours, line) << name << ": " << text;
    }
  }
}

TEST(Pieces, OffsetsCoverTheText) {
  for (const std::string& name : golden_models()) {
    const auto pieces = read_pieces(golden(name + ".model"));
    for (const std::string& text : hostile_texts()) {
      std::string left = uncovered(*pieces, text);
      // Blanks that normalising takes away (at the ends, and all but one of several) belong to no piece; ▁ is one.
      for (std::size_t at; (at = left.find("▁")) != std::string::npos;) left.erase(at, 3);
      EXPECT_TRUE(left.find_first_not_of(" \t\n\r") == std::string::npos) << name << ": " << text << " leaves " << left;
      EXPECT_TRUE(utf8::valid(pieces->decode(pieces->ids(text))));
    }
  }
}

TEST(Pieces, StoredBytesGiveTheSameTokenizer) {
  for (const std::string& name : golden_models()) {
    const auto pieces = read_pieces(golden(name + ".model"));
    const auto again = Tokenizer::from(pieces->bytes());
    EXPECT_EQ(again->kind(), "pieces");
    EXPECT_EQ(again->bytes(), pieces->bytes());
    for (const std::string& text : hostile_texts()) EXPECT_EQ(again->encode(text), pieces->encode(text));
  }
}

TEST(Pieces, CutAgainTheyAreOtherPiecesOfTheSameText) {
  std::istringstream lines(golden("texts.txt"));
  Texts texts = hostile_texts();
  for (std::string line; std::getline(lines, line);) texts.push_back(line);
  for (const std::string& name : golden_models()) {
    const auto pieces = read_pieces(golden(name + ".model"));
    std::size_t tokens = 0, tenth = 0, half = 0, nearly_all = 0, other = 0;
    for (const std::string& text : texts) {
      const std::vector<std::int32_t> ids = pieces->ids(text);
      const auto cut = [&](double dropout, std::uint64_t seed) {
        const std::vector<std::int32_t> found = pieces->cut_again(ids, dropout, RandomKey(seed));
        EXPECT_EQ(pieces->decode(found), pieces->decode(ids)) << name << ", " << dropout << ": " << text;
        EXPECT_EQ(found, pieces->cut_again(ids, dropout, RandomKey(seed)));
        return found;
      };
      EXPECT_EQ(cut(0, 1), ids) << name << ": " << text;
      tokens += ids.size();
      tenth += cut(0.1, 1).size();
      half += cut(0.5, 1).size();
      nearly_all += cut(0.999, 1).size();
      other += cut(0.5, 1) != cut(0.5, 2) ? 1 : 0;
    }
    EXPECT_LT(tokens, tenth) << name;
    EXPECT_LT(tenth, half) << name;
    EXPECT_LT(half, nearly_all) << name;
    EXPECT_GT(other, 10u) << name;  // of texts that have more than a character or two
  }
}

TEST(Pieces, HostileBytesDoNoHarm) {
  for (const std::string& name : golden_models()) {
    SCOPED_TRACE(name);
    expect_hostile_bytes_do_no_harm(*read_pieces(golden(name + ".model")), static_cast<std::uint64_t>(cases(3000)));
  }
}

// The rules for normalising: a trie whose every link may be wrong.
TEST(Pieces, HostileRulesDoNoHarm) {
  const std::string model = golden("pairs.model");
  const PieceModel parsed = parse_piece_model(model);
  ASSERT_GT(parsed.charsmap.size(), 100u);
  const std::size_t at = model.find(parsed.charsmap);
  ASSERT_NE(at, std::string::npos);
  const RandomKey key(6);
  std::uint64_t loaded = 0;
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(cases(5000)); ++i) {
    std::string bad = model;
    for (std::uint64_t j = 0; j < 1 + i % 4; ++j) {
      const std::uint64_t where = random_below(key.at(i), 2 * j, static_cast<std::uint32_t>(parsed.charsmap.size()));
      bad[at + where] = static_cast<char>(random_bits(key.at(i), 2 * j + 1));
    }
    try {
      const auto pieces = read_pieces(bad);
      ++loaded;
      for (const char* text : {"ﬁne ½ ＡＢ they\tare", "他们　在看 é"}) uncovered(*pieces, text);
    } catch (const Error&) {
    }
  }
  EXPECT_GT(loaded, 0u);
}

std::string field(int number, const std::string& bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  std::size_t size = bytes.size();
  for (; size >= 128; size >>= 7) out += static_cast<char>(size | 128);
  return out + static_cast<char>(size) + bytes;
}

std::string piece(const std::string& text, int type, const std::string& score = std::string("\0\0\0\0", 4)) {
  return field(1, field(1, text) + "\x15" + score + "\x18" + static_cast<char>(type));
}

TEST(Pieces, HandMadeModelsAreRefusedForWhatIsWrong) {
  const auto what = [](const std::string& model) -> std::string {
    try {
      read_pieces(model);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string unknown = piece("<unk>", 2), a = piece("a", 1);
  EXPECT_EQ(what(unknown + a), "");
  EXPECT_NE(what(a).find("one unknown piece"), std::string::npos);
  EXPECT_NE(what(unknown + piece("<u>", 2)).find("one unknown piece"), std::string::npos);
  EXPECT_NE(what(unknown + a + a).find("twice"), std::string::npos);
  EXPECT_NE(what(unknown + piece("", 1)).find("empty"), std::string::npos);
  EXPECT_NE(what(unknown + piece(std::string(5000, 'x'), 1)).find("too long"), std::string::npos);
  EXPECT_NE(what(unknown + piece("\xFF", 1)).find("no text"), std::string::npos);
  EXPECT_NE(what(unknown + piece(std::string("a\0b", 3), 1)).find("no text"), std::string::npos);
  EXPECT_NE(what(unknown + piece("b", 7)).find("unknown type"), std::string::npos);
  EXPECT_NE(what(unknown + piece("b", 1, std::string("\0\0\xC0\x7F", 4))).find("finite"), std::string::npos);
  EXPECT_NE(what(unknown + piece("<0x41>", 6)).find("every byte"), std::string::npos);
  EXPECT_NE(what(unknown + field(2, "\x18\x03")).find("neither"), std::string::npos);
  EXPECT_NE(what(unknown + field(3, field(2, std::string("\xFF\xFF\xFF\xFF....", 8)))).find("wrong size"),
            std::string::npos);
  EXPECT_NE(what(unknown + field(5, field(2, "xxxx"))).find("not supported"), std::string::npos);
  EXPECT_NE(what(unknown + "\x0A\x7F").find("too early"), std::string::npos);
  EXPECT_NE(what(unknown + "\x0B").find("unknown kind"), std::string::npos);
  EXPECT_NE(what(std::string(20, '\xFF')).find("64 bits"), std::string::npos);
  EXPECT_NE(what("").find("one unknown piece"), std::string::npos);
}

// A rule that makes a thousand bytes of one must not make a gigabyte of a megabyte.
TEST(Pieces, RulesCannotFillTheMemory) {
  // The trie: its root leads with 'a' to a node whose value is 0.
  std::vector<std::uint32_t> units(256, 0);
  units[0] = 1u << 10;  // the root's children: 1 ^ letter
  units[1 ^ 'a'] = (('b' ^ 1u) << 10) | 1u << 8 | 'a';
  units[1 ^ 'a' ^ ('b' ^ 1)] = 1u << 31;
  std::string rules;
  const auto put = [&](std::uint32_t value) {
    for (int i = 0; i < 4; ++i, value >>= 8) rules += static_cast<char>(value);
  };
  put(static_cast<std::uint32_t>(units.size() * 4));
  for (const std::uint32_t unit : units) put(unit);
  rules += std::string(1000, 'x') + '\0';
  const auto pieces = read_pieces(piece("<unk>", 2) + field(3, field(2, rules)));
  EXPECT_EQ(pieces->encode("a").size(), 1u);
  EXPECT_THROW(pieces->encode(std::string(1 << 14, 'a')), Error);
}

}  // namespace
}  // namespace regard
