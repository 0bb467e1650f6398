#pragma once
#include "base/random.h"
#include "kernels/views.h"
namespace regard {
template <class T>
void dropout_rows(RowsOf<const T> x, RowsOf<T> y, float p, const RandomKey* keys, bool add) {
  const double threshold = static_cast<double>(p) * 0x1p32;
  const T scale = p < 1 ? 1 / (1 - T(p)) : T(0);
  for (std::size_t i = 0; i < x.count; ++i)
    for (std::size_t c = 0; c < x.width; ++c) {
      const bool keep = random_bits(keys[i], c) >= threshold;
      y.row(i)[c] = (add ? y.row(i)[c] : T(0)) + (keep ? x.row(i)[c] * scale : T(0));
    }
}
}  // namespace regard
