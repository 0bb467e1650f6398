// Softmax and its logarithm over the rows of a matrix.
//
//     softmax(rows(x, count, width), rows(y, count, width));
//     softmax_backward(rows(y, …), rows(dy, …), rows(dx, …), false);
//
// p_j = exp(x_j − max x) / Σ exp(x − max x). A row that is −∞ everywhere has no weights: softmax gives zeros,
// log_softmax −∞, both with gradient zero. A NaN or +∞ in a row makes the whole row NaN. An output may be the same
// buffer as an input.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/views.h"

namespace regard {

void softmax(Rows x, Tile y);
void log_softmax(Rows x, Tile y);

// dx (= or +=) y·(dy − Σ y·dy)
void softmax_backward(Rows y, Rows dy, Tile dx, bool add);
// dx (= or +=) dy − exp(y)·Σ dy
void log_softmax_backward(Rows y, Rows dy, Tile dx, bool add);

// The `count` largest of log_softmax of each row, the largest first, of equal ones the first first; and the one at
// column `also`. The same bits as log_softmax gives, without writing it. Of a row that is NaN any columns.
template <class T>
struct LikeliestOf {
  std::size_t count;      // at most the width
  std::int32_t* columns;  // [rows, count]
  T* values;              // [rows, count]
  std::size_t also;
  T* also_values;  // [rows]
};
using Likeliest = LikeliestOf<float>;
void likeliest(Rows x, const Likeliest& out);

namespace reference {

template <class T>
T largest(const T* x, std::size_t n) {
  T peak = -std::numeric_limits<T>::infinity();
  for (std::size_t j = 0; j < n; ++j) {
    if (!(x[j] <= peak)) peak = x[j];
    if (std::isnan(peak)) break;
  }
  return peak;
}

template <class T>
void softmax(RowsOf<const T> x, RowsOf<T> y) {
  for (std::size_t i = 0; i < x.count; ++i) {
    const T peak = largest(x.row(i), x.width);
    const bool empty = peak == -std::numeric_limits<T>::infinity();
    T sum = 0;
    for (std::size_t j = 0; j < x.width; ++j) sum += y.row(i)[j] = empty ? T(0) : std::exp(x.row(i)[j] - peak);
    for (std::size_t j = 0; j < x.width && !empty; ++j) y.row(i)[j] /= sum;
  }
}

template <class T>
void log_softmax(RowsOf<const T> x, RowsOf<T> y) {
  for (std::size_t i = 0; i < x.count; ++i) {
    const T peak = largest(x.row(i), x.width);
    const bool empty = peak == -std::numeric_limits<T>::infinity();
    T sum = 0;
    for (std::size_t j = 0; j < x.width; ++j) sum += std::exp(x.row(i)[j] - peak);
    for (std::size_t j = 0; j < x.width; ++j) y.row(i)[j] = empty ? peak : x.row(i)[j] - peak - std::log(sum);
  }
}

template <class T>
void likeliest(RowsOf<const T> x, const LikeliestOf<T>& out) {
  std::vector<T> all(x.width);
  std::vector<std::int32_t> order(x.width);
  for (std::size_t i = 0; i < x.count; ++i) {
    reference::log_softmax(RowsOf<const T>{x.row(i), 1, x.width, x.width}, RowsOf<T>{all.data(), 1, x.width, x.width});
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return all[static_cast<std::size_t>(a)] > all[static_cast<std::size_t>(b)];
    });
    for (std::size_t j = 0; j < out.count; ++j) {
      out.columns[i * out.count + j] = order[j];
      out.values[i * out.count + j] = all[static_cast<std::size_t>(order[j])];
    }
    out.also_values[i] = all[out.also];
  }
}

template <class T>
void softmax_backward(RowsOf<const T> y, RowsOf<const T> dy, RowsOf<T> dx, bool add) {
  for (std::size_t i = 0; i < y.count; ++i) {
    T dot = 0;
    for (std::size_t j = 0; j < y.width; ++j) dot += y.row(i)[j] * dy.row(i)[j];
    for (std::size_t j = 0; j < y.width; ++j) {
      const T gradient = y.row(i)[j] * (dy.row(i)[j] - dot);
      dx.row(i)[j] = add ? dx.row(i)[j] + gradient : gradient;
    }
  }
}

template <class T>
void log_softmax_backward(RowsOf<const T> y, RowsOf<const T> dy, RowsOf<T> dx, bool add) {
  for (std::size_t i = 0; i < y.count; ++i) {
    const bool empty = largest(y.row(i), y.width) == -std::numeric_limits<T>::infinity();
    T sum = 0;
    for (std::size_t j = 0; j < y.width; ++j) sum += dy.row(i)[j];
    for (std::size_t j = 0; j < y.width; ++j) {
      const T gradient = empty ? T(0) : dy.row(i)[j] - std::exp(y.row(i)[j]) * sum;
      dx.row(i)[j] = add ? dx.row(i)[j] + gradient : gradient;
    }
  }
}

}  // namespace reference

inline void softmax(RowsOf<const double> x, RowsOf<double> y) { reference::softmax(x, y); }
inline void log_softmax(RowsOf<const double> x, RowsOf<double> y) { reference::log_softmax(x, y); }
inline void softmax_backward(RowsOf<const double> y, RowsOf<const double> dy, RowsOf<double> dx, bool add) {
  reference::softmax_backward(y, dy, dx, add);
}
inline void log_softmax_backward(RowsOf<const double> y, RowsOf<const double> dy, RowsOf<double> dx, bool add) {
  reference::log_softmax_backward(y, dy, dx, add);
}

}  // namespace regard
