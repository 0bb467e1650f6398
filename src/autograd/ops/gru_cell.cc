// One step of a gated recurrent unit: the product of the state, then the gates (kernels/gru.h).
#include "autograd/by_type.h"
#include "autograd/kernel_calls.h"
#include "autograd/weight_product.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "kernels/gemm.h"
#include "kernels/gru.h"
#include "regard/autograd/ops.h"

namespace regard {
namespace {

void copy_rows(const Tensor& from, const Tensor& to, std::int64_t first, bool add) {
  const Tensor source = from.slice(0, first, from[0]), target = to.slice(0, first, to[0]);
  by_type(from.dtype(), [&]<class T>() {
    add_into(static_cast<const T*>(source.data<T>()), target.data<T>(), static_cast<std::size_t>(source.size()), add);
  });
}

}  // namespace

Var gru_cell(Var input, Var state, Var recurrent, Var bias, std::int64_t active) {
  const FloatMode mode;
  check_same_type(Op::gru_cell, {input, state, recurrent, bias});
  check(state.shape().rank() == 2, "gru_cell: the state is ", state.shape(), ", expected [batch, width]");
  const std::int64_t batch = state[0], width = state[1];
  check(input.shape() == Shape{batch, 3 * width}, "gru_cell: the input is ", input.shape(), ", expected ",
        Shape{batch, 3 * width});
  check(recurrent.shape() == Shape{width, 3 * width}, "gru_cell: the recurrent weights are ", recurrent.shape(),
        ", expected ", Shape{width, 3 * width});
  check(bias.shape() == Shape{3 * width}, "gru_cell: the bias is ", bias.shape(), ", expected ", Shape{3 * width});
  check(active >= -1 && active <= batch, "gru_cell: ", active, " active rows of ", batch);
  const std::int64_t rows_on = active < 0 ? batch : active;
  Tape& tape = state.tape();
  const DType type = state.dtype();
  const auto count = static_cast<std::size_t>(rows_on), w = static_cast<std::size_t>(width);

  const Tensor saved = tape.make({rows_on, 4 * width}, type);  // r, z, n, u_n
  const Tensor y = tape.make(state.shape(), type);
  by_type(type, [&]<class T>() {
    const Tensor products = tape.make({rows_on, 3 * width}, type);
    const EpilogueOf<T> epilogue{.bias = bias.value().data<T>()};
    const MatrixOf<const T> h = matrix(static_cast<const T*>(state.value().data<T>()), count, w);
    multiply_by_weight<T>(tape, h, recurrent, false, products.data<T>(), epilogue);
    gru_gates(rows(static_cast<const T*>(input.value().data<T>()), count, 3 * w),
              rows(static_cast<const T*>(products.data<T>()), count, 3 * w),
              rows(static_cast<const T*>(state.value().data<T>()), count, w), rows(saved.data<T>(), count, 4 * w),
              rows(y.data<T>(), count, w));
  });
  copy_rows(state.value(), y, rows_on, false);

  return tape.record(Op::gru_cell, y, {input, state, recurrent, bias}, [=, &tape](const Tensor& dy) {
    by_type(dy.dtype(), [&]<class T>() {
      const Tensor d_products = tape.make({rows_on, 3 * width}, type);
      const Tensor d_direct = tape.make({rows_on, width}, type);
      Target d_input = tape.target(input);
      if (d_input) {
        if (!d_input.add && rows_on < batch) {
          const Tensor off = d_input.gradient.slice(0, rows_on, batch);
          std::memset(off.raw(), 0, off.bytes());
        }
      } else {
        d_input = {tape.make({rows_on, 3 * width}, type), false};  // nobody wants it, the kernel writes it all the same
      }
      gru_gates_backward(rows(static_cast<const T*>(saved.data<T>()), count, 4 * w),
                         rows(static_cast<const T*>(state.value().data<T>()), count, w),
                         rows(static_cast<const T*>(dy.data<T>()), count, w),
                         rows(d_input.gradient.data<T>(), count, 3 * w), d_input.add,
                         rows(d_products.data<T>(), count, 3 * w), rows(d_direct.data<T>(), count, w));
      const MatrixOf<const T> up = matrix(static_cast<const T*>(d_products.data<T>()), count, 3 * w);
      if (const Target d_state = tape.target(state)) {
        const Tensor on = d_state.gradient.slice(0, 0, rows_on);
        add_into(static_cast<const T*>(d_direct.data<T>()), on.data<T>(), count * w, d_state.add);
        copy_rows(dy, d_state.gradient, rows_on, d_state.add);
        multiply_by_weight<T>(tape, up, recurrent, true, on.data<T>(), {.accumulate = true});
      }
      if (const Target d_recurrent = tape.target(recurrent)) {
        const MatrixOf<const T> h = matrix(static_cast<const T*>(state.value().data<T>()), count, w);
        gemm(h.transposed(), up, matrix(d_recurrent.gradient.data<T>(), w, 3 * w),
             EpilogueOf<T>{.accumulate = d_recurrent.add});
      }
      if (const Target d_bias = tape.target(bias)) sum_to<T>(d_products, d_bias);
    });
  });
}

}  // namespace regard
