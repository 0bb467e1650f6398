// C = activation(A·B + bias): the one matrix product of the project.
//
//     gemm(x, w, y);                                                        // y = x·w
//     const PackedMatrix packed = pack(w, panels);                          // once, if the weights stay
//     gemm(x, packed, y, {.bias = bias, .activation = Activation::kRelu});  // y = relu(x·w + bias)
//     gemm(x.transposed(), dy, dw, {.accumulate = true});                   // dw += xᵀ·dy
//
// Every element of C is one chain of fused multiply-adds over k = 0 … K−1 that starts at 0, or with `accumulate` at the
// old element; then the bias is added, then the activation applied. Nothing else decides its bits: not the other rows
// and columns, not whether B was packed, not the number of threads, not the vector width (processors without a fused
// multiply-add round twice and have bits of their own).
#pragma once

#include <cassert>
#include <cmath>
#include <cstddef>

#include "kernels/views.h"

namespace regard {

enum class Activation { kNone, kRelu, kTanh, kSigmoid, kGelu, kSilu };

template <class T>
struct EpilogueOf {
  const T* bias = nullptr;  // [N]
  Activation activation = Activation::kNone;
  bool accumulate = false;  // C = activation(C + A·B + bias)
};
using Epilogue = EpilogueOf<float>;

// B as the kernels like to read it: panels of 16 columns, [⌈N/16⌉][K][16], zeros behind the last column. The same on
// every target, so a packed matrix may be used by any of them.
inline constexpr std::size_t kPanelWidth = 16;

struct PackedMatrix {
  const float* panels = nullptr;
  std::size_t k = 0;
  std::size_t n = 0;
};

inline std::size_t packed_size(std::size_t k, std::size_t n) {  // in floats
  return (n + kPanelWidth - 1) / kPanelWidth * kPanelWidth * k;
}
PackedMatrix pack(Matrix b,
                  float* panels);  // panels: packed_size(b.rows, b.columns) floats, best at a multiple of 64 bytes

// A and B in any order; the elements of a row of C are neighbours (column_stride 1). C may not overlap A or B.
void gemm(Matrix a, PackedMatrix b, MatrixOf<float> c, const Epilogue& epilogue = {});
void gemm(Matrix a, Matrix b, MatrixOf<float> c, const Epilogue& epilogue = {});

// `count` products of the same shape: the operands of product i start i · step elements behind those of the first.
// A step of 0 shares an operand. The bias is shared.
void gemm_batch(std::size_t count, Matrix a, std::size_t a_step, Matrix b, std::size_t b_step, MatrixOf<float> c,
                std::size_t c_step, const Epilogue& epilogue = {});

namespace reference {

template <class T>
T activate(Activation activation, T x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x < 0 ? T{0} : x;  // so that NaN stays NaN
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kGelu:
      return x / 2 * (1 + std::erf(x * T(0.70710678118654752440)));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
  }
  return x;
}

template <class T>
void gemm(MatrixOf<const T> a, MatrixOf<const T> b, MatrixOf<T> c, const EpilogueOf<T>& epilogue = {}) {
  assert(a.rows == c.rows && a.columns == b.rows && b.columns == c.columns);
  for (std::size_t i = 0; i < c.rows; ++i) {
    for (std::size_t j = 0; j < c.columns; ++j) {
      T sum = epilogue.accumulate ? c.at(i, j) : T{0};
      for (std::size_t k = 0; k < a.columns; ++k) sum += a.at(i, k) * b.at(k, j);
      if (epilogue.bias != nullptr) sum += epilogue.bias[j];
      c.at(i, j) = activate(epilogue.activation, sum);
    }
  }
}

}  // namespace reference

// Double precision, for gradient checks: the reference itself, under the same names.
inline void gemm(MatrixOf<const double> a, MatrixOf<const double> b, MatrixOf<double> c,
                 const EpilogueOf<double>& epilogue = {}) {
  reference::gemm<double>(a, b, c, epilogue);
}
inline void gemm_batch(std::size_t count, MatrixOf<const double> a, std::size_t a_step, MatrixOf<const double> b,
                       std::size_t b_step, MatrixOf<double> c, std::size_t c_step,
                       const EpilogueOf<double>& epilogue = {}) {
  for (std::size_t i = 0; i < count; ++i) {
    reference::gemm<double>(a, b, c, epilogue);
    a.data += a_step;
    b.data += b_step;
    c.data += c_step;
  }
}

}  // namespace regard
