#include "models/kept_looks.h"

#include <algorithm>

#include "attention/mechanism.h"
#include "base/check.h"

namespace regard {

void KeptLooks::begin(std::int64_t rows, std::int64_t keys, Tape* memory) {
  const Shape shape{rows, shape_.layers, shape_.heads, kBeforeScores + keys};
  steps_.push_back(memory == nullptr ? Tensor::empty(shape) : memory->make(shape));
}

void KeptLooks::add(std::int64_t layer, const Tensor& given, std::int64_t width, std::int64_t first) {
  const Tensor weights = given.dtype() == DType::kF32 ? given : given.to(DType::kF32);
  const Tensor& step = steps_.back();
  const std::int64_t heads = shape_.heads, queries = weights[2], keys = weights[3], stride = step[3];
  check(weights[1] == heads && kBeforeScores + keys == stride && weights[0] * width == step[0], "looks: ", weights,
        " of a step ", step);
  const float* from = weights.data<float>();
  for (std::int64_t item = 0; item < weights[0]; ++item) {
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t query = 0; query < queries; ++query, from += keys) {
        const std::int64_t row = item * width + first + query;
        std::copy_n(from, keys,
                    step.data<float>() + ((row * shape_.layers + layer) * heads + head) * stride + kBeforeScores);
      }
    }
  }
}

void KeptLooks::put_scores(std::int64_t layer, std::int64_t row, KeptLook& look) const {
  const Tensor& step = steps_.back();
  look.head_stride = step[3];
  look.row_stride = shape_.layers * shape_.heads * step[3];
  look.scores = step.data<float>() + row * look.row_stride + layer * shape_.heads * step[3];
}

Tensor KeptLooks::along(std::span<const std::int32_t> path, std::int64_t keys) const {
  check(path.size() <= steps_.size(), "looks: ", path.size(), " steps of ", steps_.size());
  const auto steps = static_cast<std::int64_t>(path.size());
  const std::int64_t maps = shape_.layers * shape_.heads, rows = shape_.heads * steps;  // rows: of a layer
  const Tensor made = Tensor::empty({shape_.layers, shape_.heads, steps, keys});
  std::vector<float> peaks(static_cast<std::size_t>(maps * steps)), taus(peaks.size());
  for (std::int64_t t = 0; t < steps; ++t) {
    const Tensor& step = steps_[static_cast<std::size_t>(t)];
    const std::int64_t row = path[static_cast<std::size_t>(t)], there = std::min(keys, step[3] - kBeforeScores);
    check(row >= 0 && row < step[0], "looks: row ", row, " of step ", t, ", which had ", step[0]);
    const float* from = step.data<float>() + row * maps * step[3];
    for (std::int64_t map = 0; map < maps; ++map, from += step[3]) {
      const bool scored = mechanisms_[static_cast<std::size_t>(map / shape_.heads)] != nullptr;
      float* const to = made.data<float>() + (map * steps + t) * keys;
      peaks[static_cast<std::size_t>(map * steps + t)] = from[0];
      taus[static_cast<std::size_t>(map * steps + t)] = from[1];
      std::copy_n(from + kBeforeScores, there, to);
      std::fill_n(to + there, keys - there, scored ? kHidden<float> : 0.0f);
    }
  }
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
    const Mechanism* const mechanism = mechanisms_[static_cast<std::size_t>(layer)];
    if (mechanism == nullptr) continue;
    const auto count = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(keys);
    weigh_kept(*mechanism, Tile{made.data<float>() + layer * rows * keys, count, width, width},
               peaks.data() + layer * rows, taus.data() + layer * rows);
  }
  return made;
}

}  // namespace regard
