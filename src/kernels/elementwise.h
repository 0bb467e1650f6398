// Functions of one or two tensors element by element, sums over dimensions, and the few other things that are done to
// whole buffers.
//
//     unary(Unary::kTanh, x, y, n);                                         // y = tanh x
//     unary_backward(Unary::kTanh, nullptr, y, dy, dx, n, true);            // dx += dy·(1 − y²)
//     binary(Binary::kAdd, shape, {x, dense}, {bias, repeated}, out);       // a bias for every row: strides {width,
//     1}, {0, 1} reduce_to_shape(shape, repeated, dout, dbias, false);                 // its gradient: the sum over
//     rows
//
// An output may be the same buffer as an input of the same layout. A sum depends on the shape alone, not on threads.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>

#include "regard/tensor/shape.h"

namespace regard {

enum class Unary { kTanh, kSigmoid, kRelu, kGelu, kGeluTanh, kSilu, kErf, kExp, kLog, kNegate };

// Whether the slope is computed from x; otherwise it is from y. The backward pass does not look at the other one.
constexpr bool slope_reads_input(Unary op) {
  switch (op) {
    case Unary::kTanh:
    case Unary::kSigmoid:
    case Unary::kRelu:
    case Unary::kExp:
    case Unary::kNegate:
      return false;
    case Unary::kGelu:      // x·Φ(x) = ½x·(1 + erf(x/√2))                            Hendrycks and Gimpel 2016
    case Unary::kGeluTanh:  // ½x·(1 + tanh(√(2/π)·(x + 0.044715·x³)))
    case Unary::kSilu:      // x·σ(x)
    case Unary::kErf:
    case Unary::kLog:
      return true;
  }
  return true;
}

void unary(Unary op, const float* x, float* y, std::size_t n);
void unary_backward(Unary op, const float* x, const float* y, const float* dy, float* dx, std::size_t n, bool add);

enum class Binary { kAdd, kSubtract, kMultiply, kDivide };

// A tensor as it is read in the shape of the result: element (i, j, …) stands at data[i·strides[0] + j·strides[1] + …].
// A stride of 0 repeats it along that dimension.
template <class T>
struct Operand {
  const T* data;
  std::span<const std::size_t> strides;
};

// out = a op b; out is dense.
void binary(Binary op, std::span<const std::size_t> shape, Operand<float> a, Operand<float> b, float* out);

// Rows of a sum over rows are added up in blocks, and the sums of the blocks likewise.
inline constexpr std::size_t kRowBlock = 64;

// y (= or +=) the sum of the dense tensor x over the dimensions whose bit is set in `summed` (bit 0: shape[0]); y has
// the other dimensions, in their order.
void sum_dimensions(std::span<const std::size_t> shape, unsigned summed, const float* x, float* y, bool add);

void fill(float* y, std::size_t n, float value);
void scale(const float* x, float factor, float* y, std::size_t n);       // y = factor·x
void add_scaled(const float* x, float factor, float* y, std::size_t n);  // y += factor·x, one rounding
double squared_norm(const float* x, std::size_t n);                      // Σ x²
// The same bits for x of `count` rows of which all but `rows` (ascending) hold zeros: those are not looked at.
double squared_norm(const float* x, std::size_t n, std::span<const std::int32_t> rows, std::size_t count);
bool all_finite(const float* x, std::size_t n);

// The gradient of an operand that binary() read with these strides: the sum over what was repeated. It comes out dense,
// in the operand's own shape.
template <class T>
void reduce_to_shape(std::span<const std::size_t> shape, std::span<const std::size_t> strides, const T* dout,
                     T* doperand, bool add) {
  unsigned summed = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) summed |= strides[i] == 0 ? 1u << i : 0u;
  sum_dimensions(shape, summed, dout, doperand, add);
}

namespace reference {

template <class T>
T unary(Unary op, T x) {
  const T root = std::sqrt(T(0.5));
  switch (op) {
    case Unary::kTanh:
      return std::tanh(x);
    case Unary::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Unary::kRelu:
      return x < 0 ? 0 : x;
    case Unary::kGelu:
      return x / 2 * std::erfc(-x * root);
    case Unary::kGeluTanh:
      return x / (1 + std::exp(-2 * std::sqrt(T(2) / std::numbers::pi_v<T>) * (x + T(0.044715) * x * x * x)));
    case Unary::kSilu:
      return x / (1 + std::exp(-x));
    case Unary::kErf:
      return std::erf(x);
    case Unary::kExp:
      return std::exp(x);
    case Unary::kLog:
      return std::log(x);
    case Unary::kNegate:
      return -x;
  }
  return x;
}

template <class T>
T slope(Unary op, T x, T y) {
  switch (op) {
    case Unary::kTanh:
      return 1 - y * y;
    case Unary::kSigmoid:
      return y * (1 - y);
    case Unary::kRelu:
      return y <= 0 ? 0 : 1;
    case Unary::kGelu:
      return std::erfc(-x * std::sqrt(T(0.5))) / 2 + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi_v<T>);
    case Unary::kGeluTanh: {
      const T c = 2 * std::sqrt(T(2) / std::numbers::pi_v<T>),
              s = 1 / (1 + std::exp(-c * (x + T(0.044715) * x * x * x)));
      return s + x * s * (1 - s) * c * (1 + 3 * T(0.044715) * x * x);
    }
    case Unary::kSilu: {
      const T s = 1 / (1 + std::exp(-x));
      return s + x * s * (1 - s);
    }
    case Unary::kErf:
      return 2 / std::sqrt(std::numbers::pi_v<T>) * std::exp(-x * x);
    case Unary::kExp:
      return y;
    case Unary::kLog:
      return 1 / x;
    case Unary::kNegate:
      return -1;
  }
  return 0;
}

