// How good translations are: BLEU, chrF, exact matches, and by the length of the source; of a model also its loss.
//
//     const TestSet set = read_test_set({.source = "test.zh", .target = "test.en"});
//     const TranslationScores result = evaluate(translator, set, {.search = {.beam = 5}}, context);
//     fmt::print("{}", to_text(result));
//
// Lengths are counted in words as BLEU's tokenizer zh cuts them: a Chinese character is a word, so are punctuation
// marks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/lines.h"
#include "decode/bleu.h"
#include "decode/chrf.h"
#include "tasks/translator.h"

namespace regard {

struct TestSet {
  std::vector<std::string> sources, references;
  std::vector<std::uint64_t> lines;  // where in its files each pair stands, from 1
  std::uint64_t read = 0;            // lines of the files, with those left out
  std::string left_out = {};         // what is missing and why, a line each; "": nothing
};

TestSet read_test_set(const PairFiles& files, const Context& context = {});
// Sentences of the built-in corpus that no training ever sees.
TestSet builtin_test_set(const std::string& pair, std::int64_t sentences, std::uint64_t seed = 1,
                         const Context& context = {});
// Translations that somebody else made, a line each, of the same number of lines as the files of the set.
std::vector<std::string> read_hypotheses(const std::string& path, const TestSet& set);

struct EvaluationSettings {
  TranslateSettings search = {};
  std::string bleu = "";  // 13a, zh, char, intl, none; "": by the references
  bool lowercase = false;
  std::span<const std::int64_t> lengths = {};  // of every sentence, if not the words of its source
  std::int64_t class_width = 10;               // words of the source
  std::int64_t most_classes = 11;              // the last has no end
};

struct LengthClass {
  std::int64_t least = 0, most = 0;  // words; most 0: no end
  std::int64_t sentences = 0, exact = 0;
  double bleu = 0, chrf = 0;
  std::optional<double> loss = {};
};
std::string to_text(const LengthClass& range);  // "11–20", "101…"

struct TranslationScores {
  std::int64_t sentences = 0, exact = 0;
  BleuScore bleu = {};
  ChrfScore chrf = {}, chrf_words = {};  // chrF and chrF++
  std::string bleu_signature = {}, chrf_signature = {}, chrf_words_signature = {};
  std::optional<double> loss = {};        // of the references, per token with the end; natural logarithm, no smoothing
  std::int64_t tokens = 0;                // that it is a mean of
  std::vector<LengthClass> classes = {};  // those with a sentence, in order

  std::optional<double> perplexity() const;
};

// "zh" if most of the text is Chinese, else "13a".
std::string usual_bleu(std::span<const std::string> references);

// What was written for each source; forced: how likely the model finds the references, if there is one.
TranslationScores evaluate(const TestSet& set, std::span<const std::string> written,
                           const EvaluationSettings& settings = {}, std::span<const Translator::Result> forced = {});
// Translates and scores. `written`, if it is not null, gets the translations, `found` all that the translator gave.
TranslationScores evaluate(const Translator& translator, const TestSet& set, const EvaluationSettings& settings = {},
                           const Context& context = {}, std::vector<std::string>* written = nullptr,
                           std::vector<Translator::Translation>* found = nullptr);
std::vector<Translator::Result> force_references(const Translator& translator, const TestSet& set,
                                                 const Context& context = {});

std::string to_text(const TranslationScores& result);  // for a terminal
std::string to_json(const TranslationScores& result);
std::string to_svg(const TranslationScores& result, const std::string& title);  // BLEU and chrF by length

}  // namespace regard
