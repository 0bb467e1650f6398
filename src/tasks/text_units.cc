#include "tasks/text_units.h"

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"
#include "data/unicode.h"

namespace regard {
namespace {

bool is_ascii_blank(char32_t code) { return code == ' ' || (code >= '\t' && code <= '\r'); }
bool is_blank(char32_t code) { return is_ascii_blank(code) || code == 0x3000; }

// Chinese as it is written: some of its characters, and behind none of them a blank and another one or a mark.
bool needs_cuts(std::string_view text) {
  bool any = false, blank = false;
  LetterClass before = LetterClass::kSpace;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Letter letter = utf8::read(text, at);
    at += letter.length;
    if (is_ascii_blank(letter.code)) {
      blank = true;
      continue;
    }
    const LetterClass kind = letter_class(letter.code);
    const bool wide = kind == LetterClass::kWideWord || kind == LetterClass::kWideMark;
    if (wide && blank && before == LetterClass::kWideWord) return false;
    any |= kind == LetterClass::kWideWord;
    before = kind;
    blank = false;
  }
  return any;
}

}  // namespace

WordCut word_cut(std::string_view name) {
  check(name == "auto" || name == "blanks", "words are cut by 'auto' or 'blanks', got '", name, "'");
  return name == "auto" ? WordCut::kAutomatic : WordCut::kBlanks;
}

std::vector<TextUnit> words_of(std::string_view text, WordCut cut, std::span<const Token> words) {
  const bool further = cut == WordCut::kAutomatic && needs_cuts(text);
  std::vector<TextUnit> made;
  bool open = false;  // the last one may go on
  LetterClass before = LetterClass::kSpace;
  std::size_t next = 0;  // the first of `words` that does not begin before here
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Letter letter = utf8::read(text, at);
    if (cut == WordCut::kBlanks ? is_ascii_blank(letter.code) : is_blank(letter.code)) {
      at += letter.length;
      open = false;
      continue;
    }
    const Cluster cluster = further ? next_cluster(text, at) : Cluster{at, at + letter.length, letter.code};
    const LetterClass kind = further ? letter_class(cluster.first) : LetterClass::kWord;
    bool goes_on = open;
    if (further && open) {
      while (next < words.size() && words[next].begin < cluster.begin) ++next;
      const bool wide = kind == LetterClass::kWideWord, was_wide = before == LetterClass::kWideWord;
      if (kind == LetterClass::kWideMark || before == LetterClass::kWideMark || wide != was_wide) {
        goes_on = false;
      } else if (wide) {
        goes_on = !words.empty() && (next == words.size() || words[next].begin != cluster.begin);
      }
    }
    if (goes_on) {
      made.back().end = cluster.end;
    } else {
      made.push_back({cluster.begin, cluster.end});
    }
    open = true;
    before = kind;
    at = cluster.end;
  }
  return made;
}

JoinedText joined(std::string_view text) {
  JoinedText made;
  LetterClass before = LetterClass::kSpace;
  for (const TextUnit& word : words_of(text, WordCut::kBlanks)) {
    const LetterClass first = letter_class(utf8::read(text, word.begin).code);
    if (!made.words.empty() && !glued_by_rule(before, first)) made.text += ' ';
    made.words.push_back({made.text.size(), made.text.size() + word.end - word.begin});
    made.text += text.substr(word.begin, word.end - word.begin);
    std::size_t last = word.end - 1;
    while (last > word.begin && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    before = letter_class(utf8::read(text, last).code);
  }
  return made;
}

std::vector<TextUnit> characters_of(std::string_view text) {
  std::vector<TextUnit> made;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Letter letter = utf8::read(text, at);
    made.push_back({at, is_blank(letter.code) ? at : at + letter.length});
    at += letter.length;
  }
  return made;
}

}  // namespace regard
