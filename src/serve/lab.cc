#include "serve/lab.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "attention/cards.h"
#include "attention/line.h"
#include "attention/mechanism.h"
#include "base/check.h"
#include "io/json.h"
#include "regard/autograd/tape.h"
#include "regard/nn/attention_layer.h"
#include "regard/nn/multi_dimensional.h"
#include "regard/nn/step_attention.h"
#include "tasks/text_units.h"

namespace regard::serve {
namespace {

constexpr std::int64_t kMostLearned = 1 << 18;     // numbers: a line may name sizes that no memory holds
constexpr std::int64_t kFilters = 4, kKernel = 3;  // of location_aware

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

// What goes in: [rows, width] each; not defined: not given.
struct Given {
  std::vector<std::string> tokens = {};
  Tensor q, k, v;
};

// What comes out.
struct Steps {
  std::string line;
  std::vector<Tensor> scores = {}, weights = {};  // [queries, keys], one a head
  Tensor context = {};                            // [queries, width]
};

Tensor tensor_of(const NumberRows& rows) {
  const Tensor made = Tensor::empty({rows.count, rows.width});
  std::copy(rows.numbers.begin(), rows.numbers.end(), made.data<float>());
  return made;
}

// Equal words have equal vectors: their numbers are drawn by the word.
Tensor vectors_of(const std::vector<std::string>& words, std::int64_t width, std::uint64_t seed) {
  Parameters none;
  const Builder builder(none, RandomKey(seed));
  const Tensor made = Tensor::empty({static_cast<std::int64_t>(words.size()), width});
  float* to = made.data<float>();
  for (const std::string& word : words) {
    const RandomKey key = builder.key("word " + word);
    for (std::int64_t i = 0; i < width; ++i) *to++ = static_cast<float>(normal(key, static_cast<std::uint64_t>(i)));
  }
  return made;
}

Given given_of(const AttendRequest& asked) {
  Given made;
  if (!asked.sentence) {
    made.q = tensor_of(*asked.q);
    if (asked.k) made.k = tensor_of(*asked.k);
    if (asked.v) made.v = tensor_of(*asked.v);
    return made;
  }
  for (const TextUnit& each : words_of(*asked.sentence, WordCut::kAutomatic)) {
    made.tokens.push_back(asked.sentence->substr(each.begin, each.end - each.begin));
  }
  if (made.tokens.empty()) throw Refusal(400, "sentence: no words, expected 1 or more");
  if (made.tokens.size() > size(kMostLabRows)) {
    throw Refusal(413, text("sentence: ", made.tokens.size(), " words, expected at most ", kMostLabRows));
  }
  made.q = made.k = made.v = vectors_of(made.tokens, asked.width, asked.seed);
  return made;
}

// Which argument of a score a scale is; "": it has none.
std::string_view scale_of(std::string_view name) {
  return name == "scaled_dot" ? "scale" : name == "cosine" ? "beta" : "";
}

void set(Term& term, std::string_view key, double number) {
  const auto found =
      std::find_if(term.values.begin(), term.values.end(), [&](const Value& each) { return each.key == key; });
  if (found != term.values.end()) {
    found->number = number;
  } else {
    term.values.push_back({.key = std::string(key), .number = number, .word = {}});
  }
}

// What goes beyond a stated maximum is the client's mistake here, whatever it is elsewhere.
template <class Work>
auto bounded(const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kLimit) throw;
    throw Refusal(413, text("line: ", error.what()));
  }
}

// The line with what the sliders say.
std::string adjusted(const AttendRequest& asked) {
  Line line = parse_line(asked.line);
  if (asked.scale) {
    Term* score = &line.score;
    if (score->name == "rotary") score = &score->inner[0];
    const std::string_view key = scale_of(score->name);
    if (key.empty()) throw Refusal(400, text("scale: ", score->name, " has none; scaled_dot and cosine have one"));
    set(*score, key, *asked.scale);
  }
  if (asked.temperature) {
    if (line.align.name != "softmax") {
      throw Refusal(400, text("temperature: ", line.align.name, " has none; softmax has one"));
    }
    set(line.align, "temperature", *asked.temperature);
  }
  return to_text(line);
}

Var batch_of_one(Tape& tape, const Tensor& x) {
  return x.defined() ? tape.constant(x.reshape({1, x[0], x[1]})) : Var();
}
Var one_head(Tape& tape, const Tensor& x) { return x.defined() ? tape.constant(x.reshape({1, 1, x[0], x[1]})) : Var(); }

