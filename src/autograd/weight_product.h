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

}  // namespace regard
