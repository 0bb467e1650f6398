// UTF-8, read strictly: no overlong forms, no surrogates, nothing above U+10FFFF.
//
//     for (std::size_t at = 0; at < text.size();) {
//       const utf8::Letter letter = utf8::read(text, at);       // of bytes that are no UTF-8: U+FFFD, one byte long
//       at += letter.length;
//     }
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace regard::utf8 {

struct Letter {
  char32_t code = 0xFFFD;
  std::size_t length = 1;  // in bytes
  bool valid = false;
};

inline Letter read(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> std::uint32_t { return static_cast<unsigned char>(text[at + i]); };
  const auto more = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const std::size_t left = text.size() - at;
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {first, 1, true};
  if (first < 0xC2) return {};
  if (first < 0xE0) {
    if (left < 2 || !more(1)) return {};
    return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2, true};
  }
  if (first < 0xF0) {
    if (left < 3 || !more(1) || !more(2)) return {};
    const std::uint32_t code = (first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    if (code < 0x800 || (code >= 0xD800 && code < 0xE000)) return {};
    return {code, 3, true};
  }
  if (first > 0xF4 || left < 4 || !more(1) || !more(2) || !more(3)) return {};
  const std::uint32_t code = (first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  if (code < 0x10000 || code > 0x10FFFF) return {};
  return {code, 4, true};
}

inline void append(std::string& out, char32_t code) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  const std::uint32_t value = code;
  if (value < 0x80) {
    put(value);
  } else if (value < 0x800) {
    put(0xC0 | value >> 6);
    put(0x80 | (value & 0x3F));
  } else if (value < 0x10000) {
    put(0xE0 | value >> 12);
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  } else {
    put(0xF0 | value >> 18);
    put(0x80 | (value >> 12 & 0x3F));
    put(0x80 | (value >> 6 & 0x3F));
    put(0x80 | (value & 0x3F));
  }
}

// Where the first byte stands that is no UTF-8; text.size() if there is none.
inline std::size_t first_wrong(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Letter letter = read(text, at);
    if (!letter.valid) return at;
    at += letter.length;
  }
  return at;
}

inline bool valid(std::string_view text) { return first_wrong(text) == text.size(); }

}  // namespace regard::utf8
