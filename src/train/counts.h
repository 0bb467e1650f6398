// How long, how often: a number with a unit.
//
//     10e epochs    5000u updates    90s seconds    20m minutes    2h hours
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace regard {

struct Count {
  enum class Unit : std::uint8_t { kNever, kEpochs, kUpdates, kSeconds };
  Unit unit = Unit::kNever;
  double amount = 0;  // more than 0; of minutes and hours too in seconds

  bool operator==(const Count&) const = default;
};

// `what` names the setting in errors: "--stop-after".
Count parse_count(std::string_view text, std::string_view what);
std::string to_text(const Count& count);  // "10e"; "never"

inline Count updates(std::int64_t amount) { return {Count::Unit::kUpdates, static_cast<double>(amount)}; }
inline Count epochs(double amount) { return {Count::Unit::kEpochs, amount}; }
inline Count seconds(double amount) { return {Count::Unit::kSeconds, amount}; }

// How far a run is: how many updates and epochs are done, how many seconds it took.
struct Reached {
  std::int64_t updates = 0;
  double epochs = 0;
  double seconds = 0;
};
bool is_over(const Count& count, const Reached& now);
double share_done(const Count& count, const Reached& now);  // 0 … 1; 0 if it never is
// Is it time again, after an update that led from `before` to `now`? Counts from the beginning of the run, so a run
// that was continued says the same as one that never stopped; minutes count from `last`, in seconds.
bool is_due(const Count& every, const Reached& before, const Reached& now, double last);

}  // namespace regard
