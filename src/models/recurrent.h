// Recurrent models: one recurrent network reads the source, another writes the target.
//
//   seq2seq    c is the encoder's last state; it is the decoder's first state and its context at every step.
//                                                                              Cho et al. 2014, Sutskever et al. 2014
//   bahdanau   the encoder reads in both directions, h_j = [→h_j ; ←h_j]; before each word the decoder looks back,
//                c_i = Σ_j p_ij h_j,  p_i = align score(s_{i−1}, h_j);   s_i = cell(s_{i−1}, [y_{i−1} ; c_i])
//              with the first states s_0 = tanh(←h_1·W + b). Layers above the first read the states of the one below;
//              the first one looks.                                            Bahdanau et al. 2015
//   both write log p(y_i) = log softmax(tanh([s_i ; c_i ; y_{i−1}]·W_r + b_r)·W_o + b_o)
//   luong      a stacked encoder; the decoder looks after its cells, with its last layer's state:
//                s_i = cells(s_{i−1}, [y_{i−1} ; h̃_{i−1}]),  h̃_i = tanh([c_i ; s_i]·W_c + b_c),  log p = log
//                softmax(h̃_i·W_o + b_o)
//              Its first states are the encoder's last.                        Luong et al. 2015
//
// Any line can be the score; where a mechanism compares queries with keys of another width, both are mapped first. With
// "none" nobody looks: what the encoder ends with is the context of every step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/sequence_model.h"
#include "models/word_output.h"
#include "regard/nn/attention_layer.h"
#include "regard/nn/embedding.h"
#include "regard/nn/linear.h"
#include "regard/nn/recurrent.h"
#include "tensor/arena_vector.h"

namespace regard {

enum class RecurrentStyle { kPlain, kBahdanau, kLuong };

struct RecurrentModelSettings {
  RecurrentStyle style = RecurrentStyle::kBahdanau;
  Cell cell = Cell::kGru;
  std::int64_t source_words = 0;  // sizes of the vocabularies
  std::int64_t target_words = 0;
  std::int64_t embedding = 64;
  std::int64_t hidden = 128;      // of each direction of the encoder, and of the decoder
  std::int64_t layers = 1;        // of the encoder, and of the decoder
  std::int64_t attention = 128;   // width in which queries and keys are compared
  std::int64_t readout = 128;     // width before the words; of luong, of h̃
  std::string line = "additive";  // of the attention; of kPlain there is none
  float dropout = 0;              // of embeddings, between layers and before the words
  float attention_dropout = 0;    // of the weights
  bool tie = false;               // the output is the table of the target's words: readout = embedding
  bool share = false;             // so are the source's words
};

// One query at a time over the encoder's states.
class SourceAttention {
 public:
  struct Widths {
    std::int64_t query = 0, key = 0, hidden = 0;
  };
  SourceAttention(const Builder& builder, const std::string& line, const Widths& widths);
  const Mechanism& mechanism() const { return attention_.mechanism(); }

  struct Memory {
    Var values;  // [batch, 1, time, key]
    Var keys;    // as the score wants them
  };
  Memory prepare(Var annotations) const;  // [batch, 1, time, key]
  // query [batch, width] -> context [batch, 1, 1, key]. Of the options all but tokens and keys.
  Attention operator()(Var query, const Memory& memory, AttendOptions options) const;

 private:
  std::optional<Linear> query_, key_;
  AttentionLayer attention_;
};

class RecurrentModel : public SequenceModel {
 public:
  RecurrentModel(const Builder& builder, const RecurrentModelSettings& settings);

  Loss loss(Tape& tape, const Batch& batch, const LossOptions& options = {}) const override;
  Var logits(Tape& tape, const Batch& batch) const override;
  std::unique_ptr<Decoding> decode(const Batch& sources, const DecodeOptions& options = {}) const override;
  std::int64_t target_words() const override { return settings_.target_words; }
  Room room() const override;
  AttentionShape attention_shape() const override { return {attends() ? 1 : 0, attends() ? 1 : 0}; }
  std::vector<Tensor> all_attention(const Batch& batch) const override;
  std::vector<Tensor> places(const Batch& batch) const override;

  const RecurrentModelSettings& settings() const { return settings_; }

 private:
  class Steps;
  struct Plan;

  struct Encoded {
    SourceAttention::Memory memory = {};  // if there is attention
    Var summary = {};                     // [batch, width of a context], if there is none
    ArenaVector<RecurrentState> first;    // of the decoder, one a layer
  };
  // Row i is source order[i] of the batch.
  Encoded encode(Tape& tape, const Batch& batch, const LossOptions& options, std::span<const std::int32_t> order) const;
  // [rows of the plan, readout]; traces, if somebody wants them, one a step.
  // Weights, if somebody wants to learn from them: [rows of the plan, time].
  Var read(Tape& tape, const Batch& batch, const Plan& plan, const LossOptions& options,
           std::vector<AttendTrace>* traces, Var* weights = nullptr) const;
  Var read_out(Var states, Var contexts, Var words) const;
  Var first_fed(Tape& tape, std::int64_t rows, DType type) const;  // h̃_0, zeros
  AttendOptions looking(const LossOptions& options, std::span<const std::int32_t> lengths,
                        std::span<const std::uint64_t> ids, std::int64_t step) const;
  bool attends() const { return attention_.has_value(); }
  bool feeds() const { return settings_.style == RecurrentStyle::kLuong; }
  std::int64_t context_width() const;

  RecurrentModelSettings settings_;
  Embedding target_, source_;
  RecurrentSettings encoder_settings_;
  std::vector<RecurrentLayer> encoder_;             // layer by layer, forward before backward
  std::vector<Linear> first_state_, first_memory_;  // of bahdanau, one a layer
  std::optional<SourceAttention> attention_;
  std::vector<RecurrentLayer> decoder_;
  Linear context_;  // what the context (of luong: h̃) adds to the gates of the first layer
  Linear readout_;
  WordOutput output_;
};

}  // namespace regard
