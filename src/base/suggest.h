// "did you mean …?": the known name nearest to a mistyped one.
//
//     closest("aditive", {"additive", "concat", "dot"})       // "additive"
//     closest("transformer", {"additive", "concat", "dot"})   // ""
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

// How many letters must be inserted, removed, replaced or swapped with their neighbour to turn `a` into `b` (the
// restricted distance of Damerau and Levenshtein).
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

// Empty when nothing is near: a third of the letters may be wrong. The first of several equally near ones.
inline std::string closest(std::string_view name, const std::vector<std::string>& known) {
  std::string best;
  if (name.size() > 64) return best;  // nobody mistypes that much; and the time stays bounded
  std::size_t least = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < least && distance < candidate.size()) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

// The end of an error message: "; did you mean 'additive'?", or nothing.
inline std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  const std::string near = closest(name, known);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

}  // namespace regard
