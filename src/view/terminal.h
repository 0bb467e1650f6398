// An attention map as text: rows are what was written, columns what was read, a cell is a weight. In colour on a
// terminal that has them, in shades of grey anywhere else.
//
//     fmt::print("{}", heat_map(weights, {.rows = written, .columns = read}, {.colors = colors_of(STDOUT_FILENO)}));
//
//           k # t a
//         ┌────────
//       a │      ██
//       t │    ▓▓░░
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "regard/tensor/tensor.h"

namespace regard {

enum class Colors { kNone, k256, kAll };
enum class WhenColors { kAuto, kAlways, kNever };
WhenColors when_colors(std::string_view name);  // "auto", "always", "never"

// kAuto: only if `file` is a terminal that can show them, and NO_COLOR is not set. How many: COLORTERM says.
Colors colors_of(int file, WhenColors when = WhenColors::kAuto);
int width_of(int file);  // columns of the terminal; 80 if it is none

struct MapLabels {
  std::span<const std::string> rows, columns;
};
struct MapSettings {
  Colors colors = Colors::kNone;
  int width = 80;           // columns of the terminal: a wider map is cut into parts, one below the other
  bool half = false;        // in colour: two rows a line, as the upper and the lower half of a block
  bool difference = false;  // −1 … 1: blue to orange; without colours a sign before each shade
};
// weights [rows, columns]; a weight that is not a number is shown as ??.
std::string heat_map(const Tensor& weights, const MapLabels& labels, const MapSettings& settings = {});

// The scale of a map: "0 ░▒▓█ 1".
std::string heat_scale(Colors colors, std::string_view least = "0", std::string_view most = "1",
                       bool difference = false);

// A text, each part on the colour of its weight, 0 … 1; NaN: on none. Without colours the shade stands before each part
// of some weight: "▓看". Lines end where the terminal does.
struct ShadedPart {
  std::string text;
  double weight = 0;
};
std::string shaded_text(std::span<const ShadedPart> parts, const MapSettings& settings = {});

// How far something is, 0 … 1: "█████▌    ".
std::string progress_bar(double done, int width);

// How many columns of a terminal the text takes: Chinese characters take two, accents none.
int display_width(std::string_view text);
// Fit to be shown: control characters, which a terminal would obey, become "�", a blank "␣".
std::string printable(std::string_view text);

}  // namespace regard
