// A picture of lines, rectangles and words, as the text of an SVG file. The same calls give the same bytes everywhere.
//
//     Svg picture(640, 400);
//     picture.rectangle(10, 10, 50, 80, "#4c72b0");
//     picture.words(320, 390, "length", {.anchor = "middle"});
//     picture.text()                                                // <svg …>…</svg>
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace regard {

class Svg {
 public:
  struct Words {
    std::string_view anchor = "start";  // where the place is: start, middle, end
    double size = 12;
    std::string_view color = "#333333";
    bool upwards = false;  // read from below
  };

  Svg(double width, double height);
  void rectangle(double x, double y, double width, double height, std::string_view color);
  void line(double x1, double y1, double x2, double y2, std::string_view color, double width = 1);
  void path(const std::vector<std::pair<double, double>>& points, std::string_view color, double width = 1.5);
  void words(double x, double y, std::string_view text, const Words& how);
  void words(double x, double y, std::string_view text) { words(x, y, text, Words()); }
  std::string text() const;

 private:
  std::string body_;
  double width_, height_;
};

std::string svg_number(double value);           // two digits behind the point at most; 0 if it is not finite
std::string svg_escape(std::string_view text);  // for XML; what XML cannot hold becomes U+FFFD

}  // namespace regard
