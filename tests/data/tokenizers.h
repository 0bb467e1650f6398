// Texts that tokenizers have to live with, and what every tokenizer has to do with them.
#pragma once

#include <gtest/gtest.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "data/tokenizer.h"
#include "regard/error.h"
#include "regard/random.h"

namespace regard {

inline std::vector<std::string> hostile_texts() {
  std::vector<std::string> texts = {"",
                                    " ",
                                    "\t \n\r",
                                    "a",
                                    "They are watching.",
                                    "他们在看。",
                                    "他在看They，是吗?",
                                    "l'homme",
                                    "don't stop -- now!",
                                    "e\xCC\x81te\xCC\x81 \xCC\x81",
                                    "👩‍👩‍👧‍👦 👍🏽🇫🇷🇩🇪 ❤️",
                                    "ﬁ ½ ① Ａ　Ｂ ﷺ",
                                    "\xEF\xBB\xBFmark",
                                    "a\xC2\xA0"
                                    "b\xE2\x80\x8B"
                                    "c\xC2\xAD"
                                    "d",
                                    "￭ ▁ ⁇ <unk> <s> </s>",
                                    "مرحبا بالعالم",
                                    "สวัสดี",
                                    "한국어 좋다",
                                    "\xFF\xFE",
                                    "ok \xE4\xBD then",
                                    "\xF0\x9F",
                                    "3.14, 1,000 (50%)",
                                    "\"quoted\" 'so' “so” «so»",
                                    std::string("nul\0inside", 10),
                                    "İstanbul K Å",
                                    "a  b   c",
                                    "̀̀̀̀",
                                    "▁▁a▁",
                                    "\xED\xA0\x80"};
  std::string marks = "e";
  for (int i = 0; i < 2000; ++i) marks += "\xCC\x81";
  texts.push_back(marks);
  texts.push_back(std::string(20'000, 'x'));
  std::string wide;
  for (int i = 0; i < 3000; ++i) wide += "的";
  texts.push_back(wide);
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const RandomKey key = RandomKey(77).at(seed);
    std::string text;
    for (std::uint64_t i = 0; i < 24; ++i) {
      const std::uint64_t kind = random_below(key, 2 * i, 5);
      const std::uint32_t bits = random_bits(key, 2 * i + 1);
      if (kind == 0) text += static_cast<char>(static_cast<unsigned char>(bits));  // perhaps no UTF-8
      if (kind == 1) text += static_cast<char>(32 + bits % 95);
      if (kind == 2) utf8::append(text, 0x4E00 + bits % 200);
      if (kind == 3) utf8::append(text, bits % 0xD800);
      if (kind == 4) utf8::append(text, 0x1F000 + bits % 0xA00);
    }
    texts.push_back(text);
  }
  return texts;
}

// Tokens are in order, inside the text, on borders of letters, with ids of the vocabulary. Gives the bytes that no
// token stands for.
inline std::string uncovered(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<bool> covered(text.size(), false);
  std::uint32_t before = 0;
  for (const Token& token : tokenizer.encode(text)) {
    EXPECT_LE(token.begin, token.end);
    EXPECT_GE(token.begin, before) << text;
    EXPECT_LE(token.end, text.size());
    EXPECT_GE(token.id, 0);
    EXPECT_LT(token.id, tokenizer.size());
    if (utf8::valid(text)) {
      EXPECT_TRUE(utf8::valid(text.substr(token.begin, token.end - token.begin))) << text;
    }
    for (std::uint32_t i = token.begin; i < token.end; ++i) covered[i] = true;
    before = token.begin;
  }
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!covered[i]) out += text[i];
  }
  return out;
}

inline std::string with_hash(std::string_view body) {
  std::uint64_t value = XXH3_64bits(body.data(), body.size());
  std::string out(body);
  for (int i = 0; i < 8; ++i, value >>= 8) out += static_cast<char>(static_cast<unsigned char>(value));
  return out;
}

// Damaged bytes are refused; bytes whose damage the hash hides are refused or give a tokenizer that works.
inline void expect_hostile_bytes_do_no_harm(const Tokenizer& tokenizer, std::uint64_t flips) {
  const std::string bytes = tokenizer.bytes();
  const std::string body = bytes.substr(0, bytes.size() - 8);
  ASSERT_EQ(with_hash(body), bytes);
  const auto try_out = [](std::string_view some) {
    std::unique_ptr<Tokenizer> made;
    try {
      made = Tokenizer::from(some);
    } catch (const Error&) {
      return false;
    }
    std::vector<std::int32_t> all;
    for (const char* text : {"They are watching.", "他们在看 it\xFF！", "a b c  d\xCC\x81"}) {
      uncovered(*made, text);
      for (const Token& token : made->encode(text)) all.push_back(token.id);
    }
    for (std::int32_t id = 0; id < std::min<std::int64_t>(made->size(), 300); ++id) {
      all.push_back(id);
      made->piece(id);
    }
    made->decode(all);
    return true;
  };
  ASSERT_TRUE(try_out(bytes));
  const RandomKey key = RandomKey(5);
  std::uint64_t loaded = 0;
  for (std::uint64_t i = 0; i < flips; ++i) {
    std::string bad = body;
    // Half of them near the start, where the structure is.
    const std::uint64_t reach = i % 2 == 0 ? body.size() : std::min<std::size_t>(body.size(), 300);
    const std::uint64_t at = random_below(key, 3 * i, static_cast<std::uint32_t>(reach));
    const std::uint32_t kind = random_bits(key, 3 * i + 1);
    bad[at] = kind % 3 == 0 ? static_cast<char>(kind >> 8) : static_cast<char>(bad[at] ^ (1 << (kind >> 8) % 8));
    if (bad == body) continue;
    EXPECT_FALSE(try_out(bad + bytes.substr(body.size()))) << "byte " << at;
    loaded += try_out(with_hash(bad)) ? 1 : 0;
  }
  EXPECT_GT(loaded, 0u);     // the parser was reached
  EXPECT_LT(loaded, flips);  // and refused something
  for (std::uint64_t i = 0; i < 2000 && i < body.size(); ++i) {
    const std::size_t length =
        body.size() <= 2000 ? i : random_below(key.at(1), i, static_cast<std::uint32_t>(body.size()));
    EXPECT_FALSE(try_out(bytes.substr(0, length)));
    try_out(with_hash(std::string_view(body).substr(0, length)));
  }
  for (std::uint64_t i = 0; i < 500; ++i) {  // a piece of it somewhere else
    const auto size = static_cast<std::uint32_t>(body.size());
    const std::size_t from = random_below(key.at(2), 3 * i, size), to = random_below(key.at(2), 3 * i + 1, size);
    const std::size_t length = random_below(key.at(2), 3 * i + 2, 40);
    std::string bad = body;
    bad.insert(to, body.substr(from, length));
    if (length > 0) {
      EXPECT_FALSE(try_out(bad + bytes.substr(body.size())));
    }
    try_out(with_hash(bad));
  }
  EXPECT_FALSE(try_out(bytes + "x"));
  EXPECT_FALSE(try_out(""));
}

}  // namespace regard
