// Several attentions side by side: every head looks for something of its own in a smaller space, what they read is put
// together and mapped back.                                                                     Vaswani et al. 2017
//
//     MultiHead attention(builder.under("self"), {.heads = 8, .query = 512, .lines = {"scaled_dot | causal"}});
//     auto [y, trace] = attention(x, x, x, {.lengths = lengths});                 // self-attention: [batch, time, 512]
//     Tensor map = trace.weights({.item = 2, .head = 3});
//
// Heads may have mechanisms of their own: lines = {"scaled_dot", "additive", "window…"}, one a head. Scores that
// compare queries with keys are given projected rows, those that have maps of their own (additive, synthesizers) the
// tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "regard/export.h"
#include "regard/nn/attention_layer.h"
#include "regard/nn/few.h"
#include "regard/nn/linear.h"

namespace regard {

struct MultiHeadSettings {
  std::int64_t heads = 1;
  std::int64_t groups = 0;                          // heads of keys and values; 0: as many as heads
  std::int64_t query = 0, key = 0, value = 0;       // widths of what comes in; key 0: as query, value 0: as key
  std::int64_t width = 0;                           // of a query and a key of one head; 0: query/heads
  std::int64_t value_width = 0;                     // of a value of one head; 0: width
  std::int64_t output = 0;                          // 0: as query
  std::vector<std::string> lines = {"scaled_dot"};  // one for all heads, or one a head
  bool bias = true;                                 // of the maps in and out
};

// Weights by head, whichever mechanism it has.
class REGARD_API MultiHeadTrace {
 public:
  Tensor weights(const AskedWeights& asked = {}) const;
  Tensor all_weights() const;  // [batch, heads, queries, keys]
  Tensor places() const;       // [batch, heads, queries]; not defined: not all heads say where to look
  MultiHeadTrace keep() const;

  struct Part {
    std::shared_ptr<const std::vector<std::int64_t>> heads;
    AttendTrace trace;
  };
  Few<Part> parts;

 private:
  Tensor joined(Tensor (AttendTrace::*of)() const) const;
};

// Keys and values as the heads see them: mapped once, read as often as one likes.
struct MultiHeadMemory {
  struct Part {
    Var keys = {};      // [batch, heads, keys, width]; not defined: the mechanism compares no rows
    Var values = {};    // [batch, heads, keys, width of a value]
    Var tokens = {};    // [batch, keys, key]; not defined: the mechanism needs none
    Var prepared = {};  // what prepare() made of keys and tokens; then those are not looked at
  };
  Few<Part> parts;
};

// What comes in stands one sequence after another, without padding: [Σ lengths, width] instead of [batch, longest,
// width].
struct Sequences {
  std::span<const std::int32_t> lengths;
  std::int64_t longest = 0;
};

struct MultiHeadResult {
  Var output;  // [batch, queries, output], or as the queries stand
  MultiHeadTrace trace;
  Var weights = {};  // of watch: [batch, heads, queries, keys]
};

class REGARD_API MultiHead {
 public:
  MultiHead(const Builder& builder, const MultiHeadSettings& settings);

  // queries [batch, queries, query], keys [batch, keys, key], values [batch, keys, value]. Of the options all but what
  // is learned, tokens and a bias; a mask is [batch or 1, heads or 1, queries, keys].
  MultiHeadResult operator()(Var queries, Var keys, Var values, const AttendOptions& options = {}) const;

  // The same in two steps, for a decoder that looks at the same keys again and again: bit for bit the same.
  //     MultiHeadMemory memory = attention.prepare(attention.remember(keys, values));
  //     auto [y, trace] = attention.read(queries, memory, options);
  MultiHeadMemory remember(Var keys, Var values, const Sequences* sequences = nullptr) const;
  MultiHeadMemory prepare(const MultiHeadMemory& memory) const;  // maps of the scores' own included
  MultiHeadResult read(Var queries, const MultiHeadMemory& memory, const AttendOptions& options = {},
                       const Sequences* sequences = nullptr) const;

  // The same, and the weights as something one can learn from. Not those of a read of its own, nor with dropout.
  MultiHeadResult watch(Var queries, const MultiHeadMemory& memory, const AttendOptions& options = {},
                        const Sequences* sequences = nullptr) const;

  // How long each value is behind the part of the output's matrix that is its head's, |v·W|: f32 [batch, heads, keys].
  Tensor value_lengths(const MultiHeadMemory& memory) const;
  // The same of values [batch, heads of keys, keys, width] of each part, by what length_maps() made: W·Wᵀ of every
  // head, as products like to read it, f32 [heads, any].
  Tensor value_lengths(std::span<const Tensor> values, const Tensor& length_maps) const;
  Tensor length_maps(Tape& tape) const;
  // The same of `count` values of one head, `stride` floats apart.
  void value_lengths(const float* values, std::int64_t count, std::int64_t stride, const Tensor& length_maps,
                     std::int64_t head, float* lengths) const;

  const MultiHeadSettings& settings() const { return settings_; }
  const Linear& output() const { return output_; }

  // What it is made of, for a decoder that keeps keys and values in its own way: there, if one mechanism that compares
  // rows serves all heads and none share keys. Heads stand side by side in what the maps give.
  struct Maps {
    const Linear &query, &key, &value, &output;
    const Mechanism& mechanism;
  };
  std::optional<Maps> maps() const;

 private:
  struct Part {  // heads with the same mechanism
    std::shared_ptr<const std::vector<std::int64_t>> heads;
    std::optional<Linear> query, key;
    Linear value;
    AttentionLayer attention;
  };
  MultiHeadResult read(Var queries, const MultiHeadMemory& memory, const AttendOptions& options,
                       const Sequences* sequences, bool watched) const;
  Var by_head(std::span<const Var> of_parts) const;  // the heads side by side, in their order

  MultiHeadSettings settings_;
  std::vector<Part> parts_;
  Linear output_;
};

}  // namespace regard
