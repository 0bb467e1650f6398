// The line that names a mechanism: what it accepts, its one canonical text, and what it says about mistakes.
#include "attention/line.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

#include "attention/cards.h"
#include "regard/error.h"
#include "support/cases.h"

namespace regard {
namespace {

std::string canonical(const std::string& line) { return to_text(parse_line(line)); }

std::string error_of(const std::string& line) {
  try {
    return "no error: " + canonical(line);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Line, PartsThatAreLeftOutAreTheUsualOnes) {
  EXPECT_EQ(canonical("scaled_dot"), "scaled_dot | global | softmax | sum");
  EXPECT_EQ(canonical("dot | sparsemax"), "dot | global | sparsemax | sum");
  EXPECT_EQ(canonical("scaled_dot | causal"), "scaled_dot | causal | softmax | sum");
  EXPECT_EQ(canonical("additive|pointer"), "additive | global | softmax | pointer");
  EXPECT_EQ(canonical("\tadditive  |causal&window : 64|entmax15 "), "additive | causal & window:64 | entmax15 | sum");
}

TEST(Line, ValuesThatAreTheUsualOnesAreNotWritten) {
  EXPECT_EQ(canonical("dot | softmax:temperature=1"), "dot | global | softmax | sum");
  EXPECT_EQ(canonical("dot | softmax:0.50"), "dot | global | softmax:temperature=0.5 | sum");
  EXPECT_EQ(canonical("random_synth:256,trainable"), "random_synth:256 | global | softmax | sum");
  EXPECT_EQ(canonical("random_synth:fixed,length=256"), "random_synth:256,fixed | global | softmax | sum");
  EXPECT_EQ(canonical("dot | hard:inference=expected,gumbel,4"), "dot | global | hard:samples=4,gumbel,expected | sum");
  EXPECT_EQ(canonical("factorized_random_synth:1e2,rank=8"), "factorized_random_synth:100 | global | softmax | sum");
}

TEST(Line, ScoresWithinScoresMayHaveValuesOfTheirOwn) {
  EXPECT_EQ(canonical("mixture(random_synth:256, scaled_dot)"),
            "mixture(random_synth:256, scaled_dot) | global | softmax | sum");
  EXPECT_EQ(
      canonical("mixture(random_synth:256 ,fixed,scaled_dot:scale=2,dense_synth:9,hidden = 3, dot)"),
      "mixture(random_synth:256,fixed, scaled_dot:scale=2, dense_synth:9,hidden=3, dot) | global | softmax | sum");
  EXPECT_EQ(canonical("rotary:500(projected)|alibi"), "rotary:base=500(projected) | alibi | softmax | sum");
  EXPECT_EQ(canonical("mixture(mixture(dot, cosine:2), rotary(dot))"),
            "mixture(mixture(dot, cosine:beta=2), rotary(dot)) | global | softmax | sum");
}

TEST(Line, LuongsMonotonicWindowIsAWindow) {
  EXPECT_EQ(parse_line("dot | local_m:5"), parse_line("dot | window:5"));
  EXPECT_EQ(canonical("dot | local_m:5 & causal"), "dot | causal & window:5 | softmax | sum");
}

TEST(Line, OrderOfScopesDoesNotMatter) {
  EXPECT_EQ(parse_line("dot | window:3 & bias & causal"), parse_line("dot | causal & global & bias & window:3"));
}

TEST(Line, RelativeSetsItsRead) {
  EXPECT_EQ(canonical("relative:16"), "relative:16 | global | softmax | relative_sum");
  EXPECT_EQ(canonical("relative:16 | sum"), "relative:16 | global | softmax | sum");
  EXPECT_EQ(error_of("dot | relative_sum"),
            "'relative_sum' takes its distance from the score 'relative', but the score is 'dot' in \"dot | "
            "relative_sum\"");
}

TEST(Line, ArgumentsCanBeAskedFor) {
  const Line line = parse_line("dense_synth:40 | window:7 | hard:gumbel");
  EXPECT_EQ(number_of(line.score, "length"), 40);
  EXPECT_EQ(number_of(line.score, "hidden"), std::nullopt);
  EXPECT_EQ(number_of(line.scopes.at(0), "distance"), 7);
  EXPECT_EQ(number_of(line.align, "samples"), 1);
  EXPECT_EQ(word_of(line.align, "estimator"), "gumbel");
  EXPECT_EQ(word_of(line.align, "inference"), "largest");
  EXPECT_THROW(number_of(line.align, "tempo"), Error);
}

TEST(Line, UnknownNamesAreAnsweredWithTheNearestAndAllThatAreKnown) {
  const std::string text = error_of("aditive | causal | softmax");
  EXPECT_TRUE(
      text.starts_with("unknown score 'aditive' in \"aditive | causal | softmax\"; did you mean 'additive'? "
                       "known: additive, concat, cosine, dense_synth, dot, "))
      << text;
  EXPECT_TRUE(error_of("dot | sofmax")
                  .starts_with("unknown scope, align or read 'sofmax' in \"dot | sofmax\"; did you "
                               "mean 'softmax'? known: alibi, "))
      << error_of("dot | sofmax");
  EXPECT_TRUE(error_of("dot | causal & wnidow:3").starts_with("unknown scope 'wnidow'"));
  EXPECT_TRUE(error_of("mixture(random_synth:256, scaled_dto)").starts_with("unknown score 'scaled_dto'"));
  EXPECT_EQ(error_of("qqqqqqqqq").find("did you mean"), std::string::npos);
}

TEST(Line, MistakesNameTheirPlaceAndWhatWasExpected) {
  const std::vector<std::pair<std::string, std::string>> all = {
      {"", "expected a score, got nothing in \"\""},
      {"dot |", "expected a scope, align or read, got nothing in \"dot |\""},
      {"dot | | softmax", "expected a scope, align or read, got '|' (letter 7) in \"dot | | softmax\""},
      {"Dot", "expected a score, got 'D' (letter 1) in \"Dot\""},
      {"d\x01t", "unknown score 'd' in"},
      {"dot\nsum", "expected '|' or the end, got '\\x0a' (letter 4) in \"dot\\x0asum\""},
      {"dot | 注", "got '注' (letter 7)"},
      {"causal | softmax", "expected a score, but 'causal' is a scope (letter 1; a line is score | scope & scope |"},
      {"softmax", "expected a score, but 'softmax' is an align (letter 1;"},
      {"dot | softmax | causal", "expected a read, but 'causal' is a scope (letter 17;"},
      {"dot | sum | sum", "nothing can stand behind the read, 's' (letter 13)"},
      {"dot | softmax & causal", "expected '|' or the end, got '&' (letter 15)"},
      {"dot | causal causal", "expected '&', '|' or the end, got 'c' (letter 14)"},
      {"dot | window:3 & local_m:4", "scope 'window' is named twice"},
      {"dot | window", "'window' needs its distance (a whole number, 0 to 1048576): window:distance"},
      {"dot | window:", "distance of 'window' is a whole number, 0 to 1048576; got nothing"},
      {"dot | window:-1", "got '-1'"},
      {"dot | window:1.5", "got '1.5'"},
      {"dot | window:12x", "got '12x'"},
      {"dot | window:1e99", "got '1e99'"},
      {"dot | window:1e999", "got '1e999'"},
      {"dot | window:0x10", "got '0x10'"},
      {"dot | window:distance=nan", "got 'nan'"},
      {"dot | softmax:temperature=inf", "got 'inf'"},
      {"dot | window:1,2", "'window' takes no further number: window:distance, got '2' (letter 16)"},
      {"dot | window:1,distance=2", "distance of 'window' is given twice (letter 16)"},
      {"dot | softmax:temprature=2", "unknown value 'temprature' of 'softmax'; did you mean 'temperature'?"},
      {"random_synth:256,fxed", "unknown value 'fxed' of 'random_synth'; did you mean 'fixed'?"},
      {"random_synth:256,learning=no", "learning of 'random_synth' is trainable or fixed, usually trainable; got 'no'"},
      {"dot:3", "'dot' takes no number: dot, got '3' (letter 5)"},
      {"dot:x", "'dot' takes no values, got 'x'"},
      {"dot:", "expected a value of 'dot', got nothing"},
      {"dot(dot)", "'dot' holds no other scores: '(' (letter 4)"},
      {"mixture(dot)", "'mixture' holds 2 to 16 scores, got 1: mixture(score, score, …)"},
      {"mixture(dot, cosine", "expected ',' or ')', got nothing"},
      {"rotary", "'rotary' holds 1 score, got 0: rotary[:base=…](score)"},
      {"rotary(location:3)", "'rotary' holds one of dot, scaled_dot, projected, cosine, not 'location'"},
      {"coverage | softmax", "'coverage' is no part of a line, but the module CoverageAttention"},
  };
  for (const auto& [line, words] : all) {
    EXPECT_NE(error_of(line).find(words), std::string::npos) << line << "\n  gave " << error_of(line);
  }
}

TEST(Line, LengthAndDepthHaveLimitsThatTheErrorNames) {
  EXPECT_EQ(error_of(std::string(kLongestMechanism + 1, 'a')),
            "a line that names a mechanism has at most 1024 letters, got 1025");
  EXPECT_EQ(error_of("dot" + std::string(kLongestMechanism - 3, ' ')), "no error: dot | global | softmax | sum");
  std::string deep = "dot";
  for (std::size_t i = 0; i < kDeepestMechanism; ++i) deep = "mixture(dot," + deep + ")";
  EXPECT_TRUE(error_of(deep).starts_with("no error")) << error_of(deep);
  EXPECT_TRUE(error_of("mixture(dot," + deep + ")").starts_with("more than 8 scores within scores"));
  std::string wide = "dot";  // it fits, but its canonical text does not
  for (int i = 0; i < 14; ++i) wide += ",mixture(dot,dot,dot,dot,dot,dot,dot,dot,dot,dot,dot,dot,dot,dot)";
  wide = "mixture(" + wide + ")";
  ASSERT_LT(wide.size(), kLongestMechanism);
  EXPECT_TRUE(error_of(wide).ends_with("when it is written out")) << error_of(wide);
  EXPECT_LT(error_of(std::string(1000, '(')).size(), 4 * kLongestMechanism);
}

// A line of what the cards allow.
class Writer {
 public:
  explicit Writer(unsigned seed) : random_(seed) {}

  std::string line() {
    std::string out = term(Family::kScore, 0);
    if (coin()) {
      out += "|" + term(Family::kScope, 0);
      while (coin()) out += " & " + term(Family::kScope, 0);
    }
    if (coin()) out += " |" + term(Family::kAlign, 0);
    if (coin()) out += "| " + term(Family::kRead, 0);
    return out;
  }

  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }
  bool coin() { return below(2) == 0; }

 private:
  std::string term(Family family, int depth) {
    std::vector<const Card*> some;
    for (const Card* each : cards()) {
      if (each->family == family && each->module.empty() && (depth < 2 || each->least_inner == 0)) some.push_back(each);
    }
    const Card& card = *some[below(some.size())];
    std::string out(card.name);
    char separator = ':';
    for (const Argument& each : card.arguments) {
      if (!each.required && coin()) continue;
      out += separator;
      separator = ',';
      if (each.kind == Argument::Kind::kWord) {
        if (coin()) out += std::string(each.key) + " = ";
        out += each.words[below(each.words.size())];
      } else {
        if (!each.required || coin()) out += std::string(each.key) + '=';
        out += std::to_string(static_cast<long>(each.least) + static_cast<long>(below(9)) + (each.least < 1 ? 1 : 0));
      }
    }
    if (card.least_inner == 0) return out;
    out += '(';
    for (std::size_t i = 0; i < card.least_inner; ++i) {
      const std::string inner =
          card.inner.empty() ? term(Family::kScore, depth + 1) : std::string(card.inner[below(card.inner.size())]);
      out += (i == 0 ? "" : ",") + inner;
    }
    return out + ')';
  }

  std::mt19937 random_;
};

// True if it is a line. Whatever it is, it ends in an Error of one line or in a text that stays what it is.
bool survives(const std::string& line) {
  try {
    const Line parsed = parse_line(line);
    const std::string text = to_text(parsed);
    EXPECT_EQ(parse_line(text), parsed) << line;
    EXPECT_EQ(to_text(parse_line(text)), text) << line;
    return true;
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::kInternal) << line << ": " << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << line;
    return false;
  }
}

TEST(Line, EveryLineThatTheCardsAllowRoundTrips) {
  Writer writer(1);
  int good = 0;
  const int tries = cases(3000);
  for (int i = 0; i < tries; ++i) good += survives(writer.line()) ? 1 : 0;
  EXPECT_GT(good, tries / 2);  // some name a scope twice, or relative_sum with another score
}

TEST(Line, MutatedLinesNeverDoHarm) {
  Writer writer(2);
  const std::string letters = "|&:,()= \t.-+eE019aiz_\n\\\"'\x7f\x80\xff\xe6";
  int bad = 0;
  for (int i = 0; i < cases(6000); ++i) {
    std::string line = writer.line();
    for (std::size_t n = writer.below(4); n-- > 0;) {
      const std::size_t at = writer.below(line.size() + 1);
      switch (writer.below(4)) {
        case 0:
          line.insert(at, 1, letters[writer.below(letters.size())]);
          break;
        case 1:
          line.erase(at, writer.below(5));
          break;
        case 2:
          line.insert(at, line.substr(writer.below(line.size() + 1), writer.below(40)));
          break;
        default:
          if (at < line.size()) line[at] = static_cast<char>(writer.below(256));
      }
    }
    bad += survives(line) ? 0 : 1;
  }
  EXPECT_GT(bad, 0);
}

TEST(Line, RandomBytesNeverDoHarm) {
  Writer writer(3);
  for (int i = 0; i < cases(3000); ++i) {
    std::string line(writer.below(i % 100 == 0 ? 2 * kLongestMechanism : 60), ' ');
    for (char& letter : line) letter = static_cast<char>(writer.below(256));
    survives(line);
  }
  for (const char* piece : {"(", "mixture(", "rotary(", "dot|", "dot,", ":", "&", "mixture(dot,", "1", "-", "="}) {
    for (std::size_t count : {1u, 9u, 100u, 1000u}) {
      std::string line;
      for (std::size_t i = 0; i < count; ++i) line += piece;
      survives(line);
    }
  }
}

TEST(Cards, EveryMechanismOfTheFamiliesIsThere) {
  std::set<std::string> names;
  for (const Card* each : cards()) names.emplace(each->name);
  EXPECT_EQ(names.size(), cards().size()) << "a name stands twice";
  for (const char* name : {"dot",
                           "scaled_dot",
                           "general",
                           "concat",
                           "additive",
                           "projected",
                           "location",
                           "location_aware",
                           "coverage",
                           "relative",
                           "dense_synth",
                           "random_synth",
                           "factorized_dense_synth",
                           "factorized_random_synth",
                           "mixture",
                           "cosine",
                           "rotary",
                           "bias",
                           "global",
                           "lengths",
                           "causal",
                           "window",
                           "local_m",
                           "local_p",
                           "alibi",
                           "documents",
                           "mask",
                           "softmax",
                           "uniform",
                           "hard",
                           "sparsemax",
                           "entmax15",
                           "multi_dimensional",
                           "pointer",
                           "sum",
                           "relative_sum"}) {
    EXPECT_EQ(names.erase(name), 1u) << name;
  }
  EXPECT_TRUE(names.empty()) << *names.begin();
}

// What the grammar rests on: a word is never a name, required values come first, families stand together.
TEST(Cards, AreUnambiguous) {
  Family last = Family::kScore;
  for (const Card* each_card : cards()) {
    const Card& card = *each_card;
    EXPECT_GE(card.family, last) << card.name;
    last = card.family;
    EXPECT_FALSE(card.formula.empty()) << card.name;
    std::set<std::string_view> words;
    bool optional = false;
    for (const Argument& each : card.arguments) {
      EXPECT_FALSE(each.required && optional) << card.name;
      optional = optional || !each.required;
      EXPECT_FALSE(each.meaning.empty()) << card.name << ' ' << each.key;
      EXPECT_EQ(each.kind == Argument::Kind::kWord, !each.words.empty()) << card.name << ' ' << each.key;
      EXPECT_EQ(find_card(each.key), nullptr) << each.key;
      EXPECT_TRUE(words.insert(each.key).second) << each.key;
      for (const std::string_view word : each.words) {
        EXPECT_EQ(find_card(word), nullptr) << word;
        EXPECT_TRUE(words.insert(word).second) << word;
      }
      if (each.kind == Argument::Kind::kWord) {
        EXPECT_FALSE(each.required);
      } else {
        EXPECT_LE(each.least, each.usual.value_or(each.least));
        EXPECT_LE(each.usual.value_or(each.least), each.most);
      }
    }
    if (!card.same_as.empty()) {
      ASSERT_NE(find_card(card.same_as), nullptr);
      EXPECT_EQ(find_card(card.same_as)->arguments.size(), card.arguments.size());
    }
  }
}

TEST(Cards, FamiliesHaveNames) {
  for (const Family family : kFamilies) EXPECT_EQ(family_of(name_of(family)), family);
  try {
    family_of("scoer");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "unknown family 'scoer'; did you mean 'score'? (known: score, scope, align, read)");
  }
}

}  // namespace
}  // namespace regard
