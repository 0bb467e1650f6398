// The lab: every mechanism runs or says what it needs, and its numbers are those of the engine.
#include "serve/lab.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "attention/cards.h"
#include "io/json.h"
#include "regard/attention/mechanism.h"
#include "regard/autograd/tape.h"

namespace regard::serve {
namespace {

constexpr std::int64_t kWords = 6;  // of the sentence

std::string body_of(std::string_view line, std::string_view more = "") {
  return "{\"line\": " + json_quote(line) + R"(, "sentence": "the cat sat on the mat")" + std::string(more) + "}";
}

Json attended(std::string_view body) {
  return Json::parse(attend_json(attend_request(body, "application/json", {}), {}), "the answer");
}

std::string refusal_of(std::string_view body, int status = 400) {
  try {
    attended(body);
  } catch (const Refusal& refusal) {
    EXPECT_EQ(refusal.status(), status) << body << ": " << refusal.what();
    return refusal.what();
  }
  ADD_FAILURE() << "taken: " << body;
  return "";
}

std::vector<std::vector<float>> rows_of(const Json& rows) {
  std::vector<std::vector<float>> all;
  for (const Json& row : rows.array()) {
    std::vector<float>& made = all.emplace_back();
    for (const Json& each : row.array()) {
      made.push_back(each.is_null() ? -INFINITY : static_cast<float>(each.number()));
    }
  }
  return all;
}

TEST(Lab, EveryMechanismRunsOrSaysWhatItNeeds) {
  int ran = 0;
  for (const Card* card : cards()) {
    const std::string name(card->name);
    std::string line = example_of(*card, kWords), more;
    if (name == "relative_sum") line = "relative:2 | relative_sum";
    if (card->family != Family::kScore && card->module.empty() && name != "relative_sum") line = "scaled_dot | " + line;
    if (name == "lengths") more = R"(, "length": 4)";
    if (name == "documents") more = R"(, "documents": [0, 0, 0, 1, 1, 1])";
    if (name == "mask")
      more = R"(, "mask": [[1,1,1,1,1,1],[1,1,0,1,1,1],[1,1,1,1,1,1],[0,0,0,0,0,0],[1,1,1,1,1,1],
                                             [true,false,true,true,true,true]])";
    if (name == "bias") more = R"(, "bias": [[0, 0, 0, 0, 0, 1]])";
    if (!more.empty()) {
      const std::string need = refusal_of(body_of(line));
      EXPECT_NE(need.find(name), std::string::npos) << need;
      EXPECT_EQ(need.find('\n'), std::string::npos) << need;
    }
    SCOPED_TRACE(line);
    const Json answer = attended(body_of(line, more));
    const std::vector<Json> scores = answer.at("scores").array(), weights = answer.at("weights").array();
    ASSERT_EQ(scores.size(), name == "multi_dimensional" ? 8u : 1u);
    ASSERT_EQ(weights.size(), scores.size());
    const auto context = rows_of(answer.at("context")), values = rows_of(answer.at("v"));
    ASSERT_EQ(context.size(), 6u);
    EXPECT_EQ(answer.at("tokens").array().size(), 6u);
    EXPECT_GE(answer.at("formula").object().size(), 1u);
    EXPECT_NE(answer.at("line").text().find(name == "local_m"  ? "window"
                                            : name == "global" ? "sum"
                                                               : name),
              std::string_view::npos);
    for (std::size_t head = 0; head < scores.size(); ++head) {
      const auto s = rows_of(scores[head]), p = rows_of(weights[head]);
      ASSERT_EQ(s.size(), 6u);
      for (std::size_t i = 0; i < s.size(); ++i) {
        ASSERT_EQ(s[i].size(), 6u);
        ASSERT_EQ(p[i].size(), 6u);
        double mass = 0, sum = 0;
        for (std::size_t j = 0; j < 6; ++j) {
          mass += std::exp(static_cast<double>(s[i][j]));
          sum += p[i][j];
          EXPECT_TRUE(std::isfinite(s[i][j]) || p[i][j] == 0.0f);
        }
        // Softmax of what is shown as scores is what is shown as weights.
        const bool softmax = card->family != Family::kAlign || name == "softmax" || name == "multi_dimensional";
        EXPECT_TRUE(name == "local_p" || mass == 0 || std::abs(sum - 1) < 1e-5) << sum;
        for (std::size_t j = 0; j < 6 && softmax && name != "local_p" && mass > 0; ++j) {
          EXPECT_NEAR(p[i][j], std::exp(static_cast<double>(s[i][j])) / mass, 1e-5);
        }
        EXPECT_TRUE(name != "pointer" || context[i] == p[i]);
        if (name == "pointer" || name == "relative" || name == "relative_sum") continue;
        for (std::size_t c = head; c < context[i].size(); c += scores.size()) {  // of a feature its own
          double read = 0;
          for (std::size_t j = 0; j < 6; ++j) read += static_cast<double>(p[i][j]) * static_cast<double>(values[j][c]);
          EXPECT_NEAR(context[i][c], read, 1e-4);
        }
      }
    }
    ++ran;
  }
  EXPECT_GE(ran, 36);
}

