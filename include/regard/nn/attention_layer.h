// A mechanism with what it learns: any line of docs/mechanisms.md as a layer.
//
//     AttentionLayer attention(builder.under("attention"), "additive | lengths", {.query_token = 64, .key_token = 128,
//                                                                                 .hidden = 32});
//     auto [context, trace] = attention(q, k, v, {.lengths = lengths});        // [batch, 1, length, width] each
#pragma once

#include <string_view>
#include <vector>

#include "regard/attention/mechanism.h"
#include "regard/export.h"
#include "regard/nn/builder.h"

namespace regard {

class REGARD_API AttentionLayer {
 public:
  AttentionLayer(const Builder& builder, std::string_view line, const AttendSizes& sizes);

  // As attend; what is learned is added to the options.
  Attention operator()(Var q, Var k, Var v, const AttendOptions& options = {}) const;

  // For a decoder: the keys once a sequence; then operator()(q, {}, v, {.prepared_keys = …}) once a step.
  Var prepare_keys(Var k, const AttendOptions& options = {}) const;

  const Mechanism& mechanism() const { return mechanism_; }
  const AttendSizes& sizes() const { return sizes_; }

 private:
  AttendOptions with_learned(Tape& tape, const AttendOptions& options) const;

  Mechanism mechanism_;
  AttendSizes sizes_;
  std::vector<const Parameter*> learned_;
};

// Values [batch, groups, keys, width] with a column a key behind them, 1 for that key and 0 for the others: who reads
// them reads its weights behind the context, and what is learned from those goes back as from any other context.
REGARD_API Var with_weights(Var values);

}  // namespace regard
