#include "serve/answers.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "attention/cards.h"
#include "base/check.h"
#include "models/attention_maps.h"

namespace regard::serve {
namespace {

std::string_view name_of(AlignmentLevel level) {
  switch (level) {
    case AlignmentLevel::kWord:
      return "word";
    case AlignmentLevel::kCharacter:
      return "character";
    case AlignmentLevel::kPiece:
      return "piece";
  }
  return "";
}

bool begins_letter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

void write_units(JsonWriter& out, std::string_view text, const std::vector<TextUnit>& units) {
  out.begin_array();
  std::size_t at = 0;
  std::int64_t letters = 0;  // that begin before `at`
  const auto letters_before = [&](std::size_t byte) {
    if (byte < at) at = 0, letters = 0;
    for (; at < byte; ++at) letters += begins_letter(text[at]) ? 1 : 0;
    return letters;
  };
  for (const TextUnit& each : units) {
    const std::int64_t begin = letters_before(each.begin), end = letters_before(each.end);
    out.begin_object().key("text").value(text.substr(each.begin, each.end - each.begin));
    out.key("begin").value(begin).key("end").value(end).end_object();
  }
  out.end_array();
}

}  // namespace

void write_alignment(JsonWriter& out, const Translator& translator, const TextPair& texts,
                     const Translator::Looked& looked, const AlignmentAsked& asked) {
  if (translator.attention_shape().layers == 0) throw Refusal(400, "alignment: this model has no attention");
  const AlignmentSettings settings{
      .kind = asked.threshold ? AlignmentKind::kThreshold : AlignmentKind::kHard,
      .threshold = asked.threshold.value_or(0),
      .level = asked.level,
  };
  const PairUnits units = units_of(translator, texts, looked, asked.level, WordCut::kAutomatic);
  const UnitWeights weights = unit_weights(looked, units, choice_of(translator, settings));
  out.begin_object().key("level").value(name_of(asked.level)).key("source");
  write_units(out, texts.source, units.source);
  out.key("target");
  write_units(out, texts.target, units.target);
  out.key("links").begin_array();
  for (const Link& each : links_of(weights, settings)) {
    const double weight = weights.at(static_cast<std::size_t>(each.target), static_cast<std::size_t>(each.source));
    out.begin_object().key("source").value(each.source).key("target").value(each.target);
    out.key("weight").raw(fmt::format("{:.4g}", weight)).end_object();
  }
  out.end_array().end_object();
}

void write_weights(JsonWriter& out, const float* weights, std::int64_t count) {
  std::string text = "[";
  for (std::int64_t i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    if (std::isfinite(weights[i])) {
      fmt::format_to(std::back_inserter(text), "{:.5g}", weights[i]);
    } else {
      text += "null";
    }
  }
  out.raw(text + "]");
}

void write_attention(JsonWriter& out, const Translator& translator, const Translator::Looked& looked,
                     const AttentionAsked& asked, std::int64_t most) {
  const AttentionShape shape = translator.attention_shape();
  if (shape.layers == 0) throw Refusal(400, "attention: this model has none");
  if (asked.layer.value_or(0) >= shape.layers) {
    throw Refusal(400, text("attention.layer: ", *asked.layer, ", expected 0 to ", shape.layers - 1));
  }
  if (asked.head.value_or(0) >= shape.heads) {
    throw Refusal(
        400, text("attention.head: ", *asked.head, ", expected 0 to ", shape.heads - 1, ", or -1 for the mean of all"));
  }
  std::vector<std::int64_t> layers, heads;
  for (std::int64_t i = 0; i < shape.layers; ++i) {
    if (asked.layer.value_or(i) == i) layers.push_back(i);
  }
  for (std::int64_t i = asked.head.value_or(0) < 0 ? -1 : 0; i < shape.heads; ++i) {
    if (asked.head.value_or(i) == i) heads.push_back(i);
  }
  const std::int64_t rows = looked.weights[2], columns = looked.weights[3];
  const auto maps = static_cast<std::int64_t>(layers.size() * heads.size());
  if (rows * columns > most / std::max<std::int64_t>(1, maps)) {
    throw Refusal(413, text("attention: more than ", most, " weights; ask for one layer and head"));
  }
  const auto write_labels = [&](const Tokenizer& tokenizer, std::span<const Token> tokens) {
    out.begin_array();
    for (const std::string& each : labels_of(tokenizer, tokens)) out.value(each);
    out.end_array();
  };
  const auto write_numbers = [&](const std::vector<std::int64_t>& numbers) {
    out.begin_array();
    for (const std::int64_t each : numbers) out.value(each);
    out.end_array();
  };
  out.begin_object().key("source");
  write_labels(translator.source(), looked.source);
  out.key("target");
  write_labels(translator.target(), looked.target);
  out.key("layers");
  write_numbers(layers);
  out.key("heads");
  write_numbers(heads);
  out.key("weights").begin_array();
  for (const std::int64_t layer : layers) {
    out.begin_array();
    for (const std::int64_t head : heads) {
      const Tensor map = map_of(looked.weights, {.layer = layer, .head = head});
      out.begin_array();
      for (std::int64_t row = 0; row < rows; ++row) write_weights(out, map.data<float>() + row * columns, columns);
      out.end_array();
    }
    out.end_array();
  }
  out.end_array().end_object();
}

void write_score(JsonWriter& out, const Translator& translator, const Translator::Result& result, bool normalize,
                 bool per_token) {
  const double count = normalize ? static_cast<double>(result.tokens.size() + 1) : 1;
  out.begin_object().key("log_probability").value(result.log_probability / count);
  if (per_token) {
    out.key("tokens").begin_array();
    const std::vector<std::string> labels = labels_of(translator.target(), result.tokens);
    for (std::size_t i = 0; i < result.each.size() && i < labels.size(); ++i) {
      out.begin_object().key("text").value(labels[i]);
      out.key("log_probability").value(static_cast<double>(result.each[i])).end_object();
    }
    out.end_array();
  }
  out.end_object();
}

std::string mechanisms_json() {
  JsonWriter out;
  out.begin_array();
  for (const Card* card : cards()) {
    out.begin_object().key("name").value(card->name).key("family").value(regard::name_of(card->family));
    out.key("formula").value(card->formula).key("paper").value(card->paper).key("kernel").value(card->kernel);
    out.key("usage").value(usage_of(*card)).key("arguments").begin_array();
    for (const Argument& each : card->arguments) {
      out.begin_object().key("key").value(each.key).key("required").value(each.required);
      out.key("values").value(values_of(each)).key("meaning").value(each.meaning).end_object();
    }
    out.end_array().key("module").value(card->module).end_object();
  }
  return out.end_array().text();
}

}  // namespace regard::serve
