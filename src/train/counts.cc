#include "train/counts.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/check.h"

namespace regard {

Count parse_count(std::string_view text, std::string_view what) {
  const auto refuse = [&](const char* why) {
    fail(ErrorKind::kInput, what, ": '", text, "' ", why,
         "; expected a number and e (epochs), u (updates), s, m or h, such as 10e, 5000u, 20m");
  };
  if (text == "never") return {};
  if (text.empty()) refuse("is empty");
  const std::string_view digits = text.substr(0, text.size() - 1);
  if (text.back() >= '0' && text.back() <= '9') refuse("has no unit");
  double number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, std::chars_format::fixed);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
    refuse("is not one number with a unit");
  if (!(number > 0) || number > 1e15) refuse("is not more than 0 and at most 1e15");
  switch (text.back()) {
    case 'e':
      return {Count::Unit::kEpochs, number};
    case 'u':
      if (number != std::floor(number)) refuse("is not a whole number of updates");
      return {Count::Unit::kUpdates, number};
    case 's':
      return {Count::Unit::kSeconds, number};
    case 'm':
      return {Count::Unit::kSeconds, number * 60};
    case 'h':
      return {Count::Unit::kSeconds, number * 3600};
    default:
      refuse("has an unknown unit");
  }
  return {};
}

std::string to_text(const Count& count) {
  switch (count.unit) {
    case Count::Unit::kNever:
      return "never";
    case Count::Unit::kEpochs:
      return fmt::format("{}e", count.amount);
    case Count::Unit::kUpdates:
      return fmt::format("{}u", static_cast<std::int64_t>(count.amount));
    case Count::Unit::kSeconds:
      break;
  }
  for (const auto& [unit, size] : {std::pair{'h', 3600.0}, std::pair{'m', 60.0}}) {
    if (std::fmod(count.amount, size) == 0) return fmt::format("{}{}", count.amount / size, unit);
  }
  return fmt::format("{}s", count.amount);
}

double share_done(const Count& count, const Reached& now) {
  switch (count.unit) {
    case Count::Unit::kNever:
      break;
    case Count::Unit::kEpochs:
      return std::min(1.0, now.epochs / count.amount);
    case Count::Unit::kUpdates:
      return std::min(1.0, static_cast<double>(now.updates) / count.amount);
    case Count::Unit::kSeconds:
      return std::min(1.0, now.seconds / count.amount);
  }
  return 0;
}

bool is_over(const Count& count, const Reached& now) { return share_done(count, now) >= 1; }

bool is_due(const Count& every, const Reached& before, const Reached& now, double last) {
  const auto passed = [&](double from, double to) {
    return std::floor(to / every.amount) > std::floor(from / every.amount);
  };
  switch (every.unit) {
    case Count::Unit::kNever:
      break;
    case Count::Unit::kEpochs:
      return passed(before.epochs, now.epochs);
    case Count::Unit::kUpdates:
      return passed(static_cast<double>(before.updates), static_cast<double>(now.updates));
    case Count::Unit::kSeconds:
      return now.seconds - last >= every.amount;
  }
  return false;
}

}  // namespace regard
