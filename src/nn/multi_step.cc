#include "regard/nn/multi_step.h"

#include "base/check.h"

namespace regard {

namespace {

AttendSizes sizes_of(const MultiStepSettings& settings) {
  const Needs needs = Mechanism(settings.line).needs();
  const std::int64_t width = settings.embedding;
  return {.width = needs.rows ? width : 0,
          .values = width,
          .query_token = needs.query_tokens ? width : 0,
          .key_token = needs.key_tokens ? width : 0,
          .hidden = width};
}

}  // namespace

MultiStepAttention::MultiStepAttention(const Builder& builder, const MultiStepSettings& settings)
    : query_(builder.under("query"), settings.state, settings.embedding),
      attention_(builder.under("attention"), settings.line, sizes_of(settings)) {}

Attention MultiStepAttention::operator()(Var states, Var words, Var encoded, Var inputs,
                                         const AttendOptions& options) const {
  check(encoded.shape().rank() == 3 && encoded.shape() == inputs.shape(), "MultiStepAttention: encoded ",
        encoded.shape(), " and inputs ", inputs.shape(), ", expected the same [batch, keys, width]");
  const auto one_head = [](Var x) { return reshape(x, {x[0], 1, x[1], x[2]}); };
  // One after another: compilers order arguments as they like, and gradients add up in the order of the tape.
  const Var values = one_head(encoded + inputs), keys = one_head(encoded), queries = one_head(query_(states) + words);
  Attention made = attention_(queries, keys, values, options);
  made.context = reshape(made.context, {made.context[0], made.context[2], made.context[3]});
  return made;
}

}  // namespace regard
