#include "tasks/word_aligner.h"

#include <algorithm>
#include <cmath>

#include "data/unicode.h"

namespace regard {
namespace {

constexpr double kLeast = 1e-12;  // what is never impossible: a word that is not in the table

std::size_t jump(std::int64_t from, std::int64_t to) {
  constexpr std::int64_t kMost = MarkovAligner::kFarthest;
  return static_cast<std::size_t>(std::clamp(to - from, -kMost, kMost) + kMost);
}

// Which words met, each also with none, and how often: when there are too many, those that met least are forgotten.
// Both directions have the same.
class Meetings {
 public:
  explicit Meetings(std::size_t most) : most_(std::max<std::size_t>(most, 1)) {}

  void add(const WordPair& pair) {
    for (const std::int32_t target : pair.target) {
      add(target, 0);
      for (const std::int32_t source : pair.source) add(target, source);
      targets_ = std::max(targets_, static_cast<std::size_t>(target) + 1);
    }
    for (const std::int32_t source : pair.source) {
      add(0, source);
      sources_ = std::max(sources_, static_cast<std::size_t>(source) + 1);
    }
  }
  std::vector<std::uint64_t> take() {
    count();
    keys_.shrink_to_fit();
    times_ = std::vector<std::uint32_t>();  // {} would keep the memory
    new_ = std::vector<std::uint64_t>();
    return std::move(keys_);
  }
  std::size_t targets() const { return targets_; }
  std::size_t sources() const { return sources_; }

 private:
  static bool of_none(std::uint64_t key) { return key >> 32 == 0 || (key & 0xFFFFFFFF) == 0; }

  void add(std::int32_t target, std::int32_t source) {
    new_.push_back(MarkovAligner::key(target, source));
    if (new_.size() >= most_) count();
  }

  // Takes the new ones over into those that are known, from the last to the first.
  void count() {
    std::sort(new_.begin(), new_.end());
    std::size_t more = 0;
    for (std::size_t i = 0, k = 0; i < new_.size(); ++i) {
      if (i > 0 && new_[i] == new_[i - 1]) continue;
      while (k < keys_.size() && keys_[k] < new_[i]) ++k;
      if (k < keys_.size() && keys_[k] == new_[i]) continue;
      ++more;
      nones_ += of_none(new_[i]) ? 1 : 0;
    }
    std::size_t from = keys_.size(), to = from + more;
    keys_.resize(to);
    times_.resize(to);
    for (std::size_t i = new_.size(); i > 0;) {
      const std::uint64_t key = new_[i - 1];
      std::uint64_t times = 0;
      for (; i > 0 && new_[i - 1] == key; --i) ++times;
      for (; from > 0 && keys_[from - 1] > key; --from) put(--to, keys_[from - 1], times_[from - 1]);
      if (from > 0 && keys_[from - 1] == key) times += times_[--from];
      put(--to, key, times);
    }
    new_.clear();
    if (keys_.size() - nones_ > most_) forget(keys_.size() - nones_ - most_);
  }

  void put(std::size_t at, std::uint64_t key, std::uint64_t times) {
    keys_[at] = key;
    times_[at] = static_cast<std::uint32_t>(std::min<std::uint64_t>(times, 0xFFFFFFFF));
  }

  // Of those that met as often the first go: their words have early numbers, which are frequent, and met others.
  void forget(std::size_t excess) {
    for (std::uint32_t few = 1; excess > 0; ++few) {
      std::size_t kept = 0;
      for (std::size_t i = 0; i < keys_.size(); ++i) {
        if (excess > 0 && times_[i] <= few && !of_none(keys_[i])) {
          --excess;
        } else {
          put(kept++, keys_[i], times_[i]);
        }
      }
      keys_.resize(kept);
      times_.resize(kept);
    }
  }

  std::size_t most_;
  std::vector<std::uint64_t> new_, keys_;  // keys_: sorted, each once
  std::vector<std::uint32_t> times_;       // of keys_
  std::size_t nones_ = 0;                  // among keys_
  std::size_t targets_ = 1, sources_ = 1;  // the greatest number, and one more
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
    : settings_(settings), target_words_(static_cast<double>(target_words)) {
  const auto target_of = [](std::uint64_t key) { return static_cast<std::int32_t>(key & 0xFFFFFFFF); };
  const auto count = std::count_if(met.begin(), met.end(), [&](std::uint64_t key) { return target_of(key) != 0; });
  targets_.reserve(static_cast<std::size_t>(count));
  table_.reserve(static_cast<std::size_t>(count));
  for (const std::uint64_t each : met) {
    if (target_of(each) == 0) continue;
    begins_.resize((each >> 32) + 1, targets_.size());
    targets_.push_back(target_of(each));
  }
  begins_.push_back(targets_.size());
  for (std::size_t word = 0; word + 1 < begins_.size(); ++word) {  // whatever met is as likely
    const std::size_t each = begins_[word + 1] - begins_[word];
    table_.insert(table_.end(), each, 1 / std::max(1.0, static_cast<double>(each)));
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
  if (counts_.empty()) counts_.resize(table_.size());
  const auto add = [&](std::int32_t target, std::int32_t source, double times) {
    const std::size_t at = place(target, source);
    if (at < counts_.size()) counts_[at] += times;  // else it was forgotten that they met
  };
  for (std::size_t j = 0; j < pair.target.size(); ++j) {
    double rest = 1;
    for (std::size_t i = 0; i < sources; ++i) {
      add(pair.target[j], pair.source[i], links[j * sources + i]);
      rest -= own[j * sources + i];
    }
    add(pair.target[j], 0, std::max(0.0, rest));
  }
}

void MarkovAligner::update() {
  counts_.resize(table_.size());
  for (std::size_t word = 0; word + 1 < begins_.size(); ++word) {
    double sum = settings_.smoothing * target_words_;
    for (std::size_t i = begins_[word]; i < begins_[word + 1]; ++i) sum += counts_[i];
    for (std::size_t i = begins_[word]; i < begins_[word + 1]; ++i)
      table_[i] = (counts_[i] + settings_.smoothing) / sum;
  }
  counts_ = std::vector<double>();
}

void MarkovAligner::update(const Jumps& counts) {
  double sum = 0;
  for (const double each : counts) sum += each + 0.5;
  for (std::size_t i = 0; i < counts.size(); ++i) jumps_[i] = (counts[i] + 0.5) / sum;
}

WordAligner WordAligner::learn(const Each& each, const WordAlignerSettings& settings, const Context& context) {
  std::uint64_t read = 0;
  Meetings met(settings.most_met);
  each([&](const WordPair& pair) {
    if (++read % 1024 == 0) stop_if_asked(context);
    met.add(pair);
  });
  WordAligner made = [&] {
    std::vector<std::uint64_t> keys = met.take();
    MarkovAligner forward(keys, met.targets(), settings);
    for (std::uint64_t& key : keys) key = key << 32 | key >> 32;
    std::sort(keys.begin(), keys.end());
    return WordAligner(std::move(forward), MarkovAligner(keys, met.sources(), settings));
  }();
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
