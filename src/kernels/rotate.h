// Pairs of neighbours turned by an angle: with c, s the cosine and sine of a pair,
//   y[2i] = c·x[2i] − s·x[2i+1]     y[2i+1] = c·x[2i+1] + s·x[2i]
// Backward, and for the way back, by the negative angle.                                              Su et al. 2021
//
// A turn holds 2·width numbers: the cosines, each twice, then the sines, each as −s and s.
#pragma once

#include <cstddef>

#include "kernels/views.h"

namespace regard {

// Row r is turned by turns[r % period]. The width is even.
void rotate(Rows x, const float* const* turns, std::size_t period, Tile y, bool back, bool add);

namespace reference {

template <class T>
void rotate(RowsOf<const T> x, const T* const* turns, std::size_t period, RowsOf<T> y, bool back, bool add) {
  for (std::size_t r = 0; r < x.count; ++r) {
    for (std::size_t c = 0; c < x.width; c += 2) {
      const T* turn = turns[r % period];
      const T a = x.row(r)[c], b = x.row(r)[c + 1], cosine = turn[c], sine = (back ? -1 : 1) * turn[x.width + c + 1];
      y.row(r)[c] = (add ? y.row(r)[c] : 0) + (cosine * a - sine * b);
      y.row(r)[c + 1] = (add ? y.row(r)[c + 1] : 0) + (cosine * b + sine * a);
    }
  }
}

}  // namespace reference

inline void rotate(RowsOf<const double> x, const double* const* turns, std::size_t period, RowsOf<double> y, bool back,
                   bool add) {
  reference::rotate(x, turns, period, y, back, add);
}

}  // namespace regard
