#include "view/svg.h"

#include <fmt/format.h>

#include <cmath>

#include "base/utf8.h"

namespace regard {

std::string svg_number(double value) {
  if (!std::isfinite(value)) return "0";
  std::string out = fmt::format("{:.2f}", value);
  while (out.ends_with('0')) out.pop_back();
  if (out.ends_with('.')) out.pop_back();
  return out == "-0" ? "0" : out;
}

std::string svg_escape(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Letter letter = utf8::read(text, at);
    at += letter.length;
    if (letter.code == U'&') {
      out += "&amp;";
    } else if (letter.code == U'<') {
      out += "&lt;";
    } else if (letter.code == U'>') {
      out += "&gt;";
    } else if (letter.code == U'"') {
      out += "&quot;";
    } else {
      const bool fit = letter.code >= 0x20 && letter.code != 0xFFFE && letter.code != 0xFFFF;
      utf8::append(out, fit ? letter.code : U'\uFFFD');
    }
  }
  return out;
}

Svg::Svg(double width, double height) : width_(width), height_(height) {}

void Svg::rectangle(double x, double y, double width, double height, std::string_view color) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", svg_number(x),
                       svg_number(y), svg_number(width), svg_number(height), svg_escape(color));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view color, double width) {
  body_ +=
      fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"{}\"/>\n", svg_number(x1),
                  svg_number(y1), svg_number(x2), svg_number(y2), svg_escape(color), svg_number(width));
}

void Svg::path(const std::vector<std::pair<double, double>>& points, std::string_view color, double width) {
  if (points.empty()) return;
  std::string list;
  for (const auto& [x, y] : points) list += (list.empty() ? "" : " ") + svg_number(x) + "," + svg_number(y);
  body_ += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>\n", list,
                       svg_escape(color), svg_number(width));
}

void Svg::words(double x, double y, std::string_view text, const Words& how) {
  const std::string turned =
      how.upwards ? fmt::format(" transform=\"rotate(-90 {} {})\"", svg_number(x), svg_number(y)) : "";
  body_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"{}\" fill=\"{}\"{}>{}</text>\n",
                       svg_number(x), svg_number(y), svg_number(how.size), svg_escape(how.anchor),
                       svg_escape(how.color), turned, svg_escape(text));
}

std::string Svg::text() const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{2}</svg>\n",
      svg_number(width_), svg_number(height_), body_);
}

}  // namespace regard
