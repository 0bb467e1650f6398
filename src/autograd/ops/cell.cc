// One step of a recurrent layer: the product of the state, then the gates (kernels/cells.h).
#include <cstring>

#include "autograd/by_type.h"
#include "autograd/kernel_calls.h"
#include "autograd/weight_product.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "kernels/cells.h"
#include "regard/autograd/ops.h"
#include "tensor/arena.h"

namespace regard {
namespace {

// to (= or +=) from, for the rows from `first` on.
void copy_rows(const Tensor& from, const Tensor& to, std::int64_t first, bool add) {
  const Tensor source = from.slice(0, first, from[0]), target = to.slice(0, first, to[0]);
  by_type(from.dtype(), [&]<class T>() {
    add_into(static_cast<const T*>(source.data<T>()), target.data<T>(), static_cast<std::size_t>(source.size()), add);
  });
}

template <class T>
RowsOf<T> first_rows(const Tensor& x, std::int64_t count) {
  return rows(x.data<T>(), static_cast<std::size_t>(count), static_cast<std::size_t>(x[-1]));
}

// The new state [batch, width], or for an LSTM [2, batch, width]: state and memory.
Var step(Op op, Cell cell, Var input, Var state, Var memory, Var recurrent, Var bias, std::int64_t active) {
  const FloatMode mode;
  const char* name = name_of(op);
  check_same_type(op, {input, state, memory, recurrent, bias});
  check(state.shape().rank() == 2, name, ": the state is ", state.shape(), ", expected [batch, width]");
  const std::int64_t batch = state[0], width = state[1], all = static_cast<std::int64_t>(gates_of(cell)) * width;
  check(input.shape() == Shape{batch, all}, name, ": the input is ", input.shape(), ", expected ", Shape{batch, all});
  check(recurrent.shape() == Shape{width, all}, name, ": the recurrent weights are ", recurrent.shape(), ", expected ",
        Shape{width, all});
  check(bias.shape() == Shape{all}, name, ": the bias is ", bias.shape(), ", expected ", Shape{all});
  const bool remembers = has_memory(cell);
  check(!remembers || memory.shape() == state.shape(), name, ": the memory is ", remembers ? memory.shape() : Shape{},
        ", expected ", state.shape());
  check(active >= -1 && active <= batch, name, ": ", active, " active rows of ", batch);

  Tape& tape = state.tape();
  const DType type = state.dtype();
  const std::int64_t on = active < 0 ? batch : active;
  const auto count = static_cast<std::size_t>(on), w = static_cast<std::size_t>(width),
             a = static_cast<std::size_t>(all);
  const Tensor gates = tape.make({on, all}, type), extra = has_extra(cell) ? tape.make({on, width}, type) : Tensor();
  const Tensor y = tape.make(remembers ? Shape{2, batch, width} : state.shape(), type);
  const auto part = [=](const Tensor& whole, std::int64_t which) {
    return remembers ? whole.slice(0, which, which + 1).reshape({batch, width}) : whole;
  };
  by_type(type, [&]<class T>() {
    const Arena::Scope temporary(tape.arena());
    const Tensor products = tape.make({on, all}, type);
    multiply_by_weight<T>(tape, matrix(static_cast<const T*>(state.value().data<T>()), count, w), recurrent, false,
                          products.data<T>(), {.bias = bias.value().data<T>()});
    CellForward<T> run{.input = first_rows<T>(input.value(), on),
                       .recurrent = first_rows<T>(products, on),
                       .state = first_rows<T>(state.value(), on),
                       .next_state = first_rows<T>(part(y, 0), on),
                       .gates = first_rows<T>(gates, on)};
    if (extra.defined()) run.extra = first_rows<T>(extra, on);
    if (remembers) {
      run.memory = first_rows<T>(memory.value(), on);
      run.next_memory = first_rows<T>(part(y, 1), on);
    }
    cell_forward(cell, run);
  });
  copy_rows(state.value(), part(y, 0), on, false);
  if (remembers) copy_rows(memory.value(), part(y, 1), on, false);

  return tape.record(op, y, {input, state, memory, recurrent, bias}, [=, &tape](const Tensor& dy) {
    by_type(type, [&]<class T>() {
      // The first rows of what is given are `found`, the others those of `rest`, or nothing.
      const auto give = [&](const Target& to, const Tensor& found, const Tensor& rest) {
        if (found.defined()) {
          add_into(static_cast<const T*>(found.data<T>()), to.gradient.data<T>(),
                   static_cast<std::size_t>(found.size()), to.add);
        }
        if (rest.defined()) {
          copy_rows(rest, to.gradient, on, to.add);
        } else if (!to.add && on < batch) {
          const Tensor off = to.gradient.slice(0, on, batch);
          std::memset(off.raw(), 0, off.bytes());
        }
      };
      const bool split = splits_gradient(cell);
      const Target d_input = tape.target(input);
      // The kernel writes where the gradient belongs; but input and state of a tanh cell may be one and the same.
      const bool direct = d_input && !d_input.add && cell != Cell::kTanh;
      const Tensor d_gates = direct ? d_input.gradient : tape.make({on, all}, type);
      const Tensor d_products = split ? tape.make({on, all}, type) : d_gates;
      const Tensor d_state = split ? tape.make({on, width}, type) : Tensor();
      const Tensor d_memory = remembers ? tape.make({on, width}, type) : Tensor();
      CellBackward<T> run{.gates = first_rows<T>(gates, on),
                          .state = first_rows<T>(state.value(), on),
                          .d_next = first_rows<T>(part(dy, 0), on),
                          .d_input = first_rows<T>(d_gates, on)};
      if (extra.defined()) run.extra = first_rows<T>(extra, on);
      if (split) {
        run.d_recurrent = first_rows<T>(d_products, on);
        run.d_state = first_rows<T>(d_state, on);
      }
      if (remembers) {
        d_memory.copy_from(part(dy, 1).slice(0, 0, on));
        run.memory = first_rows<T>(memory.value(), on);
        run.d_memory = first_rows<T>(d_memory, on);
      }
      cell_backward(cell, run);
      if (d_input) give(d_input, direct ? Tensor() : d_gates, {});
      if (const Target to = tape.target(memory)) give(to, d_memory, part(dy, 1));
      const MatrixOf<const T> up = matrix(static_cast<const T*>(d_products.data<T>()), count, a);
      if (const Target to = tape.target(state)) {
        give(to, d_state, part(dy, 0));
        multiply_by_weight<T>(tape, up, recurrent, true, to.gradient.data<T>(), {.accumulate = split || to.add});
      }
      if (const Target to = tape.target(recurrent)) {
        const MatrixOf<const T> h = matrix(static_cast<const T*>(state.value().data<T>()), count, w);
        gemm(h.transposed(), up, matrix(to.gradient.data<T>(), w, a), EpilogueOf<T>{.accumulate = to.add});
      }
      if (const Target to = tape.target(bias)) sum_to<T>(d_products.slice(0, 0, on), to);
    });
  });
}

}  // namespace

Var tanh_cell(Var input, Var state, Var recurrent, Var bias, std::int64_t active) {
  return step(Op::tanh_cell, Cell::kTanh, input, state, {}, recurrent, bias, active);
}

Var gru_cell(Var input, Var state, Var recurrent, Var bias, std::int64_t active) {
  return step(Op::gru_cell, Cell::kGru, input, state, {}, recurrent, bias, active);
}

RecurrentState lstm_cell(Var input, const RecurrentState& before, Var recurrent, Var bias, std::int64_t active) {
  const Var both = step(Op::lstm_cell, Cell::kLstm, input, before.state, before.memory, recurrent, bias, active);
  const Shape& shape = before.state.shape();
  return {reshape(slice(both, 0, 0, 1), shape), reshape(slice(both, 0, 1, 2), shape)};
}

}  // namespace regard
