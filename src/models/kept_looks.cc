#include "models/kept_looks.h"

#include <algorithm>

#include "attention/mechanism.h"
#include "attention/tiles.h"
#include "base/check.h"

namespace regard {
namespace {

std::size_t size(std::int64_t x) { return static_cast<std::size_t>(x); }

}  // namespace

void KeptLooks::begin(std::int64_t rows, std::int64_t keys, Tape* memory) {
  const Shape shape{shape_.layers, rows, shape_.heads, kBeforeScores + keys};
  steps_.push_back(memory == nullptr ? Tensor::empty(shape) : memory->make(shape));
}

void KeptLooks::add(std::int64_t layer, const Tensor& given, std::int64_t width, std::int64_t first) {
  const Tensor weights = given.dtype() == DType::kF32 ? given : given.to(DType::kF32);
  const Tensor& step = steps_.back();
  const std::int64_t heads = shape_.heads, queries = weights[2], keys = weights[3], stride = step[3];
  check(weights[1] == heads && kBeforeScores + keys == stride && weights[0] * width == step[1], "looks: ", weights,
        " of a step ", step);
  const float* from = weights.data<float>();
  for (std::int64_t item = 0; item < weights[0]; ++item) {
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t query = 0; query < queries; ++query, from += keys) {
        const std::int64_t row = item * width + first + query;
        std::copy_n(from, keys, step.data<float>() + ((layer * step[1] + row) * heads + head) * stride + kBeforeScores);
      }
    }
  }
}

void KeptLooks::put_scores(std::int64_t layer, std::int64_t row, KeptLook& look) const {
  const Tensor& step = steps_.back();
  look.stride = step[3];
  look.scores = step.data<float>() + (layer * step[1] + row) * shape_.heads * step[3];
}

Tensor KeptLooks::along(std::span<const std::int32_t> path, std::int64_t keys) const {
  check(path.size() <= steps_.size(), "looks: ", path.size(), " steps of ", steps_.size());
  const auto steps = static_cast<std::int64_t>(path.size());
  const std::int64_t layers = shape_.layers, heads = shape_.heads, rows = heads * steps;  // rows: of a layer
  const Tensor made = Tensor::empty({layers, heads, steps, keys});
  std::vector<float> peaks(static_cast<std::size_t>(layers * rows)), taus(peaks.size());
  for (std::int64_t t = 0; t < steps; ++t) {
    const Tensor& step = steps_[static_cast<std::size_t>(t)];
    const std::int64_t row = path[static_cast<std::size_t>(t)], stride = step[3];
    const std::int64_t there = std::min(keys, stride - kBeforeScores);
    check(row >= 0 && row < step[1], "looks: row ", row, " of step ", t, ", which had ", step[1]);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const float* const from = step.data<float>() + (layer * step[1] + row) * heads * stride;
      float* const to = made.data<float>() + (layer * rows + t) * keys;  // of the first head
      scaled_copy(Rows{from + kBeforeScores, size(heads), size(there), size(stride)}, 1.0f,
                  Tile{to, size(heads), size(there), size(steps * keys)});
      const float hidden = mechanisms_[size(layer)] != nullptr ? kHidden<float> : 0.0f;
      for (std::int64_t head = 0; head < heads; ++head) {
        peaks[size(layer * rows + head * steps + t)] = from[head * stride];
        taus[size(layer * rows + head * steps + t)] = from[head * stride + 1];
        std::fill_n(to + head * steps * keys + there, keys - there, hidden);
      }
    }
  }
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
    const Mechanism* const mechanism = mechanisms_[static_cast<std::size_t>(layer)];
    if (mechanism == nullptr) continue;
    weigh_kept(*mechanism, Tile{made.data<float>() + layer * rows * keys, size(rows), size(keys), size(keys)},
               peaks.data() + layer * rows, taus.data() + layer * rows);
  }
  return made;
}

}  // namespace regard
