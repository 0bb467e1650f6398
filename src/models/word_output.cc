#include "models/word_output.h"

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

SequenceModel::Loss WordOutput::loss(Var rows, const Batch& batch, const LossOptions& options, RowOrder order) const {
  Tape& tape = rows.tape();
  const std::int64_t steps = batch.targets[0], size = batch.size(), all = steps * size;
  check(rows.shape().rank() == 2 && rows[0] == all, "output: rows are ", rows.shape(), ", expected ", all);
  const float* given = batch.target_weights.data<float>();
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < all; ++i) count += given[i] != 0 ? 1 : 0;
  // Those that count, in the order of the rows: where they stand there and in [steps, batch].
  const Tensor chosen = tape.make({count}, DType::kI32), places = tape.make({count}, DType::kI32),
               targets = tape.make({count}, DType::kI32), weights = tape.make({count}, rows.dtype());
  by_type(rows.dtype(), [&]<class T>() {
    std::int64_t to = 0;
    for (std::int64_t i = 0; i < all; ++i) {
      const std::int64_t at = order == RowOrder::kTimeFirst ? i : i % steps * size + i / steps;
      if (given[at] == 0) continue;
      chosen.data<std::int32_t>()[to] = static_cast<std::int32_t>(i);
      places.data<std::int32_t>()[to] = static_cast<std::int32_t>(at);
      targets.data<std::int32_t>()[to] = batch.targets.data<std::int32_t>()[at];
      weights.data<T>()[to] = static_cast<T>(given[at]);
      ++to;
    }
  });
  const CrossEntropy entropy =
      linear_cross_entropy(count == all ? rows : embedding(rows, chosen), tape.use(*weight_), tape.use(*bias_), targets,
                           {.token_weights = weights, .transposed = tied_, .label_smoothing = options.label_smoothing});
  const Tensor log_probabilities = tape.make({all}, rows.dtype());
  by_type(rows.dtype(), [&]<class T>() {
    std::fill_n(log_probabilities.data<T>(), all, T{0});
    for (std::int64_t i = 0; i < count; ++i) {
      log_probabilities.data<T>()[places.data<std::int32_t>()[i]] = entropy.log_probabilities.data<T>()[i];
    }
  });
  return {entropy.loss, log_probabilities};
}

Var WordOutput::operator()(Var x) const {
  Tape& tape = x.tape();
  return matmul(x, tape.use(*weight_), {.transpose_b = tied_, .bias = tape.use(*bias_)});
}

Var WordOutput::logits(Var rows, const Batch& batch, RowOrder order) const {
  const Var made = (*this)(rows);
  if (order == RowOrder::kTimeFirst) return made;
  const std::int64_t steps = batch.targets[0], size = batch.size();
  return reshape(transpose(reshape(made, {size, steps, words_}), 0, 1), {steps * size, words_});
}

}  // namespace regard
