// Maps as cells: one large, all heads small, entropies.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "view/picture_parts.h"

namespace regard {

using namespace picture;

namespace {

constexpr double kCell = 26, kAngle = -52;
constexpr double kRadian = 3.14159265358979323846 / 180;

struct Grid {
  double x, y, wide, high;  // the first cell
  std::int64_t rows, columns;
};

// Labels left of the rows.
void row_labels(Canvas& picture, const Grid& grid, const std::vector<std::string>& labels, double most, Color color) {
  const double size = std::clamp(grid.high * 0.6, 8.0, 13.0);
  const std::int64_t step = every(grid.high, size);
  for (std::int64_t row = 0; row < grid.rows; row += step) {
    picture.text(grid.x - 6, grid.y + (static_cast<double>(row) + 0.5) * grid.high,
                 labels[static_cast<std::size_t>(row)],
                 {.anchor = Anchor::kEnd, .size = size, .color = color, .width = most, .role = "label"});
  }
}

void column_labels(Canvas& picture, const Grid& grid, const std::vector<std::string>& labels, double most, bool flat,
                   Color color) {
  const double size = std::clamp(grid.wide * 0.6, 8.0, 13.0);
  const std::int64_t step = every(grid.wide, size);
  for (std::int64_t column = 0; column < grid.columns; column += step) {
    const double x = grid.x + (static_cast<double>(column) + 0.5) * grid.wide;
    picture.text(x, grid.y - (flat ? size * 0.8 : 7), labels[static_cast<std::size_t>(column)],
                 {.anchor = flat ? Anchor::kMiddle : Anchor::kStart,
                  .size = size,
                  .color = color,
                  .angle = flat ? 0 : kAngle,
                  .width = most,
                  .role = "label"});
  }
}

}  // namespace

Canvas matrix_picture(const Shown& map, const PictureSettings& settings) {
  const Inks& ink = inks(settings.theme);
  Canvas picture(0, 0, ink.ground);
  if (empty(picture, map, settings)) return picture;
  const std::int64_t rows = map.weights[0], columns = map.weights[1];
  const float* values = map.weights.data<float>();
  const Range range = range_of(values, rows * columns, map.difference);
  const std::vector<std::string> left = labels_of(map.rows), above = labels_of(map.columns);

  double wide = std::min(kCell, kMost / static_cast<double>(columns));
  double high = std::min(kCell, kMost / static_cast<double>(rows));
  if (std::min(wide, high) > 10) wide = high = std::min(wide, high);  // squares, unless it is long and narrow
  const double size = std::clamp(wide * 0.6, 8.0, 13.0);
  const double left_width = widest(left, std::clamp(high * 0.6, 8.0, 13.0), 170);
  const double above_width = widest(above, size, 150);
  const bool flat = above_width <= wide - 2;
  const double margin = kMargin + left_width + 8;
  const double over = flat ? size * 1.7 : above_width * std::sin(-kAngle * kRadian) + 16;
  const double beyond = flat ? 0 : above_width * std::cos(kAngle * kRadian) - wide / 2;
  const double plot_wide = wide * static_cast<double>(columns), plot_high = high * static_cast<double>(rows);
  const double width = std::max({margin + plot_wide + kMargin + std::max(kScaleWidth + 14, beyond), head_width(map)});
  const double top = head_height(map) + over, scale_high = std::clamp(plot_high, 50.0, 160.0);
  picture.resize(width, top + std::max(plot_high, scale_height(scale_high, range)) + kMargin);
  head(picture, map, settings, width);
  const Grid grid = {margin, top, wide, high, rows, columns};
  row_labels(picture, grid, left, 170, ink.text);
  column_labels(picture, grid, above, 150, flat, ink.text);

  if (rows * columns <= kMostCells && std::min(wide, high) >= 4) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        picture.rectangle(grid.x + static_cast<double>(column) * wide, grid.y + static_cast<double>(row) * high, wide,
                          high, color_of(static_cast<double>(values[row * columns + column]), range, settings.theme),
                          "cell");
      }
    }
  } else {
    const auto pixels = [](double points) { return static_cast<std::size_t>(std::max(1.0, std::round(points))); };
    // Two pixels a point: PNG files have as many.
    picture.image(grid.x, grid.y, plot_wide, plot_high,
                  pooled(values, rows, columns, pixels(plot_high * 2), pixels(plot_wide * 2), range, settings.theme),
                  true, "map");
  }
  picture.frame(grid.x, grid.y, plot_wide, plot_high, ink.line, 1);
  for (const auto& [row, column] : map.links) {
    if (row < 0 || row >= rows || column < 0 || column >= columns) continue;
    const double inset = std::min(1.5, std::min(wide, high) / 6);
    picture.frame(grid.x + static_cast<double>(column) * wide + inset, grid.y + static_cast<double>(row) * high + inset,
                  wide - 2 * inset, high - 2 * inset, range.low < 0 ? ink.text : ink.mark, std::min(2.0, high / 6),
                  "link");
  }
  scale(picture, grid.x + plot_wide + 14, grid.y, scale_high, range, settings);
  return picture;
}

