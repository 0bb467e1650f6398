#include "models/word_output.h"

#include <algorithm>
#include <cstring>

#include "autograd/by_type.h"
#include "base/check.h"
#include "regard/autograd/ops.h"

namespace regard {

WordOutput::WordOutput(const Builder& builder, std::int64_t width, std::int64_t words, const Parameter* tied)
    : words_(words),
      tied_(tied != nullptr),
      weight_(tied != nullptr ? tied : &builder.xavier("weight", {width, words})),
      bias_(&builder.zeros("bias", {words})) {
  check(!tied_ || weight_->value.shape() == Shape{words, width}, "output: tied to a table ", weight_->value.shape(),
        ", expected ", Shape{words, width}, ": the width before the words must be that of their embeddings");
}

SequenceModel::Loss WordOutput::loss(Var rows, std::span<const std::int32_t> places, const Batch& batch,
                                     const LossOptions& options) const {
  Tape& tape = rows.tape();
  check(rows.shape().rank() == 2 && rows[0] == static_cast<std::int64_t>(places.size()), "output: rows ", rows.shape(),
        " at ", places.size(), " places");
  const float* given = batch.target_weights.data<float>();
  const std::int64_t count = std::count_if(places.begin(), places.end(), [&](auto at) { return given[at] != 0; });
  const Tensor chosen = tape.make({count}, DType::kI32), targets = tape.make({count}, DType::kI32),
               weights = tape.make({count}, rows.dtype());
  by_type(rows.dtype(), [&]<class T>() {
    std::int64_t to = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (given[places[i]] == 0) continue;
      chosen.data<std::int32_t>()[to] = static_cast<std::int32_t>(i);
      targets.data<std::int32_t>()[to] = batch.targets.data<std::int32_t>()[places[i]];
      weights.data<T>()[to] = static_cast<T>(given[places[i]]);
      ++to;
    }
  });
  const CrossEntropy entropy = linear_cross_entropy(
      count == rows[0] ? rows : embedding(rows, chosen), tape.use(*weight_), tape.use(*bias_), targets,
      {.token_weights = weights, .transposed = tied_, .label_smoothing = options.label_smoothing});
  const Tensor log_probabilities = tape.make({batch.targets.size()}, rows.dtype());
  by_type(rows.dtype(), [&]<class T>() {
    std::fill_n(log_probabilities.data<T>(), log_probabilities.size(), T{0});
    for (std::int64_t i = 0; i < count; ++i) {
      const auto row = static_cast<std::size_t>(chosen.data<std::int32_t>()[i]);
      log_probabilities.data<T>()[places[row]] = entropy.log_probabilities.data<T>()[i];
    }
  });
  return {entropy.loss, log_probabilities};
}

Var WordOutput::operator()(Var x) const {
  Tape& tape = x.tape();
  return matmul(x, tape.use(*weight_), {.transpose_b = tied_, .bias = tape.use(*bias_)});
}

Var WordOutput::logits(Var rows, std::span<const std::int32_t> places, const Batch& batch) const {
  Tape& tape = rows.tape();
  const Tensor zeros = tape.make({1, words_}, rows.dtype());
  std::memset(zeros.raw(), 0, zeros.bytes());
  const Tensor from = tape.make({batch.targets.size()}, DType::kI32);
  std::fill_n(from.data<std::int32_t>(), from.size(), static_cast<std::int32_t>(places.size()));
  for (std::size_t i = 0; i < places.size(); ++i) from.data<std::int32_t>()[places[i]] = static_cast<std::int32_t>(i);
  return embedding(concat({(*this)(rows), tape.constant(zeros)}, 0), from);
}

ArenaVector<std::int32_t> places_by_item(Tape& tape, const Batch& batch) {
  const auto steps = static_cast<std::int32_t>(batch.targets[0]), size = static_cast<std::int32_t>(batch.size());
  ArenaVector<std::int32_t> places = arena_vector<std::int32_t>(tape.arena(), batch.targets.size());
  for (std::int32_t row = 0; row < size; ++row) {
    for (std::int32_t t = 0; t < steps; ++t) places.push_back(t * size + row);
  }
  return places;
}

}  // namespace regard
