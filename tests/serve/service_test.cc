// The paths of the server, asked without sockets.
#include "serve/service.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <future>
#include <mutex>
#include <set>

#include "base/check.h"
#include "io/json.h"
#include "serve/answers.h"
#include "serve/stream.h"
#include "support/cases.h"
#include "support/error_of.h"
#include "tasks/traces.h"
#include "tiny_models.h"

namespace regard::serve {
namespace {

class Kept : public Reply {
 public:
  void send(HttpAnswer answer) override { promise_.set_value(std::move(answer)); }
  void event(std::string_view name, std::string_view data) override {
    const std::lock_guard guard(lock_);
    events_.emplace_back(name, data);
  }
  void end() override { promise_.set_value({.status = 0}); }
  std::stop_token gone() const override { return gone_.get_token(); }

  HttpAnswer answer() { return future_.get(); }
  std::vector<std::pair<std::string, std::string>> events() {
    const std::lock_guard guard(lock_);
    return events_;
  }
  void leave() { gone_.request_stop(); }

 private:
  std::promise<HttpAnswer> promise_;
  std::future<HttpAnswer> future_ = promise_.get_future();
  std::mutex lock_;
  std::vector<std::pair<std::string, std::string>> events_;
  std::stop_source gone_;
};

class ServiceTest : public testing::Test {
 protected:
  explicit ServiceTest(Service::Settings settings = {}) : service_(TinyModels::all(), std::move(settings)) {}

  std::shared_ptr<Kept> begin(std::string method, std::string path, std::string body = "", std::string key = "") {
    auto reply = std::make_shared<Kept>();
    service_.handle({.method = std::move(method),
                     .path = std::move(path),
                     .type = "application/json",
                     .body = std::move(body),
                     .key = std::move(key),
                     .id = "id-1"},
                    reply);
    return reply;
  }
  HttpAnswer post(std::string path, std::string body, std::string key = "") {
    return begin("POST", std::move(path), std::move(body), std::move(key))->answer();
  }
  HttpAnswer get(std::string path) { return begin("GET", std::move(path))->answer(); }
  Json good(std::string path, std::string body) {
    const HttpAnswer answer = post(std::move(path), std::move(body));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return Json::parse(answer.body, "the answer");
  }
  static const Translator& translator(std::size_t i) { return TinyModels::all().all()[i].translator; }

  Service service_;
};

std::string body_of(std::string_view text, std::string_view more = "") {
  return "{\"q\": " + json_quote(text) + std::string(more) + "}";
}

TEST_F(ServiceTest, ATranslationIsTheOneThatTheModelGives) {
  for (const std::string& line : TinyModels::lines("zh-en", 5)) {
    const Json answer = good("/translate", body_of(line, R"(, "source": "zh", "target": "en")"));
    EXPECT_EQ(answer.at("translatedText").text(), translator(0).translate(std::span(&line, 1))[0].best[0].text);
    EXPECT_FALSE(answer.find("detectedLanguage"));
    EXPECT_FALSE(answer.find("alternatives"));
    EXPECT_FALSE(answer.find("alignment"));
    EXPECT_FALSE(answer.find("attention"));
  }
}

TEST_F(ServiceTest, TheLettersTellTheDirection) {
  const std::string chinese = TinyModels::lines("zh-en", 1)[0], english = TinyModels::lines("en-zh", 1)[0];
  const Json answer =
      good("/translate", "{\"q\": [" + json_quote(chinese) + ", " + json_quote(english) + ", \"\", \" \"]}");
  const std::vector<Json> texts = answer.at("translatedText").array();
  ASSERT_EQ(texts.size(), 4u);
  EXPECT_EQ(texts[0].text(), translator(0).translate(std::span(&chinese, 1))[0].best[0].text);
  EXPECT_EQ(texts[1].text(), translator(1).translate(std::span(&english, 1))[0].best[0].text);
  EXPECT_EQ(texts[2].text(), "");
  EXPECT_EQ(texts[3].text(), " ");
  EXPECT_EQ(answer.at("detectedLanguage").array()[0].at("language").text(), "zh");
  EXPECT_EQ(answer.at("detectedLanguage").array()[1].at("language").text(), "en");
}

TEST_F(ServiceTest, LinesOfATextStayLines) {
  const std::vector<std::string> lines = TinyModels::lines("zh-en", 2);
  const Json answer = good("/translate", body_of(lines[0] + "\n\n" + lines[1] + "\n"));
  const auto found = translator(0).translate(lines);
  EXPECT_EQ(answer.at("translatedText").text(), found[0].best[0].text + "\n\n" + found[1].best[0].text + "\n");
}

TEST_F(ServiceTest, AlternativesAreTheNextBest) {
  const std::string line = TinyModels::lines("zh-en", 1)[0];
  const Json answer = good("/translate", body_of(line, R"(, "alternatives": 3)"));
  const auto found = translator(0).translate(std::span(&line, 1), {.beam = 5, .best = 4})[0].best;
  const std::vector<Json> told = answer.at("alternatives").array();
  ASSERT_EQ(told.size(), found.size() - 1);
  for (std::size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i].text(), found[i + 1].text);
}

TEST_F(ServiceTest, ATraceHasAllMapsOfAllResults) {
  const std::string line = TinyModels::lines("zh-en", 2)[1];
  const HttpAnswer answer = post("/translate", body_of(line, R"(, "alternatives": 1, "trace": true)"));
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.type, "application/octet-stream");
  const Trace trace = Trace::parse(answer.body, "the answer");
  const auto found = translator(0).translate(std::span(&line, 1), {.beam = 5, .best = 2})[0].best;
  ASSERT_EQ(trace.items.size(), found.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const TraceItem expected = trace_of(translator(0), line, found[i]);
    EXPECT_EQ(trace.items[i].axis("target").text, found[i].text);
    EXPECT_EQ(trace.items[i].log_probability, found[i].log_probability);
    EXPECT_EQ(trace.items[i].beam.has_value(), i == 0);
    for (const char* name : {"cross", "encoder", "decoder"}) {
      const Tensor &a = trace.items[i].map(name).weights, &b = expected.map(name).weights;
      ASSERT_EQ(a.shape(), b.shape());
      EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0) << name;
    }
  }
  EXPECT_EQ(post("/translate", body_of(" ", R"(, "trace": true)")).status, 200);
  EXPECT_EQ(post("/translate", body_of(line, R"(, "trace": true, "attention": true)")).status, 400);
}

