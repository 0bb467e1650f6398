// The colours of pictures, light and dark. Lightness alone tells the weights apart, so that it also does for those who
// do not see all colours; differences go from blue to orange, which nearly everybody tells apart.
#pragma once

#include <cstdint>
#include <string>

namespace regard {

struct Color {
  std::uint8_t red = 0, green = 0, blue = 0;
  double alpha = 1;

  std::string hex() const;  // "#1b3a6b"
  Color with(double opacity) const { return {red, green, blue, opacity}; }
};
Color mix(Color from, Color to, double part);

enum class Theme : std::uint8_t { kLight, kDark };

struct Inks {
  Color ground, text, faint, line, mark, missing;
};
const Inks& inks(Theme theme);

Color weight_color(Theme theme, double part);      // 0: as the ground, 1: the heaviest
Color difference_color(Theme theme, double part);  // −1 blue … 0 as the ground … 1 orange
Color readable_on(Color ground);                   // black or white

}  // namespace regard
