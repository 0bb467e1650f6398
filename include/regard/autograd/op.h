// The list of operations. A node on the tape carries one of these names, so an operation that is not listed cannot be
// recorded; and src/verify needs a row of checks for each, so an operation without checks does not link.
#pragma once

#include <cstdint>

// clang-format 14 takes the list for an expression, and never comes to rest.
// clang-format off
#define REGARD_OPS(X)                                                                                            \
  X(matmul) X(add) X(subtract) X(multiply) X(divide) X(tanh) X(sigmoid) X(relu) X(gelu) X(gelu_tanh) X(silu)     \
  X(exp) X(log) X(softmax) X(log_softmax) X(layer_norm) X(rms_norm) X(embedding) X(concat) X(slice) X(transpose) \
  X(reshape) X(sum) X(mean) X(cumulative_sum) X(max) X(top_k) X(gather) X(scatter_add) X(masked_fill) X(glu)      \
  X(conv1d) X(dropout) X(tanh_cell) X(gru_cell) X(lstm_cell) X(recurrence) X(linear_cross_entropy)                \
  X(rotary) X(attend) X(pad_sequences) X(unpad_sequences)
// clang-format on

namespace regard {

enum class Op : std::uint8_t {
#define REGARD_OP_ENUM(name) name,
  REGARD_OPS(REGARD_OP_ENUM)
#undef REGARD_OP_ENUM
      constant,  // not an operation: a value put on the tape from outside
  parameter,     // likewise, with a gradient that lasts
};

constexpr const char* name_of(Op op) {
  switch (op) {
#define REGARD_OP_NAME(name) \
  case Op::name:             \
    return #name;
    REGARD_OPS(REGARD_OP_NAME)
#undef REGARD_OP_NAME
    case Op::constant:
      return "constant";
    case Op::parameter:
      return "parameter";
  }
  return "?";
}

}  // namespace regard
