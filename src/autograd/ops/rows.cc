// Operations over the last dimension: softmax, log-softmax, norms, the gated linear unit.
#include <cstring>

#include "autograd/by_type.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "kernels/glu.h"
#include "kernels/norm.h"
#include "kernels/softmax.h"
#include "regard/autograd/ops.h"

namespace regard {
namespace {

template <class T>
RowsOf<T> rows_of(const Tensor& x) {
  return rows(x.data<T>(), static_cast<std::size_t>(x.shape().row_count()),
              static_cast<std::size_t>(x.shape().row_width()));
}
template <class T>
RowsOf<const T> read_rows(const Tensor& x) {
  return rows_of<T>(x);
}

// Where the backward pass of a norm writes. Weight and bias are added to or overwritten together, so if only one of
// them holds something already, the other is set to zeros first.
template <class T>
NormGradients<T> norm_gradients(Tape& tape, Var x, Var weight, Var bias) {
  NormGradients<T> to;
  if (const Target dx = tape.target(x)) {
    to.dx = rows_of<T>(dx.gradient);
    to.add_dx = dx.add;
  }
  const Target dw = tape.target(weight), db = tape.target(bias);
  to.add_parameters = dw.add || db.add;
  for (const Target& each : {dw, db}) {
    if (each && !each.add && to.add_parameters) std::memset(each.gradient.raw(), 0, each.gradient.bytes());
  }
  if (dw) to.dweight = dw.gradient.data<T>();
  if (db) to.dbias = db.gradient.data<T>();
  return to;
}

void check_weight(Op op, Var x, Var weight, const char* what) {
  const Shape expected = {x.shape().row_width()};
  check(weight.shape() == expected, name_of(op), ": the ", what, " is ", weight.shape(), ", expected ", expected,
        " for x ", x.shape());
}

}  // namespace

Var softmax(Var x) {
  const FloatMode mode;
  Tape& tape = x.tape();
  const Tensor y = tape.make(x.shape(), x.dtype());
  by_type(y.dtype(), [&]<class T>() { softmax(read_rows<T>(x.value()), rows_of<T>(y)); });
  return tape.record(Op::softmax, y, {x}, [=, &tape](const Tensor& dy) {
    const Target dx = tape.target(x);
    by_type(dy.dtype(),
            [&]<class T>() { softmax_backward(read_rows<T>(y), read_rows<T>(dy), rows_of<T>(dx.gradient), dx.add); });
  });
}

Var log_softmax(Var x) {
  const FloatMode mode;
  Tape& tape = x.tape();
  const Tensor y = tape.make(x.shape(), x.dtype());
  by_type(y.dtype(), [&]<class T>() { log_softmax(read_rows<T>(x.value()), rows_of<T>(y)); });
  return tape.record(Op::log_softmax, y, {x}, [=, &tape](const Tensor& dy) {
    const Target dx = tape.target(x);
    by_type(dy.dtype(), [&]<class T>() {
      log_softmax_backward(read_rows<T>(y), read_rows<T>(dy), rows_of<T>(dx.gradient), dx.add);
    });
  });
}

Var layer_norm(Var x, Var weight, Var bias, float epsilon) {
  const FloatMode mode;
  check_same_type(Op::layer_norm, {x, weight, bias});
  check_weight(Op::layer_norm, x, weight, "weight");
  check_weight(Op::layer_norm, x, bias, "bias");
  Tape& tape = x.tape();
  const Tensor y = tape.make(x.shape(), x.dtype());
  const Tensor means = tape.make({x.shape().row_count()}, x.dtype()),
               scales = tape.make({x.shape().row_count()}, x.dtype());
  by_type(y.dtype(), [&]<class T>() {
    layer_norm(read_rows<T>(x.value()), weight.value().data<T>(), bias.value().data<T>(), T{epsilon}, rows_of<T>(y),
               means.data<T>(), scales.data<T>());
  });
  return tape.record(Op::layer_norm, y, {x, weight, bias}, [=, &tape](const Tensor& dy) {
    by_type(dy.dtype(), [&]<class T>() {
      layer_norm_backward(read_rows<T>(x.value()), weight.value().data<T>(), means.data<T>(), scales.data<T>(),
                          read_rows<T>(dy), norm_gradients<T>(tape, x, weight, bias));
    });
  });
}

Var rms_norm(Var x, Var weight, float epsilon) {
  const FloatMode mode;
  check_same_type(Op::rms_norm, {x, weight});
  check_weight(Op::rms_norm, x, weight, "weight");
  Tape& tape = x.tape();
  const Tensor y = tape.make(x.shape(), x.dtype()), scales = tape.make({x.shape().row_count()}, x.dtype());
  by_type(y.dtype(), [&]<class T>() {
    rms_norm(read_rows<T>(x.value()), weight.value().data<T>(), T{epsilon}, rows_of<T>(y), scales.data<T>());
  });
  return tape.record(Op::rms_norm, y, {x, weight}, [=, &tape](const Tensor& dy) {
    by_type(dy.dtype(), [&]<class T>() {
      rms_norm_backward(read_rows<T>(x.value()), weight.value().data<T>(), scales.data<T>(), read_rows<T>(dy),
                        norm_gradients<T>(tape, x, weight, {}));
    });
  });
}

Var glu(Var x) {
  const FloatMode mode;
  check(x.shape().rank() >= 1 && x[-1] % 2 == 0, "glu: x is ", x.shape(),
        ", expected an even size in the last dimension");
  Tape& tape = x.tape();
  const Tensor y = tape.make(x.shape().with(-1, x[-1] / 2), x.dtype());
  by_type(y.dtype(), [&]<class T>() { glu(read_rows<T>(x.value()), rows_of<T>(y)); });
  return tape.record(Op::glu, y, {x}, [=, &tape](const Tensor& dy) {
    const Target dx = tape.target(x);
    by_type(dy.dtype(), [&]<class T>() {
      glu_backward(read_rows<T>(x.value()), read_rows<T>(dy), rows_of<T>(dx.gradient), dx.add);
    });
  });
}

}  // namespace regard
