// Softmax cross-entropy on rows of logits.
//   log p_i = (x[target] − peak) − τ,  peak = max x,  τ = log Σ_j exp(x_j − peak);   d x_j = g_i · (p_j − [j = target])
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/views.h"

namespace regard {

// Per row: peak, τ and the log-probability of its target.
void cross_entropy(RowsOf<const float> logits, const std::int32_t* targets, float* peaks, float* taus,
                   float* log_probabilities);

// Logits become their gradient, in place; row i is multiplied by scales[i]. A scale of 0 gives exact zeros.
void cross_entropy_backward(RowsOf<float> logits, const std::int32_t* targets, const float* peaks, const float* taus,
                            const float* scales);

namespace reference {

template <class T>
void cross_entropy(RowsOf<const T> logits, const std::int32_t* targets, T* peaks, T* taus, T* log_probabilities) {
  for (std::size_t i = 0; i < logits.count; ++i) {
    const T* x = logits.row(i);
    T peak = x[0], mass = 0;
    for (std::size_t j = 0; j < logits.width; ++j) peak = x[j] > peak || std::isnan(x[j]) ? x[j] : peak;
    for (std::size_t j = 0; j < logits.width; ++j) mass += std::exp(x[j] - peak);
    peaks[i] = peak;
    taus[i] = std::log(mass);
    log_probabilities[i] = (x[targets[i]] - peak) - taus[i];
  }
}

template <class T>
void cross_entropy_backward(RowsOf<T> logits, const std::int32_t* targets, const T* peaks, const T* taus,
                            const T* scales) {
  for (std::size_t i = 0; i < logits.count; ++i) {
    T* x = logits.row(i);
    for (std::size_t j = 0; j < logits.width; ++j) {
      const T p = std::exp((x[j] - peaks[i]) - taus[i]);
      x[j] = scales[i] == 0 ? T{0} : scales[i] * (p - (static_cast<std::int32_t>(j) == targets[i] ? T{1} : T{0}));
    }
  }
}

}  // namespace reference

inline void cross_entropy(RowsOf<const double> logits, const std::int32_t* targets, double* peaks, double* taus,
                          double* log_probabilities) {
  reference::cross_entropy<double>(logits, targets, peaks, taus, log_probabilities);
}
inline void cross_entropy_backward(RowsOf<double> logits, const std::int32_t* targets, const double* peaks,
                                   const double* taus, const double* scales) {
  reference::cross_entropy_backward<double>(logits, targets, peaks, taus, scales);
}

}  // namespace regard
