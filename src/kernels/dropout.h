// Dropout: an element stays with probability 1 − p and is then divided by 1 − p, otherwise it becomes 0, whatever it
// was. Which ones stay is a function of (key, element): the backward pass is the same call on the gradient, nothing is
// kept.
//
//     dropout(x, y, n, 0.1f, RandomKey(seed).at(step).at(layer), 0);
//     dropout(dy, dx, n, 0.1f, RandomKey(seed).at(step).at(layer), 0, true);          // dx +=
//
// Srivastava et al. 2014.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/views.h"
#include "regard/random.h"

namespace regard {

// y[i] (= or +=) x[i]/(1 − p) or 0; x[i] is element first_element + i of the key's random numbers. y may be x.
void dropout(const float* x, float* y, std::size_t n, float p, RandomKey key, std::uint64_t first_element,
             bool add = false);

// The same for rows of unlike keys: column c of row i is element c of keys[i].
void dropout_rows(Rows x, Tile y, float p, const RandomKey* keys, bool add = false);

// An element is dropped when its 32 random bits are below this; p < 1. The product is exact.
inline std::uint32_t dropout_threshold(float p) { return static_cast<std::uint32_t>(static_cast<double>(p) * 0x1p32); }

namespace reference {

template <class T>
void dropout(const T* x, T* y, std::size_t n, float p, RandomKey key, std::uint64_t first_element, bool add = false) {
  for (std::size_t i = 0; i < n; ++i) {
    const bool stays = p < 1 && random_bits(key, first_element + i) >= dropout_threshold(p);
    const T value = stays ? x[i] * (1 / (1 - T(p))) : T(0);
    y[i] = add ? y[i] + value : value;
  }
}

template <class T>
void dropout_rows(RowsOf<const T> x, RowsOf<T> y, float p, const RandomKey* keys, bool add = false) {
  for (std::size_t i = 0; i < x.count; ++i) dropout(x.row(i), y.row(i), x.width, p, keys[i], 0, add);
}

}  // namespace reference

inline void dropout(const double* x, double* y, std::size_t n, float p, RandomKey key, std::uint64_t first_element,
                    bool add = false) {
  reference::dropout(x, y, n, p, key, first_element, add);
}
inline void dropout_rows(RowsOf<const double> x, RowsOf<double> y, float p, const RandomKey* keys, bool add = false) {
  reference::dropout_rows(x, y, p, keys, add);
}

}  // namespace regard
