// Normalisation of the rows of a matrix.
//
//     layer_norm:   x̂ = (x − mean)/√(variance + ε),   y = x̂·weight + bias        Ba et al. 2016
//     rms_norm:     x̂ = x/√(mean of x² + ε),           y = x̂·weight              Zhang and Sennrich 2019
//
// weight and bias have one element a column; either may be null (1 and 0). `mean` and `inverse` (1/√…) keep one float a
// row for the backward pass; they may be null when there will be none. y may be x, dx may be dy.
#pragma once

#include <cmath>
#include <cstddef>

#include "kernels/views.h"

namespace regard {

template <class T>
struct NormGradients {  // what a backward pass writes; null pointers are left out
  RowsOf<T> dx;
  bool add_dx = false;
  T* dweight = nullptr;
  T* dbias = nullptr;
  bool add_parameters = false;
};

void layer_norm(Rows x, const float* weight, const float* bias, float epsilon, Tile y, float* mean, float* inverse);
void layer_norm_backward(Rows x, const float* weight, const float* mean, const float* inverse, Rows dy,
                         const NormGradients<float>& to);

void rms_norm(Rows x, const float* weight, float epsilon, Tile y, float* inverse);
void rms_norm_backward(Rows x, const float* weight, const float* inverse, Rows dy, const NormGradients<float>& to);

namespace reference {

template <class T>
void layer_norm(RowsOf<const T> x, const T* weight, const T* bias, T epsilon, RowsOf<T> y, T* mean, T* inverse) {
  for (std::size_t i = 0; i < x.count; ++i) {
    T sum = 0, squares = 0;
    for (std::size_t c = 0; c < x.width; ++c) sum += x.row(i)[c];
    const T middle = sum / static_cast<T>(x.width);
    for (std::size_t c = 0; c < x.width; ++c) squares += (x.row(i)[c] - middle) * (x.row(i)[c] - middle);
    const T scale = 1 / std::sqrt(squares / static_cast<T>(x.width) + epsilon);
    for (std::size_t c = 0; c < x.width; ++c)
      y.row(i)[c] = (x.row(i)[c] - middle) * scale * (weight ? weight[c] : T(1)) + (bias ? bias[c] : T(0));
    if (mean) mean[i] = middle;
    if (inverse) inverse[i] = scale;
  }
}

template <class T>
void rms_norm(RowsOf<const T> x, const T* weight, T epsilon, RowsOf<T> y, T* inverse) {
  for (std::size_t i = 0; i < x.count; ++i) {
    T squares = 0;
    for (std::size_t c = 0; c < x.width; ++c) squares += x.row(i)[c] * x.row(i)[c];
    const T scale = 1 / std::sqrt(squares / static_cast<T>(x.width) + epsilon);
    for (std::size_t c = 0; c < x.width; ++c) y.row(i)[c] = x.row(i)[c] * scale * (weight ? weight[c] : T(1));
    if (inverse) inverse[i] = scale;
  }
}

// With g = dy·weight:  dx = inverse·(g − mean(g) − x̂·mean(g·x̂)),  dweight = Σ_rows dy·x̂,  dbias = Σ_rows dy.
// Without a mean (null) this is rms_norm's: mean(g) falls out.
template <class T>
void norm_backward(RowsOf<const T> x, const T* weight, const T* mean, const T* inverse, RowsOf<const T> dy,
                   const NormGradients<T>& to) {
  for (std::size_t c = 0; c < x.width && !to.add_parameters; ++c) {
    if (to.dweight) to.dweight[c] = 0;
    if (to.dbias) to.dbias[c] = 0;
  }
  for (std::size_t i = 0; i < x.count; ++i) {
    const auto g = [&](std::size_t c) { return dy.row(i)[c] * (weight ? weight[c] : T(1)); };
    const auto hat = [&](std::size_t c) { return (x.row(i)[c] - (mean ? mean[i] : T(0))) * inverse[i]; };
    T sum = 0, dot = 0;
    for (std::size_t c = 0; c < x.width; ++c) {
      sum += g(c);
      dot += g(c) * hat(c);
    }
    sum = mean ? sum / static_cast<T>(x.width) : T(0);
    dot /= static_cast<T>(x.width);
    for (std::size_t c = 0; c < x.width; ++c) {
      if (to.dweight) to.dweight[c] += dy.row(i)[c] * hat(c);
      if (to.dbias) to.dbias[c] += dy.row(i)[c];
      if (!to.dx.data) continue;
      const T gradient = inverse[i] * (g(c) - sum - hat(c) * dot);
      to.dx.row(i)[c] = to.add_dx ? to.dx.row(i)[c] + gradient : gradient;
    }
  }
}

}  // namespace reference

inline void layer_norm(RowsOf<const double> x, const double* weight, const double* bias, double epsilon,
                       RowsOf<double> y, double* mean, double* inverse) {
  reference::layer_norm(x, weight, bias, epsilon, y, mean, inverse);
}
inline void layer_norm_backward(RowsOf<const double> x, const double* weight, const double* mean, const double* inverse,
                                RowsOf<const double> dy, const NormGradients<double>& to) {
  reference::norm_backward(x, weight, mean, inverse, dy, to);
}
inline void rms_norm(RowsOf<const double> x, const double* weight, double epsilon, RowsOf<double> y, double* inverse) {
  reference::rms_norm(x, weight, epsilon, y, inverse);
}
inline void rms_norm_backward(RowsOf<const double> x, const double* weight, const double* inverse,
                              RowsOf<const double> dy, const NormGradients<double>& to) {
  reference::norm_backward<double>(x, weight, nullptr, inverse, dy, to);
}

}  // namespace regard
