// Additive attention of queries and keys that arrive projected.
//
//     auto [context, trace] = attend_additive(q, k, v, theta, lengths);
//     Tensor map = trace.weights({.item = 3});                            // when someone wants to look
#pragma once

#include <cstdint>
#include <span>

#include "regard/attention/mechanism.h"
#include "regard/autograd/ops.h"
#include "regard/export.h"

namespace regard {

struct Attended {
  Var context;  // [batch, queries, width of the values]
  AttendTrace trace;
};

// score(q, k) = θᵀ tanh(q + k), Bahdanau et al. 2015: q [batch, queries, hidden] and k [batch, keys, hidden] arrive
// projected, once a row instead of once a pair; v [batch, keys, width]; theta [hidden]. Item b sees its first
// lengths[b] keys. A query that sees no key reads zeros.
REGARD_API Attended attend_additive(Var q, Var k, Var v, Var theta, std::span<const std::int32_t> lengths);

}  // namespace regard
