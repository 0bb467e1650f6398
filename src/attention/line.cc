#include "attention/line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

#include "attention/cards.h"
#include "base/check.h"
#include "base/suggest.h"

namespace regard {
namespace {

using Kind = Argument::Kind;

bool is_small(char letter) { return letter >= 'a' && letter <= 'z'; }
bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }
bool is_name(char letter) { return is_small(letter) || is_digit(letter) || letter == '_'; }
bool is_blank(char letter) { return letter == ' ' || letter == '\t'; }

// For messages, which are one line whatever was typed.
std::string shown(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    out += byte >= 0x20 && byte != 0x7f ? std::string(1, letter) : fmt::format("\\x{:02x}", byte);
  }
  return out;
}

std::string joined(std::span<const std::string> names, std::string_view between) {
  std::string out;
  for (const std::string& each : names) out += (out.empty() ? "" : std::string(between)) + each;
  return out;
}

class Parser {
 public:
  explicit Parser(std::string_view line) : line_(line) {}

  Line line() {
    Line made;
    made.score = term(kScores, 0);
    Family last = Family::kScore;
    while (take('|')) {
      const std::span<const Family> left = std::span(kFamilies).subspan(static_cast<std::size_t>(last) + 1);
      if (left.empty()) wrong("nothing can stand behind the read, ", here());
      Term next = term(left, 0);
      last = find_card(next.name)->family;
      if (last == Family::kScope) {
        made.scopes.push_back(std::move(next));
        while (take('&')) made.scopes.push_back(term(kScopes, 0));
      } else {
        (last == Family::kAlign ? made.align : made.read) = std::move(next);
      }
    }
    if (at_ < line_.size())
      wrong("expected ", last == Family::kScope ? "'&', '|'" : "'|'", " or the end, got ", here());
    finish(made);
    return made;
  }

 private:
  static constexpr Family kScores[] = {Family::kScore}, kScopes[] = {Family::kScope};

  template <class... Parts>
  [[noreturn]] void wrong(const Parts&... parts) const {
    fail(ErrorKind::kInput, parts..., " in \"", shown(line_), '"');
  }

  void skip() {
    while (at_ < line_.size() && is_blank(line_[at_])) ++at_;
  }
  bool next_is(char letter) {
    skip();
    return at_ < line_.size() && line_[at_] == letter;
  }
  bool take(char letter) {
    if (!next_is(letter)) return false;
    ++at_;
    skip();
    return true;
  }
  std::string_view take_while(bool (*belongs)(char)) {
    const std::size_t begin = at_;
    while (at_ < line_.size() && belongs(line_[at_])) ++at_;
    return line_.substr(begin, at_ - begin);
  }
  std::string here() const {
    if (at_ >= line_.size()) return "nothing";
    std::size_t end = at_ + 1;  // a letter of UTF-8 as a whole
    while (end < line_.size() && (static_cast<unsigned char>(line_[end]) & 0xc0) == 0x80) ++end;
    return text('\'', shown(line_.substr(at_, end - at_)), "' (letter ", at_ + 1, ')');
  }

  // "a score", "an align or read"
  static std::string with_article(std::string_view noun) {
    return std::string(noun.starts_with('a') ? "an " : "a ") + std::string(noun);
  }

  // "score", "scope, align or read"
  static std::string names_of(std::span<const Family> families) {
    std::string out;
    for (std::size_t i = 0; i < families.size(); ++i) {
      out += i == 0 ? "" : i + 1 == families.size() ? " or " : ", ";
      out += name_of(families[i]);
    }
    return out;
  }

  const Card& card(std::span<const Family> families) {
    skip();
    const std::size_t begin = at_;
    const std::string_view name = take_while(is_name);
    if (name.empty() || !is_small(name[0])) {
      at_ = begin;
      wrong("expected ", with_article(names_of(families)), ", got ", here());
    }
    const Card* found = find_card(name);
    if (found == nullptr) {
      const std::vector<std::string> known = card_names(families);
      const std::string hint = did_you_mean(name, known);
      fail(ErrorKind::kInput, "unknown ", names_of(families), " '", name, "' in \"", shown(line_), '"',
           hint.empty() ? ";" : hint, " known: ", joined(known, ", "));
    }
    if (!found->module.empty()) {
      wrong("'", name, "' is no part of a line, but the module ", found->module, ": '", name, "'");
    }
    if (std::find(families.begin(), families.end(), found->family) == families.end()) {
      wrong("expected ", with_article(names_of(families)), ", but '", name, "' is ",
            with_article(name_of(found->family)), " (letter ", begin + 1,
            "; a line is score | scope & scope | align | read),");
    }
    return *found;
  }

