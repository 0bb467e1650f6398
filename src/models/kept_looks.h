// What a decoding remembers of where its rows looked, step by step; found again by the rows that led to a result.
//
//     looks.begin(rows, keys);                                    // a step
//     looks.add(layer, trace.all_weights(), width);               // once a layer
//     Tensor map = looks.along(path, keys);                       // [layers, heads, steps, keys]
//
// A layer that looks at what it keeps (attend_kept) puts scores here instead, and weights are made of those alone that
// led to a result.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/kept.h"
#include "models/sequence_model.h"
#include "regard/tensor/tensor.h"

namespace regard {

class KeptLooks {
 public:
  explicit KeptLooks(const AttentionShape& shape)
      : shape_(shape), mechanisms_(static_cast<std::size_t>(shape.layers), nullptr) {}

  // At most so many keys. Rows that put scores come `together`. What a step keeps is on the heap, or if there is a
  // tape, in its memory.
  void begin(std::int64_t rows, std::int64_t keys, std::int64_t together = 1, Tape* memory = nullptr);
  // weights [items, heads, queries, keys]: query q of item i is row i·width + first + q.
  void add(std::int64_t layer, const Tensor& weights, std::int64_t width, std::int64_t first = 0);

  // This layer puts scores; the mechanism has to outlive this.
  void scored_by(std::int64_t layer, const Mechanism& mechanism) {
    mechanisms_[static_cast<std::size_t>(layer)] = &mechanism;
  }
  // Where: of this row and those that come together with it.
  KeptScores place(std::int64_t layer, std::int64_t row, std::int64_t keys) const;

  // path[t]: the row of step t. The first `keys` keys; 0 where a step had fewer.
  Tensor along(std::span<const std::int32_t> path, std::int64_t keys) const;

 private:
  AttentionShape shape_;
  std::vector<const Mechanism*> mechanisms_;  // of each layer; null: it adds weights
  struct Step {
    std::int64_t rows, keys, together;
    Tensor scores;  // [layers, rows / together], a KeptScores each
  };
  KeptScores of(const Step& step, std::int64_t layer, std::int64_t row, std::int64_t keys) const;
  std::vector<Step> steps_;
};

}  // namespace regard
