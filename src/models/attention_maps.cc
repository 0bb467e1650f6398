#include "models/attention_maps.h"

#include "base/check.h"

namespace regard {
namespace {

std::int64_t steps_of(const Batch& batch, std::int64_t row) {
  std::int64_t steps = batch.targets[0];
  while (steps > 0 && batch.target_weights.data<float>()[(steps - 1) * batch.size() + row] == 0) --steps;
  return steps;
}

}  // namespace

SequenceModel::Asked checked_asked(SequenceModel::Asked asked, std::int64_t layers, std::int64_t heads) {
  check(asked.layer >= -1 && asked.layer < layers, "attention: asked for layer ", asked.layer, " of ", layers);
  check(asked.head >= -1 && asked.head < heads, "attention: asked for head ", asked.head, " of ", heads);
  if (asked.layer < 0) asked.layer = layers - 1;
  return asked;
}

std::vector<Tensor> maps_of(const Batch& batch,
                            const std::function<Tensor(std::int64_t row, std::int64_t steps)>& weights) {
  std::vector<Tensor> maps;
  for (std::int64_t row = 0; row < batch.size(); ++row) {
    const std::int64_t steps = steps_of(batch, row);
    const Tensor all = weights(row, steps).to(DType::kF32);
    maps.push_back(all.slice(0, 0, steps).slice(1, 0, batch.lengths[static_cast<std::size_t>(row)]).clone());
  }
  return maps;
}

Tensor mean_of_heads(const SequenceModel::Asked& asked, std::int64_t heads,
                     const std::function<Tensor(std::int64_t head)>& all) {
  if (asked.head >= 0) return all(asked.head);
  const Tensor sum = all(0).to(DType::kF32);
  for (std::int64_t head = 1; head < heads; ++head) {
    const Tensor each = all(head).to(DType::kF32);
    for (std::int64_t i = 0; i < sum.size(); ++i) sum.data<float>()[i] += each.data<float>()[i];
  }
  for (std::int64_t i = 0; i < sum.size(); ++i) sum.data<float>()[i] /= static_cast<float>(heads);
  return sum;
}

}  // namespace regard
