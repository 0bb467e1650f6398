// The members of a plain struct by name and as text, so that flags, config files and model files share one table.
//
//     const SettingsTable<Drawing> table("drawing", {{"width", &Drawing::width, "of the picture, in points", {}, 1,
//     1e4},
//                                                    {"kind", &Drawing::kind, "what is drawn", {"line", "bar"}}});
//     table.set(drawing, "width", "300");
//     for (const auto& [key, value] : table.list(drawing)) …           // "width" "300", "kind" "line"
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/suggest.h"

namespace regard {

using Setting = std::pair<std::string, std::string>;  // key and value

template <class Struct>
struct SettingField {
  using Member = std::variant<std::string Struct::*, std::int64_t Struct::*, std::uint64_t Struct::*, double Struct::*,
                              bool Struct::*>;
  // meaning: one line, for help. words: what a text may be; none: anything. least, most: of a number.
  SettingField(std::string_view key_, Member member_, std::string_view meaning_, std::vector<std::string> words_ = {},
               double least_ = 0, double most_ = 1 << 24)
      : key(key_), member(member_), meaning(meaning_), words(std::move(words_)), least(least_), most(most_) {}

  std::string_view key;
  Member member;
  std::string_view meaning;
  std::vector<std::string> words;
  double least, most;
};

// "; did you mean …? known: …"
inline std::string known_names(std::string_view name, const std::vector<std::string>& all) {
  std::string made;
  const std::string near = closest(name, all);
  if (!near.empty()) made = text("; did you mean '", near, "'?");
  made += made.empty() ? "; known: " : " known: ";
  const char* comma = "";
  for (const std::string& each : all) {
    if (each.empty()) continue;  // what is not said
    made += comma + each;
    comma = ", ";
  }
  return made;
}

template <class Struct>
class SettingsTable {
 public:
  using Field = SettingField<Struct>;
  SettingsTable(std::string_view what, std::vector<Field> fields) : what_(what), fields_(std::move(fields)) {}

  const std::vector<Field>& fields() const { return fields_; }
  const Field& field(std::string_view key) const {
    std::vector<std::string> keys;
    for (const Field& each : fields_) {
      if (each.key == key) return each;
      keys.emplace_back(each.key);
    }
    fail(ErrorKind::kInput, what_, ": there is no setting '", key, "'", known_names(key, keys));
  }

  // In the order of the table; numbers as the shortest text that reads back as the same.
  std::vector<Setting> list(const Struct& settings) const {
    std::vector<Setting> all;
    for (const Field& each : fields_) all.emplace_back(each.key, value(settings, each));
    return all;
  }
  std::string value(const Struct& settings, const Field& of) const {
    return std::visit([&](auto member) { return to_value(settings.*member); }, of.member);
  }
  // An unknown key, or a value that is none, throws.
  void set(Struct& settings, std::string_view key, std::string_view value) const {
    const Field& of = field(key);
    std::visit([&](auto member) { from_value(of, value, settings.*member); }, of.member);
  }

 private:
  static std::string to_value(const std::string& held) { return held; }
  static std::string to_value(bool held) { return held ? "true" : "false"; }
  template <class Number>
  static std::string to_value(Number held) {
    char made[32];
    return {made, std::to_chars(made, made + sizeof(made), held).ptr};
  }
  void from_value(const Field& of, std::string_view value, std::string& held) const {
    check(of.words.empty() || std::find(of.words.begin(), of.words.end(), value) != of.words.end(), what_, ": ", of.key,
          " is '", value, "'", known_names(value, of.words));
    held = value;
  }
  void from_value(const Field& of, std::string_view value, bool& held) const {
    check(value == "true" || value == "false", what_, ": ", of.key, " is '", value, "', expected true or false");
    held = value == "true";
  }
  template <class Number>
  void from_value(const Field& of, std::string_view value, Number& held) const {
    Number made{};
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), made);
    check(error == std::errc() && end == value.data() + value.size() && static_cast<double>(made) >= of.least &&
              static_cast<double>(made) <= of.most,
          what_, ": ", of.key, " is '", value, "', expected a ", std::is_same_v<Number, double> ? "" : "whole ",
          "number from ", of.least, " to ", of.most);
    held = made;
  }

  std::string_view what_;
  std::vector<Field> fields_;
};

}  // namespace regard