Steps attend_line(const AttendRequest& asked, const Given& given, Parameters& parameters) {
  const std::string line = bounded([&] { return adjusted(asked); });
  const Mechanism mechanism = bounded([&] { return Mechanism(line); });
  const Needs needs = mechanism.needs();
  AttendSizes sizes;
  if (needs.rows) {
    sizes.width = given.q[1];
    sizes.key_width = given.k.defined() ? given.k[1] : 0;
  }
  if (needs.query_tokens) sizes.query_token = given.q[1];
  if (needs.key_tokens && given.k.defined()) sizes.key_token = given.k[1];
  if (given.v.defined()) sizes.values = given.v[1];
  std::int64_t numbers = 0;
  for (const Learned& each : mechanism.learned(sizes)) {
    numbers += bounded([&] { return std::min(each.shape.size(), kMostLearned + 1); });
  }
  if (numbers > kMostLearned) {
    throw Refusal(413, text("line: \"", mechanism.text(), "\" would learn more than ", kMostLearned, " numbers"));
  }
  const AttentionLayer layer(Builder(parameters, RandomKey(asked.seed)), line, sizes);

  Tape tape;
  AttendOptions options;
  options.key = RandomKey(asked.seed).at(1);
  const std::int64_t queries = given.q[0];
  const std::int64_t keys = given.k.defined() ? given.k[0] : given.v.defined() ? given.v[0] : 0;
  options.first_query = std::max<std::int64_t>(0, keys - queries);  // the last query stands at the last key
  const std::int32_t length = asked.length.value_or(0);
  if (asked.length) options.lengths = {&length, 1};
  if (!asked.documents.empty()) {
    options.documents = Tensor::empty({1, static_cast<std::int64_t>(asked.documents.size())}, DType::kI32);
    std::copy(asked.documents.begin(), asked.documents.end(), options.documents.data<std::int32_t>());
  }
  if (asked.mask) {
    options.mask = Tensor::empty({1, 1, asked.mask->count, asked.mask->width}, DType::kI8);
    std::transform(asked.mask->numbers.begin(), asked.mask->numbers.end(), options.mask.data<std::int8_t>(),
                   [](float seen) { return static_cast<std::int8_t>(seen != 0 ? 1 : 0); });
  }
  if (asked.bias) options.bias = one_head(tape, tensor_of(*asked.bias));
  const Attention read = layer(one_head(tape, given.q), one_head(tape, given.k), one_head(tape, given.v), options);
  const Tensor context = read.context.value();
  return {.line = mechanism.text(),
          .scores = {read.trace.scores()},
          .weights = {read.trace.weights()},
          .context = context.reshape({context[2], context[3]}).clone()};
}

// Mechanisms that are no part of a line.
void check_module(const AttendRequest& asked, const Given& given, const Card& card) {
  const auto refuse = [&](std::string_view what) {
    throw Refusal(400, text("line: ", card.name, " is a module of its own and ", what));
  };
  if (asked.scale) refuse("has no scale");
  if (asked.temperature) refuse("has no temperature");
  if (!asked.documents.empty() || asked.mask || asked.bias) refuse("takes neither documents nor a mask nor a bias");
  if (!given.k.defined() || !given.v.defined() || given.k[0] != given.v[0]) refuse("needs q, and as many k as v");
  if (asked.length.value_or(0) > given.k[0]) {
    throw Refusal(400, text("length: ", *asked.length, ", expected 0 to ", given.k[0]));
  }
}

// One query after another, each told where the one before it looked, or, summed up, all before it.
template <class Attention>
Steps attend_steps(const AttendRequest& asked, const Given& given, const Card& card, const Attention& attention,
                   bool sums) {
  Tape tape;
  const std::int64_t queries = given.q[0], keys = given.k[0], width = given.v[1];
  const std::int32_t length = asked.length.value_or(static_cast<std::int32_t>(keys));
  const StepMemory memory =
      attention.memory(batch_of_one(tape, given.k), batch_of_one(tape, given.v), std::span(&length, 1));
  Steps made{.line = std::string(card.name),
             .scores = {Tensor::empty({queries, keys})},
             .weights = {Tensor::empty({queries, keys})},
             .context = Tensor::empty({queries, width})};
  Var before;
  for (std::int64_t i = 0; i < queries; ++i) {
    const Stepped now = attention(tape.constant(given.q.slice(0, i, i + 1)), memory, before);
    before = sums && before.defined() ? before + now.weights : now.weights;
    made.scores[0].slice(0, i, i + 1).copy_from(now.scores.value());
    made.weights[0].slice(0, i, i + 1).copy_from(now.weights.value());
    made.context.slice(0, i, i + 1).copy_from(now.context.value());
  }
  return made;
}

Steps attend_features(const AttendRequest& asked, const Given& given, const Card& card, const Builder& builder) {
  Tape tape;
  const MultiDimensionalAttention attention(
      builder, {.query = given.q[1], .key = given.k[1], .value = given.v[1], .hidden = given.q[1]});
  const std::int32_t length = asked.length.value_or(static_cast<std::int32_t>(given.k[0]));
  const auto read = attention(batch_of_one(tape, given.q), batch_of_one(tape, given.k), batch_of_one(tape, given.v),
                              std::span(&length, 1));
  const auto features = [&](Var maps) {  // [1, queries, keys, features]
    std::vector<Tensor> each;
    for (std::int64_t i = 0; i < maps[3]; ++i) {
      each.push_back(maps.value().slice(3, i, i + 1).clone().reshape({maps[1], maps[2]}));
    }
    return each;
  };
  const Tensor context = read.context.value();
  return {.line = std::string(card.name),
          .scores = features(read.scores),
          .weights = features(read.weights),
          .context = context.reshape({context[1], context[2]}).clone()};
}

