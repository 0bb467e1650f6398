#include "view/colors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace regard {
namespace {

constexpr Color kLightRamp[] = {{246, 247, 249}, {207, 220, 234}, {147, 181, 211},
                                {79, 134, 181},  {38, 90, 142},   {11, 42, 86}};
// From the ground along cividis.
constexpr Color kDarkRamp[] = {{24, 27, 34},    {27, 58, 107},   {87, 93, 109},
                               {141, 138, 118}, {200, 184, 102}, {255, 234, 70}};
constexpr Color kLightDifference[] = {{8, 64, 129}, {78, 142, 196}, {246, 247, 249}, {230, 140, 60}, {153, 68, 4}};
constexpr Color kDarkDifference[] = {{140, 200, 255}, {45, 105, 175}, {24, 27, 34}, {176, 92, 24}, {255, 184, 92}};

Color along(std::span<const Color> ramp, double part) {
  const double place = std::clamp(part, 0.0, 1.0) * static_cast<double>(ramp.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(place), ramp.size() - 2);
  return mix(ramp[below], ramp[below + 1], place - static_cast<double>(below));
}

}  // namespace

std::string Color::hex() const { return fmt::format("#{:02x}{:02x}{:02x}", red, green, blue); }

Color mix(Color from, Color to, double part) {
  const auto between = [part](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(std::lround(a + part * (b - a)));
  };
  return {between(from.red, to.red), between(from.green, to.green), between(from.blue, to.blue)};
}

const Inks& inks(Theme theme) {
  static constexpr Inks kLight = {.ground = {255, 255, 255},
                                  .text = {34, 34, 38},
                                  .faint = {112, 112, 120},
                                  .line = {205, 208, 214},
                                  .mark = {204, 85, 0},
                                  .missing = {226, 205, 216}};
  static constexpr Inks kDark = {.ground = {17, 19, 24},
                                 .text = {230, 232, 236},
                                 .faint = {152, 156, 166},
                                 .line = {62, 67, 78},
                                 .mark = {86, 180, 233},
                                 .missing = {92, 60, 80}};
  return theme == Theme::kDark ? kDark : kLight;
}

Color weight_color(Theme theme, double part) {
  return along(theme == Theme::kDark ? std::span<const Color>(kDarkRamp) : std::span<const Color>(kLightRamp), part);
}

Color difference_color(Theme theme, double part) {
  const std::span<const Color> ramp =
      theme == Theme::kDark ? std::span<const Color>(kDarkDifference) : std::span<const Color>(kLightDifference);
  return along(ramp, (std::clamp(part, -1.0, 1.0) + 1) / 2);
}

Color readable_on(Color ground) {
  const double light = 0.299 * ground.red + 0.587 * ground.green + 0.114 * ground.blue;
  return light > 140 ? Color{20, 20, 24} : Color{250, 250, 252};
}

}  // namespace regard
