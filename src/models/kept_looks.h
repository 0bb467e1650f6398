// What a decoding remembers of where its rows looked, step by step; found again by the rows that led to a result.
//
//     looks.begin(rows, keys);                                    // a step
//     looks.add(layer, trace.all_weights(), width);               // once a layer
//     Tensor map = looks.along(path, keys);                       // [layers, heads, steps, keys]
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/sequence_model.h"
#include "regard/tensor/tensor.h"

namespace regard {

class KeptLooks {
 public:
  explicit KeptLooks(const AttentionShape& shape) : shape_(shape) {}

  void begin(std::int64_t rows, std::int64_t keys);
  // weights [items, heads, queries, keys]: query q of item i is row i·width + first + q.
  void add(std::int64_t layer, const Tensor& weights, std::int64_t width, std::int64_t first = 0);
  // path[t]: the row of step t. The first `keys` keys; 0 where a step had fewer.
  Tensor along(std::span<const std::int32_t> path, std::int64_t keys) const;

 private:
  AttentionShape shape_;
  std::vector<Tensor> steps_;  // [rows, layers, heads, keys]
};

}  // namespace regard
