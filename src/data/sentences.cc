#include "data/sentences.h"

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"
#include "data/unicode.h"

namespace regard {
namespace {

char32_t letter_before(std::string_view text, std::size_t end) {
  std::size_t begin = end;
  while (begin > 0 && end - begin < 4) {
    --begin;
    const utf8::Letter letter = utf8::read(text, begin);
    if (letter.valid && begin + letter.length == end) return letter.code;
  }
  return 0;
}

bool is_blank(char32_t code) { return code == 0 || letter_class(code) == LetterClass::kSpace; }

// How good a place behind `end` is to cut the text: 3 the end of a sentence, 2 of a clause, 1 of a word, 0 none of it.
int goodness(std::string_view text, std::size_t end) {
  const char32_t next = end < text.size() ? utf8::read(text, end).code : 0;
  const bool apart = is_blank(next);
  std::size_t at = end;
  constexpr std::u32string_view kClosing = U"\"')]}”’」』）》";
  char32_t last = letter_before(text, at);
  while (at > 0 && kClosing.find(last) != std::u32string_view::npos) {  // quotes may stand behind a mark
    std::string one;
    utf8::append(one, last);
    at -= one.size();
    last = letter_before(text, at);
  }
  const auto among = [&](std::u32string_view marks) { return marks.find(last) != std::u32string_view::npos; };
  const bool closes_more = kClosing.find(next) != std::u32string_view::npos;
  if (!closes_more && (among(U"。！？") || (apart && among(U".!?…")))) return 3;
  if (!closes_more && (among(U"，；：") || (apart && among(U",;:")))) return 2;
  return apart ? 1 : 0;
}

}  // namespace

std::vector<TextPart> cut_long(std::string_view text, std::span<const Token> tokens, std::size_t most) {
  check(most >= 1, "a text cannot be cut into parts of no tokens");
  if (tokens.size() <= most) return {{0, text.size()}};
  std::vector<TextPart> parts;
  for (std::size_t first = 0; first < tokens.size();) {
    std::size_t last = std::min(first + most, tokens.size());  // behind the last token of the part
    if (last < tokens.size()) {
      std::size_t best = last;
      int best_goodness = 0;
      for (std::size_t end = first + 1; end <= last; ++end) {
        const int each = goodness(text, tokens[end - 1].end);
        if (each >= best_goodness && each > 0) best = end, best_goodness = each;
      }
      last = best;
    }
    std::size_t begin = tokens[first].begin, end = tokens[last - 1].end;
    while (begin < end && text[begin] == ' ') ++begin;
    while (end > begin && text[end - 1] == ' ') --end;
    if (begin < end) parts.push_back({begin, end});
    first = last;
  }
  return parts;
}

std::size_t join(std::string& text, std::string_view more) {
  const auto is_wide = [](char32_t code) {
    const LetterClass kind = letter_class(code);
    return kind == LetterClass::kWideWord || kind == LetterClass::kWideMark;
  };
  if (!text.empty() && !more.empty() && !is_wide(letter_before(text, text.size())) &&
      !is_wide(utf8::read(more, 0).code)) {
    text += ' ';
  }
  const std::size_t begin = text.size();
  text += more;
  return begin;
}

}  // namespace regard
