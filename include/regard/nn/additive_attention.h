// Additive attention with its projections (Bahdanau et al. 2015): score(query, key) = θᵀ tanh(query·W_q + key·W_k).
//
//     Var keys = attention.keys(annotations);                              // once a sequence
//     auto [context, trace] = attention(query, keys, annotations, lengths);
#pragma once

#include <cstdint>
#include <span>

#include "regard/attention/attend.h"
#include "regard/export.h"
#include "regard/nn/linear.h"

namespace regard {

class REGARD_API AdditiveAttention {
 public:
  AdditiveAttention(const Builder& builder, std::int64_t query_width, std::int64_t key_width, std::int64_t hidden);

  Var keys(Var annotations) const { return key_(annotations); }  // [batch, keys, key_width] -> [batch, keys, hidden]

  // query [batch, queries, query_width], keys from keys(), values [batch, keys, width], lengths: visible keys an item.
  Attended operator()(Var query, Var keys, Var values, std::span<const std::int32_t> lengths) const;

 private:
  Linear query_, key_;
  const Parameter* theta_;
};

}  // namespace regard
