// From what a decoder has read to the words: the last map and the loss, the same for every family. The map may be the
// table of an embedding (tied: Press and Wolf 2017).
//
//     WordOutput output(builder.under("output"), 512, 10000);
//     return output.loss(read, batch, options, RowOrder::kTimeFirst);
#pragma once

#include <cstdint>

#include "models/batch.h"
#include "models/sequence_model.h"
#include "regard/nn/builder.h"

namespace regard {

enum class RowOrder { kTimeFirst, kBatchFirst };  // of rows [steps · batch], or [batch · steps]

class WordOutput {
 public:
  // tied: a table [words, width], or null: a map of its own.
  WordOutput(const Builder& builder, std::int64_t width, std::int64_t words, const Parameter* tied = nullptr);

  // Rows of padding are left out before the map. Their log-probabilities are 0.
  SequenceModel::Loss loss(Var rows, const Batch& batch, const LossOptions& options, RowOrder order) const;

  Var operator()(Var x) const;                                     // [..., width] -> [..., words]
  Var logits(Var rows, const Batch& batch, RowOrder order) const;  // [steps · batch, words]
  std::int64_t words() const { return words_; }

 private:
  std::int64_t words_;
  bool tied_;
  const Parameter* weight_;  // [width, words]; tied: [words, width]
  const Parameter* bias_;    // [words]
};

}  // namespace regard
