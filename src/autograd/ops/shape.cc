// Operations that only move numbers: concat, slice, transpose, reshape. The backward of each moves the gradient back.
#include "autograd/by_type.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "kernels/copy.h"
#include "regard/autograd/ops.h"
#include "tensor/arena.h"

namespace regard {
namespace {

// to (= or +=) from, two views of the same shape.
void move(const Tensor& from, const Tensor& to, bool add) {
  std::int64_t to_strides[kMaxRank] = {}, from_strides[kMaxRank] = {};
  for (int i = 0; i < to.rank(); ++i) {
    to_strides[i] = to.stride(i);
    from_strides[i] = from.stride(i);
  }
  by_type(to.dtype(), [&]<class T>() {
    move_strided(to.shape(), to.data<T>(), to_strides, static_cast<const T*>(from.data<T>()), from_strides, add);
  });
}

}  // namespace

Var concat(std::span<const Var> parts, int dimension) {
  const FloatMode mode;
  check(!parts.empty(), "concat: no parts");
  const Var first = parts[0];
  Tape& tape = first.tape();
  const int d = first.shape().index(dimension);
  std::int64_t total = 0;
  for (const Var& part : parts) {
    check_same_type(Op::concat, {first, part});
    check(part.shape().rank() == first.shape().rank() && part.shape().with(d, 1) == first.shape().with(d, 1),
          "concat: ", part.shape(), " does not fit ", first.shape(), " along dimension ", d);
    total += part[d];
  }
  const Tensor y = tape.make(first.shape().with(d, total), first.dtype());
  std::int64_t begin = 0;
  for (const Var& part : parts) {
    move(part.value(), y.slice(d, begin, begin + part[d]), false);
    begin += part[d];
  }
  auto* kept =
      static_cast<Var*>(tape.arena().allocate(parts.size() * sizeof(Var)));  // the caller's list may be gone by then
  std::uninitialized_copy(parts.begin(), parts.end(), kept);
  return tape.record(Op::concat, y, parts, [=, &tape, count = parts.size()](const Tensor& dy) {
    std::int64_t from = 0;
    for (const Var& part : std::span<const Var>(kept, count)) {
      const std::int64_t size = part[d];
      if (const Target dx = tape.target(part)) move(dy.slice(d, from, from + size), dx.gradient, dx.add);
      from += size;
    }
  });
}

Var concat(std::initializer_list<Var> parts, int dimension) {
  return concat(std::span<const Var>(parts.begin(), parts.size()), dimension);
}

Var slice(Var x, int dimension, std::int64_t begin, std::int64_t end) {
  const FloatMode mode;
  Tape& tape = x.tape();
  const Tensor view = x.value().slice(dimension, begin, end);
  return tape.record(Op::slice, view.dense(tape.arena()), {x}, [=, &tape](const Tensor& dy) {
    const Target dx = tape.target(x);
    if (!dx.add) std::memset(dx.gradient.raw(), 0, dx.gradient.bytes());
    move(dy, dx.gradient.slice(dimension, begin, end), true);
  });
}

std::span<const Var> split(Var x, int dimension, std::span<const std::int64_t> sizes) {
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) {
    check(size >= 0, "split: a part of ", size);
    total += size;
  }
  check(total == x[dimension], "split: parts of ", total, " in all along dimension ", dimension, " of ", x.shape());
  auto* parts = static_cast<Var*>(x.tape().arena().allocate(sizes.size() * sizeof(Var)));
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < sizes.size(); begin += sizes[i++]) {
    new (parts + i) Var(slice(x, dimension, begin, begin + sizes[i]));
  }
  return {parts, sizes.size()};
}

std::span<const Var> split(Var x, int dimension, std::int64_t parts) {
  check(parts > 0 && x[dimension] % parts == 0, "split: ", parts, " equal parts along dimension ", dimension, " of ",
        x.shape());
  auto* sizes =
      static_cast<std::int64_t*>(x.tape().arena().allocate(static_cast<std::size_t>(parts) * sizeof(std::int64_t)));
  std::fill_n(sizes, parts, x[dimension] / parts);
  return split(x, dimension, std::span<const std::int64_t>(sizes, static_cast<std::size_t>(parts)));
}

Var transpose(Var x, int a, int b) {
  const FloatMode mode;
  Tape& tape = x.tape();
  const Tensor view = x.value().transpose(a, b);
  const Tensor y = tape.make(view.shape(), view.dtype());
  move(view, y, false);
  return tape.record(Op::transpose, y, {x}, [=, &tape](const Tensor& dy) {
    const Target dx = tape.target(x);
    move(dy.transpose(a, b), dx.gradient, dx.add);
  });
}

Var reshape(Var x, const Shape& shape) {
  Tape& tape = x.tape();
  return tape.record(Op::reshape, x.value().reshape(shape), {x}, [=, &tape](const Tensor& dy) { tape.pass(x, dy); });
}

}  // namespace regard
