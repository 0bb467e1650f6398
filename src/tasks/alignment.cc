#include "tasks/alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "base/check.h"
#include "base/utf8.h"
#include "io/json.h"
#include "io/model_file.h"
#include "models/attention_maps.h"

namespace regard {
namespace {

constexpr std::string_view kKey = "alignment";

void check_attention(const Translator& translator) {
  check(translator.attention_shape().layers > 0, "alignment: a model without attention (",
        translator.model_settings().family, ") looks nowhere");
}

void check_choice(const AlignmentChoice& choice, const AttentionShape& shape) {
  check(choice.layer >= 0 && choice.layer < shape.layers, "alignment: layer ", choice.layer, ", the model has ",
        shape.layers, " (0 to ", shape.layers - 1, ")");
  check(choice.head >= -1 && choice.head < shape.heads, "alignment: head ", choice.head, ", the model has ",
        shape.heads, " (0 to ", shape.heads - 1, ", or -1 for their mean)");
  check(choice.shift == 0 || choice.shift == 1, "alignment: shift ", choice.shift, ", expected 0 or 1");
}

struct Share {
  std::size_t unit;
  double bytes, part;  // in common, and of the token
};

// Which units each token stands for. Both come in the order of the text.
std::vector<std::vector<Share>> shares_of(std::span<const Token> tokens, const std::vector<TextUnit>& units) {
  std::vector<std::vector<Share>> shares(tokens.size());
  std::size_t first = 0;
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const std::size_t begin = tokens[t].begin, end = tokens[t].end;
    while (first < units.size() && units[first].end <= begin) ++first;
    double sum = 0;
    for (std::size_t u = first; u < units.size() && units[u].begin < end; ++u) {
      const std::size_t from = std::max(begin, units[u].begin), to = std::min(end, units[u].end);
      if (to <= from) continue;
      shares[t].push_back({u, static_cast<double>(to - from), 0});
      sum += shares[t].back().bytes;
    }
    for (Share& each : shares[t]) each.part = each.bytes / sum;
  }
  return shares;
}

std::vector<std::size_t> characters_before(std::string_view text) {  // how many code points begin before a byte
  std::vector<std::size_t> before(text.size() + 1, 0);
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8::read(text, at).length;
    for (std::size_t i = 0; i < length; ++i) before[at + i] = count;
    at += length;
    ++count;
  }
  before[text.size()] = count;
  return before;
}

bool are_tokens(const std::vector<TextUnit>& units, std::span<const Token> tokens) {
  return std::equal(units.begin(), units.end(), tokens.begin(), tokens.end(),
                    [](const TextUnit& a, const Token& b) { return a.begin == b.begin && a.end == b.end; });
}

UnitWeights token_weights(const Translator::Looked& looked, const AlignmentChoice& choice) {
  const Tensor map = map_of(looked.weights, {.layer = choice.layer, .head = choice.head});
  const std::size_t sources = looked.source.size();
  UnitWeights made{.targets = looked.target.size(), .sources = sources, .weights = {}, .end = {}};
  for (std::size_t t = 0; t < made.targets; ++t) {
    const float* row = map.data<float>() + (t + static_cast<std::size_t>(choice.shift)) * (sources + 1);
    made.weights.insert(made.weights.end(), row, row + sources);
    made.end.push_back(static_cast<double>(row[sources]));
  }
  return made;
}

}  // namespace

std::string to_text(const AlignmentChoice& choice) {
  return fmt::format("layer {}, {}, shift {}", choice.layer,
                     choice.head < 0 ? "mean of heads" : fmt::format("head {}", choice.head), choice.shift);
}

AlignmentChoice usual_choice(const AttentionShape& shape) {
  return {.layer = shape.layers - 1, .head = shape.heads > 1 ? -1 : 0, .shift = 0};
}

AlignmentChoice choice_of(const Translator& translator) {
  check_attention(translator);
  const Json config = Json::parse(translator.config(), "config of the model");
  const std::optional<Json> said = config.find(kKey);
  if (!said) return usual_choice(translator.attention_shape());
  said->allow_only({"layer", "head", "shift"});
  const AlignmentChoice choice{
      .layer = said->at("layer").integer(), .head = said->at("head").integer(), .shift = said->at("shift").integer()};
  check_choice(choice, translator.attention_shape());
  return choice;
}

AlignmentChoice choice_of(const Translator& translator, const AlignmentSettings& settings) {
  AlignmentChoice choice = choice_of(translator);
  choice.layer = settings.layer.value_or(choice.layer);
  choice.head = settings.head.value_or(choice.head);
  choice.shift = settings.shift.value_or(choice.shift);
  check_choice(choice, translator.attention_shape());
  return choice;
}

