// The inner loops of the optimisers: they change weights in place, element by element. Every step is one IEEE operation
// (the fused ones written as such), so the bits are the same on every target with fused multiply-add, and how the
// elements are split over threads does not matter.
//
//   sgd        m ← μ·m + s·g                w ← k·w − η·m
//   adadelta   v ← ρ·v + (1 − ρ)·(s·g)²     Δ = √(u + ε)/√(v + ε)·s·g   u ← ρ·u + (1 − ρ)·Δ²   w ← k·w − η·Δ
//   adam       m ← m + (1 − β₁)·(s·g − m)   v ← β₂·v + (1 − β₂)·(s·g)²  w ← k·w − (η/c₁)·m / (√v/√c₂ + ε)
//   follow     a ← a + r·(w − a)            the moving average of weights
//
// s scales the gradient (clipping), k = 1 − η·decay shrinks the weight (decoupled decay, Loshchilov and Hutter 2019),
// c₁ = 1 − β₁ᵗ and c₂ = 1 − β₂ᵗ correct for moments that start from zero.    Adadelta: Zeiler 2012; Adam: Kingma and Ba
// 2015
#pragma once

#include <cmath>
#include <cstddef>

namespace regard {

template <class T>
struct SgdNumbers {
  T gradient_scale = 1;  // s
  T momentum = 0;        // μ
  T rate = 0;            // η
  T keep = 1;            // k
};

template <class T>
struct AdadeltaNumbers {
  T gradient_scale = 1;  // s
  T decay = 0;           // ρ
  T rest = 0;            // 1 − ρ
  T epsilon = 0;         // ε
  T rate = 0;            // η
  T keep = 1;            // k
};

template <class T>
struct AdamNumbers {
  T gradient_scale = 1;  // s
  T first_rest = 0;      // 1 − β₁
  T second_keep = 0;     // β₂
  T second_rest = 0;     // 1 − β₂
  T rate = 0;            // η/c₁
  T root_scale = 1;      // 1/√c₂
  T epsilon = 0;         // ε
  T keep = 1;            // k
};

// All arrays hold `count` elements. Without momentum, `moment` may be null: it is neither read nor written.
void sgd(const float* gradient, float* weight, float* moment, std::size_t count, const SgdNumbers<float>& numbers);
void sgd(const double* gradient, double* weight, double* moment, std::size_t count, const SgdNumbers<double>& numbers);
void adadelta(const float* gradient, float* weight, float* squares, float* changes, std::size_t count,
              const AdadeltaNumbers<float>& numbers);
void adadelta(const double* gradient, double* weight, double* squares, double* changes, std::size_t count,
              const AdadeltaNumbers<double>& numbers);
void adam(const float* gradient, float* weight, float* first, float* second, std::size_t count,
          const AdamNumbers<float>& numbers);
void adam(const double* gradient, double* weight, double* first, double* second, std::size_t count,
          const AdamNumbers<double>& numbers);
void follow(const float* weight, float* average, std::size_t count, float rest);
void follow(const double* weight, double* average, std::size_t count, double rest);

namespace reference {

template <class T>
void sgd(const T* gradient, T* weight, T* moment, std::size_t count, const SgdNumbers<T>& numbers) {
  for (std::size_t i = 0; i < count; ++i) {
    T step = numbers.gradient_scale * gradient[i];
    if (moment != nullptr) step = moment[i] = numbers.momentum * moment[i] + step;
    weight[i] = numbers.keep * weight[i] - numbers.rate * step;
  }
}

template <class T>
void adadelta(const T* gradient, T* weight, T* squares, T* changes, std::size_t count,
              const AdadeltaNumbers<T>& numbers) {
  for (std::size_t i = 0; i < count; ++i) {
    const T g = numbers.gradient_scale * gradient[i];
    squares[i] = numbers.decay * squares[i] + numbers.rest * g * g;
    const T step = std::sqrt(changes[i] + numbers.epsilon) / std::sqrt(squares[i] + numbers.epsilon) * g;
    changes[i] = numbers.decay * changes[i] + numbers.rest * step * step;
    weight[i] = numbers.keep * weight[i] - numbers.rate * step;
  }
}

template <class T>
void adam(const T* gradient, T* weight, T* first, T* second, std::size_t count, const AdamNumbers<T>& numbers) {
  for (std::size_t i = 0; i < count; ++i) {
    const T g = numbers.gradient_scale * gradient[i];
    first[i] = first[i] + numbers.first_rest * (g - first[i]);
    second[i] = numbers.second_keep * second[i] + numbers.second_rest * g * g;
    const T size = std::sqrt(second[i]) * numbers.root_scale + numbers.epsilon;
    weight[i] = numbers.keep * weight[i] - numbers.rate * (first[i] / size);
  }
}

template <class T>
void follow(const T* weight, T* average, std::size_t count, T rest) {
  for (std::size_t i = 0; i < count; ++i) average[i] = average[i] + rest * (weight[i] - average[i]);
}

}  // namespace reference
}  // namespace regard
