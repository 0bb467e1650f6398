// a·w for a weight matrix on the tape. In f32 a parameter is taken in its packed form, made once for each of its
// versions.
#pragma once

#include <type_traits>

#include "kernels/gemm.h"
#include "regard/autograd/tape.h"

namespace regard {

// c (= or +=) a·w, or a·wᵀ if transposed.
template <class T>
void multiply_by_weight(Tape& tape, MatrixOf<const T> a, Var w, bool transposed, MatrixOf<T> c,
                        const EpilogueOf<T>& epilogue) {
  const auto rows = static_cast<std::size_t>(w[0]), columns = static_cast<std::size_t>(w[1]);
  if constexpr (std::is_same_v<T, float>) {
    if (w.is_parameter()) return gemm(a, tape.packed(w, transposed), c, epilogue);
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
    if constexpr (std::is_same_v<T, float>) packed_ = tape.packed(w, transposed);
  }
  // out [a.rows, columns] (= or +=) a·w
  void multiply(MatrixOf<const T> a, T* out, const EpilogueOf<T>& epilogue) const {
    const MatrixOf<T> c = matrix(out, a.rows, plain_.columns);
    if constexpr (std::is_same_v<T, float>) {
      gemm(a, packed_, c, epilogue);
    } else {
      gemm(a, plain_, c, epilogue);
    }
  }

 private:
  MatrixOf<const T> plain_;
  PackedMatrix packed_;
};

}  // namespace regard
