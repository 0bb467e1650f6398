// Does the map matter? The erasure test: the source words that were looked at most are taken away, and the same
// translation is forced again. If its log-probability falls much further than without as many other words, drawn by
// chance, the map shows what the model needs.
//
//     const auto found = erasures(translator, lines, results, choice, {.seed = 1});
//     found[0]->most, found[0]->random                                            // how far it falls, in nats
//
// How much a word was looked at is the sum of its weights over all tokens of the translation, in the map that is
// chosen. What is drawn follows from the seed and the line alone. Of a line with fewer than two words nothing can be
// said.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tasks/alignment.h"
#include "tasks/text_units.h"
#include "tasks/translator.h"
#include "view/trace.h"

namespace regard {

struct ErasureSettings {
  double share = 0.2;      // of the words, at least one
  std::int64_t draws = 5;  // random choices whose mean is taken
  std::uint64_t seed = 1;
  WordCut words = WordCut::kAutomatic;
};

std::int64_t erased_words(std::int64_t words, double share);  // how many: share · words, rounded, 1 … words − 1; or 0

// A line without some of its words, in ascending order; a blank that would stand beside another goes too.
struct ErasedLine {
  std::string text;
  std::vector<Translator::Part> parts;  // the same parts, where they are now
};
ErasedLine erased(std::string_view line, const std::vector<Translator::Part>& parts, const std::vector<TextUnit>& words,
                  std::span<const std::size_t> gone);

// `looked`: where the model looked in each pair.
std::vector<std::optional<TraceErasure>> erasures(const Translator& translator, std::span<const std::string> lines,
                                                  std::span<const Translator::Result> results,
                                                  std::span<const std::shared_ptr<const Translator::Looked>> looked,
                                                  const AlignmentChoice& choice, const ErasureSettings& settings = {},
                                                  std::int64_t batch_tokens = 4096, const Context& context = {});

}  // namespace regard
