// y = x where the mask is not 0, elsewhere a fixed value whatever x holds there; no gradient comes from there.
#include "autograd/by_type.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "kernels/chunks.h"
#include "regard/autograd/ops.h"
#include "tensor/arena.h"

namespace regard {
namespace {

// to (= or +=) from where kept, else `value` (nothing is added)
template <class T>
void fill_masked(const std::int8_t* keep, const T* from, T value, T* to, std::int64_t size, bool add) {
  in_chunks(static_cast<std::size_t>(size), [&](std::size_t begin, std::size_t count) {
    for (std::size_t i = begin; i < begin + count; ++i) {
      const T chosen = keep[i] != 0 ? from[i] : value;
      to[i] = add ? to[i] + chosen : chosen;
    }
  });
}

}  // namespace

Var masked_fill(Var x, const Tensor& mask, double value) {
  const FloatMode mode;
  check(mask.dtype() == DType::kI8, "masked_fill: the mask is ", mask, ", expected i8");
  check(broadcast(x.shape(), mask.shape(), "masked_fill") == x.shape(), "masked_fill: the mask is ", mask.shape(),
        ", larger than x ", x.shape());
  Tape& tape = x.tape();
  const Tensor spread = tape.make(x.shape(), DType::kI8);  // a copy: the caller may reuse theirs
  spread.copy_from(mask.expand(x.shape()));
  const Tensor y = tape.make(x.shape(), x.dtype());
  by_type(y.dtype(), [&]<class T>() {
    fill_masked<T>(spread.data<std::int8_t>(), x.value().data<T>(), static_cast<T>(value), y.data<T>(), y.size(),
                   false);
  });
  return tape.record(Op::masked_fill, y, {x}, [=, &tape](const Tensor& dy) {
    const Target dx = tape.target(x);
    by_type(dy.dtype(), [&]<class T>() {
      fill_masked<T>(spread.data<std::int8_t>(), dy.data<T>(), T{0}, dx.gradient.data<T>(), dy.size(), dx.add);
    });
  });
}

}  // namespace regard