  Term term(std::span<const Family> families, std::size_t depth) {
    const Card& known = card(families);
    Term made{.name = std::string(known.name)};
    std::vector<Value> given;
    if (take(':')) {
      do given.push_back(value(known, given));
      while (more_values(known, depth));
    }
    if (next_is('(')) {
      if (known.most_inner == 0) wrong("'", known.name, "' holds no other scores: ", here());
      if (depth + 1 > kDeepestMechanism) {
        fail(ErrorKind::kLimit, "more than ", kDeepestMechanism, " scores within scores in \"", shown(line_), '"');
      }
      take('(');
      do made.inner.push_back(inner(known, depth + 1));
      while (take(','));
      if (!take(')')) wrong("expected ',' or ')', got ", here());
    }
    if (made.inner.size() < known.least_inner || made.inner.size() > known.most_inner) {
      const std::string most = known.most_inner == known.least_inner ? "" : text(" to ", known.most_inner);
      wrong("'", known.name, "' holds ", known.least_inner, most, known.most_inner == 1 ? " score" : " scores",
            ", got ", made.inner.size(), ": ", usage_of(known));
    }
    for (const Argument& argument : known.arguments) {
      const auto found =
          std::find_if(given.begin(), given.end(), [&](const Value& each) { return each.key == argument.key; });
      if (found == given.end()) {
        if (argument.required) {
          wrong("'", known.name, "' needs its ", argument.key, " (", values_of(argument), "): ", usage_of(known));
        }
        continue;
      }
      const bool usual = argument.kind == Kind::kWord
                             ? found->word == argument.words.front()
                             : !argument.required && argument.usual && found->number == *argument.usual;
      if (!usual) made.values.push_back(std::move(*found));
    }
    return made;
  }

  Term inner(const Card& around, std::size_t depth) {
    Term made = term(kScores, depth);
    const auto& allowed = around.inner;
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), made.name) == allowed.end()) {
      std::vector<std::string> known(allowed.begin(), allowed.end());
      wrong("'", around.name, "' holds one of ", joined(known, ", "), ", not '", made.name, '\'');
    }
    return made;
  }

  // Within parentheses a comma may also lead to the next score: it does unless this term can use what follows.
  bool more_values(const Card& known, std::size_t depth) {
    if (!next_is(',')) return false;
    const std::size_t comma = at_;
    take(',');
    if (depth == 0) return true;
    const std::size_t begin = at_;
    const std::string_view word = take_while(is_name);
    const bool mine = word.empty() || !is_small(word[0]) || next_is('=') || argument_of_word(known, word) != nullptr;
    at_ = mine ? begin : comma;
    return mine;
  }

  static const Argument* argument_of_word(const Card& known, std::string_view word) {
    for (const Argument& each : known.arguments) {
      if (std::find(each.words.begin(), each.words.end(), word) != each.words.end()) return &each;
    }
    return nullptr;
  }

  Value value(const Card& known, std::span<const Value> given) {
    skip();
    const auto is_set = [&](const Argument& each) {
      return std::any_of(given.begin(), given.end(), [&](const Value& value) { return value.key == each.key; });
    };
    const std::size_t begin = at_;
    const std::string_view word = at_ < line_.size() && is_small(line_[at_]) ? take_while(is_name) : "";
    const Argument* argument = nullptr;
    Value made;
    if (!word.empty() && take('=')) {
      const auto named = std::find_if(known.arguments.begin(), known.arguments.end(),
                                      [&](const Argument& each) { return each.key == word; });
      if (named == known.arguments.end()) unknown_value(known, word);
      argument = &*named;
      if (argument->kind == Kind::kWord) {
        made.word = take_while(is_name);
        const auto& words = argument->words;
        if (std::find(words.begin(), words.end(), made.word) == words.end()) {
          wrong(argument->key, " of '", known.name, "' is ", values_of(*argument), "; got '", made.word, '\'');
        }
      } else {
        made.number = number(known, *argument);
      }
    } else if (!word.empty()) {
      argument = argument_of_word(known, word);
      if (argument == nullptr) unknown_value(known, word);
      made.word = word;
    } else {
      for (const Argument& each : known.arguments) {
        if (argument == nullptr && each.kind != Kind::kWord && !is_set(each)) argument = &each;
      }
      if (argument == nullptr) {
        if (at_ >= line_.size() || !is_number(line_[at_]))
          wrong("expected a value of '", known.name, "', got ", here());
        wrong("'", known.name, "' takes no ", given.empty() ? "number" : "further number", ": ", usage_of(known),
              ", got ", here());
      }
      made.number = number(known, *argument);
    }
    if (is_set(*argument)) wrong(argument->key, " of '", known.name, "' is given twice (letter ", begin + 1, ")");
    made.key = argument->key;
    return made;
  }

  [[noreturn]] void unknown_value(const Card& known, std::string_view word) const {
    if (known.arguments.empty()) wrong("'", known.name, "' takes no values, got '", word, '\'');
    std::vector<std::string> all;
    for (const Argument& each : known.arguments) {
      all.emplace_back(each.key);
      all.insert(all.end(), each.words.begin(), each.words.end());
    }
    wrong("unknown value '", word, "' of '", known.name, '\'', did_you_mean(word, all), " (", usage_of(known), ")");
  }

  static bool is_number(char letter) { return is_digit(letter) || letter == '.' || letter == '-' || letter == '+'; }

  double number(const Card& known, const Argument& argument) {
    const std::size_t begin = at_;
    // Letters are taken along, so that "12x" is one wrong number and not a number and a remainder.
    const auto belongs = [](char letter) {
      return is_number(letter) || is_name(letter) || (letter >= 'A' && letter <= 'Z');
    };
    const std::string_view word = take_while(belongs);
    double result = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), result);
    const bool whole = argument.kind == Kind::kReal || result == std::trunc(result);
    const bool good = !word.empty() && error == std::errc() && end == word.data() + word.size() && whole &&
                      result >= argument.least && result <= argument.most;  // false for NaN
    if (good) return result + 0.0;                                          // −0 becomes 0
    at_ = begin;
    wrong(argument.key, " of '", known.name, "' is ", values_of(argument), "; got ",
          word.empty() ? here() : text('\'', word, '\''));
  }

  void finish(Line& made) const {
    for (Term& each : made.scopes) {
      const std::string_view other = find_card(each.name)->same_as;
      if (!other.empty()) each.name = other;
    }
    std::sort(made.scopes.begin(), made.scopes.end(), [](const Term& a, const Term& b) { return a.name < b.name; });
    const auto twice = std::adjacent_find(made.scopes.begin(), made.scopes.end(),
                                          [](const Term& a, const Term& b) { return a.name == b.name; });
    if (twice != made.scopes.end()) wrong("scope '", twice->name, "' is named twice");
    std::erase_if(made.scopes, [](const Term& each) { return each.name == "global"; });  // the others say more
    if (made.scopes.empty()) made.scopes.push_back({.name = "global"});
    if (made.align.name.empty()) made.align.name = "softmax";
    const bool relative = made.score.name == "relative";
    if (made.read.name.empty()) made.read.name = relative ? "relative_sum" : "sum";
    if (made.read.name == "relative_sum" && !relative) {
      wrong("'relative_sum' takes its distance from the score 'relative', but the score is '", made.score.name, '\'');
    }
  }

  std::string_view line_;
  std::size_t at_ = 0;
};

