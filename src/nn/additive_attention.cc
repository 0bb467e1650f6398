#include "regard/nn/additive_attention.h"

#include <cmath>

namespace regard {

AdditiveAttention::AdditiveAttention(const Builder& builder, std::int64_t query_width, std::int64_t key_width,
                                     std::int64_t hidden)
    : query_(builder.under("query"), query_width, hidden, false),
      key_(builder.under("key"), key_width, hidden, false),
      theta_(&builder.uniform("theta", {hidden}, std::sqrt(3.0 / static_cast<double>(hidden)))) {}

Attended AdditiveAttention::operator()(Var query, Var keys, Var values, std::span<const std::int32_t> lengths) const {
  return attend_additive(query_(query), keys, values, query.tape().use(*theta_), lengths);
}

}  // namespace regard
