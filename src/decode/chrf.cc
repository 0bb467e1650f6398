#include "decode/chrf.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "data/unicode.h"
#include "regard/version.h"

namespace regard {
namespace {

using Words = std::vector<std::u32string>;

bool is_mark(char32_t c) {  // punctuation of ASCII
  return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) || (c >= 0x7B && c <= 0x7E);
}

// A mark at the end of a word is a word of its own; one at its beginning too, if there is none at the end.
Words words_of(std::u32string_view text) {
  Words out;
  for (std::u32string& word : split_at_blanks(text)) {
    if (word.size() > 1 && is_mark(word.back())) {
      out.push_back(word.substr(0, word.size() - 1));
      out.push_back(word.substr(word.size() - 1));
    } else if (word.size() > 1 && is_mark(word.front())) {
      out.push_back(word.substr(0, 1));
      out.push_back(word.substr(1));
    } else {
      out.push_back(std::move(word));
    }
  }
  return out;
}

std::vector<std::int32_t> characters_of(std::u32string_view text) {
  std::vector<std::int32_t> out;
  for (const char32_t c : text) {
    if (!is_blank(c)) out.push_back(static_cast<std::int32_t>(c));
  }
  return out;
}

template <std::size_t kMost>
void count(const GramCounts<kMost>& written, const GramCounts<kMost>& right, Chrf::Matches* orders) {
  for (const auto& [gram, times] : written) {
    Chrf::Matches& order = orders[order_of(gram)];
    order.written += times;
    order.both += std::min(times, count_in(right, gram));
  }
  for (const auto& [gram, times] : right) orders[order_of(gram)].right += times;
  for (std::size_t n = 0; n < kMost; ++n) {
    if (orders[n].right == 0) orders[n].written = 0;  // what no reference is long enough for does not count
  }
}

double f_score(const Chrf::Counts& counts) {
  double precision = 0, recall = 0, orders = 0;
  for (const Chrf::Matches& order : counts) {
    if (order.written == 0 || order.right == 0) continue;
    precision += static_cast<double>(order.both) / static_cast<double>(order.written);
    recall += static_cast<double>(order.both) / static_cast<double>(order.right);
    ++orders;
  }
  if (precision + recall == 0) return 0;
  precision /= orders;
  recall /= orders;
  constexpr double kFactor = Chrf::kBeta * Chrf::kBeta;
  return 100 * ((1 + kFactor) * precision * recall / (kFactor * precision + recall));
}

}  // namespace

Chrf::Chrf(const ChrfSettings& settings) : settings_(settings) {
  check(settings.word_order >= 0 && settings.word_order <= static_cast<std::int64_t>(kMostWords), "chrf: word order ",
        settings.word_order, ", expected 0 to ", kMostWords);
}

void Chrf::add(std::string_view hypothesis, std::span<const std::string_view> references) {
  check(!references.empty(), "chrf: a sentence without a reference");
  references_.add(references.size());
  const auto read = [&](std::string_view text) {
    return letters_of(settings_.lowercase ? to_lower(text) : std::string(text));
  };
  Numbering<std::u32string> numbers;
  const auto words = [&](std::u32string_view text) {
    std::vector<std::int32_t> ids = numbers.ids(words_of(text));
    return settings_.word_order == 0 ? GramCounts<kMostWords>() : grams_of<kMostWords>(ids);
  };
  const std::u32string written = read(hypothesis);
  const auto characters_written = grams_of<kCharacters>(characters_of(written));
  const auto words_written = words(written);
  Counts best = {};
  double best_score = -1;
  for (const std::string_view reference : references) {
    const std::u32string right = read(reference);
    Counts counts = {};
    count(characters_written, grams_of<kCharacters>(characters_of(right)), counts.data());
    count(words_written, words(right), counts.data() + kCharacters);
    if (settings_.word_order == 1) counts.back() = {};
    const double score = f_score(counts);
    if (score <= best_score) continue;
    best_score = score;
    best = counts;
  }
  for (std::size_t n = 0; n < counts_.size(); ++n) {
    counts_[n].written += best[n].written;
    counts_[n].right += best[n].right;
    counts_[n].both += best[n].both;
  }
}

ChrfScore Chrf::score() const {
  return {f_score(counts_), "chrF2" + std::string(static_cast<std::size_t>(settings_.word_order), '+')};
}

std::string Chrf::signature() const {
  return fmt::format("nrefs:{}|case:{}|eff:yes|nc:{}|nw:{}|space:no|version:regard-{}", references_.text(),
                     settings_.lowercase ? "lc" : "mixed", kCharacters, settings_.word_order, version());
}

std::string ChrfScore::text(std::string_view signature) const {
  return fmt::format("{}|{} = {:.2f}", name, signature, score);
}

}  // namespace regard