TEST(Lab, NumbersHaveTheBitsOfTheEngine) {
  const Json answer = attended(R"({"line": "scaled_dot | causal", "q": [[0.1, 0.7], [1, 2], [-0.3, 3]],
                                   "k": [[1, 0.5], [2, 1e-3], [0, 1]], "v": [[1], [2], [4.2]]})");
  Tape tape;
  const Var q = tape.constant(Tensor::of<float>({1, 1, 3, 2}, {0.1f, 0.7f, 1, 2, -0.3f, 3}));
  const Var k = tape.constant(Tensor::of<float>({1, 1, 3, 2}, {1, 0.5f, 2, 1e-3f, 0, 1}));
  const Var v = tape.constant(Tensor::of<float>({1, 1, 3, 1}, {1, 2, 4.2f}));
  const Attention expected = attend(Mechanism("scaled_dot | causal"), q, k, v);
  const auto same = [](const Json& rows, const Tensor& numbers) {
    std::vector<float> all;
    for (const auto& row : rows_of(rows)) all.insert(all.end(), row.begin(), row.end());
    return static_cast<std::int64_t>(all.size()) == numbers.size() &&
           std::memcmp(all.data(), numbers.raw(), numbers.bytes()) == 0;
  };
  EXPECT_TRUE(same(answer.at("weights").array()[0], expected.trace.weights()));
  EXPECT_TRUE(same(answer.at("scores").array()[0], expected.trace.scores()));
  EXPECT_TRUE(same(answer.at("context"), expected.context.value()));
  EXPECT_TRUE(same(answer.at("q"), q.value()));
  EXPECT_TRUE(answer.at("scores").array()[0].array()[0].array()[1].is_null());
  EXPECT_NEAR(answer.at("scores").array()[0].array()[1].array()[0].number(), 2 / std::sqrt(2.0), 1e-6);
  EXPECT_EQ(answer.at("line").text(), "scaled_dot | causal | softmax | sum");
  EXPECT_FALSE(answer.find("tokens"));
}

TEST(Lab, ScoresThatNobodyNeedsAreShownAllTheSame) {
  const auto uniform = rows_of(attended(body_of("scaled_dot | uniform")).at("scores").array()[0]);
  EXPECT_EQ(uniform, rows_of(attended(body_of("scaled_dot")).at("scores").array()[0]));
}

TEST(Lab, EqualWordsHaveEqualVectors) {
  const auto rows = rows_of(attended(body_of("dot", R"(, "width": 5)")).at("q"));
  EXPECT_EQ(rows[0].size(), 5u);
  EXPECT_EQ(rows[0], rows[4]);
  EXPECT_NE(rows[0], rows[1]);
  EXPECT_EQ(rows, rows_of(attended(body_of("dot", R"(, "width": 5, "seed": 1)")).at("q")));
  EXPECT_NE(rows, rows_of(attended(body_of("dot", R"(, "width": 5, "seed": 2)")).at("q")));
  const Json chinese = attended(R"({"sentence": "他们在看。"})");
  EXPECT_EQ(chinese.at("tokens").array().size(), 5u);
}

TEST(Lab, WeightsOfItsOwnFollowTheSeed) {
  const auto weights = [](const char* seed) {
    return rows_of(attended(std::string(R"({"line": "additive", "q": [[1, 2]], "k": [[1, 0], [0, 1]], "v": [[1], [2]],
                                           "seed": )") +
                            seed + "}")
                       .at("weights")
                       .array()[0]);
  };
  EXPECT_EQ(weights("3"), weights("3"));
  EXPECT_NE(weights("3"), weights("4"));
  const Json answer = attended(body_of("additive:hidden=3"));
  EXPECT_GE(answer.at("learned").array().size(), 3u);
  for (const Json& each : answer.at("learned").array()) EXPECT_FALSE(each.at("name").text().empty());
}

