// What SequenceModel::all_attention gives, put together from traces, and what is taken from it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/sequence_model.h"

namespace regard {

// What belongs to one item of [batch, heads, rows, columns] of each layer, of any float type: f32 [layers, heads, its
// rows, its columns].
Tensor item_of(std::span<const Tensor> layers, std::int64_t item, std::int64_t rows, std::int64_t columns);
// The same of [batch, heads, columns].
Tensor item_of(std::span<const Tensor> layers, std::int64_t item, std::int64_t columns);

// What SequenceModel::places gives, from [batch, heads, steps] of each layer, shares of the source; none: nothing.
std::vector<Tensor> places_of(std::span<const Tensor> layers, const Batch& batch);

// One map [steps, keys] of all, [layers, heads, steps, keys]: of a head, or the mean of the heads of a layer.
Tensor map_of(const Tensor& all, const AskedAttention& asked);

}  // namespace regard
