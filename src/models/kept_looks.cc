#include "models/kept_looks.h"

#include <algorithm>

#include "base/check.h"

namespace regard {

void KeptLooks::begin(std::int64_t rows, std::int64_t keys) {
  steps_.push_back(Tensor::empty({rows, shape_.layers, shape_.heads, keys}));
}

void KeptLooks::add(std::int64_t layer, const Tensor& given, std::int64_t width, std::int64_t first) {
  const Tensor weights = given.to(DType::kF32);
  const Tensor& step = steps_.back();
  const std::int64_t heads = shape_.heads, queries = weights[2], keys = weights[3];
  check(weights[1] == heads && keys == step[3] && weights[0] * width == step[0], "looks: ", weights, " of a step ",
        step);
  const float* from = weights.data<float>();
  for (std::int64_t item = 0; item < weights[0]; ++item) {
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t query = 0; query < queries; ++query, from += keys) {
        const std::int64_t row = item * width + first + query;
        std::copy_n(from, keys, step.data<float>() + ((row * shape_.layers + layer) * heads + head) * keys);
      }
    }
  }
}

Tensor KeptLooks::along(std::span<const std::int32_t> path, std::int64_t keys) const {
  check(path.size() <= steps_.size(), "looks: ", path.size(), " steps of ", steps_.size());
  const auto steps = static_cast<std::int64_t>(path.size());
  const std::int64_t maps = shape_.layers * shape_.heads;
  const Tensor made = Tensor::zeros({shape_.layers, shape_.heads, steps, keys});
  for (std::int64_t t = 0; t < steps; ++t) {
    const Tensor& step = steps_[static_cast<std::size_t>(t)];
    const std::int64_t row = path[static_cast<std::size_t>(t)], there = std::min(keys, step[3]);
    check(row >= 0 && row < step[0], "looks: row ", row, " of step ", t, ", which had ", step[0]);
    const float* const from = step.data<float>() + row * maps * step[3];
    for (std::int64_t map = 0; map < maps; ++map) {
      std::copy_n(from + map * step[3], there, made.data<float>() + (map * steps + t) * keys);
    }
  }
  return made;
}

}  // namespace regard
