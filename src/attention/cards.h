// The table of mechanisms: everything that can be named in a line (attention/line.h) and the few that are modules of
// their own. `regard list`, docs/mechanisms.md and the parser read it.
//
//     const Card* card = find_card("window");        // family kScope, one argument: the distance
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

// The parts of a line, in its order: out_i = Σ_j p_ij · v_j, p_i = align(score(q_i, k_j) + scope(i, j)).
enum class Family { kScore, kScope, kAlign, kRead };
inline constexpr Family kFamilies[] = {Family::kScore, Family::kScope, Family::kAlign, Family::kRead};
std::string_view name_of(Family family);     // "score"
std::string_view meaning_of(Family family);  // "how well a query and a key fit"
Family family_of(std::string_view name);     // throws, listing what there is

// What may stand behind the colon of a name.
struct Argument {
  enum class Kind { kWhole, kReal, kWord };

  std::string_view key;
  Kind kind = Kind::kWhole;
  bool required = false;
  double least = 0, most = 0;             // of numbers, both included
  std::optional<double> usual{};          // of a number that is left out; none: it comes from the layer
  std::vector<std::string_view> words{};  // of a word; the first is the usual one
  std::string_view meaning;
};

struct Card {
  std::string_view name;
  Family family = Family::kScore;
  std::string_view formula;
  std::string_view paper{};
  std::vector<Argument> arguments{};
  std::size_t least_inner = 0, most_inner = 0;  // scores in parentheses
  std::vector<std::string_view> inner{};        // which; none: all that may stand in a line
  std::string_view same_as{};                   // another name for this one
  std::string_view module{};                    // not part of a line: who does it instead
};

const std::vector<Card>& cards();              // by family; within one, as they build on each other
const Card* find_card(std::string_view name);  // null: there is none
std::vector<std::string> card_names(std::span<const Family> families);  // those that may stand in a line, sorted

std::string number_text(double number);  // as short as it can be read back: "128", "0.5", "1e-06"
// "a whole number, 1 to 65536", "a number, 1e-06 to 1e+06, usually 1", "trainable or fixed, usually trainable"
std::string values_of(const Argument& argument);
// "window:distance", "softmax[:temperature=real]", "mixture(score, score, …)"
std::string usage_of(const Card& card);

}  // namespace regard
