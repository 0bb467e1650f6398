// A recurrent layer over whole sequences has the bits of its steps, one after another.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "regard/autograd/ops.h"
#include "regard/random.h"

namespace regard {
namespace {

Tensor numbers(const Shape& shape, std::uint64_t seed) {
  Tensor result = Tensor::empty(shape);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    result.data<float>()[i] = uniform(RandomKey(seed), static_cast<std::uint64_t>(i)) - 0.5f;
  }
  return result;
}

struct Layer {
  Cell cell;
  Direction direction;
  std::int64_t time, inputs, width;
  std::vector<std::int32_t> lengths;
  bool initial;

  std::int64_t batch() const { return static_cast<std::int64_t>(lengths.size()); }
  Shape state() const { return {batch(), width}; }
};

// All inputs as parameters: x, weights, and the initial state.
void add_inputs(const Layer& layer, Parameters& parameters) {
  const std::int64_t all = static_cast<std::int64_t>(gates_of(layer.cell)) * layer.width;
  parameters.add("x", numbers({layer.time, layer.batch(), layer.inputs}, 1));
  parameters.add("input", numbers({layer.inputs, all}, 2));
  parameters.add("input_bias", numbers({all}, 3));
  parameters.add("recurrent", numbers({layer.width, all}, 4));
  parameters.add("recurrent_bias", numbers({all}, 5));
  if (layer.initial) parameters.add("state", numbers(layer.state(), 6));
  if (layer.initial && has_memory(layer.cell)) parameters.add("memory", numbers(layer.state(), 7));
}

Var joined(const Recurrence& result) {
  const Var last = reshape(result.last, {1, result.last[0], result.last[1]});
  if (!result.memory.defined()) return concat({result.states, last}, 0);
  return concat({result.states, last, reshape(result.memory, last.shape())}, 0);
}

Var whole(Tape& tape, const Layer& layer, const Parameters& p) {
  const RecurrentState initial = {layer.initial ? tape.use(p[5]) : Var(),
                                  layer.initial && has_memory(layer.cell) ? tape.use(p[6]) : Var()};
  return joined(recurrence(layer.cell, tape.use(p[0]), {tape.use(p[1]), tape.use(p[2]), tape.use(p[3]), tape.use(p[4])},
                           layer.lengths, layer.direction, initial));
}

Var step_by_step(Tape& tape, const Layer& layer, const Parameters& p) {
  const std::int64_t time = layer.time, batch = layer.batch();
  const Var x = tape.use(p[0]), input = tape.use(p[1]), bias = tape.use(p[2]);
  const Var recurrent = tape.use(p[3]), recurrent_bias = tape.use(p[4]);
  const auto start = [&](std::size_t which) {
    return layer.initial ? tape.use(p[which]) : tape.constant(Tensor::zeros(layer.state()));
  };
  RecurrentState state = {start(5), has_memory(layer.cell) ? start(6) : Var()};
  const Var projected = matmul(x, input, {.bias = bias});
  std::vector<Var> states(static_cast<std::size_t>(time));
  Tensor exists = Tensor::zeros({time, batch, 1}, DType::kI8);
  for (std::int64_t step = 0; step < time; ++step) {
    const std::int64_t t = layer.direction == Direction::kForward ? step : time - 1 - step;
    const Var now = reshape(slice(projected, 0, t, t + 1), {batch, projected[2]});
    std::int64_t active = 0;
    for (; active < batch && layer.lengths[static_cast<std::size_t>(active)] > t; ++active) {
      exists.data<std::int8_t>()[t * batch + active] = 1;
    }
    switch (layer.cell) {
      case Cell::kTanh:
        state.state = tanh_cell(now, state.state, recurrent, recurrent_bias, active);
        break;
      case Cell::kGru:
        state.state = gru_cell(now, state.state, recurrent, recurrent_bias, active);
        break;
      case Cell::kLstm:
        state = lstm_cell(now, state, recurrent, recurrent_bias, active);
        break;
    }
    states[static_cast<std::size_t>(t)] = state.state;
  }
  // Collected after the loop, so that a state's own gradient is there before what comes back through the next step.
  for (Var& each : states) each = reshape(each, {1, batch, layer.width});
  return joined({masked_fill(concat(states, 0), exists, 0), state.state, state.memory});
}

struct Bits {
  std::vector<Tensor> all;  // the output, then the gradients

