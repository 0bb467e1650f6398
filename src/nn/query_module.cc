#include "regard/nn/query_module.h"

#include "base/check.h"

namespace regard {
namespace {

std::optional<Linear> piece(const Builder& builder, const char* name, std::int64_t width, std::int64_t query) {
  check(width >= 0, "QueryModule: the ", name, " has width ", width, ", expected 0 or more");
  if (width == 0) return std::nullopt;
  return Linear(builder.under(name), width, query, false);
}

void add(Var& sum, const std::optional<Linear>& linear, Var part, const char* name) {
  check(linear.has_value() == part.defined(),
        "QueryModule: ", linear.has_value() ? "there is no " : "it was made without the ", name);
  if (!linear) return;
  sum = sum.defined() ? sum + (*linear)(part) : (*linear)(part);
}

}  // namespace

QueryModule::QueryModule(const Builder& builder, const QueryWidths& widths)
    : input_(piece(builder, "input", widths.input, widths.query)),
      state_(piece(builder, "state", widths.state, widths.query)),
      context_(piece(builder, "context", widths.context, widths.query)),
      bias_(&builder.zeros("bias", {widths.query})) {
  check(input_ || state_ || context_, "QueryModule: neither input nor state nor context");
}

Var QueryModule::operator()(const QueryParts& parts) const {
  Var query;
  add(query, input_, parts.input, "input");
  add(query, state_, parts.state, "state");
  add(query, context_, parts.context, "context");
  return query + query.tape().use(*bias_);
}

Var activate(Activation function, Var x) {
  switch (function) {
    case Activation::kNone:
      return x;
    case Activation::kTanh:
      return tanh(x);
    case Activation::kRelu:
      return relu(x);
    case Activation::kSigmoid:
      return sigmoid(x);
    case Activation::kGelu:
      return gelu(x);
  }
  return x;
}

ReadOut::ReadOut(const Builder& builder, std::int64_t inputs, std::int64_t outputs, Activation function)
    : linear_(builder, inputs, outputs), function_(function) {}

}  // namespace regard
