// The attention of one decoder layer of a convolutional model; every layer has its own, so the model looks several
// times before it writes.                                                                                 Gehring et
// al. 2017
//
//     d_i = W h_i + b + g_i        the query: the layer's state and the embedding of the word before
//     c_i = Σ_j p_ij (z_j + e_j)   keys are the encoder's outputs z, values are these and the input embeddings e
//
//     MultiStepAttention attention(builder.under("layer3"), {.state = 512, .embedding = 256});
//     auto [context, trace] = attention(h, g, z, e, {.lengths = lengths});          // [batch, queries, embedding]
#pragma once

#include <cstdint>
#include <string>

#include "regard/export.h"
#include "regard/nn/attention_layer.h"
#include "regard/nn/linear.h"

namespace regard {

struct MultiStepSettings {
  std::int64_t state = 0, embedding = 0;  // widths
  std::string line = "dot";
};

class REGARD_API MultiStepAttention {
 public:
  MultiStepAttention(const Builder& builder, const MultiStepSettings& settings);

  // states [batch, queries, state], words [batch, queries, embedding], encoded and inputs [batch, keys, embedding].
  Attention operator()(Var states, Var words, Var encoded, Var inputs, const AttendOptions& options = {}) const;

 private:
  Linear query_;
  AttentionLayer attention_;
};

}  // namespace regard
