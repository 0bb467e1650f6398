// Pixels as the bytes of a PNG file, for pictures inside SVG and HTML. The same pixels give the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace regard {

struct Pixels {
  std::size_t rows = 0, columns = 0;
  std::vector<std::uint8_t> bytes = {};  // red, green, blue, alpha; row after row

  Pixels() = default;
  Pixels(std::size_t height, std::size_t width) : rows(height), columns(width), bytes(height * width * 4) {}
  std::uint8_t* at(std::size_t row, std::size_t column) { return &bytes[(row * columns + column) * 4]; }
};

std::string png(const Pixels& pixels);
std::string deflated(const std::string& bytes);  // as zlib packs them
std::string base64(std::string_view bytes);
std::string data_address(const Pixels& pixels);  // "data:image/png;base64,…"

}  // namespace regard
