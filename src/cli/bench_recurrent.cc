// bench gru, bench lstm: a recurrent layer over 30 steps of ragged sequences, forward and backward. Packing the weights
// counts, since they change every step of training, and so does bringing the sequences together.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "cli/bench.h"
#include "regard/autograd/ops.h"

namespace regard::cli {
namespace {

constexpr std::int64_t kTime = 30, kShortest = 10;

struct Size {
  Cell cell;
  std::int64_t batch, width;  // the inputs are as wide

  std::int64_t all() const { return static_cast<std::int64_t>(gates_of(cell)) * width; }
};

std::vector<std::int32_t> lengths_of(const Size& size) {  // evenly spread over 10 … 30, longest first
  std::vector<std::int32_t> lengths;
  for (std::int64_t i = 0; i < size.batch; ++i) {
    lengths.push_back(static_cast<std::int32_t>(
        kShortest + static_cast<std::int64_t>(random_below(RandomKey(5), static_cast<std::uint64_t>(i),
                                                           static_cast<std::uint32_t>(kTime - kShortest + 1)))));
  }
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  return lengths;
}

// All of a case: the inputs, and what a step leaves.
struct State {
  explicit State(const Size& s) : size(s), lengths(lengths_of(s)) {
    const auto draw = [](const Shape& shape, std::uint64_t seed, double factor) {
      const auto values = random_numbers(static_cast<std::size_t>(shape.size()), seed);
      Tensor drawn = Tensor::empty(shape);
      std::transform(values->begin(), values->end(), drawn.data<float>(),
                     [factor](float value) { return static_cast<float>(factor) * value; });
      return drawn;
    };
    const double factor = 1 / std::sqrt(static_cast<double>(s.width));
    x = draw({kTime, s.batch, s.width}, 1, 1);
    dy = draw({kTime, s.batch, s.width}, 2, 1);
    parameters.add("input", draw({s.width, s.all()}, 3, factor));
    parameters.add("input_bias", draw({s.all()}, 4, factor));
    parameters.add("recurrent", draw({s.width, s.all()}, 5, factor));
    parameters.add("recurrent_bias", draw({s.all()}, 6, factor));
    gradients.emplace(parameters);
    tape.emplace(*gradients);
    long_lengths.assign(lengths.begin(), lengths.end());
  }

  void step() {
    for (Parameter& parameter : parameters) ++parameter.version;  // as an optimiser does
    gradients->zero();
    tape->reset();
    input = tape->variable(x);
    states = recurrence(size.cell, input,
                        {tape->use(parameters[0]), tape->use(parameters[1]), tape->use(parameters[2]),
                         tape->use(parameters[3])},
                        lengths)
                 .states;
    tape->backward(states, dy);
  }

  Size size;
  std::vector<std::int32_t> lengths;
  std::vector<float> long_lengths, result;
  Tensor x, dy;
  Parameters parameters;
  std::optional<Gradients> gradients;
  std::optional<Tape> tape;
  Var input, states;
};

// States and gradients of the inputs of the longest and the shortest sequence, computed without the others in double.
double gap_of(State& state) {
  const std::vector<std::int64_t> rows = {0, state.size.batch - 1};
  const std::vector<std::int32_t> lengths = {state.lengths.front(), state.lengths.back()};
  const auto pick = [&](const Tensor& all) {
    Tensor few = Tensor::empty({kTime, 2, state.size.width});
    for (std::int64_t i = 0; i < 2; ++i) {
      few.slice(1, i, i + 1)
          .copy_from(all.slice(1, rows[static_cast<std::size_t>(i)], rows[static_cast<std::size_t>(i)] + 1));
    }
    return few.to(DType::kF64);
  };
  Tape tape;
  const Var x = tape.variable(pick(state.x));
  const auto weight = [&](std::size_t which) { return tape.constant(state.parameters[which].value.to(DType::kF64)); };
  const Var states = recurrence(state.size.cell, x, {weight(0), weight(1), weight(2), weight(3)}, lengths).states;
  tape.backward(states, pick(state.dy));
  double gap = 0;
  const auto compare = [&](const Tensor& got, const Tensor& exact) {
    const Tensor few = pick(got);
    for (std::int64_t i = 0; i < few.size(); ++i) {
      const double apart = std::abs(few.data<double>()[i] - exact.data<double>()[i]);
      const double share = apart / (5e-5 * (1 + std::abs(exact.data<double>()[i])));  // thirty steps of rounding
      if (!(share <= gap)) gap = share;
    }
  };
  compare(state.states.value(), states.value());
  compare(state.tape->gradient(state.input), tape.gradient(x));
  return gap;
}

Job job(const Size& size) {
  const auto state = std::make_shared<State>(size);
  const auto view = [](const Tensor& x) {
    return std::span<const float>(x.data<float>(), static_cast<std::size_t>(x.size()));
  };
  Job made;
  made.run = [=] { state->step(); };
  made.gap = [=] { return gap_of(*state); };
  made.inputs = {{"x", view(state->x)}, {"dy", view(state->dy)}};
  for (const Parameter& parameter : state->parameters) made.inputs.push_back({parameter.name, view(parameter.value)});
  made.inputs.push_back({"lengths", state->long_lengths});
  made.output = [=]() -> std::span<const float> {  // states, dx, and the gradients of the weights
    state->result.clear();
    const auto append = [&](const Tensor& x) {
      state->result.insert(state->result.end(), x.data<float>(), x.data<float>() + x.size());
    };
    append(state->states.value());
    append(state->tape->gradient(state->input));
    for (const Parameter& parameter : state->parameters) append(state->gradients->of(parameter));
    return state->result;
  };
  made.memory = {state};
  return made;
}

// PyTorch has packed sequences, as ours are, and padded ones, which compute what is thrown away by faster code.
std::vector<Case> cases(Cell cell, const std::string& operation) {
  std::vector<Case> all;
  for (const char* kind : {"", "_padded"}) {
    for (const std::int64_t batch : {64, 128}) {
      for (const std::int64_t width : {256, 512}) {
        const Size size{cell, batch, width};
        std::int64_t rows = 0;
        for (const std::int32_t length : lengths_of(size)) rows += length;
        all.push_back({.name = std::to_string(batch) + "x" + std::to_string(kTime) + "x" + std::to_string(width) + kind,
                       .operation = operation + kind,
                       .parameters = {{"batch", batch}, {"time", kTime}, {"width", width}, {"all", size.all()}},
                       // Two products a row, each forward and twice backward.
                       .flops = 12.0 * static_cast<double>(rows * width * size.all()),
                       .limit = "limits/fma",
                       .peers = {"torch"},
                       .tolerance = 1e-3,  // of gradients that are sums of thousands of terms
                       .prepare = [size] { return job(size); }});
      }
    }
  }
  return all;
}

const AddBench add_gru({.name = "gru",
                        .summary = "a GRU over 30 steps of ragged sequences, forward and backward",
                        .cases = [] { return cases(Cell::kGru, "gru"); }});
const AddBench add_lstm({.name = "lstm",
                         .summary = "an LSTM over 30 steps of ragged sequences, forward and backward",
                         .cases = [] { return cases(Cell::kLstm, "lstm"); }});

}  // namespace
}  // namespace regard::cli
