// A text that is too long for a model, cut where it hurts least: behind the end of a sentence, else behind a comma,
// else between words, else anywhere between two tokens; and texts put together again.
//
//     for (const TextPart& part : cut_long(text, tokenizer.encode(text), 100)) { … text[part.begin … part.end) … }
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer.h"

namespace regard {

struct TextPart {
  std::size_t begin = 0, end = 0;  // bytes, without blanks at either side
  friend bool operator==(const TextPart&, const TextPart&) = default;
};

// Parts of at most `most` of the tokens each; one part, the whole text, if that has no more.
std::vector<TextPart> cut_long(std::string_view text, std::span<const Token> tokens, std::size_t most);

// Appends a text to another, with a blank between them where their languages have blanks. Says where it begins.
std::size_t join(std::string& text, std::string_view more);

}  // namespace regard
