#include "serve/service.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "io/json.h"
#include "serve/answers.h"
#include "serve/edit.h"
#include "serve/html.h"
#include "serve/lab.h"
#include "serve/pages.h"
#include "serve/request.h"
#include "serve/stream.h"

namespace regard::serve {

struct Service::Asked {
  HttpRequest request;
  std::shared_ptr<Reply> reply;
  std::string_view path;  // as the server lists it
  Metrics* metrics = nullptr;
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();

  void count(int status) const {
    metrics->count(path, status, std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count());
  }
  void answer(HttpAnswer answer) const {
    count(answer.status);
    reply->send(std::move(answer));
  }
  void answer(std::string body) const { answer(HttpAnswer{.body = std::move(body)}); }
  void refuse(int status, std::string_view text) const { answer(error_answer(status, text, request.id)); }
};

namespace {

constexpr std::int64_t kBatchTokens = 4096;

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos; }

// Takes as long for a wrong key as for a right one.
bool same_key(std::string_view a, std::string_view b) {
  unsigned different = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  }
  return different == 0;
}

// A text of a request and which lines of the batcher's job it became.
struct Plan {
  std::size_t model = 0;
  std::string language = {};  // that was detected
  std::optional<Html> html = {};
  std::vector<std::string> lines = {};       // all of them
  std::vector<std::ptrdiff_t> numbers = {};  // of the job; −1: nothing to translate
};

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0;;) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    if (end == text.size()) return lines;
    at = end + 1;
  }
}

using Found = std::vector<Translator::Translation>;

std::size_t results_of(const Plan& plan, const Found& found) {
  std::size_t most = 1;
  for (const std::ptrdiff_t number : plan.numbers) {
    if (number >= 0) most = std::max(most, found[static_cast<std::size_t>(number)].best.size());
  }
  return most;
}

// The n-th best of a line, or the last it has.
const Translator::Result* result_of(const Plan& plan, const Found& found, std::size_t line, std::size_t rank) {
  if (plan.numbers[line] < 0) return nullptr;
  const auto& best = found[static_cast<std::size_t>(plan.numbers[line])].best;
  return &best[std::min(rank, best.size() - 1)];
}

// Where the words of a line went. A model that looks nowhere is taken to keep their order.
TranslatedLine with_links(const Translator& translator, const std::string& line, const Translator::Result& result,
                          const Context& context) {
  TranslatedLine made{.text = result.text};
  const bool looks = translator.attention_shape().layers > 0;
  const auto looked = translator.look(std::span(&line, 1), std::span(&result, 1), kBatchTokens, context);
  PairUnits units = units_of(translator, {line, result.text}, looked[0], AlignmentLevel::kWord, WordCut::kAutomatic);
  if (looks) {
    made.links = hard_links(unit_weights(looked[0], units, choice_of(translator)));
  } else {
    const std::size_t sources = units.source.size(), targets = units.target.size();
    for (std::size_t t = 0; t < targets && sources > 0; ++t) {
      made.links.push_back({static_cast<std::int32_t>(t * sources / targets), static_cast<std::int32_t>(t)});
    }
  }
  made.source = std::move(units.source);
  made.target = std::move(units.target);
  return made;
}

std::string text_of(const Plan& plan, const Found& found, std::size_t rank, const Translator& translator,
                    const Context& context) {
  if (plan.html) {
    std::vector<TranslatedLine> lines;
    for (std::size_t i = 0; i < plan.lines.size(); ++i) {
      const Translator::Result* result = result_of(plan, found, i, rank);
      if (result == nullptr) {
        lines.push_back({.text = plan.lines[i]});
      } else if (plan.html->has_tags(i)) {
        lines.push_back(with_links(translator, plan.lines[i], *result, context));
      } else {
        lines.push_back({.text = result->text});
      }
    }
    return plan.html->put(lines);
  }
  std::string out;
  for (std::size_t i = 0; i < plan.lines.size(); ++i) {
    if (i > 0) out += '\n';
    const Translator::Result* result = result_of(plan, found, i, rank);
    out += result == nullptr ? plan.lines[i] : result->text;
  }
  return out;
}

// One value, or an array of them if texts came as an array.
template <class Write>
void write_each(JsonWriter& out, std::string_view key, bool many, std::size_t count, const Write& write) {
  out.key(key);
  if (many) out.begin_array();
  for (std::size_t i = 0; i < count; ++i) write(i);
  if (many) out.end_array();
}

