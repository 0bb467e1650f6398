// What SequenceModel::attention gives, put together from traces.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/batch.h"
#include "models/sequence_model.h"

namespace regard {

// `asked` with −1 replaced by the last layer; throws if there is no such layer or head. A head of −1 stays.
SequenceModel::Asked checked_asked(SequenceModel::Asked asked, std::int64_t layers, std::int64_t heads);

// A map a row of the batch: weights(row, steps) gives those of its first `steps` steps, [steps, keys], of any float
// type; f32 [steps, length of the source] comes out.
std::vector<Tensor> maps_of(const Batch& batch,
                            const std::function<Tensor(std::int64_t row, std::int64_t steps)>& weights);

// The mean of maps of the same shape, in their order: all(head) for every head, or only the one that is asked for.
Tensor mean_of_heads(const SequenceModel::Asked& asked, std::int64_t heads,
                     const std::function<Tensor(std::int64_t head)>& all);

}  // namespace regard
