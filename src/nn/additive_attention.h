// Additive attention with its projections (Bahdanau et al. 2015): score(query, key) = θᵀ tanh(query·W_q + key·W_k).
//
//     Var keys = attention.keys(annotations);                              // once a sequence
//     auto [context, trace] = attention(query, keys, annotations, lengths);
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "attention/attend.h"
#include "nn/linear.h"

namespace regard {

class AdditiveAttention {
 public:
  AdditiveAttention(const Builder& builder, std::int64_t query_width, std::int64_t key_width, std::int64_t hidden)
      : query_(builder.under("query"), query_width, hidden, false),
        key_(builder.under("key"), key_width, hidden, false),
        theta_(&builder.uniform("theta", {hidden}, std::sqrt(3.0 / static_cast<double>(hidden)))) {}

  Var keys(Var annotations) const { return key_(annotations); }  // [batch, keys, key_width] -> [batch, keys, hidden]

  // query [batch, queries, query_width], keys from keys(), values [batch, keys, width], lengths: visible keys an item.
  Attended operator()(Var query, Var keys, Var values, std::span<const std::int32_t> lengths) const {
    return attend_additive(query_(query), keys, values, query.tape().use(*theta_), lengths);
  }

 private:
  Linear query_, key_;
  const Parameter* theta_;
};

}  // namespace regard
