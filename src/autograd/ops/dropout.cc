// Dropout. The mask is a function of place, so the backward pass makes it again instead of keeping it.
#include "kernels/dropout.h"

#include "autograd/by_type.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "regard/autograd/ops.h"
#include "tensor/arena.h"

namespace regard {

Var dropout(Var x, float p, RandomKey key, std::span<const std::uint64_t> ids) {
  const FloatMode mode;
  check(p >= 0 && p <= 1, "dropout: p is ", p, ", expected 0 to 1");
  check(x.shape().rank() >= 1, "dropout: x is ", x.shape(), ", expected [items, …]");
  const std::int64_t items = x[0], width = items == 0 ? 0 : x.value().size() / items;
  check(ids.empty() || static_cast<std::int64_t>(ids.size()) == items, "dropout: ", ids.size(), " ids for ", items,
        " items");
  Tape& tape = x.tape();
  auto* keys = static_cast<RandomKey*>(tape.arena().allocate(static_cast<std::size_t>(items) * sizeof(RandomKey)));
  for (std::int64_t i = 0; i < items; ++i) {
    const auto at = static_cast<std::size_t>(i);
    new (keys + at) RandomKey(key.at(ids.empty() ? at : ids[at]));
  }
  const Tensor y = tape.make(x.shape(), x.dtype());
  const auto run = [=](const Tensor& from, const Tensor& to, bool add) {
    by_type(from.dtype(), [&]<class T>() {
      dropout_rows(
          rows(static_cast<const T*>(from.data<T>()), static_cast<std::size_t>(items), static_cast<std::size_t>(width)),
          rows(to.data<T>(), static_cast<std::size_t>(items), static_cast<std::size_t>(width)), p, keys, add);
    });
  };
  run(x.value(), y, false);
  return tape.record(Op::dropout, y, {x}, [=, &tape](const Tensor& dy) {
    const Target dx = tape.target(x);
    run(dy, dx.gradient, dx.add);
  });
}

}  // namespace regard
