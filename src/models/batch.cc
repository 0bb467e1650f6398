#include "models/batch.h"

#include <algorithm>
#include <numeric>

namespace regard {

std::int64_t target_steps(const Batch& batch, std::int64_t row) {
  std::int64_t steps = batch.targets[0];
  while (steps > 0 && batch.target_weights.data<float>()[(steps - 1) * batch.size() + row] == 0) --steps;
  return steps;
}

Tensor by_item(Tape& tape, const Tensor& ids) {
  const Tensor made = tape.make({ids[1], ids[0]}, DType::kI32);
  made.copy_from(ids.transpose(0, 1));
  return made;
}

Batch some_sources(const Batch& batch, std::int64_t first, std::int64_t step) {
  Batch made;
  for (std::int64_t row = first; row < batch.size(); row += step) {
    const auto at = static_cast<std::size_t>(row);
    made.lengths.push_back(batch.lengths[at]);
    made.ids.push_back(batch.ids[at]);
    made.order.push_back(batch.order[at]);
  }
  const std::int64_t time = made.lengths.empty() ? 0 : made.lengths[0], count = made.size();
  made.source = Tensor::empty({time, count}, DType::kI32);
  for (std::int64_t i = 0; i < time * count; ++i) {
    made.source.data<std::int32_t>()[i] =
        batch.source.data<std::int32_t>()[i / count * batch.size() + first + i % count * step];
  }
  return made;
}

Batch make_batch(std::span<const SequencePair> pairs, const BatchSettings& settings) {
  Batch batch;
  batch.order.resize(pairs.size());
  std::iota(batch.order.begin(), batch.order.end(), std::size_t{0});
  std::stable_sort(batch.order.begin(), batch.order.end(),
                   [&](std::size_t a, std::size_t b) { return pairs[a].source.size() > pairs[b].source.size(); });

  std::int64_t time = settings.least_time, steps = std::max<std::int64_t>(settings.least_steps, 1);
  for (const SequencePair& pair : pairs) {
    time = std::max(time, static_cast<std::int64_t>(pair.source.size()));
    steps = std::max(steps, static_cast<std::int64_t>(pair.target.size()) + 1);
  }
  const auto count = static_cast<std::int64_t>(pairs.size());
  batch.source = Tensor::zeros({time, count}, DType::kI32);
  batch.previous = Tensor::zeros({steps, count}, DType::kI32);
  batch.targets = Tensor::zeros({steps, count}, DType::kI32);
  batch.target_weights = Tensor::zeros({steps, count});
  const auto source = batch.source.data<std::int32_t>(), previous = batch.previous.data<std::int32_t>(),
             targets = batch.targets.data<std::int32_t>();
  const auto weights = batch.target_weights.data<float>();
  if (std::any_of(pairs.begin(), pairs.end(), [](const SequencePair& pair) { return !pair.guide.empty(); })) {
    batch.guide = Tensor::zeros({steps, count, time});
  }
  for (std::int64_t row = 0; row < count; ++row) {
    const SequencePair& pair = pairs[batch.order[static_cast<std::size_t>(row)]];
    const auto length = static_cast<std::int64_t>(pair.source.size());
    const auto written = static_cast<std::int64_t>(pair.target.size());
    batch.lengths.push_back(static_cast<std::int32_t>(length));
    batch.ids.push_back(pair.id);
    batch.target_count += written + 1;
    for (std::int64_t t = 0; t < length; ++t) source[t * count + row] = pair.source[static_cast<std::size_t>(t)];
    for (std::int64_t t = 0; t <= written; ++t) {
      const auto at = static_cast<std::size_t>(t);
      previous[t * count + row] = t == 0 ? settings.begin : pair.target[at - 1];
      targets[t * count + row] = t == written ? settings.end : pair.target[at];
      weights[t * count + row] = 1;
    }
    if (pair.guide.empty()) continue;
    for (std::int64_t t = 0; t < written; ++t) {
      std::copy_n(pair.guide.data() + t * length, length,
                  batch.guide.data<float>() + ((t + settings.guide_shift) * count + row) * time);
    }
  }
  return batch;
}

}  // namespace regard
