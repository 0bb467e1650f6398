// A trace as the bytes of a file, or as text for a terminal: what `regard view` does.
//
//     const std::string bytes = show(trace, {.view = View::kLines}, ShowFormat::kSvg);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "view/choose.h"
#include "view/terminal.h"

namespace regard {

enum class View : std::uint8_t { kMatrix, kLines, kHeads, kRow, kImage, kSound, kText, kEntropy, kDifference };
enum class ShowFormat : std::uint8_t { kTerminal, kSvg, kPng, kPdf, kHtml, kTxt, kJson, kNpy };

View view_of(std::string_view name);                   // throws, listing the known ones
ShowFormat format_of_ending(const std::string& path);  // "a.svg"; throws, listing the known ones

struct ShowSettings {
  MapChoice choice = {};
  View view = View::kMatrix;
  std::string token = {};  // which row: its label or number; of kRow: the first if none is named
  Theme theme = Theme::kLight;
  std::vector<std::pair<std::int64_t, std::int64_t>> links = {};  // row, column: marked in the matrix
  MapSettings terminal = {};
  const Trace* other = nullptr;  // of kDifference: what is taken away
};

std::string show(const Trace& trace, const ShowSettings& settings, ShowFormat format);

Canvas picture_of(const Trace& trace, const ShowSettings& settings);  // of the formats that are pictures

// The parts of it, for tests.
std::string npy(const Tensor& tensor);  // f32, NumPy's format 1.0

}  // namespace regard
