// The gates of a gated recurrent unit, after the products (Cho et al. 2014, reset gate after the product):
//   r = σ(x_r + u_r)   z = σ(x_z + u_z)   n = tanh(x_n + r·u_n)   h′ = n + z·(h − n)
#pragma once

#include <cmath>
#include <cstddef>

#include "kernels/views.h"

namespace regard {

// `saved` [rows, 4·width] keeps r, z, n, u_n for the backward pass; `recurrent` (u) may be the same memory as nothing
// else. input and recurrent [rows, 3·width] in the order r, z, n; state and out [rows, width].
void gru_gates(RowsOf<const float> input, RowsOf<const float> recurrent, RowsOf<const float> state, RowsOf<float> saved,
               RowsOf<float> out);

// From d_out: d_input (= or +=), d_recurrent and d_state (its direct part, z·d_out), both overwritten.
void gru_gates_backward(RowsOf<const float> saved, RowsOf<const float> state, RowsOf<const float> d_out,
                        RowsOf<float> d_input, bool add_input, RowsOf<float> d_recurrent, RowsOf<float> d_state);

namespace reference {

template <class T>
void gru_gates(RowsOf<const T> input, RowsOf<const T> recurrent, RowsOf<const T> state, RowsOf<T> saved,
               RowsOf<T> out) {
  const std::size_t width = state.width;
  for (std::size_t i = 0; i < state.count; ++i) {
    const T *x = input.row(i), *u = recurrent.row(i), *h = state.row(i);
    for (std::size_t c = 0; c < width; ++c) {
      const T r = 1 / (1 + std::exp(-(x[c] + u[c])));
      const T z = 1 / (1 + std::exp(-(x[width + c] + u[width + c])));
      const T n = std::tanh(x[2 * width + c] + r * u[2 * width + c]);
      T* keep = saved.row(i);
      keep[c] = r;
      keep[width + c] = z;
      keep[2 * width + c] = n;
      keep[3 * width + c] = u[2 * width + c];
      out.row(i)[c] = n + z * (h[c] - n);
    }
  }
}

template <class T>
void gru_gates_backward(RowsOf<const T> saved, RowsOf<const T> state, RowsOf<const T> d_out, RowsOf<T> d_input,
                        bool add_input, RowsOf<T> d_recurrent, RowsOf<T> d_state) {
  const std::size_t width = state.width;
  for (std::size_t i = 0; i < state.count; ++i) {
    for (std::size_t c = 0; c < width; ++c) {
      const T* keep = saved.row(i);
      const T r = keep[c], z = keep[width + c], n = keep[2 * width + c], u_n = keep[3 * width + c];
      const T dy = d_out.row(i)[c];
      const T dn = dy * (1 - z) * (1 - n * n);
      const T dz = dy * (state.row(i)[c] - n) * z * (1 - z);
      const T dr = dn * u_n * r * (1 - r);
      const T gates[3] = {dr, dz, dn};
      for (std::size_t gate = 0; gate < 3; ++gate) {
        T& to = d_input.row(i)[gate * width + c];
        to = add_input ? to + gates[gate] : gates[gate];
        d_recurrent.row(i)[gate * width + c] = gate < 2 ? gates[gate] : dn * r;
      }
      d_state.row(i)[c] = dy * z;
    }
  }
}

}  // namespace reference

inline void gru_gates(RowsOf<const double> input, RowsOf<const double> recurrent, RowsOf<const double> state,
                      RowsOf<double> saved, RowsOf<double> out) {
  reference::gru_gates<double>(input, recurrent, state, saved, out);
}
inline void gru_gates_backward(RowsOf<const double> saved, RowsOf<const double> state, RowsOf<const double> d_out,
                               RowsOf<double> d_input, bool add_input, RowsOf<double> d_recurrent,
                               RowsOf<double> d_state) {
  reference::gru_gates_backward<double>(saved, state, d_out, d_input, add_input, d_recurrent, d_state);
}

}  // namespace regard
