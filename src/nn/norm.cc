#include "regard/nn/norm.h"

namespace regard {

LayerNorm::LayerNorm(const Builder& builder, std::int64_t width, float epsilon)
    : weight_(&builder.constant("weight", {width}, 1)), bias_(&builder.zeros("bias", {width})), epsilon_(epsilon) {}

Var LayerNorm::operator()(Var x) const {
  Tape& tape = x.tape();
  return layer_norm(x, tape.use(*weight_), tape.use(*bias_), epsilon_);
}

RmsNorm::RmsNorm(const Builder& builder, std::int64_t width, float epsilon)
    : weight_(&builder.constant("weight", {width}, 1)), epsilon_(epsilon) {}

Var RmsNorm::operator()(Var x) const { return rms_norm(x, x.tape().use(*weight_), epsilon_); }

}  // namespace regard
