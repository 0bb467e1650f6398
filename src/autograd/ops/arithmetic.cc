// Arithmetic with broadcasting. An operand that was spread gets the sum of the gradients of all its copies.
#include "autograd/by_type.h"
#include "autograd/kernel_calls.h"
#include "base/float_mode.h"
#include "regard/autograd/ops.h"

namespace regard {
namespace {

template <class T>
void compute(Binary kind, const Tensor& a, const Tensor& b, const Tensor& y) {
  if (a.shape() == b.shape()) {
    const std::size_t size[] = {static_cast<std::size_t>(y.size())}, step[] = {1};
    return binary(kind, size, Operand<T>{a.data<T>(), step}, Operand<T>{b.data<T>(), step}, y.data<T>());
  }
  const Extents a_strides = Extents::strides(a, y.shape()), b_strides = Extents::strides(b, y.shape());
  binary(kind, Extents(y.shape()), Operand<T>{a.data<T>(), a_strides}, Operand<T>{b.data<T>(), b_strides}, y.data<T>());
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
      const auto add_product = [&](const Tensor& factor, const Target& to) {
        if (!to.add && to.gradient.shape() == dy.shape() && factor.shape() == dy.shape()) {
          compute<T>(Binary::kMultiply, dy, factor, to.gradient);
        } else {
          sum_to<T>(times(factor), to);
        }
      };
      const auto over = [&](const Tensor& numerator, const Tensor& divisor) {
        const Tensor quotient = tape.make(dy.shape(), dy.dtype());
        compute<T>(Binary::kDivide, numerator, divisor, quotient);
        return quotient;
      };
      const auto pass_to = [&](Var x) {  // after all others: it takes dy over
        if (x.shape() == dy.shape()) {
          tape.pass(x, dy);
        } else if (const Target to = tape.target(x)) {
          sum_to<T>(dy, to);
        }
      };
      switch (kind) {
        case Binary::kAdd:
          if (const Target to = tape.target(b)) sum_to<T>(dy, to);
          pass_to(a);
          break;
        case Binary::kSubtract:
          if (b.needs_gradient()) {
            const Tensor minus = tape.make(dy.shape(), dy.dtype());
            unary(Unary::kNegate, dy.data<T>(), minus.data<T>(), static_cast<std::size_t>(dy.size()));
            sum_to<T>(minus, tape.target(b));
          }
          pass_to(a);
          break;
        case Binary::kMultiply:
          if (const Target to = tape.target(a)) add_product(b.value(), to);
          if (const Target to = tape.target(b)) add_product(a.value(), to);
          break;
        case Binary::kDivide:  // y = a/b: da = dy/b, db = −dy·y/b
          if (a.needs_gradient()) sum_to<T>(over(dy, b.value()), tape.target(a));
          if (b.needs_gradient()) {
            const Tensor minus = over(times(y), b.value());
            unary(Unary::kNegate, minus.data<T>(), minus.data<T>(), static_cast<std::size_t>(dy.size()));
            sum_to<T>(minus, tape.target(b));
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
