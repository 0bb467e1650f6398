// Functions of one number, element by element.
#include "autograd/by_type.h"
#include "base/float_mode.h"
#include "kernels/elementwise.h"
#include "regard/autograd/ops.h"

namespace regard {
namespace {

Var unary_op(Op op, Unary kind, Var x) {
  const FloatMode mode;
  Tape& tape = x.tape();
  const Tensor y = tape.make(x.shape(), x.dtype());
  const auto size = static_cast<std::size_t>(y.size());
  by_type(y.dtype(), [&]<class T>() { unary(kind, x.value().data<T>(), y.data<T>(), size); });
  return tape.record(op, y, {x}, [=, &tape](const Tensor& dy) {
    const Target dx = tape.target(x);
    by_type(dy.dtype(), [&]<class T>() {
      const T* input = slope_reads_input(kind) ? x.value().data<T>() : nullptr;
      unary_backward(kind, input, y.data<T>(), dy.data<T>(), dx.gradient.data<T>(), size, dx.add);
    });
  });
}

}  // namespace

Var tanh(Var x) { return unary_op(Op::tanh, Unary::kTanh, x); }
Var sigmoid(Var x) { return unary_op(Op::sigmoid, Unary::kSigmoid, x); }
Var relu(Var x) { return unary_op(Op::relu, Unary::kRelu, x); }
Var gelu(Var x) { return unary_op(Op::gelu, Unary::kGelu, x); }
Var gelu_tanh(Var x) { return unary_op(Op::gelu_tanh, Unary::kGeluTanh, x); }
Var silu(Var x) { return unary_op(Op::silu, Unary::kSilu, x); }
Var exp(Var x) { return unary_op(Op::exp, Unary::kExp, x); }
Var log(Var x) { return unary_op(Op::log, Unary::kLog, x); }

}  // namespace regard
