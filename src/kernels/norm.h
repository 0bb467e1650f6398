#pragma once
#include <cmath>

#include "kernels/views.h"
namespace regard {
template <class T>
void layer_norm(RowsOf<const T> x, const T* w, const T* b, T epsilon, RowsOf<T> y, T* means, T* scales) {
  for (std::size_t i = 0; i < x.count; ++i) {
    T mean = 0, var = 0;
    const T n = static_cast<T>(x.width);
    for (std::size_t c = 0; c < x.width; ++c) mean += x.row(i)[c] / n;
    for (std::size_t c = 0; c < x.width; ++c) var += (x.row(i)[c] - mean) * (x.row(i)[c] - mean) / n;
    means[i] = mean;
    scales[i] = 1 / std::sqrt(var + epsilon);
    for (std::size_t c = 0; c < x.width; ++c) y.row(i)[c] = (x.row(i)[c] - mean) * scales[i] * w[c] + b[c];
  }
}
template <class T>
void layer_norm_backward(RowsOf<const T> x, const T* w, const T* means, const T* scales, RowsOf<const T> dy,
                         RowsOf<T> dx, bool add) {
  for (std::size_t i = 0; i < x.count; ++i) {
    T a = 0, b = 0;
    const T n = static_cast<T>(x.width);
    for (std::size_t c = 0; c < x.width; ++c) {
      const T g = dy.row(i)[c] * w[c], h = (x.row(i)[c] - means[i]) * scales[i];
      a += g / n;
      b += g * h / n;
    }
    for (std::size_t c = 0; c < x.width; ++c) {
      const T g = dy.row(i)[c] * w[c], h = (x.row(i)[c] - means[i]) * scales[i];
      dx.row(i)[c] = (add ? dx.row(i)[c] : T(0)) + scales[i] * (g - a - h * b);
    }
  }
}
template <class T>
void layer_norm_backward_weights(RowsOf<const T> x, const T* means, const T* scales, RowsOf<const T> dy, T* dw,
                                 bool add_w, T* db, bool add_b) {
  for (std::size_t c = 0; c < x.width; ++c) {
    T w = 0, b = 0;
    for (std::size_t i = 0; i < x.count; ++i) {
      w += dy.row(i)[c] * (x.row(i)[c] - means[i]) * scales[i];
      b += dy.row(i)[c];
    }
    if (dw) dw[c] = (add_w ? dw[c] : T(0)) + w;
    if (db) db[c] = (add_b ? db[c] : T(0)) + b;
  }
}
template <class T>
void rms_norm(RowsOf<const T> x, const T* w, T epsilon, RowsOf<T> y, T* scales) {
  for (std::size_t i = 0; i < x.count; ++i) {
    T sq = 0;
    for (std::size_t c = 0; c < x.width; ++c) sq += x.row(i)[c] * x.row(i)[c] / static_cast<T>(x.width);
    scales[i] = 1 / std::sqrt(sq + epsilon);
    for (std::size_t c = 0; c < x.width; ++c) y.row(i)[c] = x.row(i)[c] * scales[i] * w[c];
  }
}
template <class T>
void rms_norm_backward(RowsOf<const T> x, const T* w, const T* scales, RowsOf<const T> dy, RowsOf<T> dx, bool add) {
  for (std::size_t i = 0; i < x.count; ++i) {
    T b = 0;
    for (std::size_t c = 0; c < x.width; ++c)
      b += dy.row(i)[c] * w[c] * x.row(i)[c] * scales[i] / static_cast<T>(x.width);
    for (std::size_t c = 0; c < x.width; ++c)
      dx.row(i)[c] = (add ? dx.row(i)[c] : T(0)) + scales[i] * (dy.row(i)[c] * w[c] - x.row(i)[c] * scales[i] * b);
  }
}
template <class T>
void rms_norm_backward_weights(RowsOf<const T> x, const T* scales, RowsOf<const T> dy, T* dw, bool add) {
  for (std::size_t c = 0; c < x.width; ++c) {
    T w = 0;
    for (std::size_t i = 0; i < x.count; ++i) w += dy.row(i)[c] * x.row(i)[c] * scales[i];
    dw[c] = (add ? dw[c] : T(0)) + w;
  }
}
}  // namespace regard
