// a·w for a weight matrix on the tape. In f32 a parameter is taken in its packed form, made once for each of its
// versions and good until somebody asks for its transpose, or in 8 bits if it has them and nobody learns.
#pragma once

#include <type_traits>

#include "kernels/gemm.h"
#include "kernels/int8_gemm.h"
#include "regard/autograd/tape.h"

namespace regard {

// With so many rows packing is next to nothing. Weights that learn are other ones by the next step, so nothing is kept.
inline constexpr std::size_t kManyRows = 512;

// w in 8 bits if there is that, for products c = a·w + bias; else null.
inline const Int8Matrix* int8_of(const Tape& tape, Var w, bool transposed, Matrix a, const Epilogue& epilogue) {
  const bool fits = a.column_stride == 1 && !epilogue.accumulate && epilogue.activation == Activation::kNone;
  return fits ? tape.int8(w, transposed) : nullptr;
}

// c (= or +=) a·w, or a·wᵀ if transposed.
template <class T>
void multiply_by_weight(Tape& tape, MatrixOf<const T> a, Var w, bool transposed, MatrixOf<T> c,
                        const EpilogueOf<T>& epilogue) {
  const auto rows = static_cast<std::size_t>(w[0]), columns = static_cast<std::size_t>(w[1]);
  if constexpr (std::is_same_v<T, float>) {
    if (const Int8Matrix* small = int8_of(tape, w, transposed, a, epilogue)) {
      return int8_gemm(a, *small, c, epilogue.bias);
    }
    if (w.is_parameter() && (a.rows < kManyRows || !w.needs_gradient())) {
      return gemm(a, tape.packed(w, transposed), c, epilogue);
    }
  }
  const MatrixOf<const T> b = matrix(static_cast<const T*>(w.value().template data<T>()), rows, columns);
  gemm(a, transposed ? b.transposed() : b, c, epilogue);
}
template <class T>
void multiply_by_weight(Tape& tape, MatrixOf<const T> a, Var w, bool transposed, T* out,
                        const EpilogueOf<T>& epilogue) {
  const auto columns = static_cast<std::size_t>(w[transposed ? 0 : 1]);
  multiply_by_weight<T>(tape, a, w, transposed, matrix(out, a.rows, columns), epilogue);
}

// A matrix that many products share: packed once.
template <class T>
class PackedWeights {
 public:
  PackedWeights(Tape& tape, Var w, bool transposed) {
    const T* data = w.value().template data<T>();
    plain_ = matrix(data, static_cast<std::size_t>(w[0]), static_cast<std::size_t>(w[1]));
    if (transposed) plain_ = plain_.transposed();
    if constexpr (std::is_same_v<T, float>) {
      small_ = tape.int8(w, transposed);
      if (small_ == nullptr) packed_ = tape.packed(w, transposed);
    }
  }
  // out [a.rows, columns] (= or +=) a·w; with weights of 8 bits, which only forward passes have, always =
  void multiply(MatrixOf<const T> a, T* out, const EpilogueOf<T>& epilogue) const {
    const MatrixOf<T> c = matrix(out, a.rows, plain_.columns);
    if constexpr (std::is_same_v<T, float>) {
      if (small_ != nullptr) {
        int8_gemm(a, *small_, c, epilogue.bias);
      } else {
        gemm(a, packed_, c, epilogue);
      }
    } else {
      gemm(a, plain_, c, epilogue);
    }
  }

 private:
  MatrixOf<const T> plain_;
  PackedMatrix packed_;
  const Int8Matrix* small_ = nullptr;
};

}  // namespace regard
