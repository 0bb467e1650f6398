#include "attention/mechanism.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace regard {

Mechanism::Mechanism(const Term& score, const std::vector<Term>& scopes, const Term& align) {
  auto stages = std::make_shared<Stages>();
  stages->score = Registry<Score>::make(score, "score");
  for (const Term& scope : scopes) stages->scopes.push_back(Registry<Scope>::make(scope, "scope"));
  stages->align = Registry<Align>::make(align, "align");
  stages_ = std::move(stages);
}

void check_arguments(std::string_view name, const Arguments& arguments, const Allowed& allowed) {
  check(arguments.numbers.size() == allowed.numbers, name, ": ", arguments.numbers.size(), " numbers, expected ",
        allowed.numbers);
  check(arguments.words.empty(), name, ": unknown word '", arguments.words.empty() ? "" : arguments.words[0], "'");
  check(arguments.inner.empty(), name, ": takes no scores in parentheses");
  for (const auto& [key, value] : arguments.settings) {
    check(std::find(allowed.settings.begin(), allowed.settings.end(), key) != allowed.settings.end(), name,
          ": unknown setting '", key, "'");
  }
}

double setting(std::string_view name, const Arguments& arguments, const std::string& key, double otherwise) {
  const auto found = arguments.settings.find(key);
  if (found == arguments.settings.end()) return otherwise;
  char* end = nullptr;
  const double value = std::strtod(found->second.c_str(), &end);
  check(!found->second.empty() && *end == '\0' && std::isfinite(value), name, ": ", key, " is '", found->second,
        "', expected a number");
  return value;
}

std::int64_t whole_number(std::string_view name, const Arguments& arguments, std::size_t which) {
  const double value = arguments.numbers[which];
  check(value >= 0 && value <= 1e15 && value == std::floor(value), name, ": ", value,
        ", expected a whole number, 0 or more");
  return static_cast<std::int64_t>(value);
}

}  // namespace regard
