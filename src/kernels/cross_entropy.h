// Softmax cross-entropy on rows of logits, with label smoothing ε (Szegedy et al. 2016):
//   peak = max x,  τ = log Σ_j exp(x_j − peak),  log p_j = (x_j − peak) − τ
//   loss_i = −w_i·((1 − ε)·log p_target + ε·mean_j log p_j)
//   d x_j  = w_i·(p_j − (1 − ε)·[j = target] − ε/width)
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/views.h"

namespace regard {

template <class T>
struct CrossEntropyRows {
  const std::int32_t* targets;
  const T* weights;  // a row of weight 0 gives a loss and gradients of exactly 0, whatever its logits are
  T smoothing = 0;
  T* losses;
  T* log_probabilities;    // of the targets
  bool gradients = false;  // logits become their gradients
};

void cross_entropy(RowsOf<float> logits, const CrossEntropyRows<float>& rows);

namespace reference {

template <class T>
void cross_entropy(RowsOf<T> logits, const CrossEntropyRows<T>& rows) {
  const T smoothing = rows.smoothing, each = smoothing / static_cast<T>(logits.width);
  for (std::size_t i = 0; i < logits.count; ++i) {
    T* x = logits.row(i);
    const auto target = static_cast<std::size_t>(rows.targets[i]);
    const T weight = rows.weights[i];
    T peak = x[0], mass = 0, mean = 0;
    for (std::size_t j = 0; j < logits.width; ++j) peak = x[j] > peak || std::isnan(x[j]) ? x[j] : peak;
    for (std::size_t j = 0; j < logits.width; ++j) mass += std::exp(x[j] - peak);
    const T tau = std::log(mass);
    for (std::size_t j = 0; j < logits.width; ++j) mean += ((x[j] - peak) - tau) / static_cast<T>(logits.width);
    const T log_p = (x[target] - peak) - tau;
    rows.log_probabilities[i] = log_p;
    rows.losses[i] =
        weight == 0 ? T{0} : -weight * (smoothing == 0 ? log_p : (1 - smoothing) * log_p + smoothing * mean);
    for (std::size_t j = 0; rows.gradients && j < logits.width; ++j) {
      const T p = std::exp((x[j] - peak) - tau);
      x[j] = weight == 0 ? T{0} : weight * (p - (j == target ? 1 - smoothing : T{0}) - each);
    }
  }
}

}  // namespace reference

inline void cross_entropy(RowsOf<double> logits, const CrossEntropyRows<double>& rows) {
  reference::cross_entropy<double>(logits, rows);
}

}  // namespace regard
