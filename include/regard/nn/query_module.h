// What stands before and behind an attention: how a query is made, and what becomes of the context that was read.
//
//     QueryModule query(builder.under("query"), {.input = 32, .state = 64, .query = 16});     // no global context
//     ReadOut read_out(builder.under("out"), 64, 32, Activation::kTanh);
//     Var q = query({.input = x, .state = h}), y = read_out(context);
#pragma once

#include <cstdint>
#include <optional>

#include "regard/autograd/ops.h"
#include "regard/export.h"
#include "regard/nn/linear.h"

namespace regard {

// q = W[input; state; global context] + b, of any of the three. W is kept in a piece for each, so they may be spread:
// a state [batch, 1, width] serves the inputs [batch, queries, width].
struct QueryWidths {
  std::int64_t input = 0, state = 0, context = 0;  // 0: there is none
  std::int64_t query = 0;
};
struct QueryParts {
  Var input = {}, state = {}, context = {};  // [..., width]
};
class REGARD_API QueryModule {
 public:
  QueryModule(const Builder& builder, const QueryWidths& widths);
  Var operator()(const QueryParts& parts) const;  // [..., query]

 private:
  std::optional<Linear> input_, state_, context_;
  const Parameter* bias_;  // [query]
};

enum class Activation { kNone, kTanh, kRelu, kSigmoid, kGelu };
REGARD_API Var activate(Activation function, Var x);

// y = f(W_o c + b_o)
class REGARD_API ReadOut {
 public:
  ReadOut(const Builder& builder, std::int64_t inputs, std::int64_t outputs, Activation function = Activation::kTanh);
  Var operator()(Var context) const { return activate(function_, linear_(context)); }

 private:
  Linear linear_;
  Activation function_;
};

}  // namespace regard
