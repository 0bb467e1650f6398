#include "decode/bleu.h"

#include <fmt/format.h>

#if REGARD_TEXT_LIBRARIES
#include <utf8proc.h>
#endif

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"
#include "data/unicode.h"
#include "decode/grams.h"
#include "regard/version.h"

namespace regard {
namespace {

using Text = std::u32string;

bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_point(char32_t c) { return c == U'.' || c == U','; }

// [{-~[-` -&(-+:-@/]: punctuation of ASCII except ' , - .
bool is_ascii_symbol(char32_t c) {
  return (c >= 0x7B && c <= 0x7E) || (c >= 0x5B && c <= 0x60) || (c >= 0x20 && c <= 0x26) || (c >= 0x28 && c <= 0x2B) ||
         (c >= 0x3A && c <= 0x40) || c == U'/';
}

// What counts as Chinese. The two ranges of rare characters beyond U+FFFF are what sacreBLEU makes of them: its
// five-digit escapes are read as four digits and one more character.
bool is_chinese(char32_t c) {
  static constexpr std::array<std::array<char32_t, 2>, 22> kRanges = {{
      {0x3400, 0x4DB5}, {0x4E00, 0x9FA5}, {0x9FA6, 0x9FBB}, {0xF900, 0xFA2D}, {0xFA30, 0xFA6A}, {0xFA70, 0xFAD9},
      {0x2001, 0x2A6D}, {0x2F81, 0x2FA1}, {0xFF00, 0xFFEF}, {0x2E80, 0x2EFF}, {0x3000, 0x303F}, {0x31C0, 0x31EF},
      {0x2F00, 0x2FDF}, {0x2FF0, 0x2FFF}, {0x3100, 0x312F}, {0x31A0, 0x31BF}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F},
      {0x2600, 0x26FF}, {0x2700, 0x27BF}, {0x3200, 0x32FF}, {0x3300, 0x33FF},
  }};
  return std::any_of(kRanges.begin(), kRanges.end(), [c](const auto& range) { return c >= range[0] && c <= range[1]; });
}

// Like a regular expression of two letters that is replaced from left to right: what was replaced is not looked at
// again.
template <class First, class Second, class Replace>
Text replace_pairs(const Text& in, First first, Second second, Replace replace) {
  Text out;
  for (std::size_t i = 0; i < in.size();) {
    if (i + 1 < in.size() && first(in[i]) && second(in[i + 1])) {
      replace(out, in[i], in[i + 1]);
      i += 2;
    } else {
      out += in[i++];
    }
  }
  return out;
}

template <class Fits>
Text set_apart(const Text& in, Fits fits) {
  Text out;
  for (const char32_t c : in) {
    if (fits(c)) {
      out += {U' ', c, U' '};
    } else {
      out += c;
    }
  }
  return out;
}

Text western(const Text& in) {
  const auto no_digit = [](char32_t c) { return !is_digit(c); };
  const auto dash = [](char32_t c) { return c == U'-'; };
  const auto behind = [](Text& out, char32_t a, char32_t b) { out += {a, U' ', b, U' '}; };
  Text text = set_apart(in, is_ascii_symbol);
  text = replace_pairs(text, no_digit, is_point, behind);
  text = replace_pairs(text, is_point, no_digit, [](Text& out, char32_t a, char32_t b) { out += {U' ', a, U' ', b}; });
  return replace_pairs(text, is_digit, dash, behind);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

#if REGARD_TEXT_LIBRARIES
Text international(const Text& in) {
  const auto category = [](char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); };
  const auto no_number = [&](char32_t c) {
    return category(c) < UTF8PROC_CATEGORY_ND || category(c) > UTF8PROC_CATEGORY_NO;
  };
  const auto mark = [&](char32_t c) {
    return category(c) >= UTF8PROC_CATEGORY_PC && category(c) <= UTF8PROC_CATEGORY_PO;
  };
  const auto symbol = [&](char32_t c) {
    return category(c) >= UTF8PROC_CATEGORY_SM && category(c) <= UTF8PROC_CATEGORY_SO;
  };
  Text text = replace_pairs(in, no_number, mark, [](Text& out, char32_t a, char32_t b) { out += {a, U' ', b, U' '}; });
  text = replace_pairs(text, mark, no_number, [](Text& out, char32_t a, char32_t b) { out += {U' ', a, U' ', b}; });
  return set_apart(text, symbol);
}
#else
Text international(const Text&) {
  fail(ErrorKind::kInput, "bleu: this build has no tables of Unicode, which the tokenizer intl needs");
}
#endif

Text stripped(Text text, bool left) {
  while (!text.empty() && is_blank(text.back())) text.pop_back();
  if (left)
    text.erase(0, static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_blank) - text.begin()));
  return text;
}

std::vector<std::string> split(const Text& text) {
  std::vector<std::string> out;
  for (const Text& word : split_at_blanks(text)) out.push_back(utf8_of(word));
  return out;
}

}  // namespace