TEST_F(ServiceTest, WhatIfTellsBeforeAndAfter) {
  const std::string line = TinyModels::lines("zh-en", 2)[1];
  const Translator::Result plain = translator(0).translate(std::span(&line, 1))[0].best[0];
  const auto after = [&](std::string_view more) {
    const Json answer = good("/edit", body_of(line, more));
    EXPECT_EQ(answer.at("before").at("translatedText").text(), plain.text);
    EXPECT_EQ(answer.at("before").at("log_probability").number(), plain.log_probability);
    return answer;
  };
  const auto score = [](const Json& answer) { return answer.at("after").at("log_probability").number(); };
  EXPECT_EQ(score(after("")), plain.log_probability);
  EXPECT_NE(score(after(R"(, "mute": [{"layer": 1, "head": 0}])")), plain.log_probability);
  EXPECT_NE(score(after(R"(, "mute": [{"map": "encoder", "layer": 0, "head": 1}])")), plain.log_probability);
  const Json hidden = after(R"(, "hide": [0], "attention": true)");
  EXPECT_NE(score(hidden), plain.log_probability);
  for (const Json& layer : hidden.at("attention").at("weights").array()) {
    for (const Json& head : layer.array()) {
      for (const Json& row : head.array()) EXPECT_EQ(row.array()[0].number(), 0);
    }
  }
  std::string prefix;
  for (std::size_t i = 0; i < 2; ++i) {
    prefix += (i > 0 ? ", " : "") + json_quote(translator(0).target().piece(plain.tokens[i].id));
  }
  const Json pinned = after(R"(, "pin": [{"target": 2, "source": 1}], "attention": true, "prefix": [)" + prefix + "]");
  EXPECT_NE(score(pinned), plain.log_probability);
  EXPECT_EQ(pinned.at("after").at("tokens").array()[1].text(), translator(0).target().piece(plain.tokens[1].id));
  const std::vector<Json> row = pinned.at("attention").at("weights").array()[0].array()[1].array()[2].array();
  for (std::size_t i = 0; i < row.size(); ++i) EXPECT_EQ(row[i].number(), i == 1 ? 1 : 0);

  const HttpAnswer traced = post("/edit", body_of(line, R"(, "hide": [0], "trace": true)"));
  ASSERT_EQ(traced.status, 200) << traced.body;
  const Trace trace = Trace::parse(traced.body, "the answer");
  ASSERT_EQ(trace.items.size(), 2u);
  EXPECT_EQ(trace.items[0].title, "before");
  EXPECT_EQ(trace.items[0].log_probability, plain.log_probability);
  EXPECT_EQ(trace.items[1].title, "after");
  EXPECT_EQ(trace.items[1].log_probability, score(hidden));
}

