#include "models/attention_maps.h"

#include "base/check.h"

namespace regard {
namespace {

Tensor view_of(const Tensor& all, std::int64_t layer, std::int64_t head) {
  const std::int64_t at = layer * all[1] + head;
  return all.reshape({all[0] * all[1], all[2], all[3]}).slice(0, at, at + 1).reshape({all[2], all[3]});
}

}  // namespace

Tensor heads_of(const AttentionShape& shape, std::int64_t rows, std::int64_t columns,
                const std::function<Tensor(std::int64_t layer, std::int64_t head)>& weights) {
  Tensor made = Tensor::zeros({shape.layers, shape.heads, rows, columns});
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      const Tensor one = weights(layer, head).to(DType::kF32);
      view_of(made, layer, head).copy_from(one.slice(0, 0, rows).slice(1, 0, columns));
    }
  }
  return made;
}

std::vector<Tensor> maps_of(const Batch& batch, const AttentionShape& shape,
                            const std::function<Tensor(const MapPlace&)>& weights) {
  std::vector<Tensor> maps;
  for (std::int64_t row = 0; row < batch.size(); ++row) {
    const std::int64_t steps = target_steps(batch, row), keys = batch.lengths[static_cast<std::size_t>(row)];
    maps.push_back(heads_of(shape, steps, keys, [&](std::int64_t layer, std::int64_t head) {
      return weights({row, layer, head, steps});
    }));
  }
  return maps;
}

Tensor map_of(const Tensor& all, const AskedAttention& asked) {
  const std::int64_t layers = all[0], heads = all[1];
  check(asked.layer >= -1 && asked.layer < layers, "attention: asked for layer ", asked.layer, " of ", layers);
  check(asked.head >= -1 && asked.head < heads, "attention: asked for head ", asked.head, " of ", heads);
  const std::int64_t layer = asked.layer < 0 ? layers - 1 : asked.layer;
  if (asked.head >= 0) return view_of(all, layer, asked.head).clone();
  const Tensor sum = view_of(all, layer, 0).clone();
  for (std::int64_t head = 1; head < heads; ++head) {
    const Tensor each = view_of(all, layer, head);
    for (std::int64_t i = 0; i < sum.size(); ++i) sum.data<float>()[i] += each.data<float>()[i];
  }
  if (heads > 1) {
    for (std::int64_t i = 0; i < sum.size(); ++i) sum.data<float>()[i] /= static_cast<float>(heads);
  }
  return sum;
}

std::vector<EveryMap> SequenceModel::every_attention(const Batch& batch) const {
  std::vector<EveryMap> made(static_cast<std::size_t>(batch.size()));
  std::vector<Tensor> cross = all_attention(batch);
  for (std::size_t row = 0; row < cross.size(); ++row) made[row].cross.weights = std::move(cross[row]);
  return made;
}

std::vector<Tensor> SequenceModel::attention(const Batch& batch, const Asked& asked) const {
  std::vector<Tensor> maps = all_attention(batch);
  for (Tensor& each : maps) each = map_of(each, asked);
  return maps;
}

}  // namespace regard
