#include "regard/nn/recurrent.h"

#include <new>
#include <type_traits>

#include "base/check.h"
#include "regard/nn/dropout.h"
#include "regard/nn/stack.h"
#include "tensor/arena.h"

namespace regard {
namespace {

std::int64_t gates(Cell cell) { return static_cast<std::int64_t>(gates_of(cell)); }

std::int64_t directions_of(const RecurrentSettings& settings) { return settings.both_directions ? 2 : 1; }

// One of the matrices side by side in an initial state of a whole stack.
Var part_of(Var all, std::int64_t which) {
  return all.defined() ? reshape(slice(all, 0, which, which + 1), all.shape().without(0)) : Var();
}

}  // namespace

RecurrentLayer::RecurrentLayer(const Builder& builder, Cell cell, std::int64_t inputs, std::int64_t width)
    : cell_(cell),
      width_(width),
      input_weight_(&builder.xavier("input.weight", {inputs, gates(cell) * width}, gates(cell))),
      input_bias_(&builder.zeros("input.bias", {gates(cell) * width})),
      recurrent_weight_(&builder.xavier("recurrent.weight", {width, gates(cell) * width}, gates(cell))),
      recurrent_bias_(&builder.zeros("recurrent.bias", {gates(cell) * width})) {}

RecurrentWeights RecurrentLayer::weights(Tape& tape) const {
  return {tape.use(*input_weight_), tape.use(*input_bias_), tape.use(*recurrent_weight_), tape.use(*recurrent_bias_)};
}

Var RecurrentLayer::project(Var x) const {
  return matmul(x, x.tape().use(*input_weight_), {.bias = x.tape().use(*input_bias_)});
}

RecurrentState RecurrentLayer::step(Var input, const RecurrentState& before, std::int64_t active) const {
  Tape& tape = input.tape();
  const Var weight = tape.use(*recurrent_weight_), bias = tape.use(*recurrent_bias_);
  switch (cell_) {
    case Cell::kTanh:
      return {tanh_cell(input, before.state, weight, bias, active), {}};
    case Cell::kGru:
      return {gru_cell(input, before.state, weight, bias, active), {}};
    case Cell::kLstm:
      return lstm_cell(input, before, weight, bias, active);
  }
  return {};
}

Recurrence RecurrentLayer::operator()(Var x, std::span<const std::int32_t> lengths, Direction direction,
                                      const RecurrentState& initial) const {
  return recurrence(cell_, x, weights(x.tape()), lengths, direction, initial);
}

Recurrent::Recurrent(const Builder& builder, const RecurrentSettings& settings) : settings_(settings) {
  check(settings.layers >= 1, "recurrent: ", settings.layers, " layers, expected at least 1");
  const std::int64_t directions = directions_of(settings);
  for (std::int64_t layer = 0; layer < settings.layers; ++layer) {
    const Builder inner = builder.under(text("layer", layer));
    const std::int64_t inputs = layer == 0 ? settings.inputs : directions * settings.width;
    layers_.emplace_back(inner.under("forward"), settings.cell, inputs, settings.width);
    if (settings.both_directions) layers_.emplace_back(inner.under("backward"), settings.cell, inputs, settings.width);
  }
}

Recurrence Recurrent::operator()(Var x, std::span<const std::int32_t> lengths, const RecurrentOptions& options) const {
  static_assert(std::is_trivially_destructible_v<RecurrentWeights>);
  auto* weights = static_cast<RecurrentWeights*>(x.tape().arena().allocate(layers_.size() * sizeof(RecurrentWeights)));
  for (std::size_t i = 0; i < layers_.size(); ++i) new (weights + i) RecurrentWeights(layers_[i].weights(x.tape()));
  return recurrent_stack(settings_, x, {weights, layers_.size()}, lengths, options);
}

Recurrence recurrent_stack(const RecurrentSettings& settings, Var x, std::span<const RecurrentWeights> weights,
                           std::span<const std::int32_t> lengths, const RecurrentOptions& options) {
  const std::int64_t directions = directions_of(settings), count = settings.layers * directions;
  check(settings.layers >= 1 && static_cast<std::int64_t>(weights.size()) == count, "recurrent: ", weights.size(),
        " sets of weights for ", settings.layers, " layers in ", directions, " directions");
  for (const Var& initial : {options.initial.state, options.initial.memory}) {
    check(!initial.defined() || (initial.shape().rank() == 3 && initial[0] == count),
          "recurrent: the initial state is ", initial.defined() ? initial.shape() : Shape{}, ", expected [", count,
          ", batch, width]");
  }
  Tape& tape = x.tape();
  const std::span<Var> last = make_vars(tape, count), memory = make_vars(tape, count);
  for (std::int64_t layer = 0; layer < settings.layers; ++layer) {
    if (layer > 0 && settings.dropout > 0 && options.key != nullptr) {
      x = dropout_over_time(x, settings.dropout, options.key->at(static_cast<std::uint64_t>(layer)), options.ids);
    }
    Var states[2];
    for (std::int64_t d = 0; d < directions; ++d) {
      const std::int64_t which = layer * directions + d;
      const auto at = static_cast<std::size_t>(which);
      const RecurrentState initial = {part_of(options.initial.state, which), part_of(options.initial.memory, which)};
      const Recurrence one = recurrence(settings.cell, x, weights[at], lengths,
                                        d == 0 ? Direction::kForward : Direction::kBackward, initial);
      states[d] = one.states;
      last[at] = one.last;
      memory[at] = one.memory;
    }
    x = directions == 2 ? concat({states[0], states[1]}, 2) : states[0];
  }
  return {x, stack(last), has_memory(settings.cell) ? stack(memory) : Var()};
}

}  // namespace regard