TEST_F(ServiceTest, AWhatIfThatCannotBeIsRefusedInWords) {
  const std::string line = TinyModels::lines("zh-en", 1)[0];
  const std::pair<std::string, std::string> cases[] = {
      {R"("mute": [{"layer": 2, "head": 0}])", "mute.layer: 2, expected 0 to 1"},
      {R"("mute": [{"layer": 0, "head": 2}])", "mute.head: 2, expected 0 to 1"},
      {R"("mute": [{"map": "middle", "layer": 0, "head": 2}])", "mute.map"},
      {R"("hide": [99])", "hide: 99, expected 0 to "},
      {R"("hide": 3)", "hide"},
      {R"("pin": [{"target": 0}])", "source"},
      {R"("pin": [{"target": 0, "source": 99}])", "pin.source: 99, expected 0 to "},
      {R"("pin": [{"target": 0, "weights": [1]}])", "pin.weights: 1 of them, expected "},
      {R"("pin": [{"target": 0, "source": 0, "layer": 7}])", "pin.layer: 7"},
      {R"("prefix": ["no such piece"])", "is no piece of this model"},
      {R"("prefix": ["</s>"])", "is no piece of this model"},
      {R"("what": 1)", "what"},
  };
  for (const auto& [more, expected] : cases) {
    const HttpAnswer answer = post("/edit", body_of(line, ", " + more));
    EXPECT_EQ(answer.status, 400) << more;
    EXPECT_NE(answer.body.find(expected), std::string::npos) << more << ": " << answer.body;
  }
  EXPECT_EQ(post("/edit", body_of("")).status, 400);
  EXPECT_EQ(post("/edit", body_of("a\nb")).status, 400);
}

TEST_F(ServiceTest, AlignmentAndAttentionAreThoseOfTheModel) {
  const std::string line = TinyModels::lines("zh-en", 3)[2];
  const Json answer = good("/translate", body_of(line, R"(, "alignment": true, "attention": true)"));
  const Translator::Result result = translator(0).translate(std::span(&line, 1))[0].best[0];
  const Translator::Looked looked = translator(0).look(line, result);
  const Json attention = answer.at("attention");
  EXPECT_EQ(attention.at("layers").array().size(), 2u);
  EXPECT_EQ(attention.at("heads").array().size(), 2u);
  const std::vector<Json> rows = attention.at("weights").array()[1].array()[1].array();
  ASSERT_EQ(static_cast<std::int64_t>(rows.size()), looked.weights[2]);
  const Tensor map = looked.weights.slice(0, 1, 2).slice(1, 1, 2).clone();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::vector<Json> row = rows[r].array();
    ASSERT_EQ(static_cast<std::int64_t>(row.size()), looked.weights[3]);
    for (std::size_t c = 0; c < row.size(); ++c) {
      EXPECT_NEAR(row[c].number(), map.data<float>()[r * row.size() + c], 1e-5);
    }
  }
  std::string pharaoh;
  for (const Json& each : answer.at("alignment").at("links").array()) {
    pharaoh += text(pharaoh.empty() ? "" : " ", each.at("source").integer(), "-", each.at("target").integer());
  }
  Links links = parse_links(pharaoh, "here");
  EXPECT_EQ(regard::pharaoh(sorted(links)), alignment_text(translator(0), line, result, alignment_settings("hard")));
  const Json given = good("/align", body_of(line, ", \"translation\": " + json_quote(result.text)));
  EXPECT_EQ(given.at("alignment").at("source").to_json(), answer.at("alignment").at("source").to_json());
  EXPECT_EQ(post("/translate", body_of(line, R"(, "attention": {"layer": 2})")).status, 400);
  EXPECT_EQ(post("/translate", body_of(line, R"(, "attention": {"head": 2})")).status, 400);
  EXPECT_EQ(post("/translate", body_of("a\nb", R"(, "alignment": true)")).status, 400);
  EXPECT_EQ(good("/translate", body_of(line, R"(, "attention": {"layer": 1, "head": -1})"))
                .at("attention")
                .at("weights")
                .array()[0]
                .array()
                .size(),
            1u);
}

