// Sums and means. Backward: every element gets the gradient of the sum it went into.
#include "autograd/by_type.h"
#include "autograd/kernel_calls.h"
#include "base/float_mode.h"
#include "kernels/copy.h"
#include "regard/autograd/ops.h"

namespace regard {
namespace {

// The sum over one dimension (or all: dimension < 0), times `factor`.
Var reduce(Op op, Var x, const Shape& kept, const Shape& out, double factor) {
  const FloatMode mode;
  Tape& tape = x.tape();
  const Tensor y = tape.make(out, x.dtype());
  by_type(y.dtype(), [&]<class T>() {
    sum_to<T>(x.value(), {y.reshape(kept), false});
    if (factor != 1) scale(y.data<T>(), static_cast<T>(factor), y.data<T>(), static_cast<std::size_t>(y.size()));
  });
  return tape.record(op, y, {x}, [=, &tape](const Tensor& dy) {
    by_type(dy.dtype(), [&]<class T>() {
      const Tensor scaled = tape.make(kept, dy.dtype());
      scale(dy.data<T>(), static_cast<T>(factor), scaled.data<T>(), static_cast<std::size_t>(dy.size()));
      const Target dx = tape.target(x);
      std::int64_t strides[kMaxRank] = {}, from[kMaxRank] = {};
      const Tensor spread = scaled.expand(x.shape());
      for (int i = 0; i < x.shape().rank(); ++i) {
        strides[i] = dx.gradient.stride(i);
        from[i] = spread.stride(i);
      }
      move_strided(x.shape(), dx.gradient.data<T>(), strides, static_cast<const T*>(spread.data<T>()), from, dx.add);
    });
  });
}

Shape all_ones(const Shape& shape) {
  Shape result = shape;
  for (int i = 0; i < shape.rank(); ++i) result[i] = 1;
  return result;
}

Var reduce_all(Op op, Var x, bool mean) {
  const auto size = static_cast<double>(x.value().size());
  return reduce(op, x, all_ones(x.shape()), {}, mean ? 1 / size : 1);
}

Var reduce_one(Op op, Var x, int dimension, bool mean) {
  const auto size = static_cast<double>(x[dimension]);
  return reduce(op, x, x.shape().with(dimension, 1), x.shape().without(dimension), mean ? 1 / size : 1);
}

}  // namespace

Var sum(Var x) { return reduce_all(Op::sum, x, false); }
Var sum(Var x, int dimension) { return reduce_one(Op::sum, x, dimension, false); }
Var mean(Var x) { return reduce_all(Op::mean, x, true); }
Var mean(Var x, int dimension) { return reduce_one(Op::mean, x, dimension, true); }

}  // namespace regard