void write_language(JsonWriter& out, std::string_view language) {
  out.begin_object().key("confidence").value(language == "zh" ? 100 : 50);
  out.key("language").value(language).end_object();
}

std::string translated_json(const TranslateRequest& request, const std::vector<Plan>& plans, const Found& found,
                            const Models& models, const Limits& limits, const Context& context) {
  const auto translator = [&](std::size_t i) -> const Translator& { return models.all()[plans[i].model].translator; };
  JsonWriter out;
  out.begin_object();
  write_each(out, "translatedText", request.many, plans.size(),
             [&](std::size_t i) { out.value(text_of(plans[i], found, 0, translator(i), context)); });
  if (request.languages.source == "auto") {
    write_each(out, "detectedLanguage", request.many, plans.size(),
               [&](std::size_t i) { write_language(out, plans[i].language); });
  }
  if (request.alternatives > 0) {
    write_each(out, "alternatives", request.many, plans.size(), [&](std::size_t i) {
      out.begin_array();
      for (std::size_t rank = 1; rank < results_of(plans[i], found); ++rank) {
        out.value(text_of(plans[i], found, rank, translator(i), context));
      }
      out.end_array();
    });
  }
  if (request.alignment || request.attention) {
    std::vector<Translator::Looked> looked(plans.size());
    std::int64_t weights = limits.weights;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (const Translator::Result* result = result_of(plans[i], found, 0, 0)) {
        looked[i] =
            std::move(translator(i).look(std::span(plans[i].lines), std::span(result, 1), kBatchTokens, context)[0]);
      }
    }
    if (request.alignment) {
      write_each(out, "alignment", request.many, plans.size(), [&](std::size_t i) {
        const Translator::Result* result = result_of(plans[i], found, 0, 0);
        if (result == nullptr) {
          out.raw("null");
        } else {
          write_alignment(out, translator(i), {plans[i].lines[0], result->text}, looked[i], *request.alignment);
        }
      });
    }
    if (request.attention) {
      write_each(out, "attention", request.many, plans.size(), [&](std::size_t i) {
        if (result_of(plans[i], found, 0, 0) == nullptr) {
          out.raw("null");
        } else {
          write_attention(out, translator(i), looked[i], *request.attention, weights);
          weights -= looked[i].weights[2] * looked[i].weights[3];
        }
      });
    }
  }
  return out.end_object().text();
}

HttpAnswer trace_answer(std::string bytes, const std::string& language) {
  return {.body = std::move(bytes), .type = "application/octet-stream", .headers = {{"X-Regard-Language", language}}};
}

void check_tokens(const Tokenizer& tokenizer, std::string_view line, std::string_view field, const Limits& limits) {
  const std::size_t count = tokenizer.ids(line).size();
  if (count > static_cast<std::size_t>(limits.tokens)) {
    throw Refusal(413, text(field, ": a text of ", count, " tokens, expected at most ", limits.tokens));
  }
}

}  // namespace

Service::Service(const Models& models, Settings settings)
    : models_(models),
      settings_(std::move(settings)),
      batcher_(settings_.limits,
               [this](const Batcher::Line& like, std::span<const std::string> lines, const Context& context) {
                 TranslateSettings how{.beam = like.beam, .best = like.best};
                 how.keeps = like.keeps;
                 how.beams = like.keeps == Keeps::kEverything;  // who wants a trace
                 return models_.all()[like.model].translator.translate(lines, how, context);
               }) {}

Service::~Service() = default;

const std::vector<Service::Route>& Service::routes() {
  static const std::vector<Route> all = {
      {"POST", "/translate", &Service::translate},  {"POST", "/edit", &Service::edit},
      {"POST", "/align", &Service::align},          {"POST", "/score", &Service::score},
      {"POST", "/detect", &Service::detect},        {"POST", "/attend", &Service::attend},
      {"GET", "/languages", &Service::languages},   {"GET", "/models", &Service::models},
      {"GET", "/mechanisms", &Service::mechanisms}, {"GET", "/health", &Service::health},
      {"GET", "/metrics", &Service::metrics},       {"GET", "/openapi.json", &Service::openapi},
  };
  return all;
}

std::vector<std::string_view> Service::paths() {
  std::vector<std::string_view> all;
  for (const Route& each : routes()) all.push_back(each.path);
  return all;
}

