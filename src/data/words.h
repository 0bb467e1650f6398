// Words: what stands between blanks, punctuation apart from it; runs of Chinese characters are cut by a dictionary
// (segment.h). The most frequent ones are known, all others, and those of more than kMostWordBytes bytes, are one and
// the same unknown word.
//
//     auto words = build_words(texts, {.size = 8000, .lower = true, .user = read_user_words("names.txt")});
//
// Blanks are put back by rule when decoding: none before a full stop, none between Chinese characters. Where a text
// departs from the rule the token says so and is a token of its own, so that decode(encode(text)) is the text with each
// run of blanks as one blank (and without those at its ends), as long as all of its words are known.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "data/segment.h"
#include "data/tokenizer.h"

namespace regard {

struct WordSettings {
  std::int64_t size = 8000;       // at most so many ids, the four special ones among them
  std::uint64_t least_count = 1;  // words seen less often are unknown
  bool lower = false;             // lower case
  std::vector<UserWord> user = {};
  // What may be held of different words while they are counted; of more the rarest are forgotten.
  std::size_t counted_bytes = std::size_t{96} << 20;
};

inline constexpr std::size_t kMostWordBytes = 256;  // bytes

// Goes through the texts twice.
std::unique_ptr<Tokenizer> build_words(const EachText& texts, const WordSettings& settings = {});
std::unique_ptr<Tokenizer> read_words(std::string_view payload);

}  // namespace regard