std::vector<AlignmentChoice> all_choices(const AttentionShape& shape) {
  std::vector<AlignmentChoice> all;
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    for (std::int64_t head = shape.heads > 1 ? -1 : 0; head < shape.heads; ++head) {
      for (const std::int64_t shift : {0, 1}) all.push_back({layer, head, shift});
    }
  }
  return all;
}

void write_choice(JsonWriter& config, const AlignmentChoice& choice) {
  config.key(kKey).begin_object().key("layer").value(choice.layer).key("head").value(choice.head);
  config.key("shift").value(choice.shift).end_object();
}

void store_choice(const std::string& path, const AlignmentChoice& choice) {
  change_config(disk(), path, [&](const Json& config) {
    JsonWriter out;
    out.begin_object();
    for (const auto& [key, value] : config.object()) {
      if (key != kKey) out.key(key).raw(value.to_json());
    }
    write_choice(out, choice);
    return out.end_object().text();
  });
}

AlignmentLevel alignment_level(std::string_view name) {
  if (name == "word") return AlignmentLevel::kWord;
  if (name == "character") return AlignmentLevel::kCharacter;
  check(name == "piece", "alignment: there is no level '", name, "', expected word, character or piece");
  return AlignmentLevel::kPiece;
}

AlignmentSettings alignment_settings(std::string_view kind) {
  if (kind == "hard") return {.kind = AlignmentKind::kHard};
  if (kind == "soft") return {.kind = AlignmentKind::kSoft};
  if (kind == "spans") return {.kind = AlignmentKind::kSpans};
  AlignmentSettings settings{.kind = AlignmentKind::kThreshold};
  const auto [end, error] = std::from_chars(kind.data(), kind.data() + kind.size(), settings.threshold);
  check(error == std::errc() && end == kind.data() + kind.size() && settings.threshold > 0 && settings.threshold <= 1,
        "alignment '", kind, "', expected hard, soft, spans or a number above 0 up to 1");
  return settings;
}

PairUnits units_of(const Translator& translator, const TextPair& texts, const Translator::Looked& looked,
                   AlignmentLevel level, WordCut words) {
  const auto one = [&](std::string_view text, const std::vector<Token>& tokens, const Tokenizer& tokenizer) {
    if (level == AlignmentLevel::kCharacter) return characters_of(text);
    if (level == AlignmentLevel::kWord) {
      return words_of(text, words,
                      tokenizer.kind() == "words" ? std::span<const Token>(tokens) : std::span<const Token>());
    }
    std::vector<TextUnit> units;
    units.reserve(tokens.size());
    for (const Token& token : tokens) units.push_back({token.begin, token.end});
    return units;
  };
  return {.source = one(texts.source, looked.source, translator.source()),
          .target = one(texts.target, looked.target, translator.target())};
}

UnitWeights unit_weights(const Translator::Looked& looked, const PairUnits& units, const AlignmentChoice& choice) {
  UnitWeights tokens = token_weights(looked, choice);
  if (are_tokens(units.source, looked.source) && are_tokens(units.target, looked.target)) return tokens;
  const auto sources = shares_of(looked.source, units.source), targets = shares_of(looked.target, units.target);
  UnitWeights made{.targets = units.target.size(), .sources = units.source.size(), .weights = {}, .end = {}};
  made.weights.assign(made.targets * made.sources, 0);
  made.end.assign(made.targets, 0);
  std::vector<double> bytes(made.targets, 0);
  for (std::size_t t = 0; t < tokens.targets; ++t) {
    for (const Share& target : targets[t]) {
      bytes[target.unit] += target.bytes;
      made.end[target.unit] += target.bytes * tokens.end[t];
      for (std::size_t s = 0; s < tokens.sources; ++s) {
        const double weight = target.bytes * tokens.at(t, s);
        for (const Share& source : sources[s]) {
          made.weights[target.unit * made.sources + source.unit] += weight * source.part;
        }
      }
    }
  }
  for (std::size_t t = 0; t < made.targets; ++t) {
    if (bytes[t] == 0) continue;
    made.end[t] /= bytes[t];
    for (std::size_t s = 0; s < made.sources; ++s) made.weights[t * made.sources + s] /= bytes[t];
  }
  return made;
}

Links hard_links(const UnitWeights& weights, double least) {
  Links links;
  for (std::size_t t = 0; t < weights.targets; ++t) {
    std::size_t best = 0;
    for (std::size_t s = 1; s < weights.sources; ++s) {
      if (weights.at(t, s) > weights.at(t, best)) best = s;
    }
    if (weights.sources == 0 || !(weights.at(t, best) > 0) || weights.at(t, best) < least) continue;
    links.push_back({static_cast<std::int32_t>(best), static_cast<std::int32_t>(t)});
  }
  return sorted(std::move(links));
}