Canvas heads_picture(const Shown& map, const Tensor& weights, const PictureSettings& settings) {
  check(weights.rank() == 4, "all heads: weights ", weights.shape(), ", expected [layers, heads, rows, columns]");
  const Inks& ink = inks(settings.theme);
  Canvas picture(0, 0, ink.ground);
  const std::int64_t layers = weights[0], heads = weights[1], rows = weights[2], columns = weights[3];
  if (weights.size() == 0) {
    picture.resize(head_width(map), head_height(map) + 40);
    const double y = head(picture, map, settings, picture.width());
    picture.text(kMargin, y + 10, text("nothing to show: weights ", weights.shape()),
                 {.color = ink.faint, .role = "note"});
    return picture;
  }
  check(layers * heads <= 4096, "all heads: ", layers, " layers of ", heads, " heads, expected at most 4096 in all");
  const Range range = range_of(weights.data<float>(), weights.size(), map.difference);
  const double side = std::clamp(1000.0 / static_cast<double>(heads) - 10, 24.0, 130.0);
  const double ratio = std::clamp(static_cast<double>(rows) / static_cast<double>(columns), 0.4, 1.6);
  const double high = side * ratio, label = 44, over = 18;
  const double width =
      std::max(kMargin * 2 + label + static_cast<double>(heads) * (side + 10) + kScaleWidth, head_width(map));
  const double top = head_height(map) + over;
  picture.resize(width,
                 top + std::max(static_cast<double>(layers) * (high + 10), 40 + scale_height(0, range)) + kMargin);
  head(picture, map, settings, width);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const double y = top + static_cast<double>(layer) * (high + 10);
    picture.text(kMargin, y + high / 2, text("layer ", layer),
                 {.size = 10, .color = ink.text, .width = label - 2, .role = "label"});
    for (std::int64_t number = 0; number < heads; ++number) {
      const double x = kMargin + label + static_cast<double>(number) * (side + 10);
      if (layer == 0) {
        picture.text(x + side / 2, top - 9, side < 44 ? text(number) : text("head ", number),
                     {.anchor = Anchor::kMiddle, .size = 10, .color = ink.text, .role = "label"});
      }
      const float* values = weights.data<float>() + (layer * heads + number) * rows * columns;
      picture.image(x, y, side, high,
                    pooled(values, rows, columns, static_cast<std::size_t>(std::ceil(high * 2)),
                           static_cast<std::size_t>(std::ceil(side * 2)), range, settings.theme),
                    true, "map");
      picture.frame(x, y, side, high, ink.line, 0.75);
    }
  }
  scale(picture, kMargin + label + static_cast<double>(heads) * (side + 10) + 6, top,
        std::clamp(static_cast<double>(layers) * (high + 10) - 10, 40.0, 160.0), range, settings);
  return picture;
}

Canvas entropy_picture(const Shown& map, const Tensor& entropy, const PictureSettings& settings) {
  check(entropy.rank() == 2, "entropies ", entropy.shape(), ", expected [layers, heads]");
  const Inks& ink = inks(settings.theme);
  Canvas picture(0, 0, ink.ground);
  const std::int64_t layers = entropy[0], heads = entropy[1];
  if (entropy.size() == 0) {
    picture.resize(head_width(map), head_height(map) + 40);
    const double y = head(picture, map, settings, picture.width());
    picture.text(kMargin, y + 10, text("nothing to show: ", layers, " layers of ", heads, " heads"),
                 {.color = ink.faint, .role = "note"});
    return picture;
  }
  check(layers * heads <= kMostCells, "entropies of ", layers, " layers of ", heads, " heads, expected at most ",
        kMostCells, " in all");
  const Tensor single = entropy.to(DType::kF32);
  const float* values = single.data<float>();
  const Range range = range_of(values, entropy.size(), false);
  const double wide = 52, high = 28, label = 52, over = 20;
  const double width = std::max(kMargin * 2 + label + wide * static_cast<double>(heads) + kScaleWidth, head_width(map));
  const double top = head_height(map) + over;
  picture.resize(width, top + std::max(high * static_cast<double>(layers), 50 + scale_height(0, range)) + kMargin);
  head(picture, map, settings, width);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const double y = top + high * static_cast<double>(layer);
    picture.text(kMargin, y + high / 2, text("layer ", layer), {.size = 11, .color = ink.text, .role = "label"});
    for (std::int64_t number = 0; number < heads; ++number) {
      const double x = kMargin + label + wide * static_cast<double>(number);
      if (layer == 0) {
        picture.text(x + wide / 2, top - 9, text("head ", number),
                     {.anchor = Anchor::kMiddle, .size = 11, .color = ink.text, .role = "label"});
      }
      const double value = static_cast<double>(values[layer * heads + number]);
      const Color color = color_of(value, range, settings.theme);
      picture.rectangle(x, y, wide, high, color, "cell");
      picture.text(x + wide / 2, y + high / 2, weight_text(value),
                   {.anchor = Anchor::kMiddle, .size = 11, .color = readable_on(color), .role = "value"});
    }
  }
  picture.frame(kMargin + label, top, wide * static_cast<double>(heads), high * static_cast<double>(layers), ink.line);
  scale(picture, kMargin + label + wide * static_cast<double>(heads) + 12, top,
        std::clamp(high * static_cast<double>(layers), 50.0, 160.0), range, settings);
  return picture;
}

}  // namespace regard
