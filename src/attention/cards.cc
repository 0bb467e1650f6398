#include "attention/cards.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/suggest.h"

namespace regard {
namespace {

using Kind = Argument::Kind;

struct Cards {
  std::map<std::string_view, Card> by_name;
  std::vector<const Card*> in_order;
};

Cards& known_cards() {
  static Cards all;
  return all;
}

}  // namespace

std::string_view name_of(Family family) {
  switch (family) {
    case Family::kScore:
      return "score";
    case Family::kScope:
      return "scope";
    case Family::kAlign:
      return "align";
    case Family::kRead:
      return "read";
  }
  return "?";
}

std::string_view meaning_of(Family family) {
  switch (family) {
    case Family::kScore:
      return "how well a query and a key fit";
    case Family::kScope:
      return "which keys a query sees, and which it likes less";
    case Family::kAlign:
      return "how the scores of the visible keys become weights";
    case Family::kRead:
      return "what is taken away with the weights";
  }
  return "?";
}

Family family_of(std::string_view name) {
  std::vector<std::string> known;
  for (const Family family : kFamilies) {
    if (name_of(family) == name) return family;
    known.emplace_back(name_of(family));
  }
  fail(ErrorKind::kInput, "unknown family '", name, '\'', did_you_mean(name, known),
       " (known: score, scope, align, read)");
}

Argument positions(std::string_view key, std::string_view meaning) {
  return {.key = key, .required = true, .least = 1, .most = kMostPositions, .meaning = meaning};
}
Argument longest() {
  Argument made = positions("length", "the longest sequence there will be; shorter ones see their part");
  made.grows = true;
  return made;
}
Argument hidden() {
  return {.key = "hidden", .least = 1, .most = kMostFeatures, .meaning = "the width between its maps, of one head"};
}
Argument learning() {
  return {.key = "learning",
          .kind = Kind::kWord,
          .words = {"trainable", "fixed"},
          .meaning = "whether the numbers are learned or stay as they were drawn"};
}

const std::vector<const Card*>& cards() { return known_cards().in_order; }

const Card* find_card(std::string_view name) {
  const auto found = known_cards().by_name.find(name);
  return found == known_cards().by_name.end() ? nullptr : &found->second;
}

void add_card(Family family, Card card) {
  Cards& all = known_cards();
  card.family = family;
  const auto [place, added] = all.by_name.emplace(card.name, std::move(card));
  check(added, "two mechanisms are called '", place->first, '\'');
  const auto before = [](const Card* a, const Card* b) {
    return std::pair(a->family, a->name) < std::pair(b->family, b->name);
  };
  all.in_order.insert(std::upper_bound(all.in_order.begin(), all.in_order.end(), &place->second, before),
                      &place->second);
}

std::vector<std::string> card_names(std::span<const Family> families) {
  std::vector<std::string> names;
  for (const Card* each : cards()) {
    const bool asked = std::find(families.begin(), families.end(), each->family) != families.end();
    if (asked && each->module.empty()) names.emplace_back(each->name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string number_text(double number) {
  std::array<char, 32> letters;
  // A whole number is written out: 1e+06 is no length that one would write.
  const bool whole = number < 1e15 && number > -1e15 && number == std::trunc(number);
  const auto end = whole ? std::to_chars(letters.data(), letters.data() + letters.size(), static_cast<long>(number))
                         : std::to_chars(letters.data(), letters.data() + letters.size(), number);
  return {letters.data(), end.ptr};
}

std::string values_of(const Argument& argument) {
  if (argument.kind == Kind::kWord) {
    std::string list;
    for (const std::string_view word : argument.words) list += (list.empty() ? "" : " or ") + std::string(word);
    return text(list, ", usually ", argument.words.front());
  }
  return text(argument.kind == Kind::kWhole ? "a whole number, " : "a number, ", number_text(argument.least), " to ",
              number_text(argument.most), argument.usual ? ", usually " + number_text(*argument.usual) : "");
}

std::string usage_of(const Card& card) {
  std::string out(card.name);
  char separator = ':';
  for (const Argument& each : card.arguments) {
    const bool word = each.kind == Kind::kWord;
    std::string value(each.key);
    if (word) {
      value = text(each.words[0], '|', each.words[1]);
    } else if (!each.required) {
      value += "=…";
    }
    out += each.required ? separator + value : text('[', separator, value, ']');
    separator = ',';
  }
  if (card.least_inner == 1) out += "(score)";
  if (card.least_inner > 1) out += "(score, score, …)";
  return out;
}

std::string example_of(const Card& card, std::int64_t longest) {
  std::string out(card.name);
  char separator = ':';
  for (const Argument& each : card.arguments) {
    if (!each.required) continue;
    out += separator + number_text(each.grows ? std::max(1.0, static_cast<double>(longest)) : each.example);
    separator = ',';
  }
  return card.least_inner == 0 ? out : text(out, '(', card.inner_example, ')');
}

}  // namespace regard
