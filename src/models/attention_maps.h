// What SequenceModel::all_attention gives, put together from traces, and what is taken from it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/batch.h"
#include "models/sequence_model.h"

namespace regard {

struct MapPlace {
  std::int64_t row, layer, head, steps;
};

// The maps of every row of the batch: weights(place) gives those of its first `steps` steps, [steps, keys], of any
// float type; more keys than the row's source has are cut off.
std::vector<Tensor> maps_of(const Batch& batch, const AttentionShape& shape,
                            const std::function<Tensor(const MapPlace&)>& weights);

// The same of one row: weights(layer, head) gives at least [rows, columns].
Tensor heads_of(const AttentionShape& shape, std::int64_t rows, std::int64_t columns,
                const std::function<Tensor(std::int64_t layer, std::int64_t head)>& weights);

// One map [steps, keys] of all, [layers, heads, steps, keys]: of a head, or the mean of the heads of a layer.
Tensor map_of(const Tensor& all, const AskedAttention& asked);

}  // namespace regard
