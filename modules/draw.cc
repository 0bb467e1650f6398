// The module regard_draw.so: Cairo and Pango behind two C functions (view/draw_module.h).
#include <cairo-pdf.h>
#include <cairo.h>
#include <pango/pangocairo.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "view/draw_module.h"

namespace {

constexpr double kMiddle = 0.36;  // as in view/canvas.cc
constexpr double kDegree = 3.14159265358979323846 / 180;

using Surface = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;
using Cairo = std::unique_ptr<cairo_t, decltype(&cairo_destroy)>;
struct Unref {
  void operator()(void* object) const { g_object_unref(object); }
};
using Layout = std::unique_ptr<PangoLayout, Unref>;

void tell(std::string_view text, char* error, std::size_t size) {
  if (size == 0) return;
  const std::size_t count = std::min(text.size(), size - 1);
  std::memcpy(error, text.data(), count);
  error[count] = '\0';
}

// Nothing is rounded to pixels: a text is as long in a small picture as in a large one.
Layout layout_of(cairo_t* cairo, const char* text, double size, bool bold) {
  Layout layout(pango_cairo_create_layout(cairo));
  cairo_font_options_t* options = cairo_font_options_create();
  cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
  cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
  PangoContext* context = pango_layout_get_context(layout.get());
  pango_cairo_context_set_font_options(context, options);
  pango_cairo_context_set_resolution(context, 72);
  pango_context_set_round_glyph_positions(context, FALSE);
  cairo_font_options_destroy(options);
  PangoFontDescription* font = pango_font_description_new();
  pango_font_description_set_family_static(font, "sans-serif");
  pango_font_description_set_absolute_size(font, size * PANGO_SCALE);
  if (bold) pango_font_description_set_weight(font, PANGO_WEIGHT_BOLD);
  pango_layout_set_font_description(layout.get(), font);
  pango_font_description_free(font);
  pango_layout_set_single_paragraph_mode(layout.get(), TRUE);
  pango_layout_set_text(layout.get(), text, -1);
  return layout;
}

double width_of(PangoLayout* layout) {
  PangoRectangle logical = {};
  pango_layout_get_extents(layout, nullptr, &logical);
  return static_cast<double>(logical.width) / PANGO_SCALE;
}

void draw_text(cairo_t* cairo, const RegardDrawShape& shape) {
  const Layout layout = layout_of(cairo, shape.text, shape.size, (shape.flags & 1) != 0);
  cairo_save(cairo);
  cairo_translate(cairo, shape.x, shape.y);
  cairo_rotate(cairo, shape.angle * kDegree);
  cairo_move_to(cairo, -shape.anchor * width_of(layout.get()), kMiddle * shape.size);
  pango_cairo_show_layout_line(cairo, pango_layout_get_line_readonly(layout.get(), 0));
  cairo_restore(cairo);
}

void draw_image(cairo_t* cairo, const RegardDrawShape& shape) {
  const auto columns = static_cast<int>(shape.columns), rows = static_cast<int>(shape.rows);
  const int stride = cairo_format_stride_for_width(CAIRO_FORMAT_ARGB32, columns);
  std::vector<unsigned char> bytes(static_cast<std::size_t>(stride) * shape.rows);
  for (std::size_t row = 0; row < shape.rows; ++row) {
    for (std::size_t column = 0; column < shape.columns; ++column) {
      const std::uint8_t* from = shape.pixels + (row * shape.columns + column) * 4;
      const std::uint32_t alpha = from[3];
      const auto part = [alpha](std::uint32_t value) { return (value * alpha + 127) / 255; };
      const std::uint32_t pixel = alpha << 24 | part(from[0]) << 16 | part(from[1]) << 8 | part(from[2]);
      std::memcpy(&bytes[row * static_cast<std::size_t>(stride) + column * 4], &pixel, 4);
    }
  }
  const Surface surface(cairo_image_surface_create_for_data(bytes.data(), CAIRO_FORMAT_ARGB32, columns, rows, stride),
                        &cairo_surface_destroy);
  cairo_save(cairo);
  cairo_translate(cairo, shape.x, shape.y);
  cairo_rectangle(cairo, 0, 0, shape.width, shape.height);
  cairo_clip(cairo);
  cairo_scale(cairo, shape.width / columns, shape.height / rows);
  cairo_set_source_surface(cairo, surface.get(), 0, 0);
  cairo_pattern_set_filter(cairo_get_source(cairo), (shape.flags & 2) != 0 ? CAIRO_FILTER_NEAREST : CAIRO_FILTER_GOOD);
  cairo_pattern_set_extend(cairo_get_source(cairo), CAIRO_EXTEND_PAD);
  cairo_paint(cairo);
  cairo_restore(cairo);
  cairo_surface_finish(surface.get());  // before the bytes go: a PDF has its copy
}

enum class Kind { kRectangle, kFrame, kLine, kCurve, kArea, kText, kImage };

void draw(cairo_t* cairo, const RegardDrawShape& shape) {
  const double* points = shape.points;
  cairo_set_source_rgba(cairo, shape.red, shape.green, shape.blue, shape.alpha);
  cairo_set_line_width(cairo, shape.stroke);
  cairo_new_path(cairo);  // a text leaves its end behind
  switch (static_cast<Kind>(shape.kind)) {
    case Kind::kRectangle:
      cairo_rectangle(cairo, shape.x, shape.y, shape.width, shape.height);
      return cairo_fill(cairo);
    case Kind::kFrame:
      cairo_rectangle(cairo, shape.x, shape.y, shape.width, shape.height);
      return cairo_stroke(cairo);
    case Kind::kLine:
      cairo_move_to(cairo, points[0], points[1]);
      cairo_line_to(cairo, points[2], points[3]);
      return cairo_stroke(cairo);
    case Kind::kCurve:
      cairo_move_to(cairo, points[0], points[1]);
      cairo_curve_to(cairo, points[2], points[3], points[4], points[5], points[6], points[7]);
      return cairo_stroke(cairo);
    case Kind::kArea:
      for (std::size_t i = 0; i < shape.count; ++i) cairo_line_to(cairo, points[2 * i], points[2 * i + 1]);
      return cairo_fill(cairo);
    case Kind::kText:
      return draw_text(cairo, shape);
    case Kind::kImage:
      return draw_image(cairo, shape);
  }
}

struct Taker {
  void (*take)(void*, const void*, std::size_t);
  void* user;
};

cairo_status_t pass_on(void* closure, const unsigned char* bytes, unsigned size) {
  const auto* taker = static_cast<const Taker*>(closure);
  taker->take(taker->user, bytes, size);
  return CAIRO_STATUS_SUCCESS;
}

int render(const RegardDrawPicture* picture, int pdf, void (*take)(void*, const void*, std::size_t), void* user,
           char* error, std::size_t error_size) try {
  Taker taker{take, user};
  const double scale = pdf != 0 ? 1 : picture->scale;
  const Surface surface(
      pdf != 0 ? cairo_pdf_surface_create_for_stream(pass_on, &taker, picture->width, picture->height)
               : cairo_image_surface_create(CAIRO_FORMAT_ARGB32,
                                            std::max(1, static_cast<int>(std::ceil(picture->width * scale))),
                                            std::max(1, static_cast<int>(std::ceil(picture->height * scale)))),
      &cairo_surface_destroy);
  // A date would make every file another one.
  if (pdf != 0) {
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATE_DATE, "2000-01-01T00:00:00Z");
    cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATOR, "Regard");
  }
  {
    const Cairo cairo(cairo_create(surface.get()), &cairo_destroy);
    cairo_scale(cairo.get(), scale, scale);
    for (std::size_t i = 0; i < picture->count; ++i) draw(cairo.get(), picture->shapes[i]);
    if (pdf != 0) cairo_show_page(cairo.get());
    if (const cairo_status_t status = cairo_status(cairo.get()); status != CAIRO_STATUS_SUCCESS) {
      tell(cairo_status_to_string(status), error, error_size);
      return 0;
    }
  }
  cairo_status_t status = CAIRO_STATUS_SUCCESS;
  if (pdf == 0) status = cairo_surface_write_to_png_stream(surface.get(), pass_on, &taker);
  cairo_surface_finish(surface.get());
  if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_status(surface.get());
  if (status == CAIRO_STATUS_SUCCESS) return 1;
  tell(cairo_status_to_string(status), error, error_size);
  return 0;
} catch (const std::exception& problem) {
  tell(problem.what(), error, error_size);
  return 0;
}

double text_width(const char* text, double size, int bold) {
  static const Surface surface(cairo_recording_surface_create(CAIRO_CONTENT_COLOR_ALPHA, nullptr),
                               &cairo_surface_destroy);
  static const Cairo cairo(cairo_create(surface.get()), &cairo_destroy);
  return width_of(layout_of(cairo.get(), text, size, bold != 0).get());
}

const RegardDrawModule kModule = {kRegardDrawVersion, render, text_width};

}  // namespace

extern "C" [[gnu::visibility("default")]] const RegardDrawModule* regard_draw_module() { return &kModule; }
