// Options of a command out of a table of settings: --batch-tokens sets batch_tokens. What was said is kept as text and
// checked by the table itself.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/settings.h"
#include "cli/app.h"

namespace regard::cli {

inline std::string option_of(std::string_view key) {
  std::string name = "--" + std::string(key);
  std::replace(name.begin() + 2, name.end(), '_', '-');
  return name;
}

// `usual`: what holds if nothing is said. Keys of `left_out` have no option.
template <class Struct>
void add_settings(App& app, const SettingsTable<Struct>& table, const Struct& usual, const std::string& group,
                  std::vector<Setting>& said, const std::vector<std::string_view>& left_out = {}) {
  for (const auto& field : table.fields()) {
    if (std::find(left_out.begin(), left_out.end(), field.key) != left_out.end()) continue;
    const std::string key(field.key), value = table.value(usual, field);
    const bool flag = std::holds_alternative<bool Struct::*>(field.member);
    std::string help(field.meaning);
    if (!field.words.empty()) {
      help += ":";
      for (const std::string& word : field.words) help += word.empty() ? "" : " " + word;
    }
    if (!flag && !value.empty()) help += " (" + value + ")";
    Option* const option =
        flag ? app.add_flag_function(
                   option_of(key),
                   [&said, key](std::int64_t times) { said.emplace_back(key, times > 0 ? "true" : "false"); }, help)
             : app.add_option_function(
                      option_of(key), [&said, key](const std::string& text) { said.emplace_back(key, text); }, help)
                   ->option_text(std::holds_alternative<std::string Struct::*>(field.member) ? "TEXT" : "N");
    option->group(group);
  }
}

}  // namespace regard::cli
