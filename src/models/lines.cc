#include "models/lines.h"

#include <algorithm>

#include "attention/line.h"
#include "base/check.h"

namespace regard {
namespace {

bool score_by_place(const Term& term) {
  static constexpr std::string_view kFree[] = {"additive", "cosine",   "dense_synth", "dot",
                                               "general",  "location", "projected",   "scaled_dot"};
  return std::find(std::begin(kFree), std::end(kFree), term.name) == std::end(kFree) ||
         std::any_of(term.inner.begin(), term.inner.end(), score_by_place);
}

bool score_of_places(const Term& term) {
  static constexpr std::string_view kThese[] = {"factorized_random_synth", "random_synth", "relative", "rotary"};
  return std::find(std::begin(kThese), std::end(kThese), term.name) != std::end(kThese) ||
         std::any_of(term.inner.begin(), term.inner.end(), score_of_places);
}

bool is_local_p(const Term& term) { return term.name == "local_p"; }

}  // namespace

std::vector<std::string> lines_of(std::string_view what, std::string_view lines, std::int64_t layers) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin <= lines.size();) {
    const std::size_t end = std::min(lines.find(';', begin), lines.size());
    all.emplace_back(lines.substr(begin, end - begin));
    begin = end + 1;
  }
  check(all.size() == 1 || static_cast<std::int64_t>(all.size()) == layers, what, ": ", all.size(), " lines for ",
        layers, " layers, expected 1 or one a layer");
  if (all.size() == 1) all.resize(static_cast<std::size_t>(layers), all[0]);
  return all;
}

std::string causal_line(std::string_view text) {
  Line line = parse_line(text);
  const auto named = [](std::string_view name) { return [name](const Term& term) { return term.name == name; }; };
  check(std::none_of(line.scopes.begin(), line.scopes.end(), is_local_p), "\"", text,
        "\": local_p looks where the length of the whole sequence says, which a decoder does not know yet");
  if (std::any_of(line.scopes.begin(), line.scopes.end(), named("causal"))) return to_text(line);
  std::erase_if(line.scopes, named("global"));
  line.scopes.push_back({.name = "causal"});
  return to_text(parse_line(to_text(line)));
}

bool looks_by_place(std::string_view text) {
  const Line line = parse_line(text);
  return score_by_place(line.score) ||
         std::any_of(line.scopes.begin(), line.scopes.end(),
                     [](const Term& scope) {
                       return scope.name != "global" && scope.name != "lengths" && scope.name != "local_p";
                     }) ||
         line.read.name != "sum" || line.align.name == "hard";
}

bool compares_places(std::string_view text) {
  const Line line = parse_line(text);
  return score_of_places(line.score) || std::any_of(line.scopes.begin(), line.scopes.end(), [](const Term& scope) {
           return scope.name == "alibi" || scope.name == "causal" || scope.name == "local_m" || scope.name == "window";
         });
}

bool needs_length(std::string_view text) {
  const Line line = parse_line(text);
  return std::any_of(line.scopes.begin(), line.scopes.end(), is_local_p);
}

}  // namespace regard
