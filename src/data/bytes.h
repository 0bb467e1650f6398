// Small binary records: written by us, read as if by an enemy. A number takes as many bytes as it needs (7 bits each,
// least first), a text is its length and its bytes. Reading past the end is an Error that names the record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"

namespace regard {

class ByteWriter {
 public:
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(static_cast<unsigned char>(value | 0x80));
    out_ += static_cast<char>(static_cast<unsigned char>(value));
  }
  void text(std::string_view value) {
    number(value.size());
    out_ += value;
  }
  void raw(std::string_view value) { out_ += value; }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class ByteReader {
 public:
  ByteReader(std::string_view bytes, std::string_view what) : bytes_(bytes), what_(what) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      expect(!bytes_.empty(), "ends too early");
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      expect(shift < 63 || byte <= 1, "has a number above 64 bits");
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    wrong("has a number above 64 bits");
  }
  std::uint64_t number(std::uint64_t most) {
    const std::uint64_t value = number();
    expect(value <= most, "has a number that is too large");
    return value;
  }
  std::string_view text() { return raw(number()); }
  std::string_view raw(std::uint64_t count) {
    expect(count <= bytes_.size(), "ends too early");
    const std::string_view value = bytes_.substr(0, static_cast<std::size_t>(count));
    bytes_.remove_prefix(static_cast<std::size_t>(count));
    return value;
  }
  // How many records follow: never more than there are bytes, so that nobody makes us reserve memory for nothing.
  std::size_t count() { return static_cast<std::size_t>(number(bytes_.size())); }
  std::size_t left() const { return bytes_.size(); }
  void end() const { expect(bytes_.empty(), "goes on behind its end"); }

  void expect(bool condition, std::string_view complaint) const {
    if (!condition) [[unlikely]]
      wrong(complaint);
  }
  [[noreturn]] void wrong(std::string_view complaint) const { fail(ErrorKind::kFile, what_, ": ", complaint); }

 private:
  std::string_view bytes_;
  std::string_view what_;
};

}  // namespace regard
