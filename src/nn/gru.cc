#include "regard/nn/gru.h"

#include <algorithm>
#include <functional>

#include "base/check.h"
#include "regard/nn/stack.h"

namespace regard {
namespace {

Tensor zeros(Tape& tape, const Shape& shape, DType type) {
  Tensor result = tape.make(shape, type);
  std::fill_n(result.raw(), result.bytes(), std::byte{0});
  return result;
}

}  // namespace

Gru::Gru(const Builder& builder, std::int64_t inputs, std::int64_t width)
    : width_(width),
      input_weight_(&builder.xavier("input.weight", {inputs, 3 * width}, 3)),
      input_bias_(&builder.zeros("input.bias", {3 * width})),
      recurrent_weight_(&builder.xavier("recurrent.weight", {width, 3 * width}, 3)),
      recurrent_bias_(&builder.zeros("recurrent.bias", {3 * width})) {}

Var Gru::project(Var x) const { return matmul(x, x.tape().use(*input_weight_), {.bias = x.tape().use(*input_bias_)}); }

Var Gru::step(Var input, Var state, std::int64_t active) const {
  Tape& tape = input.tape();
  return gru_cell(input, state, tape.use(*recurrent_weight_), tape.use(*recurrent_bias_), active);
}

Recurrence Gru::operator()(Var x, std::span<const std::int32_t> lengths, Direction direction) const {
  check(x.shape().rank() == 3, "gru: the input is ", x.value(), ", expected [time, batch, inputs]");
  const std::int64_t time = x[0], batch = x[1];
  check(static_cast<std::int64_t>(lengths.size()) == batch, "gru: ", lengths.size(), " lengths for a batch of ", batch);
  check(std::is_sorted(lengths.begin(), lengths.end(), std::greater<>()), "gru: lengths must be sorted, longest first");
  check(batch == 0 || (lengths.front() <= time && lengths.back() >= 0), "gru: lengths are ",
        batch == 0 ? 0 : lengths.back(), " … ", batch == 0 ? 0 : lengths.front(), ", expected 0 … ", time);

  Tape& tape = x.tape();
  Var state = tape.constant(zeros(tape, {batch, width_}, x.dtype()));
  if (time == 0) return {tape.constant(zeros(tape, {0, batch, width_}, x.dtype())), state};
  const Var inputs = project(x);
  const Var recurrent = tape.use(*recurrent_weight_), bias = tape.use(*recurrent_bias_);
  const std::span<Var> states = make_vars(tape, time);
  for (std::int64_t i = 0; i < time; ++i) {
    const std::int64_t t = direction == Direction::kForward ? i : time - 1 - i;
    const auto active = std::partition_point(lengths.begin(), lengths.end(), [t](std::int32_t n) { return n > t; });
    const Var input = reshape(slice(inputs, 0, t, t + 1), {batch, 3 * width_});
    state = gru_cell(input, state, recurrent, bias, active - lengths.begin());
    states[static_cast<std::size_t>(t)] = state;
  }
  return {stack(states), state};
}

}  // namespace regard
