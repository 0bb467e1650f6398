#include "tasks/lexicon.h"

#include "data/unicode.h"

namespace regard {

std::int32_t WordNumbers::number(std::string_view word) {
  return numbers_.try_emplace(to_lower(word), static_cast<std::int32_t>(numbers_.size()) + 1).first->second;
}

double Lexicon::probability(std::int32_t target, std::int32_t source) const {
  const auto found = table_.find(key(target, source));
  return found == table_.end() ? 0 : found->second;
}

Lexicon Lexicon::learn(std::span<const WordPair> pairs, int rounds) {
  Lexicon made;
  const auto each = [&](const auto& use) {
    for (const WordPair& pair : pairs) {
      for (const std::int32_t target : pair.target) use(target, pair.source);
    }
  };
  each([&](std::int32_t target, const std::vector<std::int32_t>& sources) {  // whatever met is as likely
    made.table_[key(target, 0)] = 1;
    for (const std::int32_t source : sources) made.table_[key(target, source)] = 1;
  });
  for (int round = 0; round < rounds; ++round) {
    std::unordered_map<std::uint64_t, double> counts;
    std::unordered_map<std::int32_t, double> totals;
    counts.reserve(made.table_.size());
    each([&](std::int32_t target, const std::vector<std::int32_t>& sources) {
      double sum = made.probability(target, 0);
      for (const std::int32_t source : sources) sum += made.probability(target, source);
      const auto count = [&](std::int32_t source) {
        const double part = made.probability(target, source) / sum;
        counts[key(target, source)] += part;
        totals[source] += part;
      };
      count(0);
      for (const std::int32_t source : sources) count(source);
    });
    for (auto& [place, count] : counts) count /= totals[static_cast<std::int32_t>(place >> 32)];
    made.table_ = std::move(counts);
  }
  return made;
}

std::vector<std::int32_t> Lexicon::align(const WordPair& pair) const {
  std::vector<std::int32_t> links;
  for (const std::int32_t target : pair.target) {
    double best = probability(target, 0);
    links.push_back(-1);
    for (std::size_t s = 0; s < pair.source.size(); ++s) {
      const double each = probability(target, pair.source[s]);
      if (each > best) {
        best = each;
        links.back() = static_cast<std::int32_t>(s);
      }
    }
  }
  return links;
}

}  // namespace regard
