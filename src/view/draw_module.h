// What the module regard_draw.so offers: a list of shapes becomes a PNG or a PDF, by Cairo and Pango. Their libraries
// take 20 ms to load, which only pictures should cost. Everything crosses as plain C: see data/pieces_module.h.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct RegardDrawShape {
  int kind;                            // Figure::Kind of view/canvas.h
  double x, y, width, height;          // the same places mean the same as there
  double red, green, blue, alpha;      // 0 … 1
  double stroke, size, angle, anchor;  // anchor: 0 the text begins at the place, 0.5 its middle is there, 1 its end
  int flags;                           // 1: bold; 2: an image's cells stay sharp
  const double* points;                // x, y, x, y, …
  std::size_t count;                   // of points
  const char* text;                    // UTF-8, ends with a 0
  const std::uint8_t* pixels;          // red, green, blue, alpha; row after row
  std::size_t rows, columns;           // of the image
};

struct RegardDrawPicture {
  double width, height, scale;  // points; pixels of a PNG are scale times as many
  const RegardDrawShape* shapes;
  std::size_t count;
};

struct RegardDrawModule {
  int version;  // kRegardDrawVersion

  // pdf: 0 for a PNG. `take` gets the bytes of the file, in parts. 1 if all went well, else a text is in `error`.
  int (*render)(const RegardDrawPicture* picture, int pdf,
                void (*take)(void* user, const void* bytes, std::size_t size), void* user, char* error,
                std::size_t error_size);
  double (*text_width)(const char* text, double size, int bold);
};

typedef const RegardDrawModule* RegardDrawOpen(void);  // the module's symbol regard_draw_module
}

inline constexpr int kRegardDrawVersion = 1;
