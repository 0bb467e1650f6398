#pragma once
#include <cmath>

#include "kernels/views.h"
namespace regard {
template <class T>
void softmax(RowsOf<const T> x, RowsOf<T> y) {
  for (std::size_t i = 0; i < x.count; ++i) {
    T peak = -INFINITY, mass = 0;
    for (std::size_t c = 0; c < x.width; ++c) peak = x.row(i)[c] > peak ? x.row(i)[c] : peak;
    for (std::size_t c = 0; c < x.width; ++c)
      mass += y.row(i)[c] = peak == -INFINITY ? T(0) : std::exp(x.row(i)[c] - peak);
    for (std::size_t c = 0; c < x.width; ++c) y.row(i)[c] = mass == 0 ? T(0) : y.row(i)[c] / mass;
  }
}
template <class T>
void softmax_backward(RowsOf<const T> y, RowsOf<const T> dy, RowsOf<T> dx, bool add) {
  for (std::size_t i = 0; i < y.count; ++i) {
    T total = 0;
    for (std::size_t c = 0; c < y.width; ++c) total += y.row(i)[c] * dy.row(i)[c];
    for (std::size_t c = 0; c < y.width; ++c)
      dx.row(i)[c] = (add ? dx.row(i)[c] : T(0)) + y.row(i)[c] * (dy.row(i)[c] - total);
  }
}
template <class T>
void log_softmax(RowsOf<const T> x, RowsOf<T> y) {
  for (std::size_t i = 0; i < x.count; ++i) {
    T peak = -INFINITY, mass = 0;
    for (std::size_t c = 0; c < x.width; ++c) peak = x.row(i)[c] > peak ? x.row(i)[c] : peak;
    for (std::size_t c = 0; c < x.width; ++c) mass += std::exp(x.row(i)[c] - peak);
    for (std::size_t c = 0; c < x.width; ++c) y.row(i)[c] = (x.row(i)[c] - peak) - std::log(mass);
  }
}
template <class T>
void log_softmax_backward(RowsOf<const T> y, RowsOf<const T> dy, RowsOf<T> dx, bool add) {
  for (std::size_t i = 0; i < y.count; ++i) {
    T total = 0;
    for (std::size_t c = 0; c < y.width; ++c) total += dy.row(i)[c];
    for (std::size_t c = 0; c < y.width; ++c)
      dx.row(i)[c] = (add ? dx.row(i)[c] : T(0)) + dy.row(i)[c] - std::exp(y.row(i)[c]) * total;
  }
}
}  // namespace regard
