// y = x·W + b over the last dimension.
#pragma once

#include <cstdint>

#include "regard/autograd/ops.h"
#include "regard/export.h"
#include "regard/nn/builder.h"

namespace regard {

class REGARD_API Linear {
 public:
  // `gain`: how large the first weights are beside those of Xavier.
  Linear(const Builder& builder, std::int64_t inputs, std::int64_t outputs, bool bias = true, double gain = 1);

  Var operator()(Var x) const;  // [..., inputs] -> [..., outputs]

  const Parameter& weight() const { return *weight_; }  // [inputs, outputs]
  const Parameter* bias() const { return bias_; }       // [outputs]; null: none

 private:
  const Parameter* weight_;
  const Parameter* bias_ = nullptr;
};

}  // namespace regard
