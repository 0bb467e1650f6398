#include "models/attention_maps.h"

#include <algorithm>

#include "base/check.h"

namespace regard {
namespace {

Tensor view_of(const Tensor& all, std::int64_t layer, std::int64_t head) {
  const std::int64_t at = layer * all[1] + head;
  return all.reshape({all[0] * all[1], all[2], all[3]}).slice(0, at, at + 1).reshape({all[2], all[3]});
}

}  // namespace

Tensor item_of(std::span<const Tensor> layers, std::int64_t item, std::int64_t rows, std::int64_t columns) {
  const std::int64_t heads = layers.empty() ? 0 : layers[0][1];
  const Tensor made = Tensor::empty({static_cast<std::int64_t>(layers.size()), heads, rows, columns});
  float* to = made.data<float>();
  for (const Tensor& given : layers) {
    const Tensor layer = given.dtype() == DType::kF32 ? given : given.to(DType::kF32);  // who converts copies
    check(item >= 0 && item < layer[0] && layer[1] == heads && rows <= layer[2] && columns <= layer[3], "maps: ", rows,
          " × ", columns, " of item ", item, " of ", layer);
    for (std::int64_t head = 0; head < heads; ++head) {
      const float* from = layer.data<float>() + (item * heads + head) * layer[2] * layer[3];
      for (std::int64_t row = 0; row < rows; ++row, from += layer[3], to += columns) std::copy_n(from, columns, to);
    }
  }
  return made;
}

Tensor item_of(std::span<const Tensor> layers, std::int64_t item, std::int64_t columns) {
  std::vector<Tensor> wide;
  for (const Tensor& each : layers) wide.push_back(each.reshape({each[0], each[1], 1, each[2]}));
  const Tensor made = item_of(wide, item, 1, columns);
  return made.reshape({made[0], made[1], columns});
}

std::vector<Tensor> places_of(std::span<const Tensor> layers, const Batch& batch) {
  if (layers.empty() || !std::all_of(layers.begin(), layers.end(), [](const Tensor& each) { return each.defined(); })) {
    return {};
  }
  std::vector<Tensor> made;
  for (std::int64_t row = 0; row < batch.size(); ++row) {
    made.push_back(item_of(layers, row, target_steps(batch, row)));
    const auto length = static_cast<float>(batch.lengths[static_cast<std::size_t>(row)]);
    for (std::int64_t i = 0; i < made.back().size(); ++i) made.back().data<float>()[i] *= length;
  }
  return made;
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

std::string to_text(const Room& room) {
  const auto tokens = [](std::int64_t most) { return std::to_string(most - 1); };
  if (room.source == room.target) return tokens(room.source) + " tokens";
  if (room.target == kEndless) return tokens(room.source) + " tokens of a source";
  if (room.source == kEndless) return tokens(room.target) + " tokens of a target";
  return tokens(room.source) + " tokens of a source and " + tokens(room.target) + " of a target";
}

AttentionShape SequenceModel::shape_of(LookKind kind) const {
  return kind == LookKind::kCross ? attention_shape() : AttentionShape{};
}

std::vector<EveryMap> SequenceModel::every_attention(const Batch& batch) const {
  std::vector<EveryMap> made(static_cast<std::size_t>(batch.size()));
  std::vector<Tensor> cross = all_attention(batch);
  for (std::size_t row = 0; row < cross.size(); ++row) made[row].cross.weights = std::move(cross[row]);
  return made;
}

std::vector<Tensor> SequenceModel::places(const Batch& /*batch*/) const { return {}; }

std::vector<Tensor> SequenceModel::attention(const Batch& batch, const Asked& asked) const {
  std::vector<Tensor> maps = all_attention(batch);
  for (Tensor& each : maps) each = map_of(each, asked);
  return maps;
}

}  // namespace regard
