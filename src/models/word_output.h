// From what a decoder has read to the words: the last map and the loss, the same for every family. The map may be the
// table of an embedding (tied: Press and Wolf 2017).
//
//     WordOutput output(builder.under("output"), 512, 10000);
//     return output.loss(rows, places, batch, options);
#pragma once

#include <cstdint>
#include <span>

#include "models/batch.h"
#include "models/sequence_model.h"
#include "regard/nn/builder.h"
#include "tensor/arena_vector.h"

namespace regard {

class WordOutput {
 public:
  // tied: a table [words, width], or null: a map of its own.
  WordOutput(const Builder& builder, std::int64_t width, std::int64_t words, const Parameter* tied = nullptr);

  // Row i of the rows [count, width] belongs to places[i] of the targets [steps · batch], each at most once. Those of
  // padding are left out before the map; their log-probabilities are 0.
  SequenceModel::Loss loss(Var rows, std::span<const std::int32_t> places, const Batch& batch,
                           const LossOptions& options) const;

  Var operator()(Var x) const;  // [..., width] -> [..., words]
  // By place: [steps · batch, words]. Places that no row has are 0.
  Var logits(Var rows, std::span<const std::int32_t> places, const Batch& batch) const;

 private:
  std::int64_t words_;
  bool tied_;
  const Parameter* weight_;  // [width, words]; tied: [words, width]
  const Parameter* bias_;    // [words]
};

// The places of rows [batch · steps], of models that keep a sequence together.
ArenaVector<std::int32_t> places_by_item(Tape& tape, const Batch& batch);

}  // namespace regard
