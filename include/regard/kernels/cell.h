// The cells of recurrent layers, of x = input·W + b and u = state·U + b′:
//
//   tanh (Elman 1990)            h′ = tanh(x + u)
//   gru (Cho et al. 2014)        r = σ(x_r + u_r)   z = σ(x_z + u_z)   n = tanh(x_n + r·u_n)   h′ = n + z·(h − n)
//   lstm (Gers et al. 2000)      i = σ(x_i + u_i)   f = σ(x_f + u_f)   g = tanh(x_g + u_g)   o = σ(x_o + u_o)
//                                c′ = f·c + i·g     h′ = o·tanh c′
//
// The gates stand side by side in a row of x and u, in this order, `width` elements each.
#pragma once

#include <cstddef>

namespace regard {

enum class Cell { kTanh, kGru, kLstm };

constexpr std::size_t gates_of(Cell cell) {
  switch (cell) {
    case Cell::kTanh:
      return 1;
    case Cell::kGru:
      return 3;
    case Cell::kLstm:
      return 4;
  }
  return 0;
}

constexpr bool has_memory(Cell cell) { return cell == Cell::kLstm; }  // c beside h

}  // namespace regard
