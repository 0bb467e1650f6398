#include "view/canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/modules.h"
#include "base/utf8.h"
#include "view/draw_module.h"
#include "view/svg.h"
#include "view/terminal.h"

namespace regard {
namespace {

constexpr const char* kName = "regard_draw.so";
constexpr double kMostPixels = 16384;
constexpr double kMiddle = 0.36;  // of the size: how far the middle of letters is above the line they stand on

const RegardDrawModule* find_draw_module() {
  static const RegardDrawModule* const found =
      find_module<RegardDrawModule>(kName, "regard_draw_module", kRegardDrawVersion);
  return found;
}

std::string svg_color(const Figure& shape, const char* what) {
  std::string out = fmt::format(" {}=\"{}\"", what, shape.color.hex());
  if (shape.color.alpha < 1) out += fmt::format(" {}-opacity=\"{}\"", what, svg_number(shape.color.alpha));
  return out;
}

std::string place(const Figure& shape) {
  return fmt::format(" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", svg_number(shape.x), svg_number(shape.y),
                     svg_number(shape.width), svg_number(shape.height));
}

std::string svg_of(const Figure& shape) {
  const std::string role = shape.role.empty() ? "" : fmt::format(" class=\"{}\"", shape.role);
  const std::vector<double>& points = shape.points;
  const auto point = [&](std::size_t i) { return svg_number(points[2 * i]) + ' ' + svg_number(points[2 * i + 1]); };
  const std::string stroke =
      fmt::format("{} stroke-width=\"{}\" fill=\"none\"", svg_color(shape, "stroke"), svg_number(shape.stroke));
  switch (shape.kind) {
    case Figure::Kind::kRectangle:
      return fmt::format("<rect{}{}{}/>\n", role, place(shape), svg_color(shape, "fill"));
    case Figure::Kind::kFrame:
      return fmt::format("<rect{}{}{}/>\n", role, place(shape), stroke);
    case Figure::Kind::kLine:
      return fmt::format("<path{} d=\"M{} L{}\"{}/>\n", role, point(0), point(1), stroke);
    case Figure::Kind::kCurve:
      return fmt::format("<path{} d=\"M{} C{} {} {}\"{}/>\n", role, point(0), point(1), point(2), point(3), stroke);
    case Figure::Kind::kArea: {
      std::string list;
      for (std::size_t i = 0; i < points.size() / 2; ++i) list += (i == 0 ? "" : " ") + point(i);
      return fmt::format("<polygon{} points=\"{}\"{}/>\n", role, list, svg_color(shape, "fill"));
    }
    case Figure::Kind::kText: {
      constexpr const char* kAnchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
      const std::string turned = shape.angle == 0
                                     ? ""
                                     : fmt::format(" transform=\"rotate({} {} {})\"", svg_number(shape.angle),
                                                   svg_number(shape.x), svg_number(shape.y));
      return fmt::format(
          "<text{} x=\"{}\" y=\"{}\" font-size=\"{}\" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"{}{}{}{}>{}"
          "</text>\n",
          role, svg_number(shape.x), svg_number(shape.y + kMiddle * shape.size), svg_number(shape.size),
          svg_number(shape.width), kAnchors[static_cast<int>(shape.anchor)], svg_color(shape, "fill"),
          shape.bold ? " font-weight=\"bold\"" : "", turned, svg_escape(shape.text));
    }
    case Figure::Kind::kImage:
      return fmt::format("<image{}{} preserveAspectRatio=\"none\"{} href=\"{}\"/>\n", role, place(shape),
                         shape.sharp ? " style=\"image-rendering:pixelated\"" : "", data_address(shape.pixels));
  }
  return "";
}

}  // namespace

bool can_draw() { return find_draw_module() != nullptr; }

std::string shown(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Letter letter = utf8::read(text, at);
    at += letter.length;
    const bool blank = letter.code == ' ' || letter.code == '\t' || letter.code == '\n';
    std::string bytes;
    utf8::append(bytes, letter.code);
    out += blank ? " " : printable(bytes);
  }
  return out;
}

double text_width(std::string_view text, double size, bool bold) {
  if (text.empty()) return 0;
  const RegardDrawModule* const module = find_draw_module();
  if (module != nullptr) return module->text_width(std::string(text).c_str(), size, bold ? 1 : 0);
  return display_width(text) * size * 0.6;
}

std::string fitted(std::string_view text, double size, double width, bool bold) {
  if (text_width(text, size, bold) <= width) return std::string(text);
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at < text.size(); at += utf8::read(text, at).length) ends.push_back(at);
  const auto cut = [&](std::size_t letters) { return std::string(text.substr(0, ends[letters])) + "…"; };
  std::size_t low = 0, high = ends.size();  // `low` letters fit, as far as is known
  while (high - low > 1) {
    const std::size_t middle = (low + high) / 2;
    (text_width(cut(middle), size, bold) <= width ? low : high) = middle;
  }
  return cut(low);
}

void Canvas::rectangle(double x, double y, double width, double height, Color color, std::string_view role) {
  shapes_.push_back({.kind = Figure::Kind::kRectangle,
                     .x = x,
                     .y = y,
                     .width = width,
                     .height = height,
                     .color = color,
                     .role = role});
}

