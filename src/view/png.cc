#include "view/png.h"

#include <algorithm>
#include <array>

#include "base/check.h"

#if REGARD_TEXT_LIBRARIES
#include <zlib.h>
#endif

namespace regard {
namespace {

void put(std::string& out, std::uint32_t value) {  // most significant byte first
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(static_cast<unsigned char>(value >> shift));
}

std::uint32_t checksum(std::string_view bytes) {  // CRC-32
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> made = {};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? 0xEDB88320u ^ value >> 1 : value >> 1;
      made[i] = value;
    }
    return made;
  }();
  std::uint32_t value = 0xFFFFFFFFu;
  for (const char byte : bytes) value = table[(value ^ static_cast<unsigned char>(byte)) & 0xFF] ^ value >> 8;
  return ~value;
}

void chunk(std::string& out, std::string_view name, std::string_view body) {
  put(out, static_cast<std::uint32_t>(body.size()));
  const std::string both = std::string(name) + std::string(body);
  out += both;
  put(out, checksum(both));
}

}  // namespace

std::string deflated(const std::string& bytes) {
#if REGARD_TEXT_LIBRARIES
  std::string out(compressBound(bytes.size()), '\0');
  uLongf size = out.size();
  const int result = compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                               reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 6);
  if (result != Z_OK) fail(ErrorKind::kInternal, "zlib cannot compress a picture: error ", result);
  out.resize(size);
  return out;
#else  // blocks that are stored as they are
  std::string out = "\x78\x01";
  std::uint32_t a = 1, b = 0;
  for (std::size_t at = 0; at < bytes.size() || at == 0;) {
    const std::size_t count = std::min<std::size_t>(65535, bytes.size() - at);
    const bool last = at + count == bytes.size();
    out += last ? '\1' : '\0';
    for (const std::size_t size : {count, ~count}) {
      out += static_cast<char>(static_cast<unsigned char>(size & 0xFF));
      out += static_cast<char>(static_cast<unsigned char>(size >> 8 & 0xFF));
    }
    for (std::size_t i = at; i < at + count; ++i) {
      a = (a + static_cast<unsigned char>(bytes[i])) % 65521;
      b = (b + a) % 65521;
    }
    out.append(bytes, at, count);
    at += count;
    if (last) break;
  }
  put(out, b << 16 | a);
  return out;
#endif
}

std::string png(const Pixels& pixels) {
  check(pixels.rows > 0 && pixels.columns > 0 && pixels.rows < (1u << 20) && pixels.columns < (1u << 20), "a PNG of ",
        pixels.rows, " × ", pixels.columns, " pixels, expected 1 to 1048575 each");
  std::string head;
  put(head, static_cast<std::uint32_t>(pixels.columns));
  put(head, static_cast<std::uint32_t>(pixels.rows));
  head += std::string("\x08\x06\x00\x00\x00", 5);  // 8 bits, with alpha
  std::string body;
  body.reserve(pixels.bytes.size() + pixels.rows);
  for (std::size_t row = 0; row < pixels.rows; ++row) {
    body += '\0';  // no filter
    body.append(reinterpret_cast<const char*>(&pixels.bytes[row * pixels.columns * 4]), pixels.columns * 4);
  }
  std::string out = "\x89PNG\r\n\x1a\n";
  chunk(out, "IHDR", head);
  chunk(out, "IDAT", deflated(body));
  chunk(out, "IEND", "");
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      group = group << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    }
    for (std::size_t i = 0; i < 4; ++i) out += i <= count ? kLetters[group >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

std::string data_address(const Pixels& pixels) { return "data:image/png;base64," + base64(png(pixels)); }

}  // namespace regard