Steps attend_module(const AttendRequest& asked, const Given& given, const Card& card, Parameters& parameters) {
  check_module(asked, given, card);
  const Builder builder(parameters, RandomKey(asked.seed));
  const StepWidths widths{.query = given.q[1], .key = given.k[1], .hidden = given.q[1]};
  if (card.name == "coverage") return attend_steps(asked, given, card, CoverageAttention(builder, widths), true);
  if (card.name == "location_aware") {
    return attend_steps(asked, given, card, LocationAwareAttention(builder, widths, kFilters, kKernel), false);
  }
  if (card.name == "multi_dimensional") return attend_features(asked, given, card, builder);
  throw Refusal(400, text("line: ", card.name, " is a module of its own, ", card.module, ", and not in the lab"));
}

void write_numbers(JsonWriter& out, const Tensor& x) {
  std::string text = "[";
  for (std::int64_t i = 0; i < x[0]; ++i) {
    text += i > 0 ? ",[" : "[";
    for (std::int64_t j = 0; j < x[1]; ++j) {
      const float number = x.data<float>()[i * x[1] + j];
      if (j > 0) text += ',';
      if (number == 0 && std::signbit(number)) {
        text += "-0.0";  // "-0" is a whole number, which has no sign
      } else if (std::isfinite(number)) {
        fmt::format_to(std::back_inserter(text), "{}", number);  // the shortest text that reads as the same number
      } else {
        text += "null";
      }
    }
    text += ']';
  }
  out.raw(text + "]");
}

void write_maps(JsonWriter& out, const std::vector<Tensor>& maps) {
  out.begin_array();
  for (const Tensor& each : maps) write_numbers(out, each);
  out.end_array();
}

void write_formulas(JsonWriter& out, const Card* module, const std::string& line) {
  out.begin_object();
  if (module != nullptr) {
    out.key(name_of(module->family)).value(module->formula);
  } else {
    const Line parts = parse_line(line);
    std::string scopes;
    for (const Term& each : parts.scopes) {
      scopes += (scopes.empty() ? "" : "; ") + std::string(find_card(each.name)->formula);
    }
    out.key("score").value(find_card(parts.score.name)->formula).key("scope").value(scopes);
    out.key("align").value(find_card(parts.align.name)->formula);
    out.key("read").value(find_card(parts.read.name)->formula);
  }
  out.end_object();
}

const Card* module_of(std::string_view line) {
  const auto blank = [](char letter) { return letter == ' ' || letter == '\t'; };
  while (!line.empty() && blank(line.front())) line.remove_prefix(1);
  while (!line.empty() && blank(line.back())) line.remove_suffix(1);
  const Card* card = find_card(line);
  return card != nullptr && !card->module.empty() ? card : nullptr;
}

std::string computed(const AttendRequest& asked) {
  const Given given = given_of(asked);
  const Card* module = module_of(asked.line);
  Parameters parameters;
  const Steps steps =
      module != nullptr ? attend_module(asked, given, *module, parameters) : attend_line(asked, given, parameters);
  JsonWriter out;
  out.begin_object().key("line").value(steps.line);
  if (!given.tokens.empty()) {
    out.key("tokens").begin_array();
    for (const std::string& each : given.tokens) out.value(each);
    out.end_array();
  }
  for (const auto& [name, rows] : {std::pair{"q", &given.q}, {"k", &given.k}, {"v", &given.v}}) {
    if (!rows->defined()) continue;
    out.key(name);
    write_numbers(out, *rows);
  }
  out.key("scores");
  write_maps(out, steps.scores);
  out.key("weights");
  write_maps(out, steps.weights);
  out.key("context");
  write_numbers(out, steps.context);
  out.key("learned").begin_array();
  for (const Parameter& each : parameters) {
    out.begin_object().key("name").value(each.name).key("shape").begin_array();
    for (int i = 0; i < each.value.rank(); ++i) out.value(each.value[i]);
    out.end_array().end_object();
  }
  out.end_array().key("formula");
  write_formulas(out, module, steps.line);
  return out.end_object().text();
}

}  // namespace

std::string attend_json(const AttendRequest& asked, const Context& context) {
  const ContextScope scope(context);
  try {
    return computed(asked);
  } catch (const Error& error) {  // a line or sizes that do not fit: the text says which
    if (error.kind() != ErrorKind::kInput) throw;
    throw Refusal(400, error.what());
  }
}

}  // namespace regard::serve