void Canvas::frame(double x, double y, double width, double height, Color color, double stroke, std::string_view role) {
  shapes_.push_back({.kind = Figure::Kind::kFrame,
                     .x = x,
                     .y = y,
                     .width = width,
                     .height = height,
                     .color = color,
                     .stroke = stroke,
                     .role = role});
}

void Canvas::line(double x1, double y1, double x2, double y2, Color color, double stroke, std::string_view role) {
  shapes_.push_back(
      {.kind = Figure::Kind::kLine, .color = color, .stroke = stroke, .points = {x1, y1, x2, y2}, .role = role});
}

void Canvas::curve(const std::pair<double, double> (&points)[4], Color color, double stroke, std::string_view role) {
  Figure shape{.kind = Figure::Kind::kCurve, .color = color, .stroke = stroke, .role = role};
  for (const auto& [x, y] : points) shape.points.insert(shape.points.end(), {x, y});
  shapes_.push_back(std::move(shape));
}

void Canvas::area(const std::vector<double>& points, Color color, std::string_view role) {
  if (points.size() < 6) return;
  shapes_.push_back({.kind = Figure::Kind::kArea, .color = color, .points = points, .role = role});
}

void Canvas::text(double x, double y, std::string_view text, const Words& how) {
  std::string words = shown(text);
  if (how.width > 0) words = fitted(words, how.size, how.width, how.bold);
  if (words.empty()) return;
  shapes_.push_back({.kind = Figure::Kind::kText,
                     .x = x,
                     .y = y,
                     .width = text_width(words, how.size, how.bold),
                     .color = how.color,
                     .text = words,
                     .size = how.size,
                     .angle = how.angle,
                     .anchor = how.anchor,
                     .bold = how.bold,
                     .role = how.role});
}

void Canvas::image(double x, double y, double width, double height, Pixels pixels, bool sharp, std::string_view role) {
  if (pixels.rows == 0 || pixels.columns == 0) return;
  shapes_.push_back({.kind = Figure::Kind::kImage,
                     .x = x,
                     .y = y,
                     .width = width,
                     .height = height,
                     .sharp = sharp,
                     .pixels = std::move(pixels),
                     .role = role});
}

void Canvas::resize(double width, double height) {
  width_ = std::ceil(width);
  height_ = std::ceil(height);
}

std::size_t Canvas::count(std::string_view role) const {
  return static_cast<std::size_t>(
      std::count_if(shapes_.begin(), shapes_.end(), [role](const Figure& shape) { return shape.role == role; }));
}

std::string Canvas::svg() const {
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"{2}\"/>\n",
      svg_number(width_), svg_number(height_), ground_.hex());
  for (const Figure& shape : shapes_) out += svg_of(shape);
  return out + "</svg>\n";
}

std::string Canvas::png(double scale) const { return render(false, scale); }
std::string Canvas::pdf() const { return render(true, 1); }

std::string Canvas::render(bool pdf, double scale) const {
  const RegardDrawModule* const module = find_draw_module();
  if (module == nullptr) {
    fail(ErrorKind::kFile, "a picture as PNG or PDF needs the module ", kName,
         ", which was not found or cannot be opened (", module_places_text(kName), "); SVG and HTML do without");
  }
  std::vector<RegardDrawShape> plain;
  plain.reserve(shapes_.size() + 1);
  const auto unit = [](std::uint8_t value) { return value / 255.0; };
  const auto colored = [&](Color color) {
    RegardDrawShape out = {};
    out.red = unit(color.red), out.green = unit(color.green), out.blue = unit(color.blue), out.alpha = color.alpha;
    return out;
  };
  plain.push_back(colored(ground_));
  plain.back().width = width_, plain.back().height = height_;
  for (const Figure& shape : shapes_) {
    RegardDrawShape& out = plain.emplace_back(colored(shape.color));
    out.kind = static_cast<int>(shape.kind);
    out.x = shape.x, out.y = shape.y, out.width = shape.width, out.height = shape.height;
    out.stroke = shape.stroke, out.size = shape.size, out.angle = shape.angle;
    out.anchor = static_cast<int>(shape.anchor) / 2.0;
    out.flags = (shape.bold ? 1 : 0) | (shape.sharp ? 2 : 0);
    out.points = shape.points.data(), out.count = shape.points.size() / 2;
    out.text = shape.text.c_str();
    out.pixels = shape.pixels.bytes.data(), out.rows = shape.pixels.rows, out.columns = shape.pixels.columns;
  }
  const double fitting = std::min(scale, kMostPixels / std::max({width_, height_, 1.0}));
  const RegardDrawPicture picture = {width_, height_, fitting, plain.data(), plain.size()};
  std::string bytes;
  std::array<char, 300> error = {};
  const int well = module->render(
      &picture, pdf ? 1 : 0,
      [](void* user, const void* part, std::size_t size) {
        static_cast<std::string*>(user)->append(static_cast<const char*>(part), size);
      },
      &bytes, error.data(), error.size());
  if (well != 1) fail(ErrorKind::kInternal, "cannot draw a picture of ", width_, " × ", height_, ": ", error.data());
  return bytes;
}

}  // namespace regard
