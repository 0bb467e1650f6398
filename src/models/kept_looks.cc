#include "models/kept_looks.h"

#include <algorithm>

#include "attention/mechanism.h"
#include "attention/tiles.h"
#include "base/check.h"

namespace regard {
namespace {

std::size_t size(std::int64_t x) { return static_cast<std::size_t>(x); }

}  // namespace

void KeptLooks::begin(std::int64_t rows, std::int64_t keys, std::int64_t together, Tape* memory) {
  const Shape shape{shape_.layers, rows / together, KeptScores::size(together * shape_.heads, keys)};
  steps_.push_back({rows, keys, together, memory == nullptr ? Tensor::empty(shape) : memory->make(shape)});
}

KeptScores KeptLooks::of(const Step& step, std::int64_t layer, std::int64_t row, std::int64_t keys) const {
  const Tensor& all = step.scores;
  return {.data = all.data<float>() + (layer * all[1] + row / step.together) * all[2],
          .rows = step.together * shape_.heads,
          .keys = keys};
}

KeptScores KeptLooks::place(std::int64_t layer, std::int64_t row, std::int64_t keys) const {
  return of(steps_.back(), layer, row, keys);
}

void KeptLooks::add(std::int64_t layer, const Tensor& given, std::int64_t width, std::int64_t first) {
  const Tensor weights = given.dtype() == DType::kF32 ? given : given.to(DType::kF32);
  const Step& step = steps_.back();
  const std::int64_t heads = shape_.heads, queries = weights[2], keys = weights[3];
  check(weights[1] == heads && keys == step.keys && weights[0] * width == step.rows, "looks: ", weights,
        " of a step of ", step.rows, " rows and ", step.keys, " keys");
  const float* from = weights.data<float>();
  for (std::int64_t item = 0; item < weights[0]; ++item) {
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t query = 0; query < queries; ++query, from += keys) {
        const std::int64_t row = item * width + first + query;
        std::copy_n(from, keys, of(step, layer, row, keys).scores(row % step.together * heads + head));
      }
    }
  }
}

Tensor KeptLooks::along(std::span<const std::int32_t> path, std::int64_t keys) const {
  check(path.size() <= steps_.size(), "looks: ", path.size(), " steps of ", steps_.size());
  const auto steps = static_cast<std::int64_t>(path.size());
  const std::int64_t layers = shape_.layers, heads = shape_.heads, rows = heads * steps;  // rows: of a layer
  const Tensor made = Tensor::empty({layers, heads, steps, keys});
  std::vector<float> peaks(static_cast<std::size_t>(layers * rows)), taus(peaks.size());
  for (std::int64_t t = 0; t < steps; ++t) {
    const Step& step = steps_[static_cast<std::size_t>(t)];
    const std::int64_t row = path[static_cast<std::size_t>(t)], there = std::min(keys, step.keys);
    check(row >= 0 && row < step.rows, "looks: row ", row, " of step ", t, ", which had ", step.rows);
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const bool scored = mechanisms_[size(layer)] != nullptr;
      const KeptScores kept = of(step, layer, row, scored ? there : step.keys);
      const std::int64_t own = row % step.together * heads;  // of the first head
      float* to = made.data<float>() + (layer * rows + t) * keys;
      for (std::int64_t head = 0; head < heads; ++head, to += steps * keys) {
        std::copy_n(kept.scores(own + head), there, to);
        std::fill_n(to + there, keys - there, scored ? kHidden<float> : 0.0f);
        if (!scored) continue;
        peaks[size(layer * rows + head * steps + t)] = kept.peaks()[own + head];
        taus[size(layer * rows + head * steps + t)] = kept.taus()[own + head];
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
