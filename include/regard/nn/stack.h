// Values of one time step after another: loops over time collect them here and make one value of them at the end.
//
//     const std::span<Var> states = make_vars(tape, time);
//     for (…) states[t] = state = gru_cell(…);
//     Var all = stack(states);                                  // [time, batch, width]
#pragma once

#include <cstdint>
#include <span>

#include "regard/autograd/ops.h"
#include "regard/export.h"

namespace regard {

// Memory for `count` values on the tape that makes them, instead of on the heap.
REGARD_API std::span<Var> make_vars(Tape& tape, std::int64_t count);

// Values of equal shape one after another along a new first dimension: n of [...] -> [n, ...].
REGARD_API Var stack(std::span<const Var> parts);

}  // namespace regard
