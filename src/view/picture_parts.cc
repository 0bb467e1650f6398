#include "view/picture_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace regard {

std::string weight_text(double value) {
  if (!std::isfinite(value)) return "?";
  if (std::abs(value) >= 1e6 || (value != 0 && std::abs(value) < 0.0005)) return fmt::format("{:.2e}", value);
  return std::abs(value) < 10 ? fmt::format("{:.3f}", value) : fmt::format("{:.1f}", value);
}

std::string erasure_text(const TraceErasure& erasure) {
  return fmt::format(
      "erasure: the log-probability falls by {} without the {} word{} looked at most, by {} without others",
      weight_text(erasure.most), erasure.words, erasure.words == 1 ? "" : "s", weight_text(erasure.random));
}

std::vector<double> row_of(const Tensor& weights, std::int64_t row) {
  check(weights.rank() == 2 && row >= 0 && row < weights[0], "row ", row, " of a map of ", weights.shape());
  const float* from = weights.data<float>() + row * weights[1];
  return {from, from + weights[1]};
}

std::vector<double> mean_row(const Tensor& weights) {
  const std::int64_t rows = weights[0], columns = weights[1];
  std::vector<double> sums(static_cast<std::size_t>(columns)), counts(sums.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* from = weights.data<float>() + row * columns;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (!std::isfinite(from[i])) continue;
      sums[i] += static_cast<double>(from[i]);
      counts[i] += 1;
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = counts[i] > 0 ? sums[i] / counts[i] : std::nan("");
  return sums;
}

}  // namespace regard

namespace regard::picture {

Range range_of(const float* values, std::int64_t count, bool difference) {
  Range range{.low = 0, .high = 0};
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(values[i]);
    if (!std::isfinite(value)) {
      range.missing = true;
      continue;
    }
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
  }
  if (difference || range.low < 0) {
    range.high = std::max(range.high, -range.low);
    range.low = -range.high;
  }
  if (range.high == 0) {
    range.high = 1;
    if (difference) range.low = -1;
  }
  return range;
}

Color color_of(double value, const Range& range, Theme theme) {
  if (!std::isfinite(value)) return inks(theme).missing;
  return range.low < 0 ? difference_color(theme, value / range.high) : weight_color(theme, value / range.high);
}

namespace {
constexpr double kTitle = 15, kSmall = 11;
}

double head_height(const Shown& map) {
  return kMargin + (map.title.empty() ? 0 : 24) + (map.note.empty() ? 0 : 16) + (map.erasure ? 16 : 0) + 6;
}

double head_width(const Shown& map) {
  double width = 360;
  if (map.erasure) width = std::max(width, 2 * kMargin + 2 + text_width(erasure_text(*map.erasure), kSmall));
  width = std::max(width, std::min(640.0, 2 * kMargin + 2 + text_width(shown(map.note), kSmall)));
  return std::max(width, std::min(640.0, 2 * kMargin + 2 + text_width(shown(map.title), kTitle, true)));
}

double head(Canvas& picture, const Shown& map, const PictureSettings& settings, double width) {
  const Inks& ink = inks(settings.theme);
  double y = kMargin;
  const auto say = [&](const std::string& text, double size, Color color, bool bold, double height,
                       std::string_view role) {
    picture.text(kMargin, y + height / 2, text,
                 {.size = size, .color = color, .width = width - 2 * kMargin, .bold = bold, .role = role});
    y += height;
  };
  if (!map.title.empty()) say(map.title, kTitle, ink.text, true, 24, "title");
  if (!map.note.empty()) say(map.note, kSmall, ink.faint, false, 16, "note");
  if (map.erasure) say(erasure_text(*map.erasure), kSmall, ink.text, false, 16, "erasure");
  return y + 6;
}

double scale_height(double height, const Range& range) { return height + (range.missing ? 24 : 4); }

