// Convolutions instead of recurrence: every position sees a few neighbours, layers on layers see the rest; each layer
// of the decoder looks at the source by itself.                                                   Gehring et al. 2017
//
//   e, g: embeddings of source and target words plus their positions
//   encoder layer   x ← (glu(conv(x)) + x)·√½,   z = x·W + b back to the width of e
//   decoder layer   h = glu(causal conv(x));   c_i = √m · Σ_j p_ij (z_j + e_j),  p_i = align score(h_i·W + b + g_i,
//   z_j)
//                   x ← ((h + c·W + b)·√½ + x)·√½,   m the length of the source
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
#include "regard/nn/multi_step.h"
#include "regard/nn/position.h"

namespace regard {

struct ConvS2sSettings {
  std::int64_t source_words = 0;  // sizes of the vocabularies
  std::int64_t target_words = 0;
  std::int64_t embedding = 256;
  std::int64_t hidden = 256;  // channels of the convolutions
  std::int64_t encoder_layers = 4, decoder_layers = 3;
  std::int64_t kernel = 3;
  std::string line = "dot";  // of the attention: for all layers, or one a layer, separated by ';'
  PositionKind positions = PositionKind::kLearned;
  std::int64_t longest = 1024;  // positions
  float dropout = 0;            // of embeddings, before each convolution and before the words
  float attention_dropout = 0;
  bool tie = false;    // the output is the table of the target's words
  bool share = false;  // so are the source's words
};

class ConvS2s : public SequenceModel {
 public:
  ConvS2s(const Builder& builder, const ConvS2sSettings& settings);

  Loss loss(Tape& tape, const Batch& batch, const LossOptions& options = {}) const override;
  Var logits(Tape& tape, const Batch& batch) const override;
  std::unique_ptr<Decoding> decode(const Batch& sources, const DecodeOptions& options = {}) const override;
  std::int64_t target_words() const override { return settings_.target_words; }
  Room room() const override { return room_; }
  AttentionShape attention_shape() const override { return {settings_.decoder_layers, 1}; }
  std::vector<Tensor> all_attention(const Batch& batch) const override;
  std::vector<Tensor> places(const Batch& batch) const override;

  const ConvS2sSettings& settings() const { return settings_; }

 private:
  class Steps;
  struct DecoderLayer {
    Linear convolution;  // of a window: [kernel·hidden, 2·hidden]
    MultiStepAttention attention;
    Linear context;
  };
  struct Encoded {
    Var keys;    // z [batch, time, embedding]
    Var inputs;  // e, likewise
    Var scale;   // √m [batch, 1, 1]
  };
  // What a pass over whole sequences draws from.
  struct Pass {
    const LossOptions& options;
    std::span<const std::uint64_t> ids;
  };

  Var drop(Var x, const Pass& pass, std::uint64_t site) const;
  Encoded encode(Tape& tape, const Batch& batch, const Pass& pass) const;
  Var half(Var x) const;  // x·√½
  Attention look(const DecoderLayer& layer, Var states, Var words, const Encoded& encoded,
                 const AttendOptions& options) const;
  // What a layer makes of the states of its convolution, of what it read and of what came in.
  Var join(const DecoderLayer& layer, Var states, Var context, Var x) const;
  // [batch · steps, embedding]; traces, if somebody wants them, one a layer.
  Var read(Tape& tape, const Batch& batch, const LossOptions& options, std::vector<AttendTrace>* traces) const;

  ConvS2sSettings settings_;
  Embedding target_, source_;
  Position source_position_, target_position_;
  Linear encoder_in_, encoder_out_, decoder_in_, decoder_out_;
  std::vector<Linear> encoder_;  // convolutions
  std::vector<DecoderLayer> decoder_;
  Room room_;
  bool reinforces_ = false;  // an attention is hard and learns by reinforce
  WordOutput output_;
};

}  // namespace regard
