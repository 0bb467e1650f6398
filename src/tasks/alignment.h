// Which words of a translation come from which words of its source, read from where the model looked.
//
//     AlignmentSettings settings = alignment_settings("hard");                 // or "soft", "spans", "0.3"
//     alignment_text(translator, line, translation.best[0], settings)         // "0-0 1-2 2-1"
//
// Of all layers and heads one map is taken, AlignmentChoice. Its weights [steps, source tokens] become those of units
// (words, characters or pieces; tasks/text_units.h) by the bytes that tokens and units share: summed over the source
// tokens of a unit, averaged over its target tokens. What falls on the end of the source, or on tokens that stand for
// no text, belongs to no unit and is left out; so rows of units may sum to less than one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/sequence_model.h"
#include "tasks/links.h"
#include "tasks/text_units.h"
#include "tasks/translator.h"

namespace regard {

class JsonWriter;

// Whose weights. `shift` 0: those of the step that writes a token; 1: of the step after it, which was told the token.
struct AlignmentChoice {
  std::int64_t layer = 0;
  std::int64_t head = -1;  // −1: the mean of all heads
  std::int64_t shift = 0;
  friend bool operator==(const AlignmentChoice&, const AlignmentChoice&) = default;
};
std::string to_text(const AlignmentChoice& choice);  // "layer 2, head 3, shift 1"

// What a model without a choice of its own gets: the mean of all heads of the last layer, of the step that writes the
// token. Of the choices that need no look at data it aligned best (docs/alignment.md).
AlignmentChoice usual_choice(const AttentionShape& shape);
// What the model file says (config, "alignment"), else the usual. Throws if the model has no attention.
AlignmentChoice choice_of(const Translator& translator);
// Every layer, head and mean of heads, with both shifts.
std::vector<AlignmentChoice> all_choices(const AttentionShape& shape);
void write_choice(JsonWriter& config, const AlignmentChoice& choice);  // as a key of the object that is open
// Writes it into the model file: as a whole or not at all, weights untouched.
void store_choice(const std::string& path, const AlignmentChoice& choice);

enum class AlignmentKind : std::uint8_t {
  kHard,       // "0-0 1-2": each target unit to the source unit with the greatest weight
  kSpans,      // "0:2-0:4 2:3-5:8": the same, as characters of both texts, the last one excluded
  kThreshold,  // "0-0 1-2": all links with a weight of at least so much
  kSoft,       // "0.9,0.1 0.2,0.8": a group a target unit, a weight a source unit in it
};
enum class AlignmentLevel : std::uint8_t { kWord, kCharacter, kPiece };
AlignmentLevel alignment_level(std::string_view name);  // "word", "character", "piece"

struct AlignmentSettings {
  AlignmentKind kind = AlignmentKind::kHard;
  double threshold = 0;  // of kThreshold
  AlignmentLevel level = AlignmentLevel::kWord;
  WordCut words = WordCut::kAutomatic;
  std::optional<std::int64_t> layer = {}, head = {}, shift = {};  // instead of what the model says
};
AlignmentSettings alignment_settings(std::string_view kind);  // "hard", "soft", "spans", or a number above 0 up to 1

std::string alignment_text(const Translator& translator, std::string_view line, const Translator::Result& result,
                           const AlignmentSettings& settings);
std::vector<std::string> alignment_texts(const Translator& translator, std::span<const std::string> lines,
                                         std::span<const Translator::Result> results, const AlignmentSettings& settings,
                                         std::int64_t batch_tokens = 4096, const Context& context = {});

// The parts of it, for those who want numbers instead of text.

// The choice in force; throws if the model has no such layer or head.
AlignmentChoice choice_of(const Translator& translator, const AlignmentSettings& settings);

struct PairUnits {
  std::vector<TextUnit> source, target;
};
PairUnits units_of(const Translator& translator, const TextPair& texts, const Translator::Looked& looked,
                   AlignmentLevel level, WordCut words);

struct UnitWeights {
  std::size_t targets = 0, sources = 0;
  std::vector<double> weights;  // [targets, sources]
  std::vector<double> end;      // [targets], what fell on the end
  double at(std::size_t target, std::size_t source) const { return weights[target * sources + source]; }
};
// Units that are the tokens themselves are taken one to one, also those that stand for no text.
UnitWeights unit_weights(const Translator::Looked& looked, const PairUnits& units, const AlignmentChoice& choice);

UnitWeights turned(const UnitWeights& weights);  // [sources, targets]; the end is gone
// Weights on which both directions agree: the harmonic mean 2·f·b / (f + b) of forward [targets, sources] and backward
// [sources, targets]. It is large only where both are.
UnitWeights agreed(const UnitWeights& forward, const UnitWeights& backward);

constexpr double kLeastAgreed = 0.05;  // less than that is noise: a word that has nothing to agree on stays alone

// All kinds but kSoft are links. `least`: hard ones have at least this weight.
Links links_of(const UnitWeights& weights, const AlignmentSettings& settings, double least = 0);
std::string alignment_text(const Translator::Looked& looked, const PairUnits& units, const TextPair& texts,
                           const AlignmentSettings& settings, const AlignmentChoice& choice);

// A target unit without any weight, or with less than `least`, has no link; of equal weights the first counts.
Links hard_links(const UnitWeights& weights, double least = 0);
Links links_above(const UnitWeights& weights, double threshold);  // never those of weight 0
std::string soft_text(const UnitWeights& weights);
std::string span_text(const Links& links, const PairUnits& units, const TextPair& texts);

}  // namespace regard