template <class T>
void unary(Unary op, const T* x, T* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = unary(op, x[i]);
}

template <class T>
void unary_backward(Unary op, const T* x, const T* y, const T* dy, T* dx, std::size_t n, bool add) {
  for (std::size_t i = 0; i < n; ++i) {
    const bool input = slope_reads_input(op);
    const T gradient = dy[i] * slope(op, input ? x[i] : T(0), input ? T(0) : y[i]);
    dx[i] = add ? dx[i] + gradient : gradient;
  }
}

template <class T>
T binary(Binary op, T a, T b) {
  switch (op) {
    case Binary::kAdd:
      return a + b;
    case Binary::kSubtract:
      return a - b;
    case Binary::kMultiply:
      return a * b;
    case Binary::kDivide:
      return a / b;
  }
  return a;
}

// Calls visit(indices) for every element of a tensor of this shape, the last index running fastest.
template <class Visit>
void for_each_index(std::span<const std::size_t> shape, Visit visit) {
  std::size_t count = 1;
  for (std::size_t size : shape) count *= size;
  std::array<std::size_t, kMaxRank> index{};
  for (std::size_t element = 0; element < count; ++element) {
    visit(index);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

template <class T>
void binary(Binary op, std::span<const std::size_t> shape, Operand<T> a, Operand<T> b, T* out) {
  for_each_index(shape, [&](const auto& index) {
    std::size_t i = 0, j = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      i += index[d] * a.strides[d];
      j += index[d] * b.strides[d];
    }
    *out++ = binary(op, a.data[i], b.data[j]);
  });
}

template <class T>
void sum_dimensions(std::span<const std::size_t> shape, unsigned summed, const T* x, T* y, bool add) {
  std::size_t outputs = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) outputs *= (summed >> d & 1) != 0 ? 1 : shape[d];
  for (std::size_t i = 0; i < outputs && !add; ++i) y[i] = 0;
  for_each_index(shape, [&](const auto& index) {
    std::size_t place = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if ((summed >> d & 1) == 0) place = place * shape[d] + index[d];
    }
    y[place] += *x++;
  });
}

template <class T>
void fill(T* y, std::size_t n, T value) {
  for (std::size_t i = 0; i < n; ++i) y[i] = value;
}

template <class T>
void scale(const T* x, T factor, T* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = factor * x[i];
}

template <class T>
void add_scaled(const T* x, T factor, T* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

template <class T>
double squared_norm(const T* x, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += double(x[i]) * double(x[i]);
  return sum;
}

template <class T>
bool all_finite(const T* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) return false;
  }
  return true;
}

}  // namespace reference

inline void unary(Unary op, const double* x, double* y, std::size_t n) { reference::unary(op, x, y, n); }
inline void unary_backward(Unary op, const double* x, const double* y, const double* dy, double* dx, std::size_t n,
                           bool add) {
  reference::unary_backward(op, x, y, dy, dx, n, add);
}
inline void binary(Binary op, std::span<const std::size_t> shape, Operand<double> a, Operand<double> b, double* out) {
  reference::binary(op, shape, a, b, out);
}
inline void sum_dimensions(std::span<const std::size_t> shape, unsigned summed, const double* x, double* y, bool add) {
  reference::sum_dimensions(shape, summed, x, y, add);
}
inline void fill(double* y, std::size_t n, double value) { reference::fill(y, n, value); }
inline void scale(const double* x, double factor, double* y, std::size_t n) { reference::scale(x, factor, y, n); }
inline void add_scaled(const double* x, double factor, double* y, std::size_t n) {
  reference::add_scaled(x, factor, y, n);
}
inline double squared_norm(const double* x, std::size_t n) { return reference::squared_norm(x, n); }
inline double squared_norm(const double* x, std::size_t n, std::span<const std::int32_t>, std::size_t) {
  return reference::squared_norm(x, n);
}
inline bool all_finite(const double* x, std::size_t n) { return reference::all_finite(x, n); }

}  // namespace regard
