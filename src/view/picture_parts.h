// What the pictures share: how weights become colours, the head of a picture, its scale, labels, maps as images.
#pragma once

#include <string>
#include <vector>

#include "view/pictures.h"

namespace regard::picture {

inline constexpr double kMargin = 16, kMost = 900;  // of the plot, in points
inline constexpr std::int64_t kMostCells = 4096;    // drawn one by one; more become an image

// From which weight to which the colours go.
struct Range {
  double low = 0, high = 1;  // low < 0: a difference, around 0
  bool missing = false;      // some are not finite
};
Range range_of(const float* values, std::int64_t count, bool difference);
Color color_of(double value, const Range& range, Theme theme);

// Title, note and erasure; gives where the rest begins.
double head(Canvas& picture, const Shown& map, const PictureSettings& settings, double width);
double head_height(const Shown& map);
double head_width(const Shown& map);  // at least so wide a picture with this head is

// The scale of colours, upright at x, y.
inline constexpr double kScaleWidth = 70;
double scale_height(double height, const Range& range);  // with what stands below it
void scale(Canvas& picture, double x, double y, double height, const Range& range, const PictureSettings& settings);

// A map as an image of at most `most` pixels a side: each the heaviest cell of those that fall on it.
Pixels pooled(const float* values, std::int64_t rows, std::int64_t columns, std::size_t most_rows,
              std::size_t most_columns, const Range& range, Theme theme);

std::vector<std::string> labels_of(const TraceAxis& axis);
double widest(const std::vector<std::string>& labels, double size, double most);
std::int64_t every(double step, double least);  // which labels are shown so that they are `least` apart

// Says so where there is nothing to draw; false: there is.
bool empty(Canvas& picture, const Shown& map, const PictureSettings& settings);

}  // namespace regard::picture
