// chrF (Popović 2015) and chrF++ (Popović 2017) of a corpus as sacreBLEU computes them: how many runs of characters
// (and of words) a translation has in common with what is right. It asks for no cutting into words, so it also fits
// Chinese.
//
//     Chrf chrf;                                                    // {.word_order = 2}: chrF++
//     chrf.add("The cat sat.", "The cat sits.");                    // what was written, what is right
//     fmt::print("{}\n", chrf.score().text(chrf.signature()));      // chrF2|nrefs:1|… = 58.25
//
//     chrF = (1 + β²) P·R / (β² P + R)        β = 2: recall counts twice as much
//
// P, R: the means, over the orders that both sides are long enough for, of the share of the runs written that the
// reference has and of the share of its runs that were written. Blanks do not count. Of several references each
// sentence takes the one it fits best.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "decode/grams.h"

namespace regard {

struct ChrfSettings {
  std::int64_t word_order = 0;  // 0: chrF; 1, 2: so many words too; 2 is called chrF++
  bool lowercase = false;
};

struct ChrfScore {
  double score = 0;                                    // 0 … 100
  std::string name;                                    // chrF2, chrF2++
  std::string text(std::string_view signature) const;  // "chrF2|signature = 58.25"
};

class Chrf {
 public:
  static constexpr std::size_t kCharacters = 6, kMostWords = 2;  // the longest runs
  static constexpr double kBeta = 2;

  explicit Chrf(const ChrfSettings& settings = {});
  void add(std::string_view hypothesis, std::string_view reference) { add(hypothesis, std::span(&reference, 1)); }
  void add(std::string_view hypothesis, std::span<const std::string_view> references);  // one or more
  ChrfScore score() const;
  std::string signature() const;  // "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:regard-0.1.0"

  // Of one order: runs written, runs that are right, runs that are both. Characters first, then words.
  struct Matches {
    std::int64_t written = 0, right = 0, both = 0;
  };
  using Counts = std::array<Matches, kCharacters + kMostWords>;

 private:
  ChrfSettings settings_;
  Counts counts_ = {};
  ReferenceCount references_;
};

}  // namespace regard