void Service::handle(const HttpRequest& request, std::shared_ptr<Reply> reply) {
  auto asked = std::make_shared<Asked>(Asked{.request = request, .reply = std::move(reply), .path = "other"});
  asked->metrics = &metrics_;
  for (const Route& each : routes()) {
    if (each.path != request.path) continue;
    asked->path = each.path;
    if (each.method != request.method) {
      HttpAnswer answer = error_answer(405, text("expected ", each.method), request.id);
      answer.headers.emplace_back("Allow", std::string(each.method));
      return asked->answer(std::move(answer));
    }
    return guarded(asked, [&] { (this->*each.serve)(asked); });
  }
  if (const Page* page = find_page(request.path)) {
    if (request.method != "GET") return asked->refuse(405, "expected GET");
    return asked->answer({.body = std::string(page->body),
                          .type = std::string(page->type),
                          .headers = {{"Content-Security-Policy", std::string(kPagePolicy)}}});
  }
  asked->refuse(404, "there is nothing here");
}

void Service::guarded(const AskedPointer& asked, const std::function<void()>& work) const {
  const auto internal = [&](std::string_view what) {
    if (settings_.log) settings_.log(text(asked->request.id, " ", asked->path, ": ", what));
    asked->refuse(500, "an internal error");
  };
  try {
    work();
  } catch (const Refusal& refusal) {
    asked->refuse(refusal.status(), refusal.what());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kCancelled) return asked->refuse(503, "the request was cancelled");
    if (error.kind() == ErrorKind::kLimit) return asked->refuse(503, "not enough memory for this now");
    internal(error.what());
  } catch (const std::bad_alloc&) {
    asked->refuse(503, "not enough memory for this now");
  } catch (const std::exception& error) {
    internal(error.what());
  }
}

void Service::let_in(const Asked& asked, const std::string& key) const {
  if (settings_.key.empty() || same_key(settings_.key, key) || same_key(settings_.key, asked.request.key)) return;
  throw Refusal(403, "this server wants an api_key");
}

void Service::add(const AskedPointer& asked, Batcher::Job job) {
  job.gone = asked->reply->gone();
  job.deadline = Batcher::Clock::now() + std::chrono::duration_cast<Batcher::Clock::duration>(
                                             std::chrono::duration<double>(settings_.limits.request_seconds));
  job.done = [this, asked, then = std::move(job.done)](Batcher::Outcome outcome) {
    guarded(asked, [&] {
      switch (outcome.end) {
        case Batcher::End::kDone:
          if (then) then(std::move(outcome));
          return;
        case Batcher::End::kLate:
          throw Refusal(503, "too much to do: the request waited too long");
        case Batcher::End::kGone:
          throw Refusal(503, "the request was cancelled");
        case Batcher::End::kLimit:
          throw Refusal(503, "not enough memory for this now");
        case Batcher::End::kFailed:
          fail(ErrorKind::kInternal, outcome.why);
      }
    });
  };
  if (!batcher_.add(std::move(job))) throw Refusal(503, "too much to do: try again later");
}

