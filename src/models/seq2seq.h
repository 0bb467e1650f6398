// An encoder and a decoder with attention between them, as in Bahdanau et al. 2015: a GRU reads the source in both
// directions, another writes the target, and before each word it looks back at the source:
//
//     h_j = [→h_j ; ←h_j]                              the annotations
//     c_i = Σ_j p_ij h_j,   p_i = softmax_j θᵀ tanh(s_{i−1}·W_q + h_j·W_k + b)
//     s_i = gru(s_{i−1}, [y_{i−1} ; c_i]),   s_0 = tanh(←h_1·W + b)
//     log p(y_i) = log softmax(tanh([s_i ; c_i ; y_{i−1}]·W_r + b_r)·W_o + b_o)
//
//     Parameters parameters;
//     Seq2seq model(Builder(parameters, RandomKey(seed)), {.source_words = 32, .target_words = 32});
//     trainer.step(rate, [&](Tape& tape) { return model.loss(tape, batch).loss; });
#pragma once

#include <cstdint>
#include <span>

#include "models/batch.h"
#include "regard/nn/attention_layer.h"
#include "regard/nn/embedding.h"
#include "regard/nn/linear.h"
#include "regard/nn/recurrent.h"

namespace regard {

struct Seq2seqSettings {
  std::int64_t source_words = 0;  // sizes of the vocabularies
  std::int64_t target_words = 0;
  std::int64_t embedding = 64;
  std::int64_t hidden = 128;     // of each direction of the encoder, and of the decoder
  std::int64_t attention = 128;  // width in which queries and keys are compared
  std::int64_t readout = 128;    // width before the vocabulary
};

class Seq2seq {
 public:
  Seq2seq(const Builder& builder, const Seq2seqSettings& settings);

  struct Loss {
    Var loss;                  // [], the mean over all targets that are not padding
    Tensor log_probabilities;  // [steps · batch], valid until the step ends
  };
  // Teacher forcing: the decoder is told the right words before each step.
  Loss loss(Tape& tape, const Batch& batch) const;

  // What decoding needs of the sources, computed once.
  struct Encoded {
    Var annotations;                        // [batch, 1, time, 2·hidden]
    Var keys;                               // [batch, 1, time, attention]
    Var first_state;                        // [batch, hidden]
    std::span<const std::int32_t> lengths;  // those of the batch
  };
  Encoded encode(Tape& tape, const Batch& batch) const;

  struct Step {
    Var state;   // [batch, hidden]
    Var logits;  // [batch, target_words]
    AttendTrace trace;
  };
  // One step for every row: previous i32 [batch], the word each row wrote last. Gives the bits that `loss` gives.
  Step step(const Encoded& encoded, Var state, const Tensor& previous) const;

  const Seq2seqSettings& settings() const { return settings_; }

 private:
  struct Advance {
    Var state;    // [batch, hidden]
    Var context;  // [batch, 2·hidden]
    AttendTrace trace;
  };
  Advance advance(const Encoded& encoded, Var state, Var input) const;  // input [batch, 3·hidden]: from the word alone
  Var readout(Var states, Var contexts, Var words) const;

  Seq2seqSettings settings_;
  Embedding source_words_, target_words_;
  RecurrentLayer forward_, backward_;
  Linear first_state_;
  AttentionLayer attention_;
  RecurrentLayer decoder_;  // its inputs are the words;
  Linear context_;          // what the context adds to them
  Linear readout_, output_;
};

}  // namespace regard
