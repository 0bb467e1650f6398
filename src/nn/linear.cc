#include "regard/nn/linear.h"

namespace regard {

Linear::Linear(const Builder& builder, std::int64_t inputs, std::int64_t outputs, bool bias, double gain)
    : weight_(&builder.xavier("weight", {inputs, outputs}, 1, gain)) {
  if (bias) bias_ = &builder.zeros("bias", {outputs});
}

Var Linear::operator()(Var x) const {
  Tape& tape = x.tape();
  return matmul(x, tape.use(*weight_), {.bias = bias_ == nullptr ? Var() : tape.use(*bias_)});
}

}  // namespace regard