const Argument& argument_of(const Term& term, std::string_view key) {
  const Card* known = find_card(term.name);
  if (known != nullptr) {
    for (const Argument& each : known->arguments) {
      if (each.key == key) return each;
    }
  }
  fail(ErrorKind::kInternal, "'", term.name, "' has no argument '", key, '\'');
}

const Value* given(const Term& term, std::string_view key) {
  const auto found =
      std::find_if(term.values.begin(), term.values.end(), [&](const Value& each) { return each.key == key; });
  return found == term.values.end() ? nullptr : &*found;
}

}  // namespace

Line parse_line(std::string_view text) {
  const auto check_length = [](std::size_t length, std::string_view form) {
    if (length <= kLongestMechanism) return;
    fail(ErrorKind::kLimit, "a line that names a mechanism has at most ", kLongestMechanism, " letters, got ", length,
         form);
  };
  check_length(text.size(), "");
  Line made = Parser(text).line();
  check_length(to_text(made).size(), " when it is written out");
  return made;
}

std::string to_text(const Term& term) {
  std::string out = term.name;
  for (std::size_t i = 0; i < term.values.size(); ++i) {
    const Value& value = term.values[i];
    out += i == 0 ? ':' : ',';
    if (!value.word.empty()) {
      out += value.word;
    } else {
      out += (argument_of(term, value.key).required ? "" : value.key + '=') + number_text(value.number);
    }
  }
  if (term.inner.empty()) return out;
  out += '(';
  for (std::size_t i = 0; i < term.inner.size(); ++i) out += (i == 0 ? "" : ", ") + to_text(term.inner[i]);
  return out + ')';
}

std::string to_text(const Line& line) {
  std::string out = to_text(line.score) + " | ";
  for (std::size_t i = 0; i < line.scopes.size(); ++i) out += (i == 0 ? "" : " & ") + to_text(line.scopes[i]);
  return out + " | " + to_text(line.align) + " | " + to_text(line.read);
}

std::optional<double> number_of(const Term& term, std::string_view key) {
  const Argument& argument = argument_of(term, key);
  const Value* value = given(term, key);
  return value != nullptr ? value->number : argument.usual;
}

std::string word_of(const Term& term, std::string_view key) {
  const Argument& argument = argument_of(term, key);
  const Value* value = given(term, key);
  return value != nullptr ? value->word : std::string(argument.words.front());
}

}  // namespace regard
