// Two hidden Markov models that learn which words belong together.
#include "tasks/word_aligner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <stop_token>
#include <utility>
#include <vector>

#include "regard/error.h"
#include "regard/random.h"

namespace regard {
namespace {

struct Speaker {
  WordNumbers numbers;
  WordPair operator()(const std::vector<const char*>& source, const std::vector<const char*>& target) {
    WordPair made;
    for (const char* each : source) made.source.push_back(numbers.number(each));
    for (const char* each : target) made.target.push_back(numbers.number(each));
    return made;
  }
};

using List = std::vector<std::int32_t>;

TEST(WordAligner, FindsWhatAlwaysComesTogether) {
  Speaker pair;
  EXPECT_EQ(pair.numbers.number("Haus"), pair.numbers.number("haus"));
  const std::vector<WordPair> pairs = {pair({"das", "haus"}, {"the", "house"}), pair({"das", "buch"}, {"the", "book"}),
                                       pair({"ein", "buch"}, {"a", "book"}), pair({}, {"a"}), pair({"das"}, {})};
  const WordAligner aligner = WordAligner::learn(pairs);
  EXPECT_EQ(aligner.agreed(pairs[0]), (List{0, 1}));
  EXPECT_EQ(aligner.agreed(pairs[2]), (List{0, 1}));
  EXPECT_EQ(aligner.agreed(pair({"ein", "haus"}, {"a", "house", "new"})), (List{0, 1}));
  EXPECT_TRUE(aligner.agreed(pairs[3]).empty());
  EXPECT_EQ(aligner.agreed(pairs[4]), (List{-1}));
}

// Words of one language in the order of the other turned round; one of them has no counterpart.
TEST(WordAligner, LearnsOrderAndWhatHasNoCounterpart) {
  std::vector<WordPair> pairs;
  for (std::uint64_t n = 0; n < 300; ++n) {
    WordPair pair;
    const std::uint64_t length = 2 + random_below(RandomKey(1), n, 6);
    for (std::uint64_t i = 0; i < length; ++i) {
      pair.source.push_back(static_cast<std::int32_t>(1 + random_below(RandomKey(2).at(n), i, 40)));
    }
    for (std::uint64_t i = length; i-- > 0;) {
      pair.target.push_back(100 + pair.source[i]);
      if (i % 2 == 0) pair.target.push_back(99);  // belongs to nothing
    }
    pairs.push_back(pair);
  }
  const WordAligner aligner = WordAligner::learn(pairs);
  int right = 0, all = 0;
  for (const WordPair& pair : pairs) {
    const List found = aligner.agreed(pair);
    for (std::size_t s = 0; s < found.size(); ++s) {
      ++all;
      right += found[s] >= 0 && pair.target[static_cast<std::size_t>(found[s])] == 100 + pair.source[s] ? 1 : 0;
    }
  }
  EXPECT_GT(right, 0.95 * all) << right << " of " << all;
}

// Two languages whose words belong together, between words that met by chance.
std::vector<WordPair> pairs_with_chance(std::uint64_t count) {
  std::vector<WordPair> pairs;
  for (std::uint64_t n = 0; n < count; ++n) {
    WordPair pair;
    for (std::uint64_t i = 0; i < 4; ++i) {
      const auto word = static_cast<std::int32_t>(1 + random_below(RandomKey(3).at(n), i, 20));
      pair.source.push_back(word);
      pair.target.push_back(word);
      pair.source.push_back(static_cast<std::int32_t>(100 + random_below(RandomKey(4).at(n), i, 2000)));
      pair.target.push_back(static_cast<std::int32_t>(100 + random_below(RandomKey(5).at(n), i, 3000)));
    }
    pairs.push_back(pair);
  }
  return pairs;
}

TEST(WordAligner, HasTheSameBitsHoweverMuchMoreItMightRemember) {
  const std::vector<WordPair> pairs = pairs_with_chance(200);
  std::set<std::pair<std::int32_t, std::int32_t>> met;
  for (const WordPair& pair : pairs) {
    for (const std::int32_t target : pair.target) {
      for (const std::int32_t source : pair.source) met.emplace(target, source);
    }
  }
  const WordAligner usual = WordAligner::learn(pairs), just = WordAligner::learn(pairs, {.most_met = met.size()});
  for (const WordPair& pair : pairs) {
    EXPECT_EQ(usual.align(pair).forward, just.align(pair).forward);
    EXPECT_EQ(usual.align(pair).backward, just.align(pair).backward);
  }
}

TEST(WordAligner, OfTooManyPairsOfWordsTheRarestAreForgotten) {
  const std::vector<WordPair> pairs = pairs_with_chance(2000);  // some 120,000 pairs of words
  const WordAligner aligner = WordAligner::learn(pairs, {.most_met = 3000});
  std::size_t known = 0;
  for (std::int32_t target = 0; target < 3100; ++target) {
    for (std::int32_t source = 1; source < 2100; ++source) {
      known += aligner.forward().probability(target, source) > 0 ? 1 : 0;
      if (target > 0) known += aligner.backward().probability(source, target) > 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(known, 2u * 3000);
  std::size_t right = 0, all = 0;
  for (const WordPair& pair : pairs) {
    const List found = aligner.agreed(pair);
    for (std::size_t s = 0; s < found.size(); ++s) {
      if (pair.source[s] > 20) continue;
      ++all;
      right += found[s] >= 0 && pair.target[static_cast<std::size_t>(found[s])] == pair.source[s] ? 1 : 0;
    }
  }
  EXPECT_GT(static_cast<double>(right), 0.9 * static_cast<double>(all)) << right << " of " << all;
}

TEST(WordAligner, StopsWhenAskedFromTheFirstReadingOn) {
  const std::vector<WordPair> pairs(1500, WordPair{.source = {1}, .target = {1}});
  std::stop_source stop;
  stop.request_stop();
  int readings = 0;
  const auto learn = [&] {
    WordAligner::learn(
        [&](const std::function<void(const WordPair&)>& use) {
          ++readings;
          for (const WordPair& pair : pairs) use(pair);
        },
        {}, {.cancel = stop.get_token()});
  };
  EXPECT_THROW(learn(), Error);
  EXPECT_EQ(readings, 1);
}

// Every path through the source words and none, one by one.
TEST(MarkovAligner, WeightsAreThoseOfAllPathsTogether) {
  const WordAlignerSettings settings;
  const WordPair pair{.source = {1, 2, 1}, .target = {1, 3, 2, 1}};
  std::vector<WordPair> pairs = {pair, {.source = {1, 2}, .target = {1, 2}}, {.source = {2, 1}, .target = {3, 1}}};
  const WordAligner aligner = WordAligner::learn(pairs, settings);
  const MarkovAligner& model = aligner.forward();
  const std::size_t sources = pair.source.size(), targets = pair.target.size(), states = 2 * sources;
  const auto all = static_cast<double>(sources);
  MarkovAligner::Jumps counts{};
  const std::vector<double> found = model.weights(pair, true, &counts);
  std::vector<double> expected(targets * sources, 0), jumped(counts.size(), 0);
  double total = 0;
  std::size_t paths = 1;
  for (std::size_t t = 0; t < targets; ++t) paths *= states;
  const auto jump = [&](std::int64_t from, std::int64_t to) {
    return static_cast<std::size_t>(to - from + MarkovAligner::kFarthest);
  };
  const auto step = [&](std::int64_t from, std::size_t to, double anywhere) {
    double sum = 0;
    for (std::size_t i = 0; i < sources; ++i) sum += model.jumps()[jump(from, static_cast<std::int64_t>(i))];
    return (1 - settings.none) *
           ((1 - anywhere) * model.jumps()[jump(from, static_cast<std::int64_t>(to))] / sum + anywhere / all);
  };
  for (int pass = 0; pass < 2; ++pass) {  // how likely all are, then what each has to say
    for (std::size_t path = 0; path < paths; ++path) {
      double p = 1;
      std::vector<std::size_t> way;
      for (std::size_t t = 0, rest = path; t < targets; ++t, rest /= states) way.push_back(rest % states);
      for (std::size_t t = 0; t < targets; ++t) {
        const std::size_t now = way[t], place = now % sources;
        if (now < sources) {
          p *= t == 0 ? step(-1, place, 0) : step(static_cast<std::int64_t>(way[t - 1] % sources), place, 0.1);
          p *= model.probability(pair.target[t], pair.source[place]);
        } else {
          p *= t == 0 ? settings.none / all : way[t - 1] % sources == place ? settings.none : 0;
          p *= model.probability(pair.target[t], 0);
        }
      }
      const std::size_t last = way.back() % sources;
      p *= 0.9 * model.jumps()[jump(static_cast<std::int64_t>(last), static_cast<std::int64_t>(sources))] +
           0.1 / (all + 1);
      if (pass == 0) {
        total += p;
        continue;
      }
      for (std::size_t t = 0; t < targets; ++t) {
        if (way[t] >= sources) continue;
        expected[t * sources + way[t]] += p / total;
        const std::int64_t from = t == 0 ? -1 : static_cast<std::int64_t>(way[t - 1] % sources);
        jumped[jump(from, static_cast<std::int64_t>(way[t]))] += p / total;
      }
    }
  }
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << i;
  for (std::size_t i = 0; i < jumped.size(); ++i) EXPECT_NEAR(counts[i], jumped[i], 1e-12) << i;
}

TEST(MarkovAligner, AWordThatItDoesNotKnowHasPlacesByItsNeighbours) {
  std::vector<WordPair> pairs;
  for (std::int32_t i = 0; i < 20; ++i) pairs.push_back({.source = {1, 2, 3}, .target = {1, 2, 3}});
  for (std::int32_t i = 1; i <= 3; ++i) pairs.push_back({.source = {i}, .target = {i}});
  const WordAligner aligner = WordAligner::learn(pairs);
  const std::vector<double> weights = aligner.forward().weights({.source = {1, 9, 3}, .target = {1, 8, 3}}, true);
  EXPECT_GT(weights[4], weights[3]);
  EXPECT_GT(weights[4], weights[5]);
  for (std::size_t t = 0; t < 3; ++t) {
    const double sum = weights[3 * t] + weights[3 * t + 1] + weights[3 * t + 2];
    EXPECT_TRUE(sum > 0 && sum <= 1 + 1e-12) << sum;
  }
}

}  // namespace
}  // namespace regard
