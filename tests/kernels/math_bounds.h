// The functions of kernels/math-inl.h with the error each may have, for the test (a sample) and for the nightly run
// (all floats). Functions are called through unary(), slopes through unary_backward() with a gradient of 1.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kernels/elementwise.h"

namespace regard {

struct MathFunction {
  std::string name;
  Unary op;
  bool slope;
  double (*exact)(double x);
  // What |computed − exact| may be. Without fused multiply-add (SSE4) more.
  double (*bound)(double x, double exact, bool fused);
};

// The distance of floats around a number; that of the smallest normal ones below them, since subnormals do not occur.
inline double ulp_of(double value) {
  const auto exponent = static_cast<int>(std::bit_cast<std::uint64_t>(value) >> 52 & 0x7FF) - 1023;
  return std::bit_cast<double>(static_cast<std::uint64_t>(std::max(exponent, -126) - 23 + 1023) << 52);
}

inline double exact_gelu_tanh_argument(double x) {
  return 2 * std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x);
}

// Without fusing, a correction to a number below 1e-33 may be too small for a float and be lost.
inline double lost_correction(double exact, bool fused) {
  return !fused && std::fabs(exact) < 1e-33 ? 2e-3 * std::fabs(exact) : 0.0;
}

inline std::vector<MathFunction> math_functions() {
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {
      {"Exp", Unary::kExp, false, [](double x) { return std::exp(x); },
       [](double, double y, bool fused) { return (fused ? 2 : 3) * ulp_of(y); }},
      {"Log", Unary::kLog, false, [](double x) { return std::log(x); },
       [](double, double y, bool fused) { return (fused ? 2 : 3) * ulp_of(y); }},
      {"Tanh", Unary::kTanh, false, [](double x) { return std::tanh(x); },
       [](double, double y, bool fused) { return (fused ? 2 : 3) * ulp_of(y); }},
      {"Erf", Unary::kErf, false, [](double x) { return std::erf(x); },
       [](double, double y, bool fused) { return (fused ? 3 : 4) * ulp_of(y); }},
      {"Sigmoid", Unary::kSigmoid, false, [](double x) { return 1 / (1 + std::exp(-x)); },
       [](double, double y, bool fused) { return (fused ? 3 : 4) * ulp_of(y) + lost_correction(y, fused) + 1.4e-38; }},
      {"Silu", Unary::kSilu, false, [](double x) { return x == -kInfinity ? 0 : x / (1 + std::exp(-x)); },
       [](double, double y, bool fused) { return (fused ? 4 : 5) * ulp_of(y) + lost_correction(y, fused) + 2e-36; }},
      {"Gelu", Unary::kGelu, false, [](double x) { return x == -kInfinity ? 0 : x / 2 * std::erfc(-x * M_SQRT1_2); },
       [](double x, double y, bool fused) { return (fused ? 5 : 6 + std::min(x * x, 200.0)) * ulp_of(y) + 2e-37; }},
      {"GeluTanh", Unary::kGeluTanh, false,
       [](double x) { return x == -kInfinity ? 0 : x / (1 + std::exp(-exact_gelu_tanh_argument(x))); },
       [](double x, double y, bool fused) {
         const double amplified = std::min(std::fabs(exact_gelu_tanh_argument(x)), 100.0);
         return (fused ? 4 + 2.5 * amplified : 5 + 3 * amplified) * ulp_of(y) + lost_correction(y, fused) + 2e-37;
       }},
      {"SiluSlope", Unary::kSilu, true, [](double x) { return reference::slope(Unary::kSilu, x, 0.0); },
       [](double, double, bool) { return 3e-7; }},
      {"GeluSlope", Unary::kGelu, true, [](double x) { return reference::slope(Unary::kGelu, x, 0.0); },
       [](double, double, bool) { return 3e-7; }},
      {"GeluTanhSlope", Unary::kGeluTanh, true, [](double x) { return reference::slope(Unary::kGeluTanh, x, 0.0); },
       [](double, double, bool) { return 3e-7; }},
  };
}

// The exact value for a float as the kernels see it: a subnormal is zero; far out, slopes are those of the limits.
inline double exact_value(const MathFunction& f, float x) {
  double seen = std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0, x) : static_cast<double>(x);
  if (f.slope) seen = std::clamp(seen, -1e3, 1e3);  // NaN stays
  return f.exact(seen);
}

struct MathError {
  double ulps = 0;      // of the exact value
  double absolute = 0;  // |computed − exact|
  bool allowed = true;
};

inline MathError math_error(const MathFunction& f, float x, float computed, double exact, bool fused) {
  if (std::isnan(exact)) return {.allowed = std::isnan(computed)};
  const double largest = std::numeric_limits<float>::max();
  if (std::fabs(exact) > largest + 0.5 * ulp_of(largest))
    return {.allowed = computed == std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(exact))};
  const double error = std::fabs(static_cast<double>(computed) - exact);
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(computed) & 0x7FFFFFFFu;
  const bool subnormal = magnitude > 0 && magnitude < 0x00800000u;  // comparing floats would not see it
  bool allowed = error <= f.bound(static_cast<double>(x), exact, fused) && !subnormal;
  if ((f.op == Unary::kTanh || f.op == Unary::kErf) && std::fabs(computed) > 1) allowed = false;
  if (f.op == Unary::kExp && exact < std::numeric_limits<float>::min()) allowed = computed == 0;
  return {error / ulp_of(exact), error, allowed};
}

inline void compute(const MathFunction& f, const float* x, float* y, std::size_t n) {
  if (f.slope) {
    const std::vector<float> ones(n, 1.0f);
    unary_backward(f.op, x, nullptr, ones.data(), y, n, false);
  } else {
    unary(f.op, x, y, n);
  }
}

}  // namespace regard
