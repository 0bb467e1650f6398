// `regard list`: the mechanisms that a line can name, and what a line means.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/cards.h"
#include "attention/line.h"
#include "cli/command.h"
#include "cli/text.h"

namespace regard::cli {
namespace {

struct Options {
  std::string family;
  std::optional<std::string> line;
  bool json = false;
};

std::string facts_json(const Card& card) {
  return fmt::format(R"("family": {}, "formula": {}, "paper": {}, "kernel": {})", json_text(name_of(card.family)),
                     json_text(card.formula), json_text(card.paper), json_text(card.kernel));
}

std::string card_json(const Card& card) {
  std::string arguments;
  for (const Argument& each : card.arguments) {
    arguments +=
        fmt::format(R"({}{{"key": {}, "required": {}, "values": {}, "meaning": {}}})", arguments.empty() ? "" : ", ",
                    json_text(each.key), each.required, json_text(values_of(each)), json_text(each.meaning));
  }
  return fmt::format(R"({{"name": {}, {}, "usage": {}, "arguments": [{}], "module": {}}})", json_text(card.name),
                     facts_json(card), json_text(usage_of(card)), arguments, json_text(card.module));
}

int list_cards(const std::vector<const Card*>& some, bool json) {
  if (json) {
    for (std::size_t i = 0; i < some.size(); ++i) {
      fmt::print("{}{}{}\n", i == 0 ? "[" : " ", card_json(*some[i]), i + 1 == some.size() ? "]" : ",");
    }
    return 0;
  }
  std::vector<std::array<std::string_view, 5>> rows = {{"name", "family", "formula", "paper", "kernel"}};
  for (const Card* card : some) {
    rows.push_back({card->name, name_of(card->family), card->formula, card->paper, card->kernel});
  }
  std::array<std::size_t, 5> widths = {};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], letters(row[i]));
  }
  for (const auto& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) fmt::print("{}  ", padded(row[i], widths[i]));
    fmt::print("{}\n", row.back());
  }
  return 0;
}

// "temperature 0.5, fixed"; arguments that come from the layer are not told.
std::string values_told(const Term& term, const Card& card) {
  std::string out;
  for (const Argument& each : card.arguments) {
    const bool word = each.kind == Argument::Kind::kWord;
    const std::optional<double> number = word ? std::nullopt : number_of(term, each.key);
    if (!word && !number) continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", each.key,
                       word ? word_of(term, each.key) : number_text(*number));
  }
  return out;
}

void tell(const Term& term, std::size_t depth) {
  const Card& card = *find_card(term.name);
  const std::string values = values_told(term, card);
  fmt::print("  {}  {}{}{}\n", padded(depth == 0 ? name_of(card.family) : "", 5),
             std::string(2 * depth, ' ') + padded(card.name, 14) + "  " + std::string(card.formula),
             values.empty() ? "" : "; " + values, card.paper.empty() ? "" : fmt::format(" ({})", card.paper));
  for (const Term& each : term.inner) tell(each, depth + 1);
}

std::string term_json(const Term& term) {
  std::string values, inner;
  for (const Value& each : term.values) {
    values += fmt::format("{}{}: {}", values.empty() ? "" : ", ", json_text(each.key),
                          each.word.empty() ? number_text(each.number) : json_text(each.word));
  }
  for (const Term& each : term.inner) inner += (inner.empty() ? "" : ", ") + term_json(each);
  return fmt::format(R"({{"name": {}, {}, "values": {{{}}}, "inner": [{}]}})", json_text(term.name),
                     facts_json(*find_card(term.name)), values, inner);
}

int explain(const std::string& text, bool json) {
  const Line line = parse_line(text);
  std::vector<Term> parts = {line.score};
  parts.insert(parts.end(), line.scopes.begin(), line.scopes.end());
  parts.push_back(line.align);
  parts.push_back(line.read);
  if (json) {
    std::string all;
    for (const Term& each : parts) all += (all.empty() ? "" : ", ") + term_json(each);
    fmt::print(R"({{"line": {}, "parts": [{}]}})", json_text(to_text(line)), all);
    fmt::print("\n");
    return 0;
  }
  fmt::print("{}\n", to_text(line));
  for (const Term& each : parts) tell(each, 0);
  return 0;
}

const AddCommand command({
    .name = "list",
    .summary = "the mechanisms there are, and what a line of them means",
    .example = "regard list --family align\nregard list --line \"additive | causal & window:64 | entmax15\"",
    .build = [](CLI::App& app) -> Run {
      auto options = std::make_shared<Options>();
      auto* family = app.add_option("--family", options->family, "only score, scope, align or read")->option_text("F");
      app.add_option("--line", options->line, "the canonical form of a line, and what its parts mean")
          ->option_text("LINE")
          ->excludes(family);
      app.add_flag("--json", options->json, "as JSON");
      return [options](const Context&) {
        if (options->line) return explain(*options->line, options->json);
        if (options->family.empty()) return list_cards(cards(), options->json);
        std::vector<const Card*> some;
        for (const Card* each : cards()) {
          if (each->family == family_of(options->family)) some.push_back(each);
        }
        return list_cards(some, options->json);
      };
    },
});

}  // namespace
}  // namespace regard::cli
