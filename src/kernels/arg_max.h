// The place of the largest element of each row: of equals the first, and a NaN counts as larger than everything.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/views.h"

namespace regard {

// Rows are at least one element wide.
void arg_max(Rows x, std::int32_t* place);  // [rows]

namespace reference {

template <class T>
void arg_max(RowsOf<const T> x, std::int32_t* place) {
  for (std::size_t i = 0; i < x.count; ++i) {
    const T* row = x.row(i);
    std::size_t best = 0;
    for (std::size_t c = 1; c < x.width && !std::isnan(row[best]); ++c) {
      if (!(row[c] <= row[best])) best = c;
    }
    place[i] = static_cast<std::int32_t>(best);
  }
}

}  // namespace reference

inline void arg_max(RowsOf<const double> x, std::int32_t* place) { reference::arg_max(x, place); }

}  // namespace regard
