// Which words of pairs belong together, learned from the pairs alone: two hidden Markov models (Vogel et al. 1996), one
// of each direction, that learn what both of them say (Liang et al. 2006).
//
//     const WordAligner aligner = WordAligner::learn(pairs);
//     aligner.align(pair).forward                       // [target words, source words]
//
// Target words come one after another from source words: from which depends on how far it is from the source word
// before (a table of jumps), what they are on the source word alone (a table of words); or from no word at all,
//
//     p(a_j = i | a_{j−1} = k) = (1 − p₀)·((1 − u)·jump(i − k) / Σ_{i′} jump(i′ − k) + u / sources)
//
// with a small part u for jumps of any length, which long sentences need and short ones do not teach. Both tables are
// found by expectation and maximisation, the words' first without regard to order (IBM's Model 1, Brown et al. 1993).
// What is counted is the product of what both directions say, so that words which merely happen to be near each other
// get no link. No gold alignment is ever seen, and no model: it is a second opinion (regard heads) and a teacher
// (regard train --guide).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer.h"
#include "regard/context.h"

namespace regard {

struct WordPair {
  std::vector<std::int32_t> source, target;  // numbers of words, from 1
};
WordPair turned(const WordPair& pair);

// Gives words numbers from 1 in the order of their coming; capitals do not matter. 0 is no word.
class WordNumbers {
 public:
  std::int32_t number(std::string_view word);

 private:
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> numbers_;
};

struct WordAlignerSettings {
  int word_rounds = 3;      // of expectation and maximisation, without order
  int order_rounds = 6;     // and with it
  double none = 0.2;        // p₀
  double anywhere = 0.1;    // u
  double smoothing = 3e-4;  // what every word that met a word is counted beforehand
  // Pairs of words that met which are remembered, in 40 bytes each; of more the rarest are forgotten.
  std::size_t most_met = std::size_t{1} << 22;
};

// One direction: a target given its source.
class MarkovAligner {
 public:
  using Weights = std::vector<double>;  // [target words, source words]: how likely a comes from b; the rest from none
  static constexpr std::int32_t kFarthest = 20;  // jumps that are longer count as this long

  // Of words that met, each once: key(target, source), sorted. Those of target 0 are for the other direction.
  MarkovAligner(std::span<const std::uint64_t> met, std::size_t target_words, const WordAlignerSettings& settings);
  static std::uint64_t key(std::int32_t target, std::int32_t source) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(source)) << 32 | static_cast<std::uint32_t>(target);
  }

  // `ordered`: with the table of jumps. It adds to the counts of jumps, if there are any.
  using Jumps = std::array<double, 2 * kFarthest + 1>;
  Weights weights(const WordPair& pair, bool ordered, Jumps* counts = nullptr) const;

  // Expected links of a pair; of every target word also that it comes from none.
  void count(const WordPair& pair, const Weights& links, const Weights& own);
  void update();  // of words, from what was counted
  void update(const Jumps& counts);
  double probability(std::int32_t target, std::int32_t source) const;  // source 0: of no word
  const Jumps& jumps() const { return jumps_; }

 private:
  std::size_t place(std::int32_t target, std::int32_t source) const;  // among those that met; their number: never
  Weights by_words(const WordPair& pair) const;
  Weights by_order(const WordPair& pair, Jumps* counts) const;

  WordAlignerSettings settings_;
  double target_words_;
  std::vector<std::size_t> begins_;     // of every source word, and of one more: where its target words begin
  std::vector<std::int32_t> targets_;   // that met it, in ascending order
  std::vector<double> table_, counts_;  // counts_: while learning
  Jumps jumps_;
};

class WordAligner {
 public:
  // Calls a function with every pair, always the same in the same order.
  using Each = std::function<void(const std::function<void(const WordPair&)>&)>;
  static WordAligner learn(const Each& each, const WordAlignerSettings& settings = {}, const Context& context = {});
  static WordAligner learn(std::span<const WordPair> pairs, const WordAlignerSettings& settings = {});

  struct Aligned {
    std::vector<double> forward;   // [target words, source words]: where a target word comes from; sums to at most one
    std::vector<double> backward;  // [source words, target words]
  };
  Aligned align(const WordPair& pair) const;
  // Where both see the same: of every source word the target word that each names as the likeliest for the other, and
  // likelier than none; −1: there is none.
  std::vector<std::int32_t> agreed(const WordPair& pair) const;

  const MarkovAligner& forward() const { return forward_; }
  const MarkovAligner& backward() const { return backward_; }

 private:
  WordAligner(MarkovAligner forward, MarkovAligner backward)
      : forward_(std::move(forward)), backward_(std::move(backward)) {}
  MarkovAligner forward_, backward_;
};

}  // namespace regard
