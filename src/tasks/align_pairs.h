// Aligns pairs that are given, with one model or with one of each direction; and finds out which layer and head of a
// model aligns best, without ever being told a right alignment.
//
//     const PairAligner aligner(zh_en, &en_zh, {.alignment = alignment_settings("hard")});
//     for (const auto& each : aligner.align(pairs)) … each.text …                         // "0-0 1-2 2-1"
//     const HeadChoice chosen = choose_heads(zh_en, &en_zh, pairs, {});
//     store_choice("zh-en.model", chosen.forward.front().choice);
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tasks/alignment.h"

namespace regard {

struct AlignPairsSettings {
  AlignmentSettings alignment = {};
  // Of two directions. Links are drawn from the weights on which both agree, of each target unit to a source unit and
  // of each source unit to a target unit, then symmetrised; or by each model from its own weights.
  Symmetry symmetry = Symmetry::kGrowDiagFinalAnd;
  bool separate = false;
  std::int64_t batch_tokens = 4096;
  bool join = false;  // texts were cut with blanks, and the models are to read them as they are written (text_units.h)
  std::int64_t longest = 1000;  // tokens of a side; pairs with more are not aligned
};

// Both models have to outlive it.
class PairAligner {
 public:
  // `backward` reads what `forward` writes; null: there is none.
  PairAligner(const Translator& forward, const Translator* backward, const AlignPairsSettings& settings);
  struct Aligned {
    std::string text;
    bool too_long = false;  // then there is no text
  };
  std::vector<Aligned> align(std::span<const TextPair> pairs, const Context& context = {}) const;

 private:
  const Translator& forward_;
  const Translator* backward_;
  AlignPairsSettings settings_;
  AlignmentChoice forward_choice_, backward_choice_;
};

struct ScoredChoice {
  AlignmentChoice choice;
  double agreement = 0;  // 0 … 1
};
struct HeadChoice {
  std::vector<ScoredChoice> forward, backward;  // every candidate, best first; of equals the one listed first
};
// Two models: for every layer, head and shift of one the best agreement that it reaches with one of the other, as F1 of
// their links over all pairs, 2·|A∩B| / (|A| + |B|).
// One model: agreement with what two models of words (tasks/word_aligner.h), one of each direction, learned from the
// same pairs and both say.
HeadChoice choose_heads(const Translator& forward, const Translator* backward, std::span<const TextPair> pairs,
                        const AlignPairsSettings& settings, const Context& context = {});

}  // namespace regard
