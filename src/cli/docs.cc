// `regard docs`: pages of docs/ that are made from what the program knows. A test compares them with the files.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attention/cards.h"
#include "attention/line.h"
#include "base/check.h"
#include "base/suggest.h"
#include "cli/command.h"

namespace regard::cli {
namespace {

// Within a table a bar would end the cell.
std::string cell(std::string_view text) {
  std::string out;
  for (const char letter : text) out += letter == '|' ? "\\|" : std::string(1, letter);
  return out;
}

std::string family_section(Family family) {
  std::string name(name_of(family));
  std::string out = fmt::format("\n## {}{}: {}\n\n| name | formula | paper | kernel |\n|---|---|---|---|\n",
                                static_cast<char>(name[0] - 'a' + 'A'), name.substr(1), meaning_of(family));
  std::string values, modules;
  for (const Card* each_card : cards()) {
    const Card& card = *each_card;
    if (card.family != family) continue;
    out += fmt::format("| `{}` | {} | {} | {} |\n", cell(usage_of(card)), cell(card.formula), cell(card.paper),
                       cell(card.kernel));
    for (const Argument& each : card.arguments) {
      values += fmt::format("- `{}` of `{}`: {}. It is {}.\n", each.key, card.name, each.meaning, values_of(each));
    }
    if (!card.inner.empty()) {
      std::string list;
      for (const std::string_view each : card.inner) list += fmt::format("{}`{}`", list.empty() ? "" : ", ", each);
      values += fmt::format("- `{}` holds one of {}.\n", card.name, list);
    }
    if (!card.module.empty()) {
      modules += fmt::format("- `{}` is no part of a line but a module of its own, `{}`.\n", card.name, card.module);
    }
  }
  if (!values.empty() || !modules.empty()) out += '\n';
  return out + values + modules;
}

std::string mechanisms() {
  std::string out =
      "<!-- Made by `regard docs mechanisms`: change the cards in src/attention instead. -->\n"
      "# Mechanisms\n\n"
      "    out_i = Σ_j p_ij · v_j        p_i = align( score(q_i, k_j) + scope(i, j) )\n\n"
      "A mechanism is a line of four parts; each but the first may be left out:\n\n"
      "    line  = score ['|' scope {'&' scope}] ['|' align] ['|' read]\n"
      "    term  = name [':' value {',' value}] ['(' score {',' score} ')']\n"
      "    value = number | word | key=value\n\n";
  out += fmt::format(
      "A line has at most {} letters and {} scores within scores. `regard list --line LINE` tells what "
      "a line means:\n\n| line | written out |\n|---|---|\n",
      kLongestMechanism, kDeepestMechanism);
  for (const char* line : {"scaled_dot", "dot | sparsemax", "additive | causal & window:64 | entmax15", "relative:16",
                           "rotary(scaled_dot) | causal", "mixture(random_synth:256, scaled_dot)",
                           "general | local_p:10", "scaled_dot | softmax:temperature=0.5", "additive | pointer"}) {
    out += fmt::format("| `{}` | `{}` |\n", cell(line), cell(to_text(parse_line(line))));
  }
  for (const Family family : kFamilies) out += family_section(family);
  return out +
         "\nScopes select: what is out of sight has weight 0 whatever stands there, and a query that sees no key reads "
         "zeros.\n";
}

using Page = std::string (*)();
const std::map<std::string, Page>& pages() {
  static const std::map<std::string, Page> all = {{"mechanisms", mechanisms}};
  return all;
}

int print_page(const std::string& name) {
  std::vector<std::string> known;
  std::string list;
  for (const auto& [each, page] : pages()) {
    known.push_back(each);
    list += (list.empty() ? "" : ", ") + each;
  }
  const auto found = pages().find(name);
  check(found != pages().end(), "docs: ", name.empty() ? "which page?" : text("unknown page '", name, '\''),
        did_you_mean(name, known), " (pages: ", list, ")");
  fmt::print("{}", found->second());
  return 0;
}

const AddCommand command({
    .name = "docs",
    .summary = "print a page of the documents that is made from the program",
    .example = "regard docs mechanisms > docs/mechanisms.md",
    .build = [](App& app) -> Run {
      auto name = std::make_shared<std::string>();
      app.add_option("page", *name, "which: mechanisms");
      return [name](const Context&) { return print_page(*name); };
    },
});

}  // namespace
}  // namespace regard::cli
