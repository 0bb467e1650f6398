// How likely a model finds translations that are given: one line a pair, in order, in memory that does not grow.
//
//     PairReader pairs({.source = "a.zh", .target = "a.en"});
//     const ScoringReport report = score_pairs(translator, pairs, {.normalize = true}, write, context);
//
// A pair that cannot be scored (a side is empty, no UTF-8 or too long) has the line "nan", so that lines stay beside
// their pairs; the report says which and why.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "data/lines.h"
#include "tasks/translator.h"

namespace regard {

struct ScoringSettings {
  bool normalize = false;       // the mean of the tokens and the end instead of their sum
  bool per_token = false;       // " ||| " and each token with its own: "▁They:-0.0312 ▁are:-0.0120 </s>:-0.0001"
  std::int64_t longest = 1024;  // tokens of a side
  std::size_t together = 512;   // pairs that are sorted by length and scored together
};

struct ScoringReport {
  std::uint64_t pairs = 0, scored = 0;
  std::string left_out = {};  // a line a reason; "": nothing
};

// `write` gets line after line, without their ends. Logarithms are natural.
ScoringReport score_pairs(const Translator& translator, PairReader& pairs, const ScoringSettings& settings,
                          const std::function<void(std::string_view)>& write, const Context& context = {});

}  // namespace regard
