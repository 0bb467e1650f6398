// y = x·w + bias with weights of 8 bits, for decoding: a quarter of the memory of f32, and up to four times its speed.
//
//     Int8Matrix w(quantized, scales);                // [K, N] and one scale a column; packed once
//     int8_gemm(x, w, y, bias);
//
//     w_kj ≈ s_j · q_kj       s_j = max_k |w_kj| / 127       q_kj = the whole number nearest to w_kj / s_j
//     x_ik ≈ r_i · p_ik       r_i = max_k |x_ik| / 127       p_ik likewise: anew for every row, from that row alone
//     y_ij = (Σ_k p_ik·q_kj) · (r_i·s_j) + bias_j
//
// The sum is one of whole numbers, so it is exact in any order; what follows it is a conversion, two products and a
// sum, each rounded once. So a row of y depends on its row of x alone, and has the same bits on every target, those
// without a fused multiply-add included. A row with a number that is not finite gives NaN.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/views.h"
#include "regard/tensor/tensor.h"

namespace regard {

inline constexpr float kInt8Largest = 127;
inline constexpr float kInt8Tiny = 1e-30f;  // a row or column whose largest number is smaller counts as zeros
inline constexpr std::size_t kInt8MostDepth = 65'536;  // so many products of two bytes cannot leave 32 bits

// The weights as the kernels like to read them: panels of 16 columns, [⌈N/16⌉][⌈K/4⌉][16][4], zeros behind the last
// column and the last row. The same on every target.
class Int8Matrix {
 public:
  static constexpr std::size_t kPanel = 16, kQuad = 4;

  Int8Matrix() = default;
  // q [K, N] in any order, scales [N].
  Int8Matrix(MatrixOf<const std::int8_t> q, const float* scales);

  std::size_t k() const { return k_; }
  std::size_t n() const { return n_; }
  std::size_t quads() const { return (k_ + kQuad - 1) / kQuad; }
  std::size_t panels() const { return (n_ + kPanel - 1) / kPanel; }
  const std::int8_t* panel(std::size_t index) const {
    return reinterpret_cast<const std::int8_t*>(memory_.raw()) + index * quads() * kQuad * kPanel;
  }
  const float* scales() const { return scales_.data<float>(); }                  // [panels · 16]
  const std::int32_t* offsets() const { return offsets_.data<std::int32_t>(); }  // [panels · 16]: −128 · Σ_k q_kj

 private:
  std::size_t k_ = 0, n_ = 0;
  Tensor memory_, scales_, offsets_;
};

// q and scales from w, column by column (by rows: transpose both). False if a number of w is not finite.
bool quantize_columns(Matrix w, MatrixOf<std::int8_t> q, float* scales);

// y = byte · scale, by rows without gaps: one scale a row, or one a column.
void widen_rows(RowsOf<const std::int8_t> q, const float* scales, bool scale_by_row, float* y);

// A [M, K], the elements of a row being neighbours, as those of a row of C. C may not overlap A. K ≤ kInt8MostDepth.
void int8_gemm(Matrix a, const Int8Matrix& b, MatrixOf<float> c, const float* bias = nullptr);

// Whoever can do it, best first; the last one always can.
struct Int8Tile {                   // some columns of some rows
  const std::uint8_t* a = nullptr;  // p + 128, rows `a_stride` apart, a multiple of 4 numbers each
  std::size_t a_stride = 0;
  const float* row_scales = nullptr;
  std::size_t rows = 0;
  const Int8Matrix* b = nullptr;
  std::size_t first_panel = 0, end_panel = 0;
  const float* bias = nullptr;
  float* c = nullptr;
  std::size_t c_stride = 0;
};
struct Int8Kernel {
  const char* name;
  std::string (*why_not)(std::size_t depth);  // "": it can multiply so many numbers a row, on the target that runs now
  void (*run)(const Int8Tile& tile);
};
const std::vector<Int8Kernel>& int8_kernels();
const Int8Kernel& int8_kernel(std::size_t depth);  // the best that can
// int8_gemm by this one.
void int8_gemm(const Int8Kernel& kernel, Matrix a, const Int8Matrix& b, MatrixOf<float> c, const float* bias = nullptr);

namespace reference {

// p + 128 of a row, and its scale.
inline float quantize_row(const float* x, std::size_t count, std::uint8_t* p) {
  float peak = 0;
  bool finite = true;
  for (std::size_t k = 0; k < count; ++k) {
    finite &= std::isfinite(x[k]);
    peak = std::abs(x[k]) > peak ? std::abs(x[k]) : peak;
  }
  const bool zero = !finite || peak < kInt8Tiny;
  const float inverse = zero ? 0 : kInt8Largest / peak;
  for (std::size_t k = 0; k < count; ++k) {
    p[k] = static_cast<std::uint8_t>(zero ? 128 : 128 + static_cast<int>(std::nearbyint(x[k] * inverse)));
  }
  return finite ? (zero ? 0 : peak / kInt8Largest) : std::nanf("");
}

void int8_tile(const Int8Tile& tile);

}  // namespace reference
}  // namespace regard
