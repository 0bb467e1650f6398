// Maps over pictures and sounds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "view/picture_parts.h"
#include "view/sound.h"

namespace regard {

using namespace picture;

namespace {

constexpr std::size_t kMostSide = 512;  // pixels of a picture that are drawn
constexpr std::int64_t kSheet = 60;

struct Size {
  std::size_t height, width;
};

// Of the picture as it is drawn: its own, made smaller if it is large, larger if it is tiny.
Size size_of(const TraceAxis& axis, std::size_t most) {
  const bool is_there = axis.picture.defined() && axis.picture.size() > 0;
  double height = static_cast<double>(is_there ? axis.picture[0] : axis.height);
  double width = static_cast<double>(is_there ? axis.picture[1] : axis.width);
  if (height < 1 || width < 1) {
    height = static_cast<double>(std::max<std::int64_t>(1, axis.rows));
    width = static_cast<double>(std::max<std::int64_t>(1, axis.columns));
  }
  const double factor = static_cast<double>(most) / std::max(height, width);
  const auto whole = [most](double value) {
    return std::clamp<std::size_t>(static_cast<std::size_t>(std::lround(value)), 1, most);
  };
  return {whole(height * factor), whole(width * factor)};
}

// The picture itself at the size it is drawn; grey where there is none.
Pixels picture_of(const TraceAxis& axis, Size size, Theme theme) {
  Pixels out(size.height, size.width);
  const bool is_there = axis.picture.defined() && axis.picture.size() > 0;
  const Color none = mix(inks(theme).ground, inks(theme).faint, 0.25);
  for (std::size_t y = 0; y < size.height; ++y) {
    for (std::size_t x = 0; x < size.width; ++x) {
      std::uint8_t* to = out.at(y, x);
      to[0] = none.red, to[1] = none.green, to[2] = none.blue, to[3] = 255;
      if (!is_there) continue;
      const auto height = static_cast<std::size_t>(axis.picture[0]), width = static_cast<std::size_t>(axis.picture[1]);
      // The mean of the pixels that fall on this one, or the nearest.
      const std::size_t top = y * height / size.height, left = x * width / size.width;
      const std::size_t bottom = std::max(top + 1, (y + 1) * height / size.height);
      const std::size_t right = std::max(left + 1, (x + 1) * width / size.width);
      for (std::size_t channel = 0; channel < 3; ++channel) {
        double sum = 0;
        for (std::size_t row = top; row < bottom; ++row) {
          for (std::size_t column = left; column < right; ++column) {
            const double value = static_cast<double>(axis.picture.data<float>()[(row * width + column) * 3 + channel]);
            sum += std::isfinite(value) ? std::clamp(value, 0.0, 1.0) : 0;
          }
        }
        to[channel] =
            static_cast<std::uint8_t>(std::lround(255 * sum / static_cast<double>((bottom - top) * (right - left))));
      }
    }
  }
  return out;
}

// Where nobody looked the picture becomes pale, where somebody did it shines through the colour of the weight.
void lay_over(Pixels& pixels, const std::vector<double>& weights, const Range& range, Theme theme) {
  const Color ground = inks(theme).ground;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    std::uint8_t* to = &pixels.bytes[4 * i];
    const Color here = {to[0], to[1], to[2]};
    const bool known = std::isfinite(weights[i]);
    const double part = known ? std::clamp(std::abs(weights[i]) / range.high, 0.0, 1.0) : 0.3;
    const double grey = (0.299 * to[0] + 0.587 * to[1] + 0.114 * to[2]);
    const auto level = static_cast<std::uint8_t>(std::lround(grey));
    const Color pale = mix({level, level, level}, ground, 0.35);
    const Color heat = known ? range.low < 0 ? difference_color(theme, weights[i] / range.high) : Color{230, 97, 1}
                             // seen on any picture, also by the colour-blind
                             : inks(theme).missing;
    const Color bright = mix(here, heat, 0.4);
    const Color out = mix(pale, bright, part);
    to[0] = out.red, to[1] = out.green, to[2] = out.blue;
  }
}

void panel(Canvas& picture, const TraceAxis& axis, const std::vector<double>* weights, double x, double y, Size size,
           double wide, double high, bool difference, const PictureSettings& settings) {
  const Inks& ink = inks(settings.theme);
  Pixels pixels = picture_of(axis, size, settings.theme);
  if (weights != nullptr) {
    std::vector<float> single(weights->begin(), weights->end());
    const Range range = range_of(single.data(), static_cast<std::int64_t>(single.size()), difference);
    lay_over(pixels, over_picture(axis, *weights, size.height, size.width), range, settings.theme);
  }
  picture.image(x, y, wide, high, std::move(pixels), false, "map");
  picture.frame(x, y, wide, high, ink.line, 0.75);
}

void check_picture(const Shown& map) {
  const TraceAxis::Kind kind = map.columns.kind;
  check(kind == TraceAxis::Kind::kGrid || kind == TraceAxis::Kind::kBoxes, "the columns, '", map.columns.name,
        "', are not a grid or boxes over a picture: no view of an image");
}

}  // namespace

