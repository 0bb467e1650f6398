// Arithmetic with broadcasting. An operand that was spread gets the sum of the gradients of all its copies.
#include "autograd/by_type.h"
#include "autograd/ops.h"
#include "kernels/elementwise.h"

namespace regard {
namespace {

template <class T>
void compute(Binary kind, const Tensor& a, const Tensor& b, const Tensor& y) {
  binary(kind, y.shape(), spread<T>(a, y.shape()), spread<T>(b, y.shape()), y.data<T>());
}

// to (= or +=) the gradient summed over the dimensions in which the operand was spread.
template <class T>
void give(const Tensor& gradient, const Target& to) {
  reduce_to_shape(gradient.shape(), static_cast<const T*>(gradient.data<T>()), to.gradient.shape(),
                  to.gradient.data<T>(), to.add);
}

Var arithmetic(Op op, Binary kind, Var a, Var b) {
  const FloatMode mode;
  check_same_type(op, {a, b});
  Tape& tape = a.tape();
  const Tensor y = tape.make(broadcast(a.shape(), b.shape(), name_of(op)), a.dtype());
  by_type(y.dtype(), [&]<class T>() { compute<T>(kind, a.value(), b.value(), y); });
  return tape.record(op, y, {a, b}, [=, &tape](const Tensor& dy) {
    by_type(dy.dtype(), [&]<class T>() {
      const auto times = [&](const Tensor& factor) {  // dy·factor, spread
        const Tensor product = tape.make(dy.shape(), dy.dtype());
        compute<T>(Binary::kMultiply, dy, factor, product);
        return product;
      };
      const auto over = [&](const Tensor& numerator, const Tensor& divisor) {
        const Tensor quotient = tape.make(dy.shape(), dy.dtype());
        compute<T>(Binary::kDivide, numerator, divisor, quotient);
        return quotient;
      };
      switch (kind) {
        case Binary::kAdd:
          if (const Target to = tape.target(a)) give<T>(dy, to);
          if (const Target to = tape.target(b)) give<T>(dy, to);
          break;
        case Binary::kSubtract:
          if (const Target to = tape.target(a)) give<T>(dy, to);
          if (b.needs_gradient()) {
            const Tensor minus = tape.make(dy.shape(), dy.dtype());
            scale(T{-1}, dy.data<T>(), minus.data<T>(), static_cast<std::size_t>(dy.size()));
            give<T>(minus, tape.target(b));
          }
          break;
        case Binary::kMultiply:
          if (a.needs_gradient()) give<T>(times(b.value()), tape.target(a));
          if (b.needs_gradient()) give<T>(times(a.value()), tape.target(b));
          break;
        case Binary::kDivide:  // y = a/b: da = dy/b, db = −dy·y/b
          if (a.needs_gradient()) give<T>(over(dy, b.value()), tape.target(a));
          if (b.needs_gradient()) {
            const Tensor minus = over(times(y), b.value());
            scale(T{-1}, minus.data<T>(), minus.data<T>(), static_cast<std::size_t>(dy.size()));
            give<T>(minus, tape.target(b));
          }
          break;
      }
    });
  });
}

}  // namespace

Var add(Var a, Var b) { return arithmetic(Op::add, Binary::kAdd, a, b); }
Var subtract(Var a, Var b) { return arithmetic(Op::subtract, Binary::kSubtract, a, b); }
Var multiply(Var a, Var b) { return arithmetic(Op::multiply, Binary::kMultiply, a, b); }
Var divide(Var a, Var b) { return arithmetic(Op::divide, Binary::kDivide, a, b); }

Var number(Tape& tape, double value, DType type) {
  const Tensor result = tape.make({}, type);
  by_type(type, [&]<class T>() { *result.data<T>() = static_cast<T>(value); });
  return tape.constant(result);
}

}  // namespace regard
