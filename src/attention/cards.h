// The cards of mechanisms: everything that can be named in a line (attention/line.h), and the few that are modules of
// their own. Each file that has a mechanism registers its card; `regard list`, docs/mechanisms.md, the parser, the
// tests and the benchmarks read them.
//
//     const Card* card = find_card("window");        // family kScope, one argument: the distance
#pragma once

#include <cstddef>
#include <cstdint>
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

// Limits that no sensible request meets; they keep sizes that come from a line within what can be multiplied.
inline constexpr double kMostPositions = 1 << 20;
inline constexpr double kMostFeatures = 1 << 16;
inline constexpr double kLeastReal = 1e-6, kMostReal = 1e6;

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
  double example = 2;  // of a number that must be given, for tests and benchmarks
  bool grows = false;  // it has to be as large as the longest sequence
};

// Arguments that several mechanisms take.
Argument positions(std::string_view key, std::string_view meaning);  // a number of positions that must be given
Argument longest();                                                  // length: of the longest sequence
Argument hidden();                                                   // the width of a map of one's own
Argument learning();                                                 // trainable or fixed

struct Card {
  std::string_view name;
  std::string_view formula;
  std::string_view paper{};
  std::string_view kernel{};  // what computes it
  std::vector<Argument> arguments{};
  std::size_t least_inner = 0, most_inner = 0;  // scores in parentheses
  std::vector<std::string_view> inner{};        // which; none: all that may stand in a line
  std::string_view inner_example{};             // "scaled_dot, additive"
  std::string_view same_as{};                   // another name for this one
  std::string_view module{};                    // not part of a line: who does it instead
  Family family = Family::kScore;               // set by who registers it
};

inline constexpr std::size_t kMostInner = 16;

// By family; within one, by name. Registration happens before main; a name belongs to one family.
const std::vector<const Card*>& cards();
const Card* find_card(std::string_view name);                           // null: there is none
std::vector<std::string> card_names(std::span<const Family> families);  // those that may stand in a line, sorted
void add_card(Family family, Card card);
struct AddCard {  // of a module
  AddCard(Family family, Card card) { add_card(family, std::move(card)); }
};

std::string number_text(double number);  // as short as it can be read back: "128", "0.5", "1e-06"
// "a whole number, 1 to 65536", "a number, 1e-06 to 1e+06, usually 1", "trainable or fixed, usually trainable"
std::string values_of(const Argument& argument);
// "window:distance", "softmax[:temperature=real]", "mixture(score, score, …)"
std::string usage_of(const Card& card);
// A term that can be used with sequences of that length: "window:2", "mixture(scaled_dot, additive)".
std::string example_of(const Card& card, std::int64_t longest);

}  // namespace regard
