#include "view/line_chart.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "view/plot.h"
#include "view/svg.h"
#include "view/terminal.h"

namespace regard {
namespace {

// The first eight can be told apart by people with colour-blindness (Okabe and Ito 2008); the shape of the marks
// changes after every eight lines.
constexpr std::array<std::string_view, 8> kColors = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                     "#E69F00", "#56B4E9", "#000000", "#8C6D1F"};
constexpr double kLeft = 70, kTop = 40, kWidth = 560, kHeight = 340, kBelow = 60;
constexpr std::size_t kMostMarks = 30;  // of a line: more would hide it

struct Scale {
  double least = 0, most = 1, begin = 0, end = 1;
  bool log = false;

  double at(double value) const {
    const auto place = [this](double x) { return log ? std::log10(x) : x; };
    return begin + (end - begin) * (place(value) - place(least)) / (place(most) - place(least));
  }
};

bool fits(double value, bool log) { return std::isfinite(value) && (!log || value > 0); }

// Wide enough to be drawn, ending at round numbers where it is not logarithmic.
void widen(Scale& scale, bool any, bool from_zero, bool round) {
  if (!any) {
    scale.least = scale.log ? 1 : 0;
    scale.most = scale.log ? 10 : 1;
  }
  if (from_zero && !scale.log) scale.least = std::min(scale.least, 0.0);
  if (!(scale.most > scale.least)) {
    const double room = scale.most == 0 ? 1 : std::abs(scale.most) / 2;
    scale.most = scale.log ? scale.most * 2 : scale.most + room;
    scale.least = scale.log ? scale.least / 2 : scale.least == 0 ? 0 : scale.least - room;
  }
  if (scale.log || !round) return;
  const std::vector<double> ticks = plot_ticks(scale.least, scale.most, 5, false);
  if (ticks.size() < 2) return;
  const double step = ticks[1] - ticks[0];
  scale.least = std::floor(scale.least / step + 1e-9) * step;
  scale.most = std::ceil(scale.most / step - 1e-9) * step;
}

void mark(Svg& svg, double x, double y, std::size_t line, std::string_view color) {
  if (line < kColors.size()) {
    svg.rectangle(x - 3, y - 3, 6, 6, color);
  } else {
    svg.rectangle(x - 5, y - 1.5, 10, 3, color);
    svg.rectangle(x - 1.5, y - 5, 3, 10, color);
  }
}

}  // namespace

std::string line_chart(const std::vector<ChartLine>& lines, const LineChart& chart) {
  Scale across{.begin = kLeft, .end = kLeft + kWidth, .log = chart.log_across};
  Scale up{.begin = kTop + kHeight, .end = kTop, .log = chart.log_up};
  bool any = false;
  int widest = 0;
  for (const ChartLine& line : lines) {
    widest = std::max(widest, display_width(line.name));
    for (const auto& [x, y] : line.points) {
      if (!fits(x, across.log) || !fits(y, up.log)) continue;
      across.least = any ? std::min(across.least, x) : x;
      across.most = any ? std::max(across.most, x) : x;
      up.least = any ? std::min(up.least, y) : y;
      up.most = any ? std::max(up.most, y) : y;
      any = true;
    }
  }
  widen(across, any, chart.across_from_zero, false);
  widen(up, any, chart.from_zero, true);
  if (!chart.categories.empty()) {
    across.least = -0.5;
    across.most = static_cast<double>(chart.categories.size()) - 0.5;
  }

  const double legend = 50 + 7.2 * widest;
  const double height = std::max(kTop + kHeight + kBelow, kTop + 20 + 20 * static_cast<double>(lines.size()));
  Svg svg(kLeft + kWidth + 16 + legend, height);
  svg.words(kLeft + kWidth / 2, 22, chart.title, {.anchor = "middle", .size = 14});
  for (const double tick : plot_ticks(up.least, up.most, 5, up.log)) {
    svg.line(kLeft, up.at(tick), kLeft + kWidth, up.at(tick), "#dddddd");
    svg.words(kLeft - 7, up.at(tick) + 4, plot_number(tick), {.anchor = "end", .size = 11});
  }
  const auto below = [&](double x, const std::string& name) {
    svg.line(x, kTop + kHeight, x, kTop + kHeight + 4, "#333333");
    const std::size_t end = std::min(name.find('\n'), name.size());
    svg.words(x, kTop + kHeight + 17, name.substr(0, end), {.anchor = "middle", .size = 11});
    if (end == name.size()) return;
    svg.words(x, kTop + kHeight + 31, name.substr(end + 1), {.anchor = "middle", .size = 10, .color = "#777777"});
  };
  if (chart.categories.empty()) {
    for (const double tick : plot_ticks(across.least, across.most, 8, across.log)) {
      below(across.at(tick), plot_number(tick));
    }
  } else {
    for (std::size_t i = 0; i < chart.categories.size(); ++i) {
      below(across.at(static_cast<double>(i)), chart.categories[i]);
    }
  }
  if (chart.mark && fits(*chart.mark, across.log)) {
    const double x = across.at(*chart.mark);
    if (x >= kLeft && x <= kLeft + kWidth) {
      svg.line(x, kTop, x, kTop + kHeight, "#888888", 1.5);
      svg.words(x - 5, kTop + 12, chart.mark_name, {.anchor = "end", .size = 11, .color = "#666666"});
    }
  }
  svg.line(kLeft, kTop, kLeft, kTop + kHeight, "#333333");
  svg.line(kLeft, kTop + kHeight, kLeft + kWidth, kTop + kHeight, "#333333");
  svg.words(kLeft + kWidth / 2, kTop + kHeight + 49, chart.across, {.anchor = "middle"});
  svg.words(18, kTop + kHeight / 2, chart.up, {.anchor = "middle", .upwards = true});

  const double slot = (across.at(1) - across.at(0)) * 0.7 / std::max(1.0, static_cast<double>(lines.size()));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view color = kColors[i % kColors.size()];
    std::vector<std::pair<double, double>> piece;  // up to the next gap
    for (const auto& [x, y] : lines[i].points) {
      if (chart.bars) {
        if (!fits(x, across.log) || !fits(y, up.log)) continue;
        const double left = across.at(x) + slot * (static_cast<double>(i) - static_cast<double>(lines.size()) / 2);
        svg.rectangle(left, up.at(y), slot, up.begin - up.at(y), color);
        continue;
      }
      if (!fits(x, across.log) || !fits(y, up.log)) {
        svg.path(piece, color, 1.8);
        piece.clear();
        continue;
      }
      piece.emplace_back(across.at(x), up.at(y));
      if (lines[i].points.size() <= kMostMarks) mark(svg, piece.back().first, piece.back().second, i, color);
    }
    svg.path(piece, color, 1.8);
    const double y = kTop + 10 + 20 * static_cast<double>(i), x = kLeft + kWidth + 16;
    if (chart.bars) {
      svg.rectangle(x + 6, y - 6, 12, 12, color);
    } else {
      svg.line(x, y, x + 24, y, color, 1.8);
      mark(svg, x + 12, y, i, color);
    }
    svg.words(x + 32, y + 4, lines[i].name);
  }
  return svg.text();
}

}  // namespace regard
