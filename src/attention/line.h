// The line that names a mechanism:
//
//     line  = score ['|' scope {'&' scope}] ['|' align] ['|' read]
//     term  = name [':' value {',' value}] ['(' score {',' score} ')']
//     value = number | word | key=value
//
//     Line line = parse_line("additive | causal & window:64 | entmax15");
//     to_text(line);                            // "additive | causal & window:64 | entmax15 | sum"
//
// A name belongs to one family, so parts can be left out: the scope is then global, the align softmax, the read sum (of
// the score relative: relative_sum). A parsed line is canonical: two lines that mean the same are equal and have one
// text, with every part in it and no value that is the usual one; parsing that text gives the line again.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

inline constexpr std::size_t kLongestMechanism = 1024;  // bytes of its line
inline constexpr std::size_t kDeepestMechanism = 8;     // scores within scores

struct Value {
  std::string key;  // of the argument (attention/cards.h)
  double number = 0;
  std::string word;  // "": a number
  bool operator==(const Value&) const = default;
};

struct Term {
  std::string name;
  std::vector<Value> values = {};  // those that are not the usual ones, in the order of the card
  std::vector<Term> inner = {};
  bool operator==(const Term&) const = default;
};

struct Line {
  Term score;
  std::vector<Term> scopes;  // at least one; sorted by name
  Term align, read;
  bool operator==(const Line&) const = default;
};

// Throws an Error of one line that names the place, what is known there and what may have been meant.
Line parse_line(std::string_view text);

std::string to_text(const Term& term);
std::string to_text(const Line& line);

// What an argument of a term is, the usual value if it does not say. No number: it comes from the layer.
std::optional<double> number_of(const Term& term, std::string_view key);
std::string word_of(const Term& term, std::string_view key);

}  // namespace regard
