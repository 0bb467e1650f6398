// What Unicode says about letters, as far as splitting text into words needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace regard {

enum class LetterClass : std::uint8_t {
  kSpace,      // blanks, control and format characters: never part of a word
  kWord,       // letters, marks and digits of languages that put blanks between words
  kWideWord,   // Chinese characters and kana: no blanks between words
  kWideMark,   // the punctuation that goes with them: 。，「」
  kOpening,    // ( [ “ ¿: a blank before, none behind
  kClosing,    // ) ] ” . , ; ! ?: none before, a blank behind
  kJoining,    // ' - / _ @ ": none on either side
  kStandsFree  // dashes, signs, pictures: blanks on both sides
};

LetterClass letter_class(char32_t code);
// Whether words that end and begin so are written without a blank between them: none before a full stop, none between
// Chinese characters.
bool glued_by_rule(LetterClass before, LetterClass behind);
char32_t to_lower(char32_t code);
std::string to_lower(std::string_view text);

// One visible sign: a letter with its marks, a picture made of several, a flag.
struct Cluster {
  std::size_t begin = 0, end = 0;  // bytes
  char32_t first = 0;
};
Cluster next_cluster(std::string_view text, std::size_t begin);  // begin < text.size()

}  // namespace regard
