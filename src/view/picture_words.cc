// Maps as words: lines between two sentences, one token's row, shaded text.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/utf8.h"
#include "view/picture_parts.h"

namespace regard {

using namespace picture;

namespace {

constexpr double kSize = 14, kLine = 27;

bool from_the_right(std::string_view text) {  // whether its first letter is Hebrew, Arabic or the like
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Letter letter = utf8::read(text, at);
    at += letter.length;
    const char32_t code = letter.code;
    if ((code >= 0x590 && code <= 0x8FF) || (code >= 0xFB1D && code <= 0xFEFC)) return true;
    if ((code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') || code >= 0x3040) return false;
  }
  return false;
}

// Words one after another, each on the colour of its weight; gives where the next line begins. Without a drawing it
// only measures.
double flow(Canvas* picture, const TraceAxis& axis, const std::vector<double>& weights, const Range& range,
            const PictureSettings& settings, double y, double width) {
  constexpr double kPad = 2;
  const double right = width - kMargin;
  const bool mirrored = from_the_right(axis.text);
  double x = kMargin;
  for (const TokenPart& part : text_parts(axis)) {
    const std::string words = shown(part.text);
    if (part.token < 0) {
      x += std::min(text_width("n", kSize) * (words.empty() ? 0 : 0.5), 40.0);
      if (words.find_first_not_of(' ') == std::string::npos) continue;
    }
    const std::string cut = fitted(words, kSize, right - kMargin - 2 * kPad);
    const double length = text_width(cut, kSize) + 2 * kPad;
    if (x + length > right && x > kMargin) {
      x = kMargin;
      y += kLine;
    }
    if (picture != nullptr) {
      const double place = mirrored ? width - x - length : x;
      Color ground = inks(settings.theme).ground;
      if (part.token >= 0) {
        ground = color_of(weights[static_cast<std::size_t>(part.token)], range, settings.theme);
        picture->rectangle(place, y, length, kLine - 5, ground, "word");
      }
      picture->text(place + kPad, y + (kLine - 5) / 2, cut,
                    {.size = kSize, .color = readable_on(ground), .role = "label"});
    }
    x += length;
  }
  return y + kLine;
}

Range range_of_row(const std::vector<double>& row, bool difference) {
  std::vector<float> single(row.begin(), row.end());
  return range_of(single.data(), static_cast<std::int64_t>(single.size()), difference);
}

}  // namespace

std::vector<TokenPart> text_parts(const TraceAxis& axis) {
  std::vector<TokenPart> parts;
  std::size_t at = 0;
  for (std::int64_t i = 0; i < axis.size(); ++i) {
    if (axis.kind != TraceAxis::Kind::kTokens) {
      if (i > 0) parts.push_back({" "});
      parts.push_back({axis.label(i), i});
      continue;
    }
    const TraceToken& token = axis.tokens[static_cast<std::size_t>(i)];
    const bool stands = token.begin < token.end && token.begin >= at && token.end <= axis.text.size();
    if (!stands) {  // the end, or tokens that share bytes
      if (i > 0) parts.push_back({" "});
      parts.push_back({token.text, i});
      continue;
    }
    if (token.begin > at) parts.push_back({axis.text.substr(at, token.begin - at)});
    // A piece may hold the blank before it: the blank is not shaded.
    const std::string words = axis.text.substr(token.begin, token.end - token.begin);
    const std::size_t first = words.find_first_not_of(' ');
    if (first != std::string::npos && first > 0) parts.push_back({" "});
    parts.push_back({first == std::string::npos ? words : words.substr(first), i});
    at = token.end;
  }
  return parts;
}

Canvas lines_picture(const Shown& map, const PictureSettings& settings) {
  const Inks& ink = inks(settings.theme);
  Canvas picture(0, 0, ink.ground);
  if (empty(picture, map, settings)) return picture;
  const std::int64_t rows = map.weights[0], columns = map.weights[1];
  const float* values = map.weights.data<float>();
  const Range range = range_of(values, rows * columns, map.difference);
  const std::vector<std::string> left = labels_of(map.columns), right = labels_of(map.rows);
  const auto step_of = [](std::int64_t count) { return std::min(24.0, kMost / static_cast<double>(count)); };
  const double left_step = step_of(columns), right_step = step_of(rows), gap = 240;
  const double left_width = widest(left, 13, 220), right_width = widest(right, 13, 220);
  const double top = head_height(map) + 26,
               high = std::max(left_step * static_cast<double>(columns), right_step * static_cast<double>(rows));
  const double width = std::max(kMargin * 2 + left_width + gap + right_width + 24, head_width(map));
  picture.resize(width, top + high + kMargin);
  head(picture, map, settings, width);
  const double x1 = kMargin + left_width + 10, x2 = x1 + gap - 8;
  const auto at = [&](std::int64_t i, std::int64_t count, double step) {
    return top + (high - step * static_cast<double>(count)) / 2 + (static_cast<double>(i) + 0.5) * step;
  };
  picture.text(x1 - 4, top - 12, map.columns.name,
               {.anchor = Anchor::kEnd, .size = 11, .color = ink.faint, .width = left_width + 20, .role = "note"});
  picture.text(x2 + 4, top - 12, map.rows.name,
               {.size = 11, .color = ink.faint, .width = right_width + 20, .role = "note"});

  // Of every row the few heaviest: thousands of hairlines show nothing.
  struct Link {
    double part;
    std::int64_t row, column;
  };
  std::vector<Link> links;
  const std::size_t most =
      rows * columns <= kMostCells ? 12 : std::max<std::size_t>(1, 8192 / static_cast<std::size_t>(rows));
  std::vector<Link> of_row;
  for (std::int64_t row = 0; row < rows; ++row) {
    of_row.clear();
    for (std::int64_t column = 0; column < columns; ++column) {
      const double part = static_cast<double>(values[row * columns + column]) / range.high;
      if (std::isfinite(part) && std::abs(part) >= 0.03) of_row.push_back({part, row, column});
    }
    const std::size_t count = std::min({most, of_row.size(), std::size_t{12}});
    std::partial_sort(of_row.begin(), of_row.begin() + static_cast<std::ptrdiff_t>(count), of_row.end(),
                      [](const Link& a, const Link& b) {
                        return std::abs(a.part) != std::abs(b.part) ? std::abs(a.part) > std::abs(b.part)
                                                                    : a.column < b.column;
                      });
    links.insert(links.end(), of_row.begin(), of_row.begin() + static_cast<std::ptrdiff_t>(count));
  }
  std::stable_sort(links.begin(), links.end(),
                   [](const Link& a, const Link& b) { return std::abs(a.part) < std::abs(b.part); });
  const double thick = std::clamp(std::min(left_step, right_step) * 0.35, 0.6, 6.0);
  for (const Link& link : links) {
    const double y1 = at(link.column, columns, left_step), y2 = at(link.row, rows, right_step);
    const double part = std::abs(link.part);
    const Color color = range.low < 0 ? difference_color(settings.theme, link.part < 0 ? -1 : 1)
                                      : weight_color(settings.theme, settings.theme == Theme::kDark ? 0.9 : 0.75);
    picture.curve({{x1, y1}, {x1 + gap * 0.4, y1}, {x2 - gap * 0.4, y2}, {x2, y2}}, color.with(0.12 + 0.83 * part),
                  0.4 + thick * part, "link");
  }
  for (std::int64_t i = 0; i < columns; i += every(left_step, 12)) {
    picture.text(x1 - 4, at(i, columns, left_step), left[static_cast<std::size_t>(i)],
                 {.anchor = Anchor::kEnd, .size = 13, .color = ink.text, .width = 220, .role = "label"});
  }
  for (std::int64_t i = 0; i < rows; i += every(right_step, 12)) {
    picture.text(x2 + 4, at(i, rows, right_step), right[static_cast<std::size_t>(i)],
                 {.size = 13, .color = ink.text, .width = 220, .role = "label"});
  }
  return picture;
}

Canvas row_picture(const Shown& map, std::int64_t row, const PictureSettings& settings) {
  const Inks& ink = inks(settings.theme);
  Canvas picture(0, 0, ink.ground);
  if (empty(picture, map, settings)) return picture;
  const std::vector<double> weights = row_of(map.weights, row);
  const Range range = range_of_row(weights, map.difference);
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto heavier = [&](std::size_t a, std::size_t b) {
    const double x = std::isfinite(weights[a]) ? std::abs(weights[a]) : -1;
    const double y = std::isfinite(weights[b]) ? std::abs(weights[b]) : -1;
    return x != y ? x > y : a < b;
  };
  constexpr std::size_t kBars = 40, kFew = 20;  // the heaviest, in the order of the text
  std::size_t bars = std::min(kBars, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(bars), order.end(), heavier);
  while (bars > kFew && !(std::abs(weights[order[bars - 1]]) >= range.high / 500)) --bars;
  const std::size_t first = order[0];
  order.resize(bars);
  std::sort(order.begin(), order.end());

  Shown titled = map;
  titled.title = text(map.rows.label(row), " → ", map.columns.label(static_cast<std::int64_t>(first)), " (",
                      weight_text(weights[first]), ")");
  titled.note = map.title + (map.note.empty() ? "" : " · " + map.note);
  if (weights.size() > bars) titled.note += text(" · the ", bars, " heaviest of ", weights.size());
  std::vector<std::string> labels;
  labels.reserve(order.size());
  for (const std::size_t i : order) labels.push_back(map.columns.label(static_cast<std::int64_t>(i)));
  const double width = std::max(620.0, head_width(titled)), label = widest(labels, 13, 200), step = 20;
  const double top = head_height(titled);
  const bool words = map.columns.kind == TraceAxis::Kind::kTokens && weights.size() <= 2000;
  const double below = words ? flow(nullptr, map.columns, weights, range, settings, top, width) + 12 : top;
  picture.resize(width, below + step * static_cast<double>(bars) + kMargin);
  head(picture, titled, settings, width);
  if (words) flow(&picture, map.columns, weights, range, settings, top, width);
  const double x = kMargin + label + 8, most = width - x - 70, middle = range.low < 0 ? most / 2 : 0;
  for (std::size_t i = 0; i < bars; ++i) {
    const double y = below + step * static_cast<double>(i), weight = weights[order[i]];
    picture.text(x - 6, y + step / 2, labels[i],
                 {.anchor = Anchor::kEnd, .size = 13, .color = ink.text, .width = 200, .role = "label"});
    const double part = std::isfinite(weight) ? weight / range.high : 0;
    const double length = std::abs(part) * (most - middle);
    const Color color = range.low < 0 ? difference_color(settings.theme, part < 0 ? -0.8 : 0.8)
                                      : weight_color(settings.theme, settings.theme == Theme::kDark ? 0.85 : 0.7);
    picture.rectangle(x + middle - (part < 0 ? length : 0), y + 3, std::max(length, 0.5), step - 6, color, "bar");
    picture.text(x + middle + (part < 0 ? 0 : length) + 5, y + step / 2,
                 weight_text(std::abs(weight) < range.high / 2000 ? 0 : weight),
                 {.size = 10, .color = ink.faint, .role = "value"});
  }
  return picture;
}

Canvas text_picture(const Shown& map, std::optional<std::int64_t> row, const PictureSettings& settings) {
  const Inks& ink = inks(settings.theme);
  Canvas picture(0, 0, ink.ground);
  if (empty(picture, map, settings)) return picture;
  const std::vector<double> weights = row ? row_of(map.weights, *row) : mean_row(map.weights);
  const Range range = range_of_row(weights, map.difference);
  Shown titled = map;
  const std::string whose = row ? text("looked at by ", map.rows.label(*row)) : text("looked at by all rows, mean");
  titled.note = whose + (map.note.empty() ? "" : " · " + map.note);
  const double width = std::max(720.0, head_width(titled)), flowing = width - kScaleWidth - 10,
               top = head_height(titled);
  const double bottom = flow(nullptr, map.columns, weights, range, settings, top, flowing);
  picture.resize(width, std::max(bottom, top + scale_height(50, range)) + kMargin);
  head(picture, titled, settings, width);
  flow(&picture, map.columns, weights, range, settings, top, flowing);
  scale(picture, width - kScaleWidth - 4, top, 50, range, settings);
  return picture;
}

}  // namespace regard
