// `regard list`: the mechanisms that a line can name, what a line means, and what it costs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/cards.h"
#include "attention/line.h"
#include "base/check.h"
#include "cli/command.h"
#include "cli/text.h"
#include "regard/attention/explain.h"

namespace regard::cli {
namespace {

struct Options {
  std::string family;
  std::optional<std::string> line, explained;
  std::vector<std::int64_t> shape;
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

int tell_line(const std::string& text, bool json) {
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

// "1.25 MiB", "3.2 G": three digits.
std::string short_number(double x, double step, const std::array<const char*, 5>& units) {
  std::size_t unit = 0;
  for (; x >= step && unit + 1 < units.size(); ++unit) x /= step;
  return fmt::format("{:.3g} {}", x, units[unit]);
}
std::string bytes_told(std::size_t bytes) {
  return short_number(static_cast<double>(bytes), 1024, {"B", "KiB", "MiB", "GiB", "TiB"});
}
std::string flops_told(double flops) { return short_number(flops, 1000, {"flop", "kflop", "Mflop", "Gflop", "Tflop"}); }

std::string cost_json(const Explanation& told) {
  std::string slower;
  for (const std::string& each : told.slower) slower += (slower.empty() ? "" : ", ") + json_text(each);
  const ExplainShape& shape = told.shape;
  return fmt::format(
      R"({{"line": {}, "batch": {}, "heads": {}, "queries": {}, "keys": {}, "width": {}, "score": {}, "align": {}, )"
      R"("target": {}, "threads": {}, "whole_rows": {}, "slower": [{}], "pairs": {:.0f}, "visible_pairs": {}, )"
      R"("forward_flops": {:.0f}, "backward_flops": {:.0f}, "forward_bytes": {}, "backward_bytes": {}, "maps": {}}})",
      json_text(told.line), shape.batch, shape.heads, shape.queries, shape.keys, shape.width, json_text(told.score),
      json_text(told.align), json_text(told.target), told.threads, told.whole_rows, slower, told.pairs,
      told.visible_pairs ? fmt::format("{:.0f}", *told.visible_pairs) : "null", told.forward_flops, told.backward_flops,
      told.forward_bytes, told.backward_bytes, told.maps);
}

int tell_cost(const Options& options) {
  ExplainShape shape;
  for (const std::int64_t size : options.shape) {
    check(size > 0, "list: --shape has ", size, ", expected five numbers from 1 on");
  }
  if (!options.shape.empty()) {
    shape.batch = options.shape[0];
    shape.heads = options.shape[1];
    shape.queries = options.shape[2];
    shape.keys = options.shape[3];
    shape.width = options.shape[4];
  }
  const Explanation told = explain(Mechanism(*options.explained), shape);
  if (options.json) {
    fmt::print("{}\n", cost_json(told));
    return 0;
  }
  const auto row = [](std::string_view what, const std::string& text) {
    fmt::print("  {}  {}\n", padded(what, 7), text);
  };
  fmt::print("{}\n", told.line);
  row("shape", fmt::format("batch {}, heads {}, queries {}, keys {}, width {}", told.shape.batch, told.shape.heads,
                           told.shape.queries, told.shape.keys, told.shape.width));
  row("kernels", fmt::format("{}; {}; {}, {} thread{}", told.score, told.align, told.target, told.threads,
                             told.threads == 1 ? "" : "s"));
  row("pairs", told.visible_pairs ? fmt::format("{:.0f} of {:.0f} are seen", *told.visible_pairs, told.pairs)
                                  : fmt::format("{:.0f}; which are seen, the call says", told.pairs));
  row("work", fmt::format("{} forward, {} backward", flops_told(told.forward_flops), flops_told(told.backward_flops)));
  row("memory", fmt::format("{} forward, {} backward, beyond inputs, outputs and gradients{}",
                            bytes_told(told.forward_bytes), bytes_told(told.backward_bytes),
                            told.maps == 0 ? "" : fmt::format("; {} of each for its maps", bytes_told(told.maps))));
  if (told.slower.empty()) row("slower", "nothing: this is the fastest path");
  for (const std::string& each : told.slower) row("slower", each);
  return 0;
}

const AddCommand command({
    .name = "list",
    .summary = "the mechanisms there are, and what a line of them means",
    .example = "regard list --family align\nregard list --line \"additive | causal & window:64 | entmax15\"\n"
               "regard list --explain \"scaled_dot | causal | sparsemax\" --shape 8,16,1024,1024,64",
    .build = [](App& app) -> Run {
      auto options = std::make_shared<Options>();
      auto* family = app.add_option("--family", options->family, "only score, scope, align or read")->option_text("F");
      auto* line = app.add_option("--line", options->line, "the canonical form of a line, and what its parts mean")
                       ->option_text("LINE")
                       ->excludes(family);
      auto* explained = app.add_option("--explain", options->explained,
                                       "what attention by this line costs, which kernels run, and why not faster ones")
                            ->option_text("LINE")
                            ->excludes(family)
                            ->excludes(line);
      app.add_option("--shape", options->shape, "batch, heads, queries, keys, width; usually 1,8,512,512,64")
          ->delimiter(',')
          ->expected(5)
          ->option_text("B,H,N,M,D")
          ->needs(explained);
      app.add_flag("--json", options->json, "as JSON");
      return [options](const Context&) {
        if (options->line) return tell_line(*options->line, options->json);
        if (options->explained) return tell_cost(*options);
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
