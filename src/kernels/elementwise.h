// Plain loops, to be replaced by vector kernels.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "tensor/shape.h"
#include "tensor/tensor.h"
namespace regard {
enum class Unary { kTanh, kSigmoid, kRelu, kGelu, kGeluTanh, kSilu, kExp, kLog };
enum class Binary { kAdd, kSubtract, kMultiply, kDivide };
template <class T>
struct Spread {
  const T* data;
  std::int64_t strides[kMaxRank];
};
template <class T>
Spread<T> spread(const Tensor& x, const Shape& shape) {
  const Tensor view = x.expand(shape);
  Spread<T> result{x.data<T>(), {}};
  for (int i = 0; i < shape.rank(); ++i) result.strides[i] = view.stride(i);
  return result;
}
template <class T>
T unary_value(Unary kind, T x) {
  const T c = T(0.7978845608028654);
  switch (kind) {
    case Unary::kTanh:
      return std::tanh(x);
    case Unary::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Unary::kRelu:
      return x < 0 ? T(0) : x;
    case Unary::kGelu:
      return x / 2 * (1 + std::erf(x * T(0.7071067811865476)));
    case Unary::kGeluTanh:
      return x / 2 * (1 + std::tanh(c * (x + T(0.044715) * x * x * x)));
    case Unary::kSilu:
      return x / (1 + std::exp(-x));
    case Unary::kExp:
      return std::exp(x);
    case Unary::kLog:
      return std::log(x);
  }
  return x;
}
template <class T>
T unary_slope(Unary kind, T x, T y) {
  const T c = T(0.7978845608028654);
  switch (kind) {
    case Unary::kTanh:
      return 1 - y * y;
    case Unary::kSigmoid:
      return y * (1 - y);
    case Unary::kRelu:
      return x > 0 ? T(1) : T(0);
    case Unary::kGelu:
      return T(0.5) * (1 + std::erf(x * T(0.7071067811865476))) + x * std::exp(-x * x / 2) * T(0.3989422804014327);
    case Unary::kGeluTanh: {
      const T t = std::tanh(c * (x + T(0.044715) * x * x * x));
      return T(0.5) * (1 + t) + T(0.5) * x * (1 - t * t) * c * (1 + 3 * T(0.044715) * x * x);
    }
    case Unary::kSilu: {
      const T s = 1 / (1 + std::exp(-x));
      return s * (1 + x * (1 - s));
    }
    case Unary::kExp:
      return y;
    case Unary::kLog:
      return 1 / x;
  }
  return x;
}
template <class T>
void unary(Unary kind, const T* x, T* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = unary_value(kind, x[i]);
}
template <class T>
void unary_backward(Unary kind, const T* x, const T* y, const T* dy, T* dx, std::size_t n, bool add) {
  for (std::size_t i = 0; i < n; ++i) dx[i] = (add ? dx[i] : T(0)) + dy[i] * unary_slope(kind, x[i], y[i]);
}
template <class Visit>
void each_index(const Shape& shape, Visit visit) {
  std::int64_t at[kMaxRank] = {};
  const std::int64_t size = shape.size();
  for (std::int64_t i = 0; i < size; ++i) {
    visit(i, at);
    for (int d = shape.rank() - 1; d >= 0 && ++at[d] == shape[d]; --d) at[d] = 0;
  }
}
template <class T>
void binary(Binary kind, const Shape& shape, const Spread<T>& a, const Spread<T>& b, T* y) {
  each_index(shape, [&](std::int64_t i, const std::int64_t* at) {
    std::int64_t ia = 0, ib = 0;
    for (int d = 0; d < shape.rank(); ++d) ia += at[d] * a.strides[d], ib += at[d] * b.strides[d];
    const T p = a.data[ia], q = b.data[ib];
    switch (kind) {
      case Binary::kAdd:
        y[i] = p + q;
        break;
      case Binary::kSubtract:
        y[i] = p - q;
        break;
      case Binary::kMultiply:
        y[i] = p * q;
        break;
      case Binary::kDivide:
        y[i] = p / q;
        break;
    }
  });
}
template <class T>
void reduce_to_shape(const Shape& from, const T* x, const Shape& to, T* y, bool add) {
  const std::int64_t n = to.size();
  if (!add)
    for (std::int64_t i = 0; i < n; ++i) y[i] = 0;
  each_index(from, [&](std::int64_t i, const std::int64_t* at) {
    std::int64_t j = 0;
    const int skip = from.rank() - to.rank();
    for (int d = 0; d < to.rank(); ++d) j = j * to[d] + (to[d] == 1 ? 0 : at[d + skip]);
    y[j] += x[i];
  });
}
template <class T>
void scale(T a, const T* x, T* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = a * x[i];
}
template <class T>
void add_into(const T* x, T* y, std::size_t n, bool add) {
  for (std::size_t i = 0; i < n; ++i) y[i] = (add ? y[i] : T(0)) + x[i];
}
template <class T>
T sum(const T* x, std::size_t n) {
  T total = 0;
  for (std::size_t i = 0; i < n; ++i) total += x[i];
  return total;
}
template <class T>
double squared_norm(const T* x, std::size_t n) {
  double total = 0;
  for (std::size_t i = 0; i < n; ++i) total += double(x[i]) * double(x[i]);
  return total;
}
}  // namespace regard
