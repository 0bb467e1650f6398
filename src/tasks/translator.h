// A trained model in use: lines to translations, how likely given ones are, where the model looked.
//
//     const Translator translator("zh-en.model");                                    // several: an ensemble
//     const auto found = translator.translate(lines, {.beam = 5});                  // one a line, in their order
//     const auto looked = translator.look(lines[0], found[0].best[0]);              // every layer and head
//     const auto given = translator.force(pairs);                                   // how likely these targets are
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"
#include "decode/search.h"
#include "models/presets.h"
#include "regard/context.h"

namespace regard {

struct TranslateSettings {
  std::int64_t beam = 5;
  std::int64_t best = 1;  // so many of each line
  double length_penalty = 1;
  std::int64_t longest = 0;       // tokens of a translation; 0: by the source
  std::int64_t longest_line = 0;  // tokens of a line; a longer one is cut at the ends of sentences. 0: as was trained
  std::int64_t batch_tokens = 4096;

  bool sample = false;     // draw `best` translations instead of searching for the likeliest
  std::int64_t top_k = 0;  // 0: of all words
  double top_p = 1;
  double temperature = 1;
  bool beams = false;                     // Translation::beams are wanted
  Keeps keeps = Keeps::kNothing;          // Result::looked is wanted; of a search, what is drawn has none
  std::vector<std::int32_t> prefix = {};  // tokens that every translation begins with
  const WhatIf* what_if = nullptr;        // of one line that is not cut
  std::uint64_t seed = 1;                 // what is drawn follows from this, the line and the number of the sample
};

struct TextPair {
  std::string source, target;
};

class Translator {
 public:
  explicit Translator(const std::string& path, bool int8 = false) : Translator(std::vector{path}, int8) {}
  // Several, with the same tokenizers, translate together. int8: computes with weights of 8 bits whatever the files
  // have, as if `regard quantize` had made them; a file of such weights is always used so.
  explicit Translator(const std::vector<std::string>& paths, bool int8 = false);
  ~Translator();
  Translator(Translator&&) noexcept;
  Translator& operator=(Translator&&) noexcept;

  struct Looked;
  struct Part {                      // of a line that was cut; of others it is the whole
    std::size_t begin = 0, end = 0;  // bytes of the line
    std::size_t tokens = 0;          // of the result
  };
  struct Result {
    std::string text;
    std::vector<Token> tokens;   // of the target's tokenizer, and where in the text each stands
    double log_probability = 0;  // of the tokens and the ends
    double score = 0;            // the same over (tokens + 1)^length penalty, of parts the sum
    std::vector<Part> parts = {};
    std::vector<float> each = {};               // of force: the logarithm for every token and the end
    std::shared_ptr<const Looked> looked = {};  // what the search kept
  };
  struct Translation {
    std::vector<Result> best;             // best first
    std::vector<SearchSteps> beams = {};  // of each part what the search wrote, if it was asked for
  };
  using Settings = TranslateSettings;
  std::vector<Translation> translate(std::span<const std::string> lines, const Settings& settings = {},
                                     const Context& context = {}) const;

  // The targets that are given, as if they had been found.
  std::vector<Result> force(std::span<const TextPair> pairs, const Settings& settings = {},
                            const Context& context = {}) const;

  struct Looked {
    std::vector<Token> source, target;  // tokens of the texts, without the ends
    Tensor weights;                     // [layers, heads, target + end, source + end]; layers: 0 without attention
    // If they were asked for, and of models that have it. Of a line that was cut, no part looks at another, all share
    // one end and one begin, and the norm of these is that of the part that ends or begins the line.
    Tensor norms = {};           // of weights: [layers, heads, source + end]
    HeadMaps encoder = {};       // [layers, heads, source + end, source + end]
    HeadMaps decoder = {};       // [layers, heads, begin + target, begin + target]: by what was read before each step
    Keeps has = Keeps::kSource;  // of all this; a model without such looks has none
  };
  // How it came to this result of this line: what the search kept, or else what the model does if it is told the
  // result. Asking changes nothing, and both are the same bits.
  Looked look(std::string_view line, const Result& result) const;
  std::vector<Looked> look(std::span<const std::string> lines, std::span<const Result> results,
                           std::int64_t batch_tokens = 4096, const Context& context = {}) const;
  // The same, and at least as much more of it as is asked for: looks at themselves (of several models the first one's),
  // norms.
  std::vector<std::shared_ptr<const Looked>> look(std::span<const std::string> lines, std::span<const Result> results,
                                                  Keeps asked, std::int64_t batch_tokens = 4096,
                                                  const Context& context = {}) const;

  // How likely the tokens of each result are behind its line: the logarithm. The line may be another than the result's
  // own, if its parts fit.
  std::vector<double> log_probabilities(std::span<const std::string> lines, std::span<const Result> results,
                                        std::int64_t batch_tokens = 4096, const Context& context = {}) const;

  std::int64_t longest_line() const;  // tokens of a line that is not cut if nothing else is said
  // Tokens, ends not counted, of the longest pair that it has room for, if that is less than `most`.
  Room room(std::int64_t most = kEndless) const;

  const ModelSettings& model_settings() const;  // of the first model, if there are several
  const std::string& config() const;            // of its file: a JSON object
  const SequenceModel& model() const;           // as long as this lives
  AttentionShape attention_shape() const;
  const Tokenizer& source() const;
  const Tokenizer& target() const;

 private:
  struct Impl;
  struct LineParts;
  // `encoded`: the tokens of the line, if they are known.
  LineParts parts_of(std::string_view line, const Result& result, const std::vector<Token>* encoded = nullptr) const;
  void add_pairs(const LineParts& parts, const Result& result, std::vector<SequencePair>& pairs) const;
  Looked put_together(LineParts parts, const Result& result, std::span<const EveryMap> maps, Keeps has) const;
  std::unique_ptr<Impl> impl_;
};

// What is shown of tokens: their pieces, and the end's.
std::vector<std::string> labels_of(const Tokenizer& tokenizer, std::span<const Token> tokens);

}  // namespace regard
