// The Transformer: encoder and decoder of attention and position-wise maps alone.            Vaswani et al. 2017
//
//   encoder layer   x ← x + self(x);  x ← x + ffn(x)
//   decoder layer   x ← x + self(x), causal;  x ← x + cross(x, encoder);  x ← x + ffn(x)
//   ffn(x) = f(x·W₁ + b₁)·W₂ + b₂
//
// Normalised before each part and once at the end (pre), or after each sum (post). Words are √width times their
// embeddings, plus their position. Each attention can have any mechanism; what the model knows itself (how long a
// source is, that a target is written from its beginning) is added to what the line says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/sequence_model.h"
#include "models/word_output.h"
#include "regard/nn/embedding.h"
#include "regard/nn/linear.h"
#include "regard/nn/multi_head.h"
#include "regard/nn/norm.h"
#include "regard/nn/position.h"
#include "regard/nn/query_module.h"

namespace regard {

enum class NormPlace { kPre, kPost };

struct TransformerSettings {
  std::int64_t source_words = 0;  // sizes of the vocabularies
  std::int64_t target_words = 0;
  std::int64_t width = 128;
  std::int64_t ffn = 256;  // width inside of ffn
  std::int64_t heads = 4;
  std::int64_t encoder_layers = 4, decoder_layers = 4;
  // Of self-attention in the encoder and in the decoder and of the decoder's look at the source: a line for all layers,
  // or one a layer, separated by ';'.
  std::string encoder_line = "scaled_dot", decoder_line = "scaled_dot", cross_line = "scaled_dot";
  NormPlace norm = NormPlace::kPre;
  Activation activation = Activation::kRelu;
  PositionKind positions = PositionKind::kSinusoidal;
  std::int64_t longest = 1024;   // positions; none has no limit
  float dropout = 0;             // of words and of what each part adds
  float attention_dropout = 0;   // of weights
  float activation_dropout = 0;  // inside of ffn
  bool tie = false;              // the output is the table of the target's words
  bool share = false;            // so are the source's words; the output is not, unless it is tied
};

class Transformer : public SequenceModel {
 public:
  Transformer(const Builder& builder, const TransformerSettings& settings);

  Loss loss(Tape& tape, const Batch& batch, const LossOptions& options = {}) const override;
  Var logits(Tape& tape, const Batch& batch) const override;
  std::unique_ptr<Decoding> decode(const Batch& sources, const DecodeOptions& options = {}) const override;
  std::int64_t target_words() const override { return settings_.target_words; }
  Room room() const override { return room_; }
  AttentionShape attention_shape() const override { return {settings_.decoder_layers, settings_.heads}; }
  AttentionShape shape_of(LookKind kind) const override {
    return {kind == LookKind::kEncoder ? settings_.encoder_layers : settings_.decoder_layers, settings_.heads};
  }
  std::vector<Tensor> all_attention(const Batch& batch) const override;
  std::vector<Tensor> places(const Batch& batch) const override;
  std::vector<EveryMap> every_attention(const Batch& batch) const override;

  const TransformerSettings& settings() const { return settings_; }

 private:
  class Steps;
  struct EncoderLayer {
    LayerNorm self_norm, ffn_norm;
    MultiHead self;
    Linear inner, outer;
  };
  struct DecoderLayer {
    LayerNorm self_norm, cross_norm, ffn_norm;
    MultiHead self, cross;
    Linear inner, outer;
  };
  struct Packed;
  // What a pass over whole sequences draws from.
  struct Pass {
    const LossOptions& options;
    std::span<const std::uint64_t> ids = {};    // of the examples,
    std::span<const std::uint64_t> spots = {};  // and of their rows
  };

  // `at`: where the first row of each sequence stands, or where every row does.
  template <class At>
  Var embed(Tape& tape, const Embedding& table, const Position& position, const Tensor& ids, At at) const;
  Var drop(Var x, float p, const Pass& pass, std::uint64_t site) const;
  AttendOptions looking(const Pass& pass, std::uint64_t site) const;
  Var before(const LayerNorm& norm, Var x) const;           // what a part sees,
  Var after(const LayerNorm& norm, Var x, Var part) const;  // and what is made of what it gives
  Var feed_forward(const Linear& inner, const Linear& outer, Var x, const Pass& pass, std::uint64_t site) const;
  struct Traces {          // of each layer, for those who want to know
    bool weights = false;  // they will ask for all weights of all of them
    std::vector<MultiHeadTrace> encoder = {}, decoder = {}, cross = {};
    std::vector<MultiHeadMemory> encoder_read = {}, decoder_read = {}, cross_read = {};  // what they looked at
  };
  // What is made of the sources, one after another: [Σ lengths, width].
  Var encode(Tape& tape, const Batch& batch, const LossOptions& options, Traces* traces = nullptr,
             const WhatIf* what_if = nullptr) const;
  // Of the targets' rows, [rows, width]; weights, if somebody wants them: of the last look at the source, [batch,
  // heads, steps, time]
  Var read(Tape& tape, const Batch& batch, const Packed& rows, const LossOptions& options, Traces* traces,
           Var* weights = nullptr) const;

  TransformerSettings settings_;
  Embedding target_, source_;
  Position source_position_, target_position_;
  std::vector<EncoderLayer> encoder_;
  std::vector<DecoderLayer> decoder_;
  Room room_;
  bool reinforces_ = false;  // an attention is hard and learns by reinforce
  std::optional<LayerNorm> encoder_norm_, decoder_norm_;
  WordOutput output_;
};

}  // namespace regard