void scale(Canvas& picture, double x, double y, double height, const Range& range, const PictureSettings& settings) {
  constexpr std::size_t kSteps = 64;
  const Inks& ink = inks(settings.theme);
  Pixels bar(kSteps, 1);
  for (std::size_t i = 0; i < kSteps; ++i) {
    const double part = 1 - static_cast<double>(i) / (kSteps - 1);
    const Color color = color_of(range.low + part * (range.high - range.low), range, settings.theme);
    std::uint8_t* to = bar.at(i, 0);
    to[0] = color.red, to[1] = color.green, to[2] = color.blue, to[3] = 255;
  }
  picture.image(x, y, 12, height, std::move(bar), true, "scale");
  picture.frame(x, y, 12, height, ink.line, 0.5);
  const auto mark = [&](double place, const std::string& text) {
    picture.text(x + 17, place, text, {.size = 10, .color = ink.faint, .role = "scale"});
  };
  mark(y + 4, weight_text(range.high));
  if (range.low < 0 && height > 40) mark(y + height / 2, "0");
  mark(y + height - 4, range.low < 0 ? weight_text(range.low) : "0");
  if (range.missing) {
    picture.rectangle(x, y + height + 8, 12, 12, ink.missing, "scale");
    mark(y + height + 14, "not known");
  }
}

Pixels pooled(const float* values, std::int64_t rows, std::int64_t columns, std::size_t most_rows,
              std::size_t most_columns, const Range& range, Theme theme) {
  const auto height = std::min(static_cast<std::size_t>(rows), most_rows);
  const auto width = std::min(static_cast<std::size_t>(columns), most_columns);
  Pixels image(height, width);
  std::vector<float> line(width);
  std::vector<std::size_t> place(static_cast<std::size_t>(columns));
  for (std::size_t column = 0; column < place.size(); ++column) {
    place[column] = column * width / static_cast<std::size_t>(columns);
  }
  for (std::size_t y = 0; y < height; ++y) {
    std::fill(line.begin(), line.end(), std::nanf(""));
    const std::size_t all = static_cast<std::size_t>(rows);
    const std::size_t begin = (y * all + height - 1) / height, end = ((y + 1) * all + height - 1) / height;
    for (std::size_t row = begin; row < end; ++row) {
      const float* from = values + row * static_cast<std::size_t>(columns);
      for (std::size_t column = 0; column < place.size(); ++column) {
        float& to = line[place[column]];
        const float value = from[column];
        if (std::isfinite(value) && !(std::abs(value) <= std::abs(to))) to = value;
      }
    }
    for (std::size_t x = 0; x < width; ++x) {
      const Color color = color_of(static_cast<double>(line[x]), range, theme);
      std::uint8_t* to = image.at(y, x);
      to[0] = color.red, to[1] = color.green, to[2] = color.blue, to[3] = 255;
    }
  }
  return image;
}

std::vector<std::string> labels_of(const TraceAxis& axis) {
  std::vector<std::string> labels;
  const std::int64_t count = axis.size();
  labels.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) labels.push_back(axis.label(i));
  return labels;
}

double widest(const std::vector<std::string>& labels, double size, double most) {
  // Measuring thousands would take longer than drawing: those with the most columns of a terminal are the candidates.
  constexpr std::size_t kMeasured = 64;
  std::vector<std::pair<std::size_t, std::size_t>> lengths;
  for (std::size_t i = 0; i < labels.size(); ++i) lengths.emplace_back(labels[i].size(), i);
  const std::size_t count = std::min(kMeasured, lengths.size());
  std::partial_sort(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(count), lengths.end(),
                    [](const auto& a, const auto& b) { return a.first > b.first; });
  double width = 0;
  for (std::size_t i = 0; i < count && width < most; ++i) {
    width = std::max(width, text_width(fitted(shown(labels[lengths[i].second]), size, most), size));
  }
  return std::min(width, most);
}

std::int64_t every(double step, double least) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(least / std::max(step, 1e-6))));
}

bool empty(Canvas& picture, const Shown& map, const PictureSettings& settings) {
  check(map.weights.rank() == 2 && map.weights[0] == map.rows.size() && map.weights[1] == map.columns.size(),
        "a picture of weights ", map.weights.shape(), " with ", map.rows.size(), " rows and ", map.columns.size(),
        " columns");
  if (map.weights.size() > 0) return false;
  picture.resize(head_width(map), head_height(map) + 40);
  const double y = head(picture, map, settings, picture.width());
  picture.text(kMargin, y + 10, text("nothing to show: ", map.weights[0], " rows, ", map.weights[1], " columns"),
               {.color = inks(settings.theme).faint, .role = "note"});
  return true;
}

}  // namespace regard::picture