void Service::translate(const AskedPointer& asked) {
  auto request = std::make_shared<const TranslateRequest>(
      translate_request(asked->request.body, asked->request.type, settings_.limits));
  let_in(*asked, request->key);
  auto plans = std::make_shared<std::vector<Plan>>();
  Batcher::Job job;
  for (const std::string& each : request->texts) {
    Plan plan;
    plan.language = models_.language_of(each);
    plan.model = models_.number_of(request->languages, each);
    if (request->html) {
      plan.html.emplace(each, settings_.limits.html_depth);
      plan.lines = plan.html->lines();
    } else {
      plan.lines = lines_of(each);
    }
    const bool looks = request->alignment || request->attention || request->trace;
    if ((looks || request->stream) && plan.lines.size() != 1) {
      throw Refusal(400, "q: a text of several lines, expected one line with alignment, attention, trace or stream");
    }
    for (const std::string& line : plan.lines) {
      plan.numbers.push_back(is_blank(line) ? -1 : static_cast<std::ptrdiff_t>(job.lines.size()));
      if (is_blank(line)) continue;
      const std::int64_t best = request->alternatives + 1;
      const bool tags = plan.html && plan.html->has_tags(plan.numbers.size() - 1);
      job.lines.push_back({.model = plan.model, .beam = std::max(request->beam, best), .best = best, .text = line});
      if (!looks && !tags) continue;
      check_weights(models_.all()[plan.model].translator, line, request->trace, settings_.limits);
      job.lines.back().keeps = request->trace ? Keeps::kEverything : Keeps::kSource;
    }
    plans->push_back(std::move(plan));
  }
  if (request->stream) {
    job.lines.clear();
    job.alone = [this, asked, request, plans](const Context& context) {
      guarded(asked, [&] {
        const auto tell = [&](std::string_view name, const auto& write) {
          JsonWriter out;
          out.begin_object();
          write(out);
          asked->reply->event(name, out.end_object().text());
        };
        const bool weights = request->attention.has_value();
        const Streamed made = stream(
            models_.all()[(*plans)[0].model], (*plans)[0].lines[0], weights,
            [&](const std::vector<std::string>& source) {
              tell("begin", [&](JsonWriter& out) {
                out.key("source").begin_array();
                for (const std::string& each : source) out.value(each);
                out.end_array();
              });
            },
            [&](const StreamedToken& token) {
              tell("token", [&](JsonWriter& out) {
                out.key("token").value(token.piece).key("text").value(token.text);
                out.key("log_probability").value(token.log_probability);
                if (!weights || token.weights.size() == 0) return;
                const std::int64_t columns = token.weights[2];
                out.key("weights").begin_array();
                for (std::int64_t layer = 0; layer < token.weights[0]; ++layer) {
                  out.begin_array();
                  for (std::int64_t head = 0; head < token.weights[1]; ++head) {
                    write_weights(out, token.weights.data<float>() + (layer * token.weights[1] + head) * columns,
                                  columns);
                  }
                  out.end_array();
                }
                out.end_array();
              });
            },
            context);
        tell("end", [&](JsonWriter& out) {
          out.key("translatedText").value(made.text).key("log_probability").value(made.log_probability);
        });
        asked->reply->end();
        asked->count(200);
      });
    };
    return add(asked, std::move(job));
  }
  job.done = [this, asked, request, plans](const Batcher::Outcome& outcome) {
    const Context context{.threads = settings_.limits.threads, .cancel = asked->reply->gone()};
    if (request->trace) {
      const Plan& plan = (*plans)[0];
      const Translator::Translation nothing{{Translator::Result()}};
      const Traced traced{plan.numbers[0] < 0 ? nothing : outcome.found[0]};
      return asked->answer(trace_answer(
          trace_bytes(models_.all()[plan.model], plan.lines[0], std::span(&traced, 1), settings_.limits, context),
          plan.language));
    }
    asked->answer(translated_json(*request, *plans, outcome.found, models_, settings_.limits, context));
  };
  if (job.lines.empty()) return job.done({});
  add(asked, std::move(job));
}

void Service::edit(const AskedPointer& asked) {
  auto request =
      std::make_shared<const EditRequest>(edit_request(asked->request.body, asked->request.type, settings_.limits));
  let_in(*asked, request->key);
  const Model& model = models_.all()[models_.number_of(request->languages, request->text)];
  add(asked, {.alone = [this, asked, request, &model](const Context& context) {
        guarded(asked, [&] {
          const Edited made = serve::edit(model, *request, settings_.limits, context);
          if (!request->trace) return asked->answer(edited_json(made, model, *request, settings_.limits));
          const Traced both[] = {{made.before, "before"}, {made.after, "after"}};
          asked->answer(trace_answer(trace_bytes(model, request->text, both, settings_.limits, context),
                                     models_.language_of(request->text)));
        });
      }});
}

void Service::answer_pairs(const AskedPointer& asked, PairsRequest given, const char* name, const WritePair& write) {
  const auto request = std::make_shared<const PairsRequest>(std::move(given));
  let_in(*asked, request->key);
  std::vector<std::size_t> models;
  for (const TextPair& each : request->pairs) models.push_back(models_.number_of(request->languages, each.source));
  add(asked, {.alone = [this, asked, request, models, name, write](const Context& context) {
        guarded(asked, [&] {
          JsonWriter out;
          out.begin_object();
          write_each(out, name, request->many, request->pairs.size(), [&](std::size_t i) {
            stop_if_asked(context);
            const TextPair& pair = request->pairs[i];
            const Translator& translator = models_.all()[models[i]].translator;
            check_tokens(translator.source(), pair.source, "q", settings_.limits);
            check_tokens(translator.target(), pair.target, "translation", settings_.limits);
            write(out, *request, translator, pair, context);
          });
          asked->answer(out.end_object().text());
        });
      }});
}