BleuTokenizer bleu_tokenizer(std::string_view name) {
  for (const BleuTokenizer each : {BleuTokenizer::k13a, BleuTokenizer::kChinese, BleuTokenizer::kCharacters,
                                   BleuTokenizer::kInternational, BleuTokenizer::kNone})
    if (to_text(each) == name) return each;
  fail(ErrorKind::kInput, "bleu: unknown tokenizer '", name, "', expected 13a, zh, char, intl or none");
}

std::string_view to_text(BleuTokenizer tokenizer) {
  switch (tokenizer) {
    case BleuTokenizer::k13a:
      return "13a";
    case BleuTokenizer::kChinese:
      return "zh";
    case BleuTokenizer::kCharacters:
      return "char";
    case BleuTokenizer::kInternational:
      return "intl";
    case BleuTokenizer::kNone:
      return "none";
  }
  return "";
}

std::vector<std::string> bleu_words(std::string_view text, const BleuSettings& settings) {
  const std::string lower = settings.lowercase ? to_lower(text) : std::string(text);
  switch (settings.tokenizer) {
    case BleuTokenizer::k13a: {
      std::string line = utf8_of(stripped(letters_of(lower), false));
      replace_all(line, "<skipped>", "");
      replace_all(line, "-\n", "");
      replace_all(line, "\n", " ");
      replace_all(line, "&quot;", "\"");
      replace_all(line, "&amp;", "&");
      replace_all(line, "&lt;", "<");
      replace_all(line, "&gt;", ">");
      return split(western(U' ' + letters_of(line) + U' '));
    }
    case BleuTokenizer::kChinese:
      return split(western(set_apart(stripped(letters_of(lower), true), is_chinese)));
    case BleuTokenizer::kCharacters: {
      std::vector<std::string> out;
      for (const char32_t c : letters_of(lower)) {
        if (is_blank(c)) continue;
        utf8::append(out.emplace_back(), c);
      }
      return out;
    }
    case BleuTokenizer::kInternational:
      return split(international(stripped(letters_of(lower), false)));
    case BleuTokenizer::kNone:
      return split(letters_of(lower));
  }
  return {};
}

void Bleu::add(std::string_view hypothesis, std::span<const std::string_view> references) {
  check(!references.empty(), "bleu: a sentence without a reference");
  references_.add(references.size());
  Numbering<std::string> vocabulary;
  const std::vector<std::int32_t> words = vocabulary.ids(bleu_words(hypothesis, settings_));
  const auto length = static_cast<std::int64_t>(words.size());
  std::vector<GramCounts<BleuScore::kOrders>> known;
  std::int64_t closest = -1;
  for (const std::string_view reference : references) {
    const std::vector<std::int32_t> right = vocabulary.ids(bleu_words(reference, settings_));
    const auto other = static_cast<std::int64_t>(right.size());
    const std::int64_t gap = std::abs(other - length), best = std::abs(closest - length);
    if (closest == -1 || gap < best || (gap == best && other < closest)) closest = other;
    known.push_back(grams_of<BleuScore::kOrders>(right));
  }
  for (const auto& [gram, times] : grams_of<BleuScore::kOrders>(words)) {
    std::int64_t most = 0;
    for (const auto& each : known) most = std::max(most, count_in(each, gram));
    total_[order_of(gram)] += times;
    correct_[order_of(gram)] += std::min(times, most);
  }
  hypothesis_words_ += length;
  reference_words_ += closest;
}

BleuScore Bleu::score() const {
  BleuScore out{
      .correct = correct_, .total = total_, .hypothesis_words = hypothesis_words_, .reference_words = reference_words_};
  const auto written = static_cast<double>(hypothesis_words_), right = static_cast<double>(reference_words_);
  if (hypothesis_words_ < reference_words_) out.brevity = hypothesis_words_ > 0 ? std::exp(1 - right / written) : 0;
  if (std::all_of(correct_.begin(), correct_.end(), [](std::int64_t count) { return count == 0; })) return out;
  double share = 1, logs = 0;
  for (std::size_t n = 0; n < out.precisions.size(); ++n) {
    if (total_[n] == 0) break;
    const auto total = static_cast<double>(total_[n]);
    if (correct_[n] == 0) share *= 2;
    out.precisions[n] = correct_[n] == 0 ? 100 / (share * total) : 100 * static_cast<double>(correct_[n]) / total;
  }
  for (const double precision : out.precisions) {
    if (precision == 0) return out;  // nothing was long enough for this order
    logs += std::log(precision);
  }
  out.score = out.brevity * std::exp(logs / BleuScore::kOrders);
  return out;
}

std::string Bleu::signature() const {
  return fmt::format("nrefs:{}|case:{}|eff:no|tok:{}|smooth:exp|version:regard-{}", references_.text(),
                     settings_.lowercase ? "lc" : "mixed", to_text(settings_.tokenizer), version());
}

std::string BleuScore::text(std::string_view signature) const {
  const double ratio =
      reference_words == 0 ? 0 : static_cast<double>(hypothesis_words) / static_cast<double>(reference_words);
  return fmt::format(
      "BLEU|{} = {:.2f} {:.1f}/{:.1f}/{:.1f}/{:.1f} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})", signature,
      score, precisions[0], precisions[1], precisions[2], precisions[3], brevity, ratio, hypothesis_words,
      reference_words);
}

}  // namespace regard
