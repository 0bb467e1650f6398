// A task that makes its own examples: the source is letters with noise between them, the target the same letters
// without the noise, in reverse order (or in the same). Whoever solves it has to look at one letter after another, so
// it shows in seconds what attention does, and for every letter written it is known where it should have looked.
//
//     source  k # t a . c        target  c a t k
//
// An example is a function of (seed, number). Whether a source belongs to training or to the test is decided by the
// source itself, so no test example is ever trained on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/batch.h"

namespace regard {

struct LettersExample {
  SequencePair pair;
  std::vector<std::int32_t> places;  // where in the source letter i of the target stands
};

struct LettersSettings {
  bool reverse = true;
  std::uint64_t seed = 1;
  std::uint32_t least_letters = 3;
  std::uint32_t most_letters = 10;
  std::uint32_t most_noise = 4;
};

class Letters {
 public:
  static constexpr std::int32_t kBegin = 0, kEnd = 1;
  static constexpr std::uint32_t kLetters = 26, kNoises = 4;
  static constexpr std::int64_t kWords = 2 + kLetters + kNoises;  // of both vocabularies

  explicit Letters(const LettersSettings& settings);

  LettersExample training(std::uint64_t number) const { return draw(number, false); }
  LettersExample test(std::uint64_t number) const { return draw(number, true); }
  std::int64_t longest_source() const { return settings_.most_letters + settings_.most_noise; }

  static std::string text(std::int32_t word);  // "k", "#"
  static std::vector<std::string> labels(std::span<const std::int32_t> words);
  // The words of a text such as "k#ta.c"; a character that the task does not know throws.
  static std::vector<std::int32_t> words(const std::string& text);

 private:
  LettersExample draw(std::uint64_t number, bool test) const;

  LettersSettings settings_;
};

}  // namespace regard
