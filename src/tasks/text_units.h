// What an alignment counts: the words or the characters of a text, as bytes of it.
//
//     words_of("他们 在 看 。", WordCut::kAutomatic)     // 4: the text has been cut with blanks
//     words_of("他们在看。", WordCut::kAutomatic)        // 5: every Chinese character, unless the words are told
//     words_of("They are here.", WordCut::kAutomatic)   // 3: "here." is what stands between blanks
//
// Words stand between blanks, whatever they are made of. Only Chinese as it is written is cut further: text that holds
// Chinese characters (or kana), none of them followed by a blank and another one or a mark. There Chinese characters
// come apart from everything else, each a word by itself or, with a tokenizer that knows words, as it cuts them; each
// of their punctuation marks is a word.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace regard {

struct TextUnit {
  std::size_t begin = 0, end = 0;  // bytes of the text
  friend bool operator==(const TextUnit&, const TextUnit&) = default;
};

enum class WordCut : std::uint8_t { kAutomatic, kBlanks };  // kBlanks: what stands between ASCII blanks, and no more
WordCut word_cut(std::string_view name);                    // "auto", "blanks"

// `words`: where a tokenizer that knows words cut the text; none: there is no such tokenizer.
std::vector<TextUnit> words_of(std::string_view text, WordCut cut, std::span<const Token> words = {});

// Text that was cut with blanks, as one would write it: blanks before punctuation and between Chinese characters are
// taken away. words[i] is the same word in the new text as the i-th of words_of(text, WordCut::kBlanks) in the old one.
struct JoinedText {
  std::string text;
  std::vector<TextUnit> words;
};
JoinedText joined(std::string_view text);

// Every code point, so that number i is what text[i] is in many languages. A blank is there and stands for nothing.
std::vector<TextUnit> characters_of(std::string_view text);

}  // namespace regard
