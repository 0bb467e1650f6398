// y_i = Σ_{j ≤ i} x_j along one dimension, one chain of additions; backward the same from the other end.
#include <algorithm>

#include "autograd/by_type.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "kernels/chunks.h"
#include "regard/autograd/ops.h"
#include "tensor/arena.h"

namespace regard {
namespace {

// x and y [outer, count, inner], summed over the middle.
template <class T>
void add_along(const Shape& shape, int dimension, const T* x, T* y, bool backwards, bool add) {
  std::size_t outer = 1, inner = 1;
  for (int i = 0; i < dimension; ++i) outer *= static_cast<std::size_t>(shape[i]);
  for (int i = dimension + 1; i < shape.rank(); ++i) inner *= static_cast<std::size_t>(shape[i]);
  const auto count = static_cast<std::size_t>(shape[dimension]);
  constexpr std::size_t kColumns = 64;  // side by side, so that neighbours in memory are read together
  const std::size_t blocks = (inner + kColumns - 1) / kColumns;
  for_each_item(outer * blocks, outer * count * inner, [&](std::size_t item) {
    const std::size_t begin = item % blocks * kColumns, width = std::min(kColumns, inner - begin);
    T sums[kColumns] = {};
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = (item / blocks * count + (backwards ? count - 1 - i : i)) * inner + begin;
      for (std::size_t c = 0; c < width; ++c) {
        sums[c] += x[at + c];
        y[at + c] = add ? y[at + c] + sums[c] : sums[c];
      }
    }
  });
}

}  // namespace

Var cumulative_sum(Var x, int dimension) {
  const FloatMode mode;
  Tape& tape = x.tape();
  const int d = x.shape().index(dimension);
  const Tensor y = tape.make(x.shape(), x.dtype());
  by_type(y.dtype(), [&]<class T>() { add_along<T>(y.shape(), d, x.value().data<T>(), y.data<T>(), false, false); });
  return tape.record(Op::cumulative_sum, y, {x}, [=, &tape](const Tensor& dy) {
    const Target dx = tape.target(x);
    by_type(dy.dtype(),
            [&]<class T>() { add_along<T>(dy.shape(), d, dy.data<T>(), dx.gradient.data<T>(), true, dx.add); });
  });
}

}  // namespace regard