std::vector<double> over_picture(const TraceAxis& axis, const std::vector<double>& weights, std::size_t height,
                                 std::size_t width) {
  std::vector<double> out(height * width);
  if (axis.kind == TraceAxis::Kind::kBoxes) {
    const double high = std::max<double>(1, static_cast<double>(axis.height));
    const double wide = std::max<double>(1, static_cast<double>(axis.width));
    for (std::size_t i = 0; i < axis.boxes.size(); ++i) {
      const TraceBox& box = axis.boxes[i];
      const auto place = [](double at, double all, std::size_t pixels) {
        const double pixel = at / all * static_cast<double>(pixels);
        return std::isfinite(pixel) ? static_cast<std::size_t>(std::clamp(pixel, 0.0, static_cast<double>(pixels)))
                                    : std::size_t{0};
      };
      const std::size_t bottom = place(box.bottom, high, height), right = place(box.right, wide, width);
      for (std::size_t y = place(box.top, high, height); y < bottom; ++y) {
        for (std::size_t x = place(box.left, wide, width); x < right; ++x) {
          double& to = out[y * width + x];  // where boxes lie on each other the heaviest counts
          if (std::isfinite(weights[i]) && std::abs(weights[i]) > std::abs(to)) to = weights[i];
        }
      }
    }
    return out;
  }
  const std::int64_t rows = axis.rows, columns = axis.columns;
  if (rows < 1 || columns < 1) return out;
  struct Between {
    std::int64_t low, high;
    double part;
  };
  const auto between = [](std::size_t pixel, std::size_t pixels, std::int64_t cells) {
    const double at =
        (static_cast<double>(pixel) + 0.5) * static_cast<double>(cells) / static_cast<double>(pixels) - 0.5;
    const double held = std::clamp(at, 0.0, static_cast<double>(cells - 1));
    const auto low = static_cast<std::int64_t>(held);
    return Between{low, std::min(low + 1, cells - 1), held - static_cast<double>(low)};
  };
  for (std::size_t y = 0; y < height; ++y) {
    const Between down = between(y, height, rows);
    for (std::size_t x = 0; x < width; ++x) {
      const Between along = between(x, width, columns);
      const auto at = [&](std::int64_t row, std::int64_t column) {
        return weights[static_cast<std::size_t>(row * columns + column)];
      };
      const double above = at(down.low, along.low) * (1 - along.part) + at(down.low, along.high) * along.part;
      const double below = at(down.high, along.low) * (1 - along.part) + at(down.high, along.high) * along.part;
      out[y * width + x] = above * (1 - down.part) + below * down.part;
    }
  }
  return out;
}

Pixels photo(const TraceAxis& axis, std::size_t most) { return picture_of(axis, size_of(axis, most), Theme::kLight); }

Canvas image_picture(const Shown& map, std::optional<std::int64_t> row, const PictureSettings& settings) {
  check_picture(map);
  const Inks& ink = inks(settings.theme);
  Canvas picture(0, 0, ink.ground);
  if (empty(picture, map, settings)) return picture;
  const std::int64_t shown_rows = row ? 1 : std::min(map.weights[0], kSheet);
  Shown titled = map;
  if (!row && map.weights[0] > kSheet) {
    titled.note += text(titled.note.empty() ? "" : " · ", "the first ", kSheet, " of ", map.weights[0]);
  }
  const std::size_t most = row ? kMostSide : std::size_t{200};
  const Size size = size_of(map.columns, most);
  const double factor = (row ? 380.0 : 150.0) / static_cast<double>(std::max(size.height, size.width));
  const double wide = static_cast<double>(size.width) * factor, high = static_cast<double>(size.height) * factor;
  const double label = 34, gap = 12, cell = std::max(wide, 96.0);
  const auto across = row ? std::int64_t{2} : std::clamp<std::int64_t>(shown_rows + 1, 2, 6);
  const std::int64_t panels = shown_rows + 1, lines = (panels + across - 1) / across;
  const double width = std::max(kMargin * 2 + static_cast<double>(across) * (cell + gap), head_width(map));
  const double top = head_height(titled);
  picture.resize(width, top + static_cast<double>(lines) * (high + label + gap) + kMargin);
  head(picture, titled, settings, width);
  for (std::int64_t i = 0; i < panels; ++i) {
    const double x = kMargin + static_cast<double>(i % across) * (cell + gap);
    const std::int64_t line = i / across;
    const double y = top + static_cast<double>(line) * (high + label + gap);
    if (i == 0) {
      picture.text(x, y + 9, map.columns.name, {.size = 11, .color = ink.faint, .width = cell, .role = "note"});
      panel(picture, map.columns, nullptr, x, y + label, size, wide, high, false, settings);
      const double per = wide / std::max<double>(1, static_cast<double>(map.columns.width));
      for (const TraceBox& box : map.columns.boxes) {
        if (!(box.right > box.left && box.bottom > box.top)) continue;
        const auto held = [](double value, double limit) {
          return std::isfinite(value) ? std::clamp(value, 0.0, limit) : 0.0;
        };
        const double left = held(box.left * per, wide), above = held(box.top * per, high);
        picture.frame(x + left, y + label + above, held(box.right * per, wide) - left,
                      held(box.bottom * per, high) - above, ink.mark, 1, "box");
      }
      continue;
    }
    const std::int64_t which = row ? *row : i - 1;
    const std::vector<double> weights = row_of(map.weights, which);
    double peak = 0;
    for (const double weight : weights) {
      if (std::isfinite(weight)) peak = std::max(peak, std::abs(weight));
    }
    picture.text(x, y + 9, map.rows.label(which),
                 {.size = 13, .color = ink.text, .width = cell, .bold = true, .role = "label"});
    picture.text(x, y + 25, "most " + weight_text(peak),
                 {.size = 10, .color = ink.faint, .width = cell, .role = "value"});
    panel(picture, map.columns, &weights, x, y + label, size, wide, high, map.difference, settings);
  }
  return picture;
}

