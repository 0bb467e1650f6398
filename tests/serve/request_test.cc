// What clients send: what is understood, and what is refused in which words.
#include "serve/request.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace regard::serve {
namespace {

struct Refused {
  int status = 0;
  std::string text;
};

Refused refusal_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Refusal& refusal) {
    return {refusal.status(), refusal.what()};
  }
  return {};
}

TranslateRequest translate(std::string_view body, const Limits& limits = {}) {
  return translate_request(body, "application/json", limits);
}

Refused refused(std::string_view body, const Limits& limits = {}) {
  return refusal_of([&] { translate(body, limits); });
}

TEST(Request, OneTextAndItsLanguages) {
  const TranslateRequest asked = translate(R"({"q": "他们在看。", "source": "zh", "target": "en", "api_key": "k"})");
  ASSERT_EQ(asked.texts.size(), 1u);
  EXPECT_EQ(asked.texts[0], "他们在看。");
  EXPECT_FALSE(asked.many);
  EXPECT_EQ(asked.languages.source, "zh");
  EXPECT_EQ(asked.languages.target, "en");
  EXPECT_EQ(asked.key, "k");
  EXPECT_FALSE(asked.html);
  EXPECT_FALSE(asked.alignment);
  EXPECT_FALSE(asked.attention);
  EXPECT_EQ(asked.alternatives, 0);
}

TEST(Request, WhatIsLeftOutHasItsUsualValue) {
  const TranslateRequest asked = translate(R"({"q": ["a", "b"]})");
  EXPECT_TRUE(asked.many);
  EXPECT_EQ(asked.texts.size(), 2u);
  EXPECT_EQ(asked.languages.source, "auto");
  EXPECT_EQ(asked.languages.target, "");
  EXPECT_EQ(asked.beam, 5);
}

TEST(Request, AlignmentAndAttentionOnlyWhenAsked) {
  EXPECT_TRUE(translate(R"({"q": "a", "alignment": true})").alignment);
  EXPECT_FALSE(translate(R"({"q": "a", "alignment": false})").alignment);
  EXPECT_EQ(translate(R"({"q": "a", "alignment": true, "level": "piece", "threshold": 0.25})").alignment->threshold,
            0.25);
  EXPECT_TRUE(translate(R"({"q": "a", "attention": true})").attention);
  EXPECT_FALSE(translate(R"({"q": "a", "attention": false})").attention);
  EXPECT_EQ(translate(R"({"q": "a", "attention": {"layer": 2, "head": -1}})").attention->head, -1);
}

TEST(Request, AFormSaysTheSame) {
  const TranslateRequest asked = translate_request("q=It%27s+42&source=en&target=zh&alternatives=2&api_key=",
                                                   "application/x-www-form-urlencoded; charset=utf-8", {});
  EXPECT_EQ(asked.texts[0], "It's 42");
  EXPECT_EQ(asked.alternatives, 2);
  EXPECT_EQ(translate_request("q=42", "application/x-www-form-urlencoded", {}).texts[0], "42");
  for (const char* wrong : {"q=%", "q=%4", "q=%zz", "q=%ff", "q=a&q=b", "", "x=1"}) {
    EXPECT_EQ(refusal_of([&] { translate_request(wrong, "application/x-www-form-urlencoded", {}); }).status, 400)
        << wrong;
  }
  std::string many = "q=a";
  for (int i = 0; i < 40; ++i) many += "&a" + std::to_string(i) + "=1";
  EXPECT_EQ(refusal_of([&] { translate_request(many, "application/x-www-form-urlencoded", {}); }).status, 400);
}

