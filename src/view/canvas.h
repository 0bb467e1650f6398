// A picture as a list of shapes. What draws adds shapes; the list becomes SVG, PNG or PDF.
//
//     Canvas picture(640, 400, inks(Theme::kLight).ground);
//     picture.rectangle(10, 10, 50, 80, {38, 90, 142});
//     picture.text(320, 390, "看", {.anchor = Anchor::kMiddle});
//     picture.svg();  picture.png();  picture.pdf();
//
// SVG is written here; its text stays text: it can be found, copied and read aloud, and is a tenth of what outlines of
// glyphs take. Each text says how long it is (textLength), so that it fits with the reader's fonts, too. PNG and PDF
// are made by the module regard_draw.so with Cairo and Pango. The same shapes give the same bytes on one machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "view/colors.h"
#include "view/png.h"

namespace regard {

enum class Anchor : std::uint8_t { kStart, kMiddle, kEnd };

struct Figure {
  enum class Kind : std::uint8_t { kRectangle, kFrame, kLine, kCurve, kArea, kText, kImage };
  Kind kind = Kind::kRectangle;
  double x = 0, y = 0, width = 0, height = 0;  // of a text: x and the middle of its letters' height
  Color color = {};
  double stroke = 1;
  std::vector<double> points = {};  // of a line, a curve (start, two that bend, end), an area: x, y, …
  std::string text = {};
  double size = 12, angle = 0;  // degrees, clockwise
  Anchor anchor = Anchor::kStart;
  bool bold = false, sharp = false;
  Pixels pixels = {};
  std::string_view role = {};  // class in SVG: "cell", "label"; of those that live as long as the program
};

class Canvas {
 public:
  struct Words {
    Anchor anchor = Anchor::kStart;
    double size = 12;
    Color color = {};
    double angle = 0;
    double width = 0;  // what is longer is cut and ends with "…"; 0: any length
    bool bold = false;
    std::string_view role = "text";
  };

  Canvas(double width, double height, Color ground) : width_(width), height_(height), ground_(ground) {}
  void rectangle(double x, double y, double width, double height, Color color, std::string_view role = {});
  void frame(double x, double y, double width, double height, Color color, double stroke = 1,
             std::string_view role = {});
  void line(double x1, double y1, double x2, double y2, Color color, double stroke = 1, std::string_view role = {});
  void curve(const std::pair<double, double> (&points)[4], Color color, double stroke, std::string_view role = {});
  void area(const std::vector<double>& points, Color color, std::string_view role = {});
  void text(double x, double y, std::string_view text, const Words& how);
  void image(double x, double y, double width, double height, Pixels pixels, bool sharp, std::string_view role = {});
  void resize(double width, double height);  // to whole points: a half covered row of pixels would be seen

  double width() const { return width_; }
  double height() const { return height_; }
  const std::vector<Figure>& shapes() const { return shapes_; }
  std::size_t count(std::string_view role) const;

  std::string svg() const;
  std::string png(double scale = 2) const;  // pixels a point; fewer if it would become larger than 16384 pixels
  std::string pdf() const;

 private:
  std::string render(bool pdf, double scale) const;
  double width_, height_;
  Color ground_;
  std::vector<Figure> shapes_;
};

// How long a text is: as the module measures it, else a guess.
double text_width(std::string_view text, double size, bool bold = false);
std::string fitted(std::string_view text, double size, double width, bool bold = false);  // cut to the width
std::string shown(std::string_view text);  // without control characters and bytes that are no UTF-8: "�" instead

bool can_draw();  // whether there is the module for PNG and PDF

}  // namespace regard
