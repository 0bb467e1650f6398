// What lies between tensors on a tape and kernels on plain memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "kernels/elementwise.h"
#include "regard/autograd/tape.h"

namespace regard {

// Sizes or strides as kernels take them.
class Extents {
 public:
  explicit Extents(const Shape& shape) : rank_(static_cast<std::size_t>(shape.rank())) {
    for (int i = 0; i < shape.rank(); ++i) all_[static_cast<std::size_t>(i)] = static_cast<std::size_t>(shape[i]);
  }
  operator std::span<const std::size_t>() const { return {all_.data(), rank_}; }

  // The strides of x when it is spread to `shape`: 0 where it is repeated.
  static Extents strides(const Tensor& x, const Shape& shape) {
    const Tensor spread = x.expand(shape);
    Extents result(shape);
    for (int i = 0; i < shape.rank(); ++i) {
      result.all_[static_cast<std::size_t>(i)] = static_cast<std::size_t>(spread.stride(i));
    }
    return result;
  }

 private:
  std::array<std::size_t, kMaxRank> all_ = {};
  std::size_t rank_;
};

// y (= or +=) x
template <class T>
void add_into(const T* x, T* y, std::size_t n, bool add) {
  if (add) {
    add_scaled(x, T{1}, y, n);
  } else if (n > 0) {
    std::memcpy(y, x, n * sizeof(T));
  }
}

// to (= or +=) x summed over the dimensions in which a tensor of to's shape is repeated to get x's shape.
template <class T>
void sum_to(const Tensor& x, const Target& to) {
  if (x.shape() == to.gradient.shape()) {
    return add_into(static_cast<const T*>(x.data<T>()), to.gradient.data<T>(), static_cast<std::size_t>(x.size()),
                    to.add);
  }
  const Tensor spread = to.gradient.expand(x.shape());
  unsigned repeated = 0;
  for (int i = 0; i < x.rank(); ++i) repeated |= spread.stride(i) == 0 ? 1u << i : 0u;
  sum_dimensions(Extents(x.shape()), repeated, x.data<T>(), to.gradient.data<T>(), to.add);
}

}  // namespace regard