  static Bits of(const Layer& layer, Var (*build)(Tape&, const Layer&, const Parameters&), int passes) {
    Parameters parameters;
    add_inputs(layer, parameters);
    Gradients gradients(parameters);
    gradients.zero();
    Tape tape(gradients);
    const Var y = build(tape, layer, parameters);
    const Tensor seed = numbers(y.shape(), 9);
    for (int pass = 0; pass < passes; ++pass) tape.backward(y, seed);
    gradients.settle();
    Bits made;
    made.all.push_back(y.value().clone());
    for (const Parameter& parameter : parameters) made.all.push_back(gradients.of(parameter).clone());
    return made;
  }
};

// `added`: gradients were added to others. That of the initial state then has another order: it is a sum of its own.
void expect_same(const Bits& a, const Bits& b, bool added, const std::string& what) {
  ASSERT_EQ(a.all.size(), b.all.size());
  const char* const names[] = {"output", "x", "input", "input_bias", "recurrent", "recurrent_bias", "state", "memory"};
  for (std::size_t i = 0; i < a.all.size(); ++i) {
    ASSERT_EQ(a.all[i].shape(), b.all[i].shape());
    if (added && std::string(names[i]) == "state") continue;
    for (std::int64_t k = 0; k < a.all[i].size(); ++k) {
      // A zero may have another sign: 0 was added to it, or not.
      ASSERT_EQ(a.all[i].data<float>()[k], b.all[i].data<float>()[k]) << what << ": " << names[i] << '[' << k << ']';
    }
  }
}

std::string name_of(const Layer& layer) {
  return text("cell ", static_cast<int>(layer.cell), layer.direction == Direction::kForward ? " forward" : " backward",
              layer.initial ? ", initial state" : "", ", ", layer.time, " × ", layer.batch());
}

std::vector<Layer> layers() {
  std::vector<std::int32_t> falling;
  for (std::int32_t i = 0; i < 70; ++i) falling.push_back(9 - i / 8);
  std::vector<Layer> all;
  for (const Cell cell : {Cell::kTanh, Cell::kGru, Cell::kLstm}) {
    for (const Direction direction : {Direction::kForward, Direction::kBackward}) {
      for (const bool initial : {false, true}) {
        all.push_back({cell, direction, 5, 3, 17, {5, 5, 5}, initial});
        all.push_back({cell, direction, 6, 3, 7, {5, 3, 3, 1, 0}, initial});
        all.push_back({cell, direction, 11, 5, 33, falling, initial});
      }
    }
  }
  return all;
}

TEST(Recurrence, HasTheBitsOfItsStepsForwardAndBackward) {
  for (const Layer& layer : layers()) {
    for (const int passes : {1, 2}) {
      expect_same(Bits::of(layer, whole, passes), Bits::of(layer, step_by_step, passes), passes > 1,
                  text(name_of(layer), ", ", passes, " passes"));
    }
  }
}

TEST(Recurrence, DecodesWithTheBitsOfTraining) {
  for (const Layer& layer : layers()) {
    Parameters parameters;
    add_inputs(layer, parameters);
    Tape tape;  // records nothing, so nothing is kept for a backward pass either
    const Tensor y = whole(tape, layer, parameters).value();
    const Tensor expected = Bits::of(layer, whole, 1).all[0];
    ASSERT_EQ(std::memcmp(y.raw(), expected.raw(), expected.bytes()), 0) << name_of(layer);
  }
}

TEST(Recurrence, BitsDoNotDependOnPadding) {
  for (Layer layer : layers()) {
    const Bits tight = Bits::of(layer, whole, 1);
    const std::int64_t time = layer.time, width = layer.width, batch = layer.batch();
    Parameters parameters;
    add_inputs(layer, parameters);
    Tensor longer = Tensor::empty({time + 3, batch, layer.inputs});
    std::fill_n(longer.data<float>(), longer.size(), std::nanf(""));
    longer.slice(0, 0, time).copy_from(parameters[0].value);
    for (std::int64_t t = 0; t < time; ++t) {  // nothing behind an end is read
      for (std::int64_t b = 0; b < batch; ++b) {
        if (t < layer.lengths[static_cast<std::size_t>(b)]) continue;
        std::fill_n(longer.data<float>() + (t * batch + b) * layer.inputs, layer.inputs, std::nanf(""));
      }
    }
    Tape tape;
    const Var x = tape.variable(longer);
    const RecurrentState initial = {layer.initial ? tape.use(parameters[5]) : Var(),
                                    layer.initial && has_memory(layer.cell) ? tape.use(parameters[6]) : Var()};
    const Recurrence result = recurrence(
        layer.cell, x,
        {tape.variable(parameters[1].value), tape.use(parameters[2]), tape.use(parameters[3]), tape.use(parameters[4])},
        layer.lengths, layer.direction, initial);
    const Tensor states = result.states.value().slice(0, 0, time);
    EXPECT_EQ(std::memcmp(states.raw(), tight.all[0].raw(), states.bytes()), 0) << name_of(layer);
    EXPECT_EQ(std::memcmp(result.last.value().raw(), tight.all[0].raw() + states.bytes(), result.last.value().bytes()),
              0)
        << name_of(layer);
    Tensor seed = Tensor::zeros({time + 3, batch, width});
    seed.slice(0, 0, time).copy_from(numbers(tight.all[0].shape(), 9).slice(0, 0, time));
    tape.backward(result.states, seed);
    const Tensor dx = tape.gradient(x);
    for (std::int64_t i = 0; i < dx.size(); ++i) ASSERT_FALSE(std::isnan(dx.data<float>()[i])) << name_of(layer);
    for (std::int64_t i = time * batch * layer.inputs; i < dx.size(); ++i) ASSERT_EQ(dx.data<float>()[i], 0);
  }
}

TEST(Recurrence, ReadsOneInputTwiceWithTheBitsOfItsSteps) {
  // The second direction adds to what the first one left: the chain goes on where it stopped.
  const Layer layer = {Cell::kGru, Direction::kForward, 6, 3, 7, {5, 3, 3, 1, 0}, false};
  const auto both = [](Var (*build)(Tape&, const Layer&, const Parameters&)) {
    static Var (*inner)(Tape&, const Layer&, const Parameters&);
    inner = build;
    return +[](Tape& tape, const Layer& one, const Parameters& p) {
      Layer other = one;
      other.direction = Direction::kBackward;
      const Var ahead = inner(tape, one, p), back = inner(tape, other, p);
      return concat({ahead, back}, 2);
    };
  };
  const Bits expected = Bits::of(layer, both(step_by_step), 1);
  expect_same(Bits::of(layer, both(whole), 1), expected, false, "both directions");
}

}  // namespace
}  // namespace regard
