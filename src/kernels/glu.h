// The gated linear unit: a row of x holds a and b side by side.                                   Dauphin et al. 2017
//   y = a·σ(b)       da = dy·s   db = dy·a·s·(1 − s),   s = σ(b)
#pragma once

#include <cmath>
#include <cstddef>

#include "kernels/views.h"

namespace regard {

void glu(Rows x, Tile y);                               // x [rows, 2·width], y [rows, width]
void glu_backward(Rows x, Rows dy, Tile dx, bool add);  // dx (= or +=)

namespace reference {

template <class T>
void glu(RowsOf<const T> x, RowsOf<T> y) {
  for (std::size_t i = 0; i < y.count; ++i) {
    for (std::size_t c = 0; c < y.width; ++c) y.row(i)[c] = x.row(i)[c] / (1 + std::exp(-x.row(i)[y.width + c]));
  }
}

template <class T>
void glu_backward(RowsOf<const T> x, RowsOf<const T> dy, RowsOf<T> dx, bool add) {
  for (std::size_t i = 0; i < dy.count; ++i) {
    for (std::size_t c = 0; c < dy.width; ++c) {
      const T a = x.row(i)[c], s = 1 / (1 + std::exp(-x.row(i)[dy.width + c])), up = dy.row(i)[c];
      T &da = dx.row(i)[c], &db = dx.row(i)[dy.width + c];
      da = (add ? da : 0) + up * s;
      db = (add ? db : 0) + up * a * s * (1 - s);
    }
  }
}

}  // namespace reference

inline void glu(RowsOf<const double> x, RowsOf<double> y) { reference::glu(x, y); }
inline void glu_backward(RowsOf<const double> x, RowsOf<const double> dy, RowsOf<double> dx, bool add) {
  reference::glu_backward(x, dy, dx, add);
}

}  // namespace regard
