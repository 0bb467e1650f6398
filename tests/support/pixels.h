// Pictures read back: the pixels of a PNG, as far as our own and Cairo's files go, and of a PPM.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

struct ReadPixels {
  std::size_t width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  // alpha is left out

  struct Pixel {
    int red, green, blue;
    bool operator==(const Pixel&) const = default;
  };
  Pixel at(std::size_t x, std::size_t y) const {
    const std::uint8_t* from = &rgb.at((y * width + x) * 3);
    return {from[0], from[1], from[2]};
  }
};

inline ReadPixels read_png(std::string_view bytes) {
  const auto number = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes.at(at + i));
    return value;
  };
  if (!bytes.starts_with("\x89PNG\r\n\x1a\n")) throw std::runtime_error("no PNG");
  ReadPixels out;
  std::size_t depth = 0;
  std::string packed;
  for (std::size_t at = 8; at + 12 <= bytes.size();) {
    const std::size_t size = number(at);
    const std::string_view name = bytes.substr(at + 4, 4);
    const auto sum = crc32(0, reinterpret_cast<const Bytef*>(&bytes.at(at + 4)), static_cast<uInt>(size + 4));
    if (sum != number(at + 8 + size)) throw std::runtime_error("wrong checksum");
    if (name == "IHDR") {
      out.width = number(at + 8);
      out.height = number(at + 12);
      const int kind = bytes.at(at + 17);
      if (bytes.at(at + 16) != 8 || (kind != 2 && kind != 6)) throw std::runtime_error("another kind of PNG");
      depth = kind == 6 ? 4 : 3;
    }
    if (name == "IDAT") packed += bytes.substr(at + 8, size);
    at += 12 + size;
  }
  const std::size_t line = out.width * depth;
  std::vector<std::uint8_t> raw(out.height * (line + 1));
  uLongf length = raw.size();
  if (uncompress(raw.data(), &length, reinterpret_cast<const Bytef*>(packed.data()), packed.size()) != Z_OK ||
      length != raw.size()) {
    throw std::runtime_error("pixels that cannot be unpacked");
  }
  std::vector<std::uint8_t> before(line), now(line);
  for (std::size_t y = 0; y < out.height; ++y) {
    const std::uint8_t* from = &raw[y * (line + 1)];
    for (std::size_t i = 0; i < line; ++i) {
      const int left = i < depth ? 0 : now[i - depth], above = before[i], corner = i < depth ? 0 : before[i - depth];
      const int guess = left + above - corner;
      const int a = std::abs(guess - left), b = std::abs(guess - above), c = std::abs(guess - corner);
      const int nearest = a <= b && a <= c ? left : b <= c ? above : corner;
      const int added[] = {0, left, above, (left + above) / 2, nearest};
      now[i] = static_cast<std::uint8_t>(from[i + 1] + added[from[0]]);
    }
    for (std::size_t x = 0; x < out.width; ++x) {
      for (std::size_t k = 0; k < 3; ++k) out.rgb.push_back(now[x * depth + k]);
    }
    before = now;
  }
  return out;
}

inline ReadPixels read_ppm(const std::string& bytes) {
  ReadPixels out;
  int most = 0, length = 0;
  if (std::sscanf(bytes.c_str(), "P6 %zu %zu %d%n", &out.width, &out.height, &most, &length) != 3 || most != 255) {
    throw std::runtime_error("no PPM");
  }
  const auto begin = bytes.begin() + length + 1;
  out.rgb.assign(begin, begin + static_cast<std::ptrdiff_t>(out.width * out.height * 3));
  return out;
}

}  // namespace regard
