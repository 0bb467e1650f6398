// A gated recurrent unit over a sequence (Cho et al. 2014). What the inputs contribute is one product for all steps
// together; a step is then one small product and the gates.
//
//     Gru forward(builder.under("forward"), 64, 128);
//     Var states = forward(x, lengths, Direction::kForward).states;        // x [time, batch, 64] -> [time, batch, 128]
//
// Rows are sorted by length, longest first, so that the sequences still running are the first rows: a step computes
// those and the others keep their state. Backwards, a sequence starts from zeros at its own last element. No row ever
// depends on the others, nor on how far the batch is padded.
#pragma once

#include <cstdint>
#include <span>

#include "regard/autograd/ops.h"
#include "regard/export.h"
#include "regard/nn/builder.h"

namespace regard {

enum class Direction { kForward, kBackward };

struct Recurrence {
  Var states;  // [time, batch, width]; beyond the end of a sequence: its last state (forward), zeros (backward)
  Var last;    // [batch, width]: after the last element read
};

class REGARD_API Gru {
 public:
  Gru(const Builder& builder, std::int64_t inputs, std::int64_t width);

  // x [time, batch, inputs]; lengths: one a row, longest first, time at most.
  Recurrence operator()(Var x, std::span<const std::int32_t> lengths, Direction direction) const;

  // For those who take the steps themselves. The input's share x·W + b of all three gates: [..., inputs] ->
  // [..., 3·width];
  Var project(Var x) const;
  // and a step from it: input [batch, 3·width], state [batch, width].
  Var step(Var input, Var state, std::int64_t active = -1) const;

  std::int64_t width() const { return width_; }

 private:
  std::int64_t width_;
  const Parameter* input_weight_;      // [inputs, 3·width]: reset, update, new
  const Parameter* input_bias_;        // [3·width]
  const Parameter* recurrent_weight_;  // [width, 3·width]
  const Parameter* recurrent_bias_;    // [3·width]
};

}  // namespace regard
