// Additive scores and what follows from them, for one item of a batch: s_ij = θᵀ tanh(q_i + k_j), Bahdanau et al. 2015.
// Weights are never stored: from the peak of a row and τ = log Σ exp(s − peak) they are made again as exp((s − peak) −
// τ).
#pragma once

#include <cmath>
#include <cstddef>

#include "kernels/views.h"

namespace regard {

template <class T>
struct AdditiveItem {
  RowsOf<const T> queries, keys;  // projected; only the visible keys
  const T* theta;                 // [width of queries and keys]
};

// scores[keys] of query i; then peak and τ, and the context Σ_j p_j v_j. No keys: peak and τ are 0, the context zeros.
void additive_query(const AdditiveItem<float>& item, std::size_t i, RowsOf<const float> values, float* scores,
                    float* peak, float* tau, float* context);
// The weights of query i, as the forward pass had them.
void additive_weights(const AdditiveItem<float>& item, std::size_t i, float peak, float tau, float* weights);

// Gradients of query i, all added to what is there. weights and d_scores: room for one number a key. kept: room for one
// a key and column, which saves half of the tanh; or null.
template <class T>
struct AdditiveGradients {
  T* query;  // [width]
  RowsOf<T> keys, values;
  T* theta;  // [width]
};
void additive_query_backward(const AdditiveItem<float>& item, std::size_t i, RowsOf<const float> values, float peak,
                             float tau, const float* d_context, float* weights, float* d_scores, float* kept,
                             const AdditiveGradients<float>& to);

namespace reference {

template <class T>
T additive_score(const AdditiveItem<T>& item, std::size_t i, std::size_t j) {
  T sum = 0;
  for (std::size_t c = 0; c < item.queries.width; ++c) {
    sum += item.theta[c] * std::tanh(item.queries.row(i)[c] + item.keys.row(j)[c]);
  }
  return sum;
}

template <class T>
void additive_query(const AdditiveItem<T>& item, std::size_t i, RowsOf<const T> values, T* scores, T* peak, T* tau,
                    T* context) {
  *peak = 0;
  *tau = 0;
  for (std::size_t c = 0; c < values.width; ++c) context[c] = 0;
  if (item.keys.count == 0) return;
  for (std::size_t j = 0; j < item.keys.count; ++j) {
    scores[j] = additive_score(item, i, j);
    *peak = j == 0 || scores[j] > *peak || std::isnan(scores[j]) ? scores[j] : *peak;
  }
  T mass = 0;
  for (std::size_t j = 0; j < item.keys.count; ++j) mass += std::exp(scores[j] - *peak);
  *tau = std::log(mass);
  for (std::size_t j = 0; j < item.keys.count; ++j) {
    const T p = std::exp((scores[j] - *peak) - *tau);
    for (std::size_t c = 0; c < values.width; ++c) context[c] += p * values.row(j)[c];
  }
}

template <class T>
void additive_weights(const AdditiveItem<T>& item, std::size_t i, T peak, T tau, T* weights) {
  for (std::size_t j = 0; j < item.keys.count; ++j) weights[j] = std::exp((additive_score(item, i, j) - peak) - tau);
}

template <class T>
void additive_query_backward(const AdditiveItem<T>& item, std::size_t i, RowsOf<const T> values, T peak, T tau,
                             const T* d_context, T* weights, T* d_scores, const AdditiveGradients<T>& to) {
  additive_weights(item, i, peak, tau, weights);
  T total = 0;
  for (std::size_t j = 0; j < item.keys.count; ++j) {
    d_scores[j] = 0;
    for (std::size_t c = 0; c < values.width; ++c) {
      d_scores[j] += d_context[c] * values.row(j)[c];
      to.values.row(j)[c] += weights[j] * d_context[c];
    }
    total += weights[j] * d_scores[j];
  }
  for (std::size_t j = 0; j < item.keys.count; ++j) {
    const T ds = weights[j] * (d_scores[j] - total);
    for (std::size_t c = 0; c < item.queries.width; ++c) {
      const T t = std::tanh(item.queries.row(i)[c] + item.keys.row(j)[c]);
      const T g = ds * item.theta[c] * (1 - t * t);
      to.query[c] += g;
      to.keys.row(j)[c] += g;
      to.theta[c] += ds * t;
    }
  }
}

}  // namespace reference

inline void additive_query(const AdditiveItem<double>& item, std::size_t i, RowsOf<const double> values, double* scores,
                           double* peak, double* tau, double* context) {
  reference::additive_query(item, i, values, scores, peak, tau, context);
}
inline void additive_weights(const AdditiveItem<double>& item, std::size_t i, double peak, double tau,
                             double* weights) {
  reference::additive_weights(item, i, peak, tau, weights);
}
inline void additive_query_backward(const AdditiveItem<double>& item, std::size_t i, RowsOf<const double> values,
                                    double peak, double tau, const double* d_context, double* weights, double* d_scores,
                                    double* /*kept*/, const AdditiveGradients<double>& to) {
  reference::additive_query_backward(item, i, values, peak, tau, d_context, weights, d_scores, to);
}

}  // namespace regard
