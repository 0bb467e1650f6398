// Corpus BLEU (Papineni et al. 2002) as sacreBLEU computes it (Post 2018), so that the numbers can be compared with
// those of papers: its tokenisers, the brevity penalty, n-grams up to four words, exponential smoothing.
//
//     Bleu bleu({.tokenizer = BleuTokenizer::k13a});
//     bleu.add("The cat sat.", "The cat sits.");                 // what was written, what is right
//     fmt::print("{}\n", bleu.score().text(bleu.signature()));   // BLEU|nrefs:1|… = 47.29 …
//
//     BLEU = BP · exp( ¼ Σ log p_n )        BP = exp( min(0, 1 − r/c) )
//
// p_n: the share of the n-grams written that a reference has, each at most as often as there; c, r: words written and
// right. An order without a match counts as ½, ¼, … of a match, the first, the second such order and so on.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/grams.h"

namespace regard {

enum class BleuTokenizer : std::uint8_t {
  k13a,            // mteval-v13a: languages that have blanks
  kChinese,        // zh: every Chinese character is a word, the rest as 13a
  kCharacters,     // char
  kInternational,  // intl, mteval-v14: by Unicode's classes of punctuation and symbols
  kNone,           // none: split at blanks; for text that is tokenised already
};
BleuTokenizer bleu_tokenizer(std::string_view name);  // 13a, zh, char, intl, none
std::string_view to_text(BleuTokenizer tokenizer);

struct BleuSettings {
  BleuTokenizer tokenizer = BleuTokenizer::k13a;
  bool lowercase = false;
};

struct BleuScore {
  static constexpr std::size_t kOrders = 4;
  double score = 0;                          // 0 … 100
  std::array<double, kOrders> precisions{};  // in percent, smoothed
  std::array<std::int64_t, kOrders> correct{}, total{};
  double brevity = 1;
  std::int64_t hypothesis_words = 0, reference_words = 0;

  // "BLEU|signature = 45.18 66.7/50.0/… (BP = 1.000 ratio = 1.000 hyp_len = 12 ref_len = 12)"
  std::string text(std::string_view signature) const;
};

class Bleu {
 public:
  explicit Bleu(const BleuSettings& settings = {}) : settings_(settings) {}
  void add(std::string_view hypothesis, std::string_view reference) { add(hypothesis, std::span(&reference, 1)); }
  void add(std::string_view hypothesis, std::span<const std::string_view> references);  // one or more
  BleuScore score() const;
  std::string signature() const;  // "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:regard-0.1.0"

 private:
  BleuSettings settings_;
  std::array<std::int64_t, BleuScore::kOrders> correct_{}, total_{};
  std::int64_t hypothesis_words_ = 0, reference_words_ = 0;
  ReferenceCount references_;
};

// The words that are counted.
std::vector<std::string> bleu_words(std::string_view text, const BleuSettings& settings);

}  // namespace regard
