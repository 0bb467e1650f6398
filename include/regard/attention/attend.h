// Attention: score the query against the keys, align (scores become weights over the visible keys), read the values.
//
//     auto [context, trace] = attend_additive(q, k, v, theta, lengths);
//     Tensor map = trace.weights({.item = 3});                            // when someone wants to look
//
// The forward pass keeps two numbers a query, the peak of its scores and τ = log Σ exp(score − peak); weights are made
// again from them, exp((score − peak) − τ), by the backward pass and by whoever asks. Asking changes nothing.
#pragma once

#include <cstdint>
#include <span>

#include "regard/autograd/ops.h"
#include "regard/export.h"

namespace regard {

struct WeightsQuery {
  std::int64_t item = 0;
};

// What is needed to show the weights of one call; valid until its step ends, then it throws.
class REGARD_API Trace {
 public:
  Trace() = default;
  Trace(Tensor queries, Tensor keys, Tensor theta, Tensor lengths, Tensor peaks, Tensor taus)
      : queries_(std::move(queries)),
        keys_(std::move(keys)),
        theta_(std::move(theta)),
        lengths_(std::move(lengths)),
        peaks_(std::move(peaks)),
        taus_(std::move(taus)) {}

  Tensor weights(const WeightsQuery& query) const;  // [queries, visible keys of the item], on the heap

 private:
  Tensor queries_, keys_, theta_, lengths_, peaks_, taus_;
};

struct Attended {
  Var context;  // [batch, queries, width of the values]
  Trace trace;
};

// score(q, k) = θᵀ tanh(q + k), Bahdanau et al. 2015: q [batch, queries, hidden] and k [batch, keys, hidden] arrive
// projected, once a row instead of once a pair; v [batch, keys, width]; theta [hidden]. Item b sees its first
// lengths[b] keys. A query that sees no key reads zeros.
REGARD_API Attended attend_additive(Var q, Var k, Var v, Var theta, std::span<const std::int32_t> lengths);

}  // namespace regard
