// Normalisation over the last dimension, as layers: weights start at one, biases at zero.
#pragma once

#include <cstdint>

#include "regard/autograd/ops.h"
#include "regard/export.h"
#include "regard/nn/builder.h"

namespace regard {

// y = (x − mean)/√(variance + ε)·weight + bias.      Ba et al. 2016
class REGARD_API LayerNorm {
 public:
  LayerNorm(const Builder& builder, std::int64_t width, float epsilon = 1e-5f);
  Var operator()(Var x) const;  // [..., width] -> [..., width]

 private:
  const Parameter *weight_, *bias_;  // [width]
  float epsilon_;
};

// y = x/√(mean of squares + ε)·weight.      Zhang and Sennrich 2019
class REGARD_API RmsNorm {
 public:
  RmsNorm(const Builder& builder, std::int64_t width, float epsilon = 1e-5f);
  Var operator()(Var x) const;  // [..., width] -> [..., width]

 private:
  const Parameter* weight_;  // [width]
  float epsilon_;
};

}  // namespace regard