TEST(Request, WhatMakesNoSenseIsRefusedInWords) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "the request"},
      {"{", "the request"},
      {"[]", "expected"},
      {R"({"q": 1})", "q: 1"},
      {R"({"q": [1]})", "q[0]: 1"},
      {R"({"source": "zh"})", "q is missing"},
      {R"({"q": "a", "format": "xml"})", "format"},
      {R"({"q": "a", "alternatives": 11})", "alternatives: 11"},
      {R"({"q": "a", "alternatives": -1})", "alternatives: -1"},
      {R"({"q": "a", "alternatives": 1.5})", "alternatives: 1.5"},
      {R"({"q": "a", "beam": 17})", "beam: 17"},
      {R"({"q": "a", "beam": 1e400})", "the request"},
      {R"({"q": "a", "alignment": 1})", "alignment"},
      {R"({"q": "a", "attention": {"rows": 1}})", "rows"},
      {R"({"q": "a", "alignment": true, "level": "sentence"})", "level"},
      {R"({"q": "a", "threshold": 2, "alignment": true})", "threshold"},
      {R"({"q": "a", "q": "b"})", "q"},
      {R"({"q": "a", "file": "/etc/passwd"})", "file"},
      {R"({"q": ["a"], "stream": true})", "stream"},
      {R"({"q": "a", "stream": true, "beam": 3})", "beam: 3"},
      {R"({"q": "a", "format": "html", "attention": true})", "html"},
      {"{\"q\": \"\xff\"}", "the request"},
      {"{\"q\": \"\\ud800\"}", "the request"},
  };
  for (const auto& [body, part] : wrong) {
    const Refused found = refused(body);
    EXPECT_EQ(found.status, 400) << body;
    EXPECT_NE(found.text.find(part), std::string::npos) << body << ": " << found.text;
  }
  EXPECT_EQ(refused(std::string(100'000, '[')).status, 400);
}

TEST(Request, TooMuchIs413) {
  Limits limits;
  limits.text = 10;
  limits.texts = 2;
  EXPECT_EQ(refused(R"({"q": "0123456789"})", limits).status, 0);
  EXPECT_EQ(refused(R"({"q": "0123456789a"})", limits).status, 413);
  EXPECT_EQ(refused(R"({"q": ["01234", "56789a"]})", limits).status, 413);
  EXPECT_EQ(refused(R"({"q": ["", "", ""]})", limits).status, 413);
  EXPECT_EQ(refused("{\"q\": \"a\", \"source\": \"" + std::string(65, 'a') + "\"}").status, 400);
}

TEST(Request, AnotherTypeOfBodyIs415) {
  EXPECT_EQ(refusal_of([] { translate_request("{}", "text/xml", {}); }).status, 415);
  EXPECT_EQ(translate_request(R"({"q": "a"})", "", {}).texts[0], "a");
  EXPECT_EQ(translate_request(R"({"q": "a"})", "Application/JSON; charset=utf-8", {}).texts[0], "a");
}

TEST(Request, PairsHaveTwoSidesOfTheSameLength) {
  const auto align = [](std::string_view body) { return align_request(body, "application/json", {}); };
  const PairsRequest one = align(R"({"q": "a", "translation": "b"})");
  ASSERT_EQ(one.pairs.size(), 1u);
  EXPECT_EQ(one.pairs[0].target, "b");
  EXPECT_EQ(align(R"({"q": ["a", "c"], "translation": ["b", "d"]})").pairs[1].source, "c");
  for (const char* wrong : {R"({"q": "a"})", R"({"q": "a", "translation": ["b"]})",
                            R"({"q": ["a"], "translation": ["b", "c"]})", R"({"translation": "b"})"}) {
    EXPECT_EQ(refusal_of([&] { align(wrong); }).status, 400) << wrong;
  }
  EXPECT_TRUE(score_request(R"({"q": "a", "translation": "b", "per_token": true})", "", {}).per_token);
  EXPECT_EQ(refusal_of([] { detect_request(R"({"q": ["a"]})", "", {}); }).status, 400);
  for (const char* none : {R"({"q": []})", R"({"q": ["a"]})"}) {
    EXPECT_EQ(refusal_of([&] { edit_request(none, "", {}); }).status, 400) << none;
  }
}

TEST(Request, ANulIsABlank) { EXPECT_EQ(translate("{\"q\": \"a\\u0000b\"}").texts[0], "a b"); }

}  // namespace
}  // namespace regard::serve
