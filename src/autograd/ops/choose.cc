// Elements by number along the last dimension: gather, its way back scatter_add, and the largest ones. The backward
// pass of a choice puts each gradient where its element came from, in the order of the choices.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "autograd/by_type.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "kernels/arg_max.h"
#include "kernels/chunks.h"
#include "regard/autograd/ops.h"
#include "tensor/arena.h"

namespace regard {
namespace {

struct Picks {
  std::int64_t rows, width, count;  // of [rows, width] numbers `count` a row
  const std::int32_t* ids;          // [rows, count]
};

// y[row, k] (= or +=) x[row, ids[row, k]]
template <class T>
void pick(const Picks& at, const T* x, T* y, bool add) {
  in_row_chunks(static_cast<std::size_t>(at.rows), static_cast<std::size_t>(at.count),
                [&](std::size_t begin, std::size_t count) {
                  const auto end = static_cast<std::int64_t>(begin + count);
                  for (auto row = static_cast<std::int64_t>(begin); row < end; ++row) {
                    for (std::int64_t k = row * at.count; k < (row + 1) * at.count; ++k) {
                      const T value = x[row * at.width + at.ids[k]];
                      y[k] = add ? y[k] + value : value;
                    }
                  }
                });
}

// x[row, ids[row, k]] += y[row, k], in the order of k
template <class T>
void put(const Picks& at, const T* y, T* x) {
  in_row_chunks(static_cast<std::size_t>(at.rows), static_cast<std::size_t>(at.count),
                [&](std::size_t begin, std::size_t count) {
                  const auto end = static_cast<std::int64_t>(begin + count);
                  for (auto row = static_cast<std::int64_t>(begin); row < end; ++row) {
                    for (std::int64_t k = row * at.count; k < (row + 1) * at.count; ++k) {
                      x[row * at.width + at.ids[k]] += y[k];
                    }
                  }
                });
}

// A copy of the caller's ids on the tape, each below `width`.
Picks checked(Tape& tape, Op op, const Shape& x, const Tensor& ids, std::int64_t width) {
  const char* name = name_of(op);
  check(ids.dtype() == DType::kI32, name, ": the ids are ", ids, ", expected i32");
  check(x.rank() >= 1 && ids.rank() == x.rank() && ids.shape().with(-1, 1) == x.with(-1, 1), name, ": the ids are ",
        ids.shape(), ", expected the leading sizes of ", x);
  const Tensor copy = tape.make(ids.shape(), DType::kI32);
  copy.copy_from(ids);
  const std::int32_t* all = copy.data<std::int32_t>();
  for (std::int64_t i = 0; i < copy.size(); ++i) {
    check(all[i] >= 0 && all[i] < width, name, ": id ", all[i], " at place ", i, ", expected 0 to ", width - 1);
  }
  return {x.row_count(), width, ids.shape().row_width(), all};
}

Var chosen(Op op, Var x, const Picks& at, const Shape& shape) {
  Tape& tape = x.tape();
  const Tensor y = tape.make(shape, x.dtype());
  by_type(y.dtype(), [&]<class T>() { pick<T>(at, x.value().data<T>(), y.data<T>(), false); });
  return tape.record(op, y, {x}, [=, &tape](const Tensor& dy) {
    const Target dx = tape.target(x);
    if (!dx.add && dx.gradient.bytes() > 0) std::memset(dx.gradient.raw(), 0, dx.gradient.bytes());
    by_type(dy.dtype(), [&]<class T>() { put<T>(at, dy.data<T>(), dx.gradient.data<T>()); });
  });
}

// The places of the k that come first by `before`, in that order.
template <class Before>
void first_of(std::int64_t count, std::int64_t k, std::int32_t* place, Before before) {
  if (k == 0) return;
  std::int64_t held = 0;  // a heap with the last of those held on top
  for (std::int32_t i = 0; i < count; ++i) {
    if (held < k) {
      place[held++] = i;
      std::push_heap(place, place + held, before);
    } else if (before(i, place[0])) {
      std::pop_heap(place, place + k, before);
      place[k - 1] = i;
      std::push_heap(place, place + k, before);
    }
  }
  std::sort_heap(place, place + k, before);
}

}  // namespace

Var gather(Var x, const Tensor& ids) {
  const FloatMode mode;
  return chosen(Op::gather, x, checked(x.tape(), Op::gather, x.shape(), ids, x.shape().row_width()), ids.shape());
}

Var scatter_add(Var x, const Tensor& ids, std::int64_t size) {
  const FloatMode mode;
  check(size >= 0, "scatter_add: the size is ", size, ", expected 0 or more");
  check(ids.shape() == x.shape(), "scatter_add: the ids are ", ids.shape(), ", expected ", x.shape());
  Tape& tape = x.tape();
  const Picks at = checked(tape, Op::scatter_add, x.shape(), ids, size);
  const Tensor y = tape.make(x.shape().with(-1, size), x.dtype());
  if (y.bytes() > 0) std::memset(y.raw(), 0, y.bytes());
  by_type(y.dtype(), [&]<class T>() { put<T>(at, x.value().data<T>(), y.data<T>()); });
  return tape.record(Op::scatter_add, y, {x}, [=, &tape](const Tensor& dy) {
    const Target dx = tape.target(x);
    by_type(dy.dtype(), [&]<class T>() { pick<T>(at, dy.data<T>(), dx.gradient.data<T>(), dx.add); });
  });
}

Tensor arg_max(Var x) {
  const FloatMode mode;
  check(x.shape().rank() >= 1, "arg_max: x is ", x.shape(), ", expected at least one dimension");
  const Tensor place = x.tape().make(x.shape().without(-1), DType::kI32);
  check(x[-1] <= std::numeric_limits<std::int32_t>::max() && (x[-1] > 0 || place.size() == 0), "arg_max: x is ",
        x.shape(), ", expected something in the last dimension");
  by_type(x.dtype(), [&]<class T>() {
    arg_max(rows(static_cast<const T*>(x.value().data<T>()), static_cast<std::size_t>(place.size()),
                 static_cast<std::size_t>(x[-1])),
            place.data<std::int32_t>());
  });
  return place;
}

Chosen max(Var x) {
  const FloatMode mode;
  const Tensor place = arg_max(x);
  const Picks at{place.size(), x[-1], 1, place.data<std::int32_t>()};
  return {chosen(Op::max, x, at, place.shape()), place};
}

Chosen top_k(Var x, std::int64_t k) {
  const FloatMode mode;
  check(x.shape().rank() >= 1, "top_k: x is ", x.shape(), ", expected at least one dimension");
  const std::int64_t width = x[-1];
  check(k >= 0 && k <= width && width <= std::numeric_limits<std::int32_t>::max(), "top_k: the ", k, " largest of ",
        x.shape(), ", expected 0 to ", width);
  const Tensor ids = x.tape().make(x.shape().with(-1, k), DType::kI32);
  const Picks at{x.shape().row_count(), width, k, ids.data<std::int32_t>()};
  by_type(x.dtype(), [&]<class T>() {
    const T* all = x.value().data<T>();
    in_row_chunks(static_cast<std::size_t>(at.rows), static_cast<std::size_t>(width),
                  [&](std::size_t begin, std::size_t count) {
                    for (std::size_t row = begin; row < begin + count; ++row) {
                      const T* values = all + static_cast<std::int64_t>(row) * width;
                      const auto before = [values](std::int32_t a, std::int32_t b) {
                        const bool strange_a = std::isnan(values[a]), strange_b = std::isnan(values[b]);
                        if (strange_a != strange_b) return strange_a;
                        if (!strange_a && values[a] != values[b]) return values[a] > values[b];
                        return a < b;
                      };
                      first_of(width, k, ids.data<std::int32_t>() + static_cast<std::int64_t>(row) * k, before);
                    }
                  });
  });
  return {chosen(Op::top_k, x, at, ids.shape()), ids};
}

}  // namespace regard
