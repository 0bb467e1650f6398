// A softmax for every feature: e_ij = W₂ tanh(W_q q_i + W_k k_j + b₁) + b₂ is a vector as wide as the values, and each
// of its features has weights of its own over the keys.                                              Shen et al. 2018
//
//     auto [context, weights, scores] = attention(queries, keys, values, lengths);
#pragma once

#include <cstdint>
#include <span>

#include "regard/autograd/ops.h"
#include "regard/export.h"
#include "regard/nn/linear.h"

namespace regard {

struct MultiDimensionalWidths {
  std::int64_t query = 0, key = 0, value = 0, hidden = 0;
};

class REGARD_API MultiDimensionalAttention {
 public:
  MultiDimensionalAttention(const Builder& builder, const MultiDimensionalWidths& widths);

  struct Result {
    Var context;  // [batch, queries, value]: Σ_j p[i, j, c]·v[j, c]
    Var weights;  // [batch, queries, keys, value]
    Var scores;   // the same; −∞ where nobody may look
  };
  // queries [batch, queries, query], keys [batch, keys, key], values [batch, keys, value]; lengths: visible keys an
  // item. Who sees no key reads zeros.
  Result operator()(Var queries, Var keys, Var values, std::span<const std::int32_t> lengths) const;

 private:
  Linear query_, key_, score_;
};

}  // namespace regard