Canvas sound_picture(const Shown& map, const PictureSettings& settings) {
  check(map.columns.kind == TraceAxis::Kind::kFrames, "the columns, '", map.columns.name,
        "', are not frames of a sound: no view of a sound");
  const Inks& ink = inks(settings.theme);
  Canvas picture(0, 0, ink.ground);
  if (empty(picture, map, settings)) return picture;
  const TraceAxis& axis = map.columns;
  const std::int64_t rows = map.weights[0], columns = map.weights[1];
  const float* values = map.weights.data<float>();
  const Range range = range_of(values, rows * columns, map.difference);
  const std::vector<std::string> labels = labels_of(map.rows);
  const double wide = 720, step = std::min(20.0, kMost / static_cast<double>(rows));
  const double high = std::max(step * static_cast<double>(rows), 40.0);
  const double label = widest(labels, 12, 150), x = kMargin + label + 8;
  constexpr std::size_t kPoints = 720;
  const std::vector<Extent> extents = wave_of(axis, kPoints);
  const Tensor spectrum = spectrum_of(axis);
  const double wave = extents.empty() ? 0 : 90, bands = spectrum.defined() ? 110 : 0;
  const double top = head_height(map);
  const double below = top + wave + bands + (wave + bands > 0 ? 8 : 0);
  const double width = x + wide + kScaleWidth + kMargin + 6;
  picture.resize(width, below + std::max(high + 30, scale_height(std::clamp(high, 40.0, 160.0), range)) + kMargin);
  head(picture, map, settings, width);

  if (!extents.empty()) {
    std::vector<double> outline(kPoints * 4);
    for (std::size_t i = 0; i < kPoints; ++i) {
      const double place = x + wide * (static_cast<double>(i) + 0.5) / kPoints, middle = top + wave / 2 - 4;
      const double reach = wave / 2 - 6;
      outline[2 * i] = outline[4 * kPoints - 2 - 2 * i] = place;
      outline[2 * i + 1] = middle - std::max(0.3, extents[i].high * reach);
      outline[4 * kPoints - 1 - 2 * i] = middle + std::max(0.3, -extents[i].low * reach);
    }
    picture.area(outline, weight_color(settings.theme, 0.6), "wave");
  }
  if (spectrum.defined()) {
    picture.image(
        x, top + wave, wide, bands,
        pooled(spectrum.data<float>(), spectrum[0], spectrum[1], 220, 1440, {.low = 0, .high = 1}, settings.theme),
        false, "spectrum");
  }
  picture.image(x, below, wide, high,
                pooled(values, rows, columns, static_cast<std::size_t>(high * 2), 1440, range, settings.theme), true,
                "map");
  picture.frame(x, below, wide, high, ink.line, 0.75);
  const double each = high / static_cast<double>(rows);
  for (std::int64_t row = 0; row < rows; row += every(each, 12)) {
    picture.text(x - 6, below + (static_cast<double>(row) + 0.5) * each, labels[static_cast<std::size_t>(row)],
                 {.anchor = Anchor::kEnd, .size = 12, .color = ink.text, .width = 150, .role = "label"});
  }
  const Seconds time = time_of(axis);
  for (int i = 0; i <= 6; ++i) {
    const double place = x + wide * i / 6;
    picture.line(place, below + high, place, below + high + 5, ink.faint);
    picture.text(place, below + high + 14, fmt::format("{:.2f} s", time.first + time.length * i / 6),
                 {.anchor = Anchor::kMiddle, .size = 10, .color = ink.faint, .role = "time"});
  }
  scale(picture, x + wide + 14, below, std::clamp(high, 40.0, 160.0), range, settings);
  return picture;
}

}  // namespace regard