TEST_F(ServiceTest, AScoreIsWhatTheModelSays) {
  const TextPair pair{TinyModels::lines("zh-en", 1)[0], "They are watching."};
  const Json answer =
      good("/score", body_of(pair.source, ", \"translation\": " + json_quote(pair.target) + ", \"per_token\": true"));
  const Translator::Result given = translator(0).force(std::span(&pair, 1))[0];
  EXPECT_EQ(answer.at("score").at("log_probability").number(), given.log_probability);
  EXPECT_EQ(answer.at("score").at("tokens").array().size(), given.each.size());
  const Json both = good("/score", R"({"q": ["他们", ""], "translation": ["They", ""], "source": "zh"})");
  EXPECT_EQ(both.at("score").array().size(), 2u);
  EXPECT_EQ(good("/align", R"({"q": ["", "a"], "translation": ["a", ""]})").at("alignment").array().size(), 2u);
}

TEST_F(ServiceTest, TagsOfAPageStay) {
  const std::string chinese = TinyModels::lines("zh-en", 1)[0];
  const HttpAnswer answer =
      post("/translate", body_of("<p>" + chinese + "</p><script>x</script><p><b>" + chinese + "</b></p>",
                                 R"(, "format": "html", "source": "zh")"));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const std::string out(Json::parse(answer.body, "the answer").at("translatedText").text());
  const std::string plain = translator(0).translate(std::span(&chinese, 1))[0].best[0].text;
  EXPECT_EQ(out, "<p>" + plain + "</p><script>x</script><p><b>" + plain + "</b></p>");
}

TEST_F(ServiceTest, AStreamTellsEveryTokenAndEndsWithTheGreedyTranslation) {
  const std::string line = TinyModels::lines("zh-en", 2)[1];
  const auto reply = begin("POST", "/translate", body_of(line, R"(, "stream": true, "attention": true)"));
  EXPECT_EQ(reply->answer().status, 0);
  const auto events = reply->events();
  const Translator::Result greedy = translator(0).translate(std::span(&line, 1), {.beam = 1})[0].best[0];
  ASSERT_EQ(events.size(), greedy.tokens.size() + 2);
  EXPECT_EQ(events.front().first, "begin");
  const Json end = Json::parse(events.back().second, "the end");
  EXPECT_EQ(events.back().first, "end");
  EXPECT_EQ(end.at("translatedText").text(), greedy.text);
  EXPECT_EQ(end.at("log_probability").number(), greedy.log_probability);
  const Translator::Looked looked = translator(0).look(line, greedy);
  for (std::size_t t = 0; t < greedy.tokens.size(); ++t) {
    const Json token = Json::parse(events[t + 1].second, "a token");
    const std::vector<Json> weights = token.at("weights").array()[1].array()[0].array();
    ASSERT_EQ(static_cast<std::int64_t>(weights.size()), looked.weights[3]);
    const auto row = static_cast<std::int64_t>(t);
    const Tensor expected = looked.weights.slice(0, 1, 2).slice(1, 0, 1).slice(2, row, row + 1).clone();
    for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(weights[i].number(), expected.data<float>()[i], 1e-5);
  }
}

TEST_F(ServiceTest, WhatCannotBeDoneIsSaidInWords) {
  struct Case {
    const char *path, *body;
    int status;
    const char* part;
  };
  const Case all[] = {
      {"/translate", "", 400, "the request"},
      {"/translate", R"({"q": "a", "source": "zh", "target": "fr"})", 400, "zh-en, en-zh"},
      {"/translate", R"({"q": "a", "source": "xx"})", 400, "there is no model"},
      {"/translate", R"({"q": "a", "model": "../../etc/passwd"})", 400, "there is no"},
      {"/nothing", "{}", 404, "nothing"},
      {"/translate/", "{}", 404, "nothing"},
      {"/health", "{}", 405, "GET"},
  };
  for (const Case& each : all) {
    const HttpAnswer answer = post(each.path, each.body);
    EXPECT_EQ(answer.status, each.status) << each.body;
    const Json body = Json::parse(answer.body, "the answer");
    EXPECT_NE(body.at("error").text().find(each.part), std::string::npos) << answer.body;
    EXPECT_EQ(body.at("id").text(), "id-1");
  }
  EXPECT_EQ(get("/translate").status, 405);
}

TEST_F(ServiceTest, WhatThereIsCanBeAskedFor) {
  const Json languages = Json::parse(get("/languages").body, "languages");
  EXPECT_EQ(languages.to_json(),
            R"([{"code":"en","name":"English","targets":["zh"]},{"code":"zh","name":"Chinese","targets":["en"]}])");
  const Json models = Json::parse(get("/models").body, "models");
  EXPECT_EQ(models.array()[0].at("name").text(), "zh-en");
  EXPECT_EQ(models.to_json().find('/'), std::string::npos) << "a path: " << models.to_json();
  EXPECT_GT(Json::parse(get("/mechanisms").body, "mechanisms").array().size(), 20u);
  EXPECT_EQ(get("/health").body, R"({"status":"ok"})");
  good("/translate", body_of("他们"));
  EXPECT_NE(get("/metrics").body.find("regard_requests_total{path=\"/translate\",status=\"200\"} 1"),
            std::string::npos);
  EXPECT_EQ(good("/detect", body_of("他们")).to_json(), R"([{"confidence":100,"language":"zh"}])");
}

