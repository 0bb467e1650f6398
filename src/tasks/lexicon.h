// Which words translate which, counted from pairs alone: IBM's Model 1 (Brown et al. 1993), a few rounds of expectation
// and maximisation.
//
//     p(target word t comes from source word s) = p(t | s) / Σ over source words s′, none among them, of p(t | s′)
//
// It knows nothing of order and is no good aligner; it serves as a second opinion that never saw a gold alignment.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer.h"

namespace regard {

struct WordPair {
  std::vector<std::int32_t> source, target;  // numbers of words
};

// Gives words numbers from 1 in the order of their coming; capitals do not matter. 0 is no word.
class WordNumbers {
 public:
  std::int32_t number(std::string_view word);

 private:
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> numbers_;
};

class Lexicon {
 public:
  static Lexicon learn(std::span<const WordPair> pairs, int rounds = 5);
  double probability(std::int32_t target, std::int32_t source) const;  // source 0: of no word
  // The likeliest source word of every target word, the first of equals; −1: none.
  std::vector<std::int32_t> align(const WordPair& pair) const;

 private:
  static std::uint64_t key(std::int32_t target, std::int32_t source) {
    return static_cast<std::uint64_t>(source) << 32 | static_cast<std::uint32_t>(target);
  }
  std::unordered_map<std::uint64_t, double> table_;
};

}  // namespace regard
