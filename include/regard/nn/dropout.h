// Dropout as a layer (Srivastava et al. 2014). What is dropped is a function of the layer's name, the step and the
// example, so neither a batch neighbour nor a continued run changes it.
//
//     Dropout dropout(builder.under("dropout"), 0.1f);
//     Var y = dropout(x, {.steps_done = trainer.steps(), .ids = batch.ids});
#pragma once

#include <cstdint>
#include <span>

#include "regard/autograd/ops.h"
#include "regard/export.h"
#include "regard/nn/builder.h"

namespace regard {

// What layers that draw random numbers have to know. Outside training they hand on what they get.
struct Drawing {
  bool training = true;
  std::int64_t steps_done = 0;
  std::span<const std::uint64_t> ids = {};  // of the examples, one an item of dimension 0; none: their numbers
};

class REGARD_API Dropout {
 public:
  Dropout(const Builder& builder, float p);
  Var operator()(Var x, const Drawing& drawing) const;  // x [items, …]

 private:
  RandomKey key_;
  float p_;
};

// Of x [time, batch, …]: an element's fate depends on the example, the time and its column, neither on the batch nor on
// how long it is. Without ids, an example's id is its number; time is counted from `first`.
REGARD_API Var dropout_over_time(Var x, float p, RandomKey key, std::span<const std::uint64_t> ids,
                                 std::int64_t first = 0);

}  // namespace regard
