#include "regard/nn/step_attention.h"

#include <cmath>
#include <cstring>

#include "attention/cards.h"
#include "base/check.h"

namespace regard {
namespace {

const AddCard location_aware_card(Family::kScore,
                                  {.name = "location_aware",
                                   .formula = "vᵀ tanh(Wq + Vk_j + U f_j + b), f = F ∗ the weights of the query before",
                                   .paper = "Chorowski et al. 2015",
                                   .kernel = "a step of operations",
                                   .module = "LocationAwareAttention"});
const AddCard coverage_card(Family::kScore,
                            {.name = "coverage",
                             .formula = "vᵀ tanh(Wq + Vk_j + w·c_j + b), c = Σ of the weights of all queries before",
                             .paper = "See et al. 2017",
                             .kernel = "a step of operations",
                             .module = "CoverageAttention"});

}  // namespace

StepAttention::StepAttention(const Builder& builder, const StepWidths& widths)
    : query_(builder.under("query"), widths.query, widths.hidden, false),
      key_(builder.under("key"), widths.key, widths.hidden),
      theta_(&builder.uniform("theta", {widths.hidden, 1}, std::sqrt(3.0 / static_cast<double>(widths.hidden)))) {}

StepMemory StepAttention::memory(Var annotations, Var values, std::span<const std::int32_t> lengths) const {
  check(annotations.shape().rank() == 3 && values.shape().rank() == 3 && annotations[0] == values[0] &&
            annotations[1] == values[1],
        "StepAttention: annotations ", annotations.shape(), " and values ", values.shape(),
        ", expected [batch, keys, width] each");
  const std::int64_t batch = annotations[0], keys = annotations[1];
  check(static_cast<std::int64_t>(lengths.size()) == batch, "StepAttention: ", lengths.size(),
        " lengths for a batch of ", batch);
  StepMemory made;
  made.visible = Tensor::zeros({batch, keys}, DType::kI8);
  made.lengths = Tensor::empty({batch}, DType::kI32);
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int32_t length = lengths[static_cast<std::size_t>(b)];
    check(length >= 0 && length <= keys, "StepAttention: item ", b, " has length ", length, ", expected 0 to ", keys);
    made.lengths.data<std::int32_t>()[b] = length;
    if (length > 0) std::memset(made.visible.data<std::int8_t>() + b * keys, 1, static_cast<std::size_t>(length));
  }
  // Zeros instead of what nobody may look at: a NaN there would come back as NaN·0 in the gradients.
  const Tensor rows = made.visible.reshape({batch, keys, 1});
  made.keys = key_(masked_fill(annotations, rows, 0));
  made.values = masked_fill(values, rows, 0);
  return made;
}

Stepped StepAttention::operator()(Var query, const StepMemory& memory, Var extra) const {
  const std::int64_t batch = memory.keys[0], keys = memory.keys[1], hidden = memory.keys[2];
  check(query.shape().rank() == 2 && query[0] == batch, "StepAttention: the query is ", query.shape(),
        " for a memory of ", memory.keys.shape(), ", expected [", batch, ", width]");
  Var inner = memory.keys + reshape(query_(query), {batch, 1, hidden});
  if (extra.defined()) inner = inner + extra;
  const Var all = reshape(matmul(tanh(inner), query.tape().use(*theta_)), {batch, keys});
  const Var scores = masked_fill(all, memory.visible, -INFINITY), weights = softmax(scores);
  const Var context = matmul(reshape(weights, {batch, 1, keys}), memory.values);
  return {reshape(context, {batch, memory.values[2]}), weights, scores};
}

LocationAwareAttention::LocationAwareAttention(const Builder& builder, const StepWidths& widths, std::int64_t filters,
                                               std::int64_t kernel)
    : attention_(builder, widths),
      filter_(&builder.xavier("filter", {kernel, filters})),
      location_(builder.under("location"), filters, widths.hidden, false),
      kernel_(kernel) {}

Stepped LocationAwareAttention::operator()(Var query, const StepMemory& memory, Var before) const {
  if (!before.defined()) return attention_(query, memory);
  const Tensor& lengths = memory.lengths;
  const Var found =
      conv1d(reshape(before, {before[0], before[1], 1}), query.tape().use(*filter_), {},
             {.kernel = kernel_, .lengths = {lengths.data<std::int32_t>(), static_cast<std::size_t>(lengths.size())}});
  return attention_(query, memory, location_(found));
}

CoverageAttention::CoverageAttention(const Builder& builder, const StepWidths& widths)
    : attention_(builder, widths),
      weight_(&builder.uniform("coverage", {widths.hidden}, std::sqrt(3.0 / static_cast<double>(widths.hidden)))) {}

Stepped CoverageAttention::operator()(Var query, const StepMemory& memory, Var coverage) const {
  if (!coverage.defined()) return attention_(query, memory);
  return attention_(query, memory, reshape(coverage, {coverage[0], coverage[1], 1}) * query.tape().use(*weight_));
}

Var coverage_loss(Var weights, Var coverage) {
  return sum(weights - relu(weights - coverage), -1);  // min(p, c) = p − max(p − c, 0)
}

}  // namespace regard