TEST_F(ServiceTest, TheLabShowsEveryStep) {
  const std::string body = R"({"line": "scaled_dot | causal", "q": [[1, 0], [0, 1]], "k": [[1, 2], [3, 4]],
                               "v": [[1], [2]]})";
  const HttpAnswer answer = post("/attend", body);
  EXPECT_EQ(answer.status, 200);
  constexpr std::string_view kExpected =
      R"json({"line":"scaled_dot | causal | softmax | sum","q":[[1,0],[0,1]],"k":[[1,2],[3,4]],"v":[[1],[2]],)json"
      R"json("scores":[[[0.70710677,null],[1.4142135,2.828427]]],"weights":[[[1,0],[0.19557033,0.80442965]]],)json"
      R"json("context":[[1],[1.8044299]],"learned":[],"formula":{"score":"qᵀk/√d","scope":"j ≤ i",)json"
      R"json("align":"p = exp(e/T)/Σ exp(e/T)","read":"Σ_j p_j v_j"}})json";
  EXPECT_EQ(answer.body, kExpected);
  const HttpAnswer wrong = post("/attend", R"({"line": "scaled_dot | mask", "sentence": "a b"})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_NE(wrong.body.find("needs mask"), std::string::npos) << wrong.body;
}

TEST_F(ServiceTest, TheDescriptionHasEveryPath) {
  const Json told = Json::parse(get("/openapi.json").body, "openapi");
  std::set<std::string, std::less<>> paths;
  for (const auto& [path, what] : told.at("paths").object()) paths.emplace(path);
  const std::vector<std::string_view> all = Service::paths();
  EXPECT_EQ(paths, (std::set<std::string, std::less<>>(all.begin(), all.end())));
}

TEST_F(ServiceTest, TogetherEverybodyGetsWhatHeWouldGetAlone) {
  const std::vector<std::string> lines = TinyModels::lines("zh-en", static_cast<std::size_t>(cases(40)));
  std::vector<std::string> alone;
  alone.reserve(lines.size());
  for (const std::string& each : lines)
    alone.push_back(post("/translate", body_of(each, R"(, "alternatives": 2)")).body);
  std::vector<std::shared_ptr<Kept>> replies;
  replies.reserve(lines.size());
  for (const std::string& each : lines) {
    replies.push_back(begin("POST", "/translate", body_of(each, R"(, "alternatives": 2)")));
  }
  int refused = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const HttpAnswer answer = replies[i]->answer();
    if (answer.status == 503) {
      ++refused;  // more than the queue holds
    } else {
      EXPECT_EQ(answer.body, alone[i]);
    }
  }
  EXPECT_LE(refused, std::max(0, static_cast<int>(lines.size()) - 64));
}

TEST_F(ServiceTest, ModelsThatCannotBeReadAreNamed) {
  EXPECT_NE(error_of([] { Models({"/nowhere/zh-en.model"}); }).find("/nowhere/zh-en.model"), std::string::npos);
  EXPECT_NE(error_of([] { Models({"/nowhere/m.model"}); }).find("-m zh-en="), std::string::npos);
}

class LockedService : public ServiceTest {
 protected:
  LockedService() : ServiceTest({.key = "open sesame"}) {}
};

TEST_F(LockedService, OnlyWhoHasTheKeyIsAnswered) {
  EXPECT_EQ(post("/translate", body_of("他们")).status, 403);
  EXPECT_EQ(post("/translate", body_of("他们", R"(, "api_key": "open")")).status, 403);
  EXPECT_EQ(post("/translate", body_of("他们"), "wrong").status, 403);
  EXPECT_EQ(post("/translate", body_of("他们", R"(, "api_key": "open sesame")")).status, 200);
  EXPECT_EQ(post("/translate", body_of("他们"), "open sesame").status, 200);
  EXPECT_EQ(post("/align", R"({"q": "a", "translation": "b"})").status, 403);
  EXPECT_EQ(post("/score", R"({"q": "a", "translation": "b"})").status, 403);
  EXPECT_EQ(get("/health").status, 200);
}

}  // namespace
}  // namespace regard::serve