void Service::align(const AskedPointer& asked) {
  answer_pairs(asked, align_request(asked->request.body, asked->request.type, settings_.limits), "alignment",
               [](JsonWriter& out, const PairsRequest& request, const Translator& translator, const TextPair& pair,
                  const Context& context) {
                 const Translator::Result given{.text = pair.target, .tokens = translator.target().encode(pair.target)};
                 const auto looked =
                     translator.look(std::span(&pair.source, 1), std::span(&given, 1), kBatchTokens, context);
                 write_alignment(out, translator, pair, looked[0], request.alignment);
               });
}

void Service::score(const AskedPointer& asked) {
  answer_pairs(asked, score_request(asked->request.body, asked->request.type, settings_.limits), "score",
               [](JsonWriter& out, const PairsRequest& request, const Translator& translator, const TextPair& pair,
                  const Context& context) {
                 const auto given = translator.force(std::span(&pair, 1), {}, context);
                 write_score(out, translator, given[0], request.normalize, request.per_token);
               });
}

void Service::detect(const AskedPointer& asked) {
  const DetectRequest request = detect_request(asked->request.body, asked->request.type, settings_.limits);
  let_in(*asked, request.key);
  JsonWriter out;
  out.begin_array();
  write_language(out, models_.language_of(request.text));
  asked->answer(out.end_array().text());
}

void Service::attend(const AskedPointer& asked) {
  const auto request =
      std::make_shared<const AttendRequest>(attend_request(asked->request.body, asked->request.type, settings_.limits));
  let_in(*asked, request->key);
  add(asked, {.alone = [this, asked, request](const Context& context) {
        guarded(asked, [&] { asked->answer(attend_json(*request, context)); });
      }});
}

void Service::languages(const AskedPointer& asked) {
  std::map<std::string, std::set<std::string>> targets;
  for (const Model& each : models_.all()) {
    targets[each.source].insert(each.target);
    targets[each.target];
  }
  JsonWriter out;
  out.begin_array();
  for (const auto& [code, to] : targets) {
    out.begin_object().key("code").value(code).key("name").value(language_name(code)).key("targets").begin_array();
    for (const std::string& each : to) out.value(each);
    out.end_array().end_object();
  }
  asked->answer(out.end_array().text());
}

void Service::models(const AskedPointer& asked) {
  JsonWriter out;
  out.begin_array();
  for (const Model& each : models_.all()) {
    const ModelSettings& settings = each.translator.model_settings();
    const AttentionShape shape = each.translator.attention_shape();
    out.begin_object().key("name").value(each.name).key("source").value(each.source).key("target").value(each.target);
    out.key("family").value(settings.family).key("attention").value(settings.attention);
    out.key("layers").value(shape.layers).key("heads").value(shape.heads);
    out.key("longest").value(each.longest);
    if (shape.layers > 0) {
      const AlignmentChoice choice = choice_of(each.translator);
      out.key("alignment").begin_object().key("layer").value(choice.layer).key("head").value(choice.head);
      out.key("shift").value(choice.shift).end_object();
    }
    out.end_object();
  }
  asked->answer(out.end_array().text());
}

void Service::mechanisms(const AskedPointer& asked) { asked->answer(mechanisms_json()); }

void Service::health(const AskedPointer& asked) { asked->answer(R"({"status":"ok"})"); }

void Service::metrics(const AskedPointer& asked) {
  const Batcher::Counts counts = batcher_.counts();
  const auto number = [](auto value) { return static_cast<double>(value); };
  std::vector<Metrics::Value> values = {
      {"regard_batches_total", "batches that were computed", number(counts.batches), true},
      {"regard_lines_total", "lines that were translated", number(counts.lines), true},
      {"regard_late_total", "requests that waited too long", number(counts.late), true},
      {"regard_gone_total", "requests whose client had left", number(counts.gone), true},
      {"regard_failed_total", "requests that failed", number(counts.failed), true},
      {"regard_waiting", "requests that wait", number(counts.waiting), false},
      {"regard_running", "requests that are computed", number(counts.running), false},
  };
  if (settings_.connections) {
    values.push_back({"regard_connections", "connections", number(settings_.connections()), false});
  }
  asked->answer({.body = metrics_.text(values), .type = "text/plain; version=0.0.4; charset=utf-8"});
}

void Service::openapi(const AskedPointer& asked) { asked->answer(std::string(openapi_json())); }

}  // namespace regard::serve
