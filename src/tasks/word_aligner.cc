#include "tasks/word_aligner.h"

#include <algorithm>
#include <cmath>

#include "data/unicode.h"

namespace regard {
namespace {

constexpr double kLeast = 1e-12;          // what is never impossible: a word that is not in the table
constexpr std::size_t kSortAt = 1 << 22;  // keys that are sorted at a time

std::size_t jump(std::int64_t from, std::int64_t to) {
  constexpr std::int64_t kMost = MarkovAligner::kFarthest;
  return static_cast<std::size_t>(std::clamp(to - from, -kMost, kMost) + kMost);
}

void sort_once(std::vector<std::uint64_t>& keys) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

// Which words met, of the words none among the sources.
class Meetings {
 public:
  void add(const WordPair& pair) {
    for (const std::int32_t target : pair.target) {
      keys_.push_back(MarkovAligner::key(target, 0));
      for (const std::int32_t source : pair.source) keys_.push_back(MarkovAligner::key(target, source));
      most_ = std::max(most_, target);
    }
    if (keys_.size() < 2 * sorted_ + kSortAt) return;
    sort_once(keys_);
    sorted_ = keys_.size();
  }
  std::vector<std::uint64_t> take() {
    sort_once(keys_);
    keys_.shrink_to_fit();
    return std::move(keys_);
  }
  std::size_t words() const { return static_cast<std::size_t>(most_) + 1; }

