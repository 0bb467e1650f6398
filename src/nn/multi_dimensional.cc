#include "regard/nn/multi_dimensional.h"

#include <cmath>

#include "attention/cards.h"
#include "base/check.h"

namespace regard {
namespace {

const AddCard card(Family::kAlign, {.name = "multi_dimensional",
                                    .formula = "p[j, c] = softmax over j of e[j, c], a softmax a feature",
                                    .paper = "Shen et al. 2018",
                                    .kernel = "a step of operations",
                                    .module = "MultiDimensionalAttention"});

}  // namespace

MultiDimensionalAttention::MultiDimensionalAttention(const Builder& builder, const MultiDimensionalWidths& widths)
    : query_(builder.under("query"), widths.query, widths.hidden, false),
      key_(builder.under("key"), widths.key, widths.hidden),
      score_(builder.under("score"), widths.hidden, widths.value) {}

MultiDimensionalAttention::Result MultiDimensionalAttention::operator()(Var queries, Var keys, Var values,
                                                                        std::span<const std::int32_t> lengths) const {
  check(queries.shape().rank() == 3 && keys.shape().rank() == 3 && values.shape().rank() == 3 &&
            queries[0] == keys[0] && keys[0] == values[0] && keys[1] == values[1],
        "MultiDimensionalAttention: queries ", queries.shape(), ", keys ", keys.shape(), ", values ", values.shape(),
        ", expected [batch, queries, width] and twice [batch, keys, width]");
  const std::int64_t batch = keys[0], count = keys[1], width = values[2];
  check(static_cast<std::int64_t>(lengths.size()) == batch, "MultiDimensionalAttention: ", lengths.size(),
        " lengths for a batch of ", batch);
  const Tensor visible = Tensor::zeros({batch, count, 1}, DType::kI8);
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::int32_t length = lengths[static_cast<std::size_t>(b)];
    check(length >= 0 && length <= count, "MultiDimensionalAttention: item ", b, " has length ", length,
          ", expected 0 to ", count);
    for (std::int64_t j = 0; j < length; ++j) visible.data<std::int8_t>()[b * count + j] = 1;
  }
  // Zeros instead of what nobody may look at: a NaN there would come back as NaN·0 in the gradients.
  const Var q = query_(queries), k = key_(masked_fill(keys, visible, 0)), v = masked_fill(values, visible, 0);
  const Var pairs = reshape(q, {batch, q[1], 1, q[2]}) + reshape(k, {batch, 1, count, k[2]});
  const Var scores = masked_fill(score_(tanh(pairs)), visible.reshape({batch, 1, count, 1}), -INFINITY);
  const Var weights = softmax(transpose(scores, 2, 3));  // [batch, queries, value, keys]
  const Var context = sum(weights * reshape(transpose(v, 1, 2), {batch, 1, width, count}), -1);
  return {context, transpose(weights, 2, 3), scores};
}

}  // namespace regard