TEST(Lab, TheSlidersChangeTheLine) {
  EXPECT_EQ(attended(body_of("scaled_dot", R"(, "scale": 0.25, "temperature": 2)")).at("line").text(),
            "scaled_dot:scale=0.25 | global | softmax:temperature=2 | sum");
  EXPECT_EQ(attended(body_of("scaled_dot:scale=3", R"(, "scale": 0.25)")).at("line").text(),
            "scaled_dot:scale=0.25 | global | softmax | sum");
  EXPECT_EQ(attended(body_of("rotary(scaled_dot)", R"(, "scale": 0.25)")).at("line").text(),
            "rotary(scaled_dot:scale=0.25) | global | softmax | sum");
  EXPECT_EQ(attended(body_of("cosine", R"(, "scale": 5)")).at("line").text(), "cosine:beta=5 | global | softmax | sum");
  EXPECT_NE(refusal_of(body_of("additive", R"(, "scale": 2)")).find("additive has none"), std::string::npos);
  EXPECT_NE(refusal_of(body_of("dot | sparsemax", R"(, "temperature": 2)")).find("sparsemax has none"),
            std::string::npos);
  EXPECT_NE(refusal_of(body_of("coverage", R"(, "scale": 2)")).find("no scale"), std::string::npos);
}

TEST(Lab, WhatDoesNotFitIsSaidInWords) {
  EXPECT_NE(refusal_of(body_of("scaled_dott")).find("scaled_dot"), std::string::npos);
  EXPECT_NE(refusal_of(R"({"q": [[1, 2]], "k": [[1]], "v": [[1]]})").find("width"), std::string::npos);
  EXPECT_NE(refusal_of(R"({"q": [[1]], "k": [[1], [2]], "v": [[1]]})").find("length"), std::string::npos);
  EXPECT_NE(refusal_of(R"({"q": [[1]]})").find("values"), std::string::npos);
  EXPECT_NE(refusal_of(R"({"q": [[1]], "v": [[1]]})").find("keys"), std::string::npos);
  EXPECT_NE(refusal_of(R"({"q": [[1]], "line": "additive", "v": [[1]]})").find("key"), std::string::npos);
  EXPECT_NE(refusal_of(R"({"q": [[1]], "line": "coverage", "v": [[1]]})").find("needs"), std::string::npos);
  EXPECT_NE(refusal_of(body_of("scaled_dot | mask", R"(, "mask": [[1, 1]])")).find("mask"), std::string::npos);
  EXPECT_NE(refusal_of(R"({"q": [[1]], "k": [[1]], "v": [[1]], "line": "dot | mask", "mask": [[2]]})").find("true and"),
            std::string::npos);
  EXPECT_NE(refusal_of(body_of("scaled_dot", R"(, "length": 7)")).find("length"), std::string::npos);
  EXPECT_NE(refusal_of(body_of("coverage", R"(, "length": 7)")).find("length"), std::string::npos);
  EXPECT_NE(refusal_of(body_of("location:3")).find("at most 3"), std::string::npos);
  EXPECT_NE(refusal_of(R"({"sentence": "  "})").find("words"), std::string::npos);
}

TEST(Lab, SizesThatALineNamesAreBounded) {
  for (const char* line : {"random_synth:1048576", "dense_synth:1048576,hidden=65536", "location:1048576",
                           "relative:1048576", "additive:hidden=65536", "factorized_random_synth:1048576,rank=65536",
                           "factorized_dense_synth:1048576,1048576", "mixture(random_synth:500, random_synth:500)"}) {
    refusal_of(body_of(line), 413);
  }
  std::string words;
  for (int i = 0; i < 65; ++i) words += "a ";
  refusal_of("{\"sentence\": \"" + words + "\"}", 413);
}

TEST(Lab, RequestsAreBounded) {
  std::string row = "[0", rows = "[[0]";
  for (int i = 0; i < 64; ++i) row += ",0", rows += ",[0]";
  refusal_of("{\"q\": [" + row + "]]}", 413);
  refusal_of("{\"q\": " + rows + "]}", 413);
  for (const char* wrong : {R"({})",
                            R"({"q": []})",
                            R"({"q": [[]]})",
                            R"({"q": [[1], [1, 2]]})",
                            R"({"q": [1]})",
                            R"({"q": [["a"]]})",
                            R"({"q": [[1e7]]})",
                            R"({"q": [[1e400]]})",
                            R"({"q": [[null]]})",
                            R"({"sentence": "a", "q": [[1]]})",
                            R"({"sentence": "a", "width": 0})",
                            R"({"sentence": "a", "width": 65})",
                            R"({"sentence": "a", "seed": -1})",
                            R"({"sentence": "a", "scale": 0})",
                            R"({"sentence": "a", "temperature": -1})",
                            R"({"sentence": "a", "scale": 1e7})",
                            R"({"sentence": "a", "heads": 2})",
                            R"({"sentence": "a", "line": 3})",
                            R"({"sentence": "a", "length": -1})",
                            R"({"sentence": "a", "documents": [0.5]})"}) {
    refusal_of(wrong);
  }
}

}  // namespace
}  // namespace regard::serve