Links links_above(const UnitWeights& weights, double threshold) {
  Links links;
  for (std::size_t s = 0; s < weights.sources; ++s) {
    for (std::size_t t = 0; t < weights.targets; ++t) {
      if (weights.at(t, s) <= 0 || weights.at(t, s) < threshold) continue;
      links.push_back({static_cast<std::int32_t>(s), static_cast<std::int32_t>(t)});
    }
  }
  return links;
}

std::string soft_text(const UnitWeights& weights) {
  std::string made;
  for (std::size_t t = 0; t < weights.targets; ++t) {
    if (t > 0) made += ' ';
    for (std::size_t s = 0; s < weights.sources; ++s) {
      fmt::format_to(std::back_inserter(made), "{}{:.6g}", s > 0 ? "," : "", weights.at(t, s));
    }
  }
  return made;
}

std::string span_text(const Links& links, const PairUnits& units, const TextPair& texts) {
  const std::vector<std::size_t> sources = characters_before(texts.source), targets = characters_before(texts.target);
  std::string made;
  for (const Link& link : links) {
    const TextUnit& from = units.source[static_cast<std::size_t>(link.source)];
    const TextUnit& to = units.target[static_cast<std::size_t>(link.target)];
    fmt::format_to(std::back_inserter(made), "{}{}:{}-{}:{}", made.empty() ? "" : " ", sources[from.begin],
                   sources[from.end], targets[to.begin], targets[to.end]);
  }
  return made;
}

UnitWeights turned(const UnitWeights& weights) {
  UnitWeights made{.targets = weights.sources, .sources = weights.targets, .weights = {}, .end = {}};
  made.end.assign(made.targets, 0);
  for (std::size_t s = 0; s < weights.sources; ++s) {
    for (std::size_t t = 0; t < weights.targets; ++t) made.weights.push_back(weights.at(t, s));
  }
  return made;
}

UnitWeights agreed(const UnitWeights& forward, const UnitWeights& backward) {
  check(forward.targets == backward.sources && forward.sources == backward.targets, "alignment: weights of ",
        forward.targets, " and ", forward.sources, " units, the other direction's of ", backward.sources, " and ",
        backward.targets);
  UnitWeights made = forward;
  made.end.assign(made.targets, 0);
  for (std::size_t t = 0; t < made.targets; ++t) {
    for (std::size_t s = 0; s < made.sources; ++s) {
      double& weight = made.weights[t * made.sources + s];
      const double other = backward.at(s, t), sum = weight + other;
      weight = sum > 0 ? 2 * weight * other / sum : 0;
    }
  }
  return made;
}

Links links_of(const UnitWeights& weights, const AlignmentSettings& settings, double least) {
  check(settings.kind != AlignmentKind::kSoft, "alignment: soft weights are no links");
  if (settings.kind == AlignmentKind::kThreshold) return links_above(weights, settings.threshold);
  return hard_links(weights, least);
}

std::string alignment_text(const Translator::Looked& looked, const PairUnits& units, const TextPair& texts,
                           const AlignmentSettings& settings, const AlignmentChoice& choice) {
  const UnitWeights weights = unit_weights(looked, units, choice);
  if (settings.kind == AlignmentKind::kSoft) return soft_text(weights);
  const Links links = links_of(weights, settings);
  return settings.kind == AlignmentKind::kSpans ? span_text(links, units, texts) : pharaoh(links);
}

std::vector<std::string> alignment_texts(const Translator& translator, std::span<const std::string> lines,
                                         std::span<const Translator::Result> results, const AlignmentSettings& settings,
                                         std::int64_t batch_tokens, const Context& context) {
  const AlignmentChoice choice = choice_of(translator, settings);
  const std::vector<Translator::Looked> looked = translator.look(lines, results, batch_tokens, context);
  std::vector<std::string> made;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const TextPair texts{.source = lines[i], .target = results[i].text};
    const PairUnits units = units_of(translator, texts, looked[i], settings.level, settings.words);
    made.push_back(alignment_text(looked[i], units, texts, settings, choice));
  }
  return made;
}

std::string alignment_text(const Translator& translator, std::string_view line, const Translator::Result& result,
                           const AlignmentSettings& settings) {
  const std::string text(line);
  return std::move(alignment_texts(translator, std::span(&text, 1), std::span(&result, 1), settings)[0]);
}

}  // namespace regard