 private:
  std::vector<std::uint64_t> keys_;
  std::size_t sorted_ = 0;
  std::int32_t most_ = 0;
};

// The likeliest of each row, if it is likelier than what is left to none.
std::vector<std::int32_t> likeliest(const std::vector<double>& weights, std::size_t rows) {
  std::vector<std::int32_t> made(rows, -1);
  const std::size_t columns = rows == 0 ? 0 : weights.size() / rows;
  for (std::size_t r = 0; r < rows; ++r) {
    double rest = 1, best = 0;
    for (std::size_t c = 0; c < columns; ++c) rest -= weights[r * columns + c];
    best = std::max(rest, 0.0);
    for (std::size_t c = 0; c < columns; ++c) {
      if (weights[r * columns + c] <= best) continue;
      best = weights[r * columns + c];
      made[r] = static_cast<std::int32_t>(c);
    }
  }
  return made;
}

}  // namespace

WordPair turned(const WordPair& pair) { return {.source = pair.target, .target = pair.source}; }

std::int32_t WordNumbers::number(std::string_view word) {
  return numbers_.try_emplace(to_lower(word), static_cast<std::int32_t>(numbers_.size()) + 1).first->second;
}

MarkovAligner::MarkovAligner(std::span<const std::uint64_t> met, std::size_t target_words,
                             const WordAlignerSettings& settings)
    : settings_(settings), target_words_(static_cast<double>(target_words)), counts_(met.size(), 0) {
  for (const std::uint64_t each : met) {
    begins_.resize((each >> 32) + 1, targets_.size());
    targets_.push_back(static_cast<std::int32_t>(each & 0xFFFFFFFF));
  }
  begins_.push_back(targets_.size());
  for (std::size_t word = 0; word + 1 < begins_.size(); ++word) {  // whatever met is as likely
    const std::size_t count = begins_[word + 1] - begins_[word];
    table_.insert(table_.end(), count, 1 / std::max(1.0, static_cast<double>(count)));
  }
  for (std::int64_t d = -kFarthest; d <= kFarthest; ++d) {  // the next word first
    jumps_[jump(0, d)] = 1 / (1 + std::abs(static_cast<double>(d) - 1));
  }
}

std::size_t MarkovAligner::place(std::int32_t target, std::int32_t source) const {
  const auto word = static_cast<std::size_t>(source);
  if (word + 1 >= begins_.size()) return targets_.size();
  const auto begin = targets_.begin() + static_cast<std::ptrdiff_t>(begins_[word]),
             end = targets_.begin() + static_cast<std::ptrdiff_t>(begins_[word + 1]);
  const auto found = std::lower_bound(begin, end, target);
  return found != end && *found == target ? static_cast<std::size_t>(found - targets_.begin()) : targets_.size();
}

double MarkovAligner::probability(std::int32_t target, std::int32_t source) const {
  const std::size_t at = place(target, source);
  return at == targets_.size() ? 0 : table_[at];
}

MarkovAligner::Weights MarkovAligner::weights(const WordPair& pair, bool ordered, Jumps* counts) const {
  if (pair.source.empty() || pair.target.empty()) return {};
  return ordered ? by_order(pair, counts) : by_words(pair);
}

MarkovAligner::Weights MarkovAligner::by_words(const WordPair& pair) const {
  const std::size_t sources = pair.source.size();
  const double each = (1 - settings_.none) / static_cast<double>(sources);
  Weights made(pair.target.size() * sources);
  for (std::size_t j = 0; j < pair.target.size(); ++j) {
    double* const row = made.data() + j * sources;
    double sum = settings_.none * std::max(kLeast, probability(pair.target[j], 0));
    for (std::size_t i = 0; i < sources; ++i) {
      row[i] = each * std::max(kLeast, probability(pair.target[j], pair.source[i]));
      sum += row[i];
    }
    for (std::size_t i = 0; i < sources; ++i) row[i] /= sum;
  }
  return made;
}

// Forward and backward over states i, and I + i: from no word, the last one was i. Both are scaled a step.
MarkovAligner::Weights MarkovAligner::by_order(const WordPair& pair, Jumps* counts) const {
  const std::size_t sources = pair.source.size(), targets = pair.target.size();
  const double none = settings_.none, anywhere = settings_.anywhere, all = static_cast<double>(sources);
  const auto place_of = [](std::size_t i) { return static_cast<std::int64_t>(i); };
  std::vector<double> said(targets * sources), of_none(targets);  // what a state says about a target word
  for (std::size_t j = 0; j < targets; ++j) {
    of_none[j] = std::max(kLeast, probability(pair.target[j], 0));
    for (std::size_t i = 0; i < sources; ++i) {
      said[j * sources + i] = std::max(kLeast, probability(pair.target[j], pair.source[i]));
    }
  }
  std::vector<double> step(sources * sources), first(sources);  // from k to i, and from before the first word
  const auto spread = [&](std::int64_t from, double* to, double rest) {
    double sum = 0;
    for (std::size_t i = 0; i < sources; ++i) sum += jumps_[jump(from, place_of(i))];
    for (std::size_t i = 0; i < sources; ++i) {
      to[i] = (1 - none) * ((1 - rest) * jumps_[jump(from, place_of(i))] / sum + rest / all);
    }
  };
  for (std::size_t k = 0; k < sources; ++k) spread(place_of(k), step.data() + k * sources, anywhere);
  spread(-1, first.data(), 0);

  std::vector<double> ahead(targets * 2 * sources), scale(targets), from(sources), to(sources);
  for (std::size_t j = 0; j < targets; ++j) {
    double* const now = ahead.data() + j * 2 * sources;
    if (j == 0) {
      to = first;
    } else {
      std::fill(to.begin(), to.end(), 0);
      for (std::size_t k = 0; k < sources; ++k) {
        from[k] = now[k - 2 * sources] + now[k - sources];
        for (std::size_t i = 0; i < sources; ++i) to[i] += from[k] * step[k * sources + i];
      }
    }
    for (std::size_t i = 0; i < sources; ++i) {
      now[i] = to[i] * said[j * sources + i];
      now[sources + i] = none * (j == 0 ? 1 / all : from[i]) * of_none[j];
      scale[j] += now[i] + now[sources + i];
    }
    for (std::size_t i = 0; i < 2 * sources; ++i) now[i] /= scale[j];
  }

  std::vector<double> back(sources), before(sources);  // the same for i and I + i
  const double* const last = ahead.data() + (targets - 1) * 2 * sources;
  double sum = 0;
  for (std::size_t i = 0; i < sources; ++i) {  // the end stands behind the last word
    back[i] = (1 - anywhere) * jumps_[jump(place_of(i), place_of(sources))] + anywhere / (all + 1);
    sum += (last[i] + last[sources + i]) * back[i];
  }
  for (double& each : back) each /= sum;
  Weights made(targets * sources);
  for (std::size_t j = targets; j-- > 0;) {
    const double* const now = ahead.data() + j * 2 * sources;
    for (std::size_t i = 0; i < sources; ++i) made[j * sources + i] = now[i] * back[i];
    if (j == 0) break;
    for (std::size_t i = 0; i < sources; ++i) to[i] = said[j * sources + i] * back[i] / scale[j];
    for (std::size_t k = 0; k < sources; ++k) {
      const double held = now[k - 2 * sources] + now[k - sources];
      double sum_of = 0;
      for (std::size_t i = 0; i < sources; ++i) {
        const double way = step[k * sources + i] * to[i];
        sum_of += way;
        if (counts != nullptr) (*counts)[jump(place_of(k), place_of(i))] += held * way;
      }
      before[k] = sum_of + none * of_none[j] * back[k] / scale[j];
    }
    back.swap(before);
  }
  if (counts != nullptr) {
    for (std::size_t i = 0; i < sources; ++i) (*counts)[jump(-1, place_of(i))] += made[i];
  }
  return made;
}

void MarkovAligner::count(const WordPair& pair, const Weights& links, const Weights& own) {
  const std::size_t sources = pair.source.size();
  if (sources == 0) return;
  for (std::size_t j = 0; j < pair.target.size(); ++j) {
    double rest = 1;
    for (std::size_t i = 0; i < sources; ++i) {
      counts_[place(pair.target[j], pair.source[i])] += links[j * sources + i];
      rest -= own[j * sources + i];
    }
    counts_[place(pair.target[j], 0)] += std::max(0.0, rest);
  }
}

void MarkovAligner::update() {
  for (std::size_t word = 0; word + 1 < begins_.size(); ++word) {
    double sum = settings_.smoothing * target_words_;
    for (std::size_t i = begins_[word]; i < begins_[word + 1]; ++i) sum += counts_[i];
    for (std::size_t i = begins_[word]; i < begins_[word + 1]; ++i)
      table_[i] = (counts_[i] + settings_.smoothing) / sum;
  }
  std::fill(counts_.begin(), counts_.end(), 0);
}

void MarkovAligner::update(const Jumps& counts) {
  double sum = 0;
  for (const double each : counts) sum += each + 0.5;
  for (std::size_t i = 0; i < counts.size(); ++i) jumps_[i] = (counts[i] + 0.5) / sum;
}

WordAligner WordAligner::learn(const Each& each, const WordAlignerSettings& settings, const Context& context) {
  Meetings met, met_back;
  each([&](const WordPair& pair) {
    met.add(pair);
    met_back.add(turned(pair));
  });
  const std::size_t targets = met.words(), sources = met_back.words();
  WordAligner made(MarkovAligner(met.take(), targets, settings), MarkovAligner(met_back.take(), sources, settings));
  for (int round = 0; round < settings.word_rounds + settings.order_rounds; ++round) {
    const bool ordered = round >= settings.word_rounds;
    MarkovAligner::Jumps jumps{}, jumps_back{};
    std::uint64_t seen = 0;
    each([&](const WordPair& pair) {
      if (++seen % 1024 == 0) stop_if_asked(context);
      const WordPair back = turned(pair);
      const MarkovAligner::Weights forward = made.forward_.weights(pair, ordered, &jumps),
                                   backward = made.backward_.weights(back, ordered, &jumps_back);
      MarkovAligner::Weights both(forward.size()), both_back(forward.size());
      for (std::size_t j = 0; j < pair.target.size(); ++j) {
        for (std::size_t i = 0; i < pair.source.size(); ++i) {
          const std::size_t there = j * pair.source.size() + i, other = i * pair.target.size() + j;
          both[there] = both_back[other] = forward[there] * backward[other];
        }
      }
      made.forward_.count(pair, both, forward);
      made.backward_.count(back, both_back, backward);
    });
    made.forward_.update();
    made.backward_.update();
    if (!ordered) continue;
    made.forward_.update(jumps);
    made.backward_.update(jumps_back);
  }
  return made;
}

WordAligner WordAligner::learn(std::span<const WordPair> pairs, const WordAlignerSettings& settings) {
  return learn(
      [pairs](const std::function<void(const WordPair&)>& use) {
        for (const WordPair& pair : pairs) use(pair);
      },
      settings);
}

WordAligner::Aligned WordAligner::align(const WordPair& pair) const {
  return {.forward = forward_.weights(pair, true), .backward = backward_.weights(turned(pair), true)};
}

std::vector<std::int32_t> WordAligner::agreed(const WordPair& pair) const {
  const Aligned aligned = align(pair);
  const std::vector<std::int32_t> there = likeliest(aligned.forward, pair.target.size());
  std::vector<std::int32_t> made = likeliest(aligned.backward, pair.source.size());
  for (std::size_t s = 0; s < made.size(); ++s) {
    std::int32_t& target = made[s];
    if (target >= 0 && there[static_cast<std::size_t>(target)] != static_cast<std::int32_t>(s)) target = -1;
  }
  return made;
}

}  // namespace regard
