// One token a character (a code point of Unicode), blanks too: decode gives back every byte of a text whose characters
// are all known.
//
//     auto letters = build_characters(texts, {.size = 200});
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "data/tokenizer.h"

namespace regard {

struct CharacterSettings {
  std::int64_t size = 8000;  // at most so many ids, the four special ones among them
  bool lower = false;        // lower case
};

std::unique_ptr<Tokenizer> build_characters(const EachText& texts, const CharacterSettings& settings = {});
std::unique_ptr<Tokenizer> read_characters(std::string_view payload);

}  // namespace regard
