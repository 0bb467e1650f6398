#include "serve/models.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/check.h"
#include "io/json.h"
#include "tasks/box.h"

namespace regard::serve {
namespace {

constexpr std::array<std::string_view, 2> kBoxed = {"zh-en", "en-zh"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// "zh-en" is two languages; "model-a" and "zh-en-2" are not.
std::optional<std::pair<std::string, std::string>> languages_in(std::string_view name) {
  const std::size_t dash = name.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view from = name.substr(0, dash), to = name.substr(dash + 1);
  for (const std::string_view each : {from, to}) {
    if (each.size() < 2 || each.size() > 3 || !std::all_of(each.begin(), each.end(), is_letter)) return std::nullopt;
  }
  return std::pair(plain_language(from), plain_language(to));
}

bool is_there(std::string_view direction) {
  const std::vector<std::string> places = boxed_model_places(direction);
  return std::any_of(places.begin(), places.end(), [](const auto& each) { return access(each.c_str(), R_OK) == 0; });
}

}  // namespace

std::string plain_language(std::string_view code) {
  std::string out(code.substr(0, code.find_first_of("-_")));
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string_view language_name(std::string_view code) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"de", "German"},   {"en", "English"},    {"es", "Spanish"}, {"fr", "French"}, {"it", "Italian"},
      {"ja", "Japanese"}, {"pt", "Portuguese"}, {"ru", "Russian"}, {"zh", "Chinese"}};
  for (const auto& [each, name] : kNames) {
    if (each == code) return name;
  }
  return code;
}

Models::Models(const std::vector<std::string>& paths, bool int8) {
  std::vector<std::string> named = paths;
  if (named.empty()) {
    for (const std::string_view direction : kBoxed) {
      if (is_there(direction)) named.push_back(text(direction, "=", boxed_model(direction)));
    }
    if (named.empty()) boxed_model(kBoxed[0]);  // which says what is missing
  }
  for (const std::string& each : named) {
    const std::size_t equals = each.find('=');
    auto languages =
        equals == std::string::npos ? std::nullopt : languages_in(std::string_view(each).substr(0, equals));
    const std::string path = languages ? each.substr(equals + 1) : each;
    const std::string stem = std::filesystem::path(path).stem().string();
    if (!languages) languages = languages_in(stem);
    check(languages.has_value(), "serve: '", path, "' does not tell its languages by its name; say -m zh-en=", path);
    const std::string direction = languages->first + "-" + languages->second;
    std::string name = direction;
    const auto taken = [&] {
      return std::any_of(all_.begin(), all_.end(), [&](const Model& model) { return model.name == name; });
    };
    for (int i = 2; taken(); ++i) name = text(direction, "-", i);
    Translator translator(path, int8);
    const std::int64_t longest = translator.longest_line();
    all_.push_back({std::move(name), languages->first, languages->second, std::move(translator), longest});
  }
}

std::string Models::known() const {
  std::string out;
  for (const Model& each : all_) out += (out.empty() ? "" : ", ") + each.name;
  return out;
}

std::string Models::language_of(std::string_view text) const {
  if (direction_of(text) == "zh-en") return "zh";
  for (const Model& each : all_) {
    if (each.source != "zh") return each.source;
  }
  return "en";
}

std::size_t Models::number_of(const Languages& asked, std::string_view line) const {
  if (!asked.model.empty()) {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].name == asked.model) return i;
    }
    throw Refusal(400, text("model: there is no ", json_quote(asked.model), "; there are ", known()));
  }
  const std::string source = asked.source == "auto" ? language_of(line) : plain_language(asked.source);
  const std::string target = plain_language(asked.target);
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].source == source && (target.empty() || all_[i].target == target)) return i;
  }
  throw Refusal(400, text("there is no model from ", json_quote(source), " to ",
                          json_quote(target.empty() ? "any" : target), "; there are ", known()));
}

}  // namespace regard::serve
