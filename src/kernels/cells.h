// Recurrent cells after their products: what becomes of x = input·W + b and u = state·U + b′, row by row.
// The equations are in regard/kernels/cell.h. The gates stand side by side in a row of x and u, in this order, `width`
// elements each.
#pragma once

#include <cmath>
#include <cstddef>

#include "kernels/views.h"
#include "regard/kernels/cell.h"

namespace regard {

constexpr bool has_extra(Cell cell) { return cell != Cell::kTanh; }       // the backward pass needs more than the gates
constexpr bool splits_gradient(Cell cell) { return cell == Cell::kGru; }  // x and u get different gradients

// Views without memory are left alone.
template <class T>
struct CellForward {
  RowsOf<const T> input, recurrent;        // x, u  [rows, gates·width]
  RowsOf<const T> state, memory = {};      // h, c  [rows, width]; c for lstm alone
  RowsOf<T> next_state, next_memory = {};  // h′, c′; may be h and c themselves
  // For the backward pass: r, z, n or i, f, g, o or h′, may be the input itself; and u_n (gru) or tanh c′ (lstm).
  RowsOf<T> gates = {}, extra = {};  // [rows, gates·width], [rows, width]
  RowsOf<T> copy = {};               // h′ once more
  RowsOf<T> old_memory = {};         // c
};
void cell_forward(Cell cell, const CellForward<float>& rows);

template <class T>
struct CellBackward {
  RowsOf<const T> gates, extra = {};        // as above
  RowsOf<const T> state = {}, memory = {};  // from before the step: h for gru, c for lstm
  RowsOf<const T> d_next;                   // of h′
  RowsOf<T> d_memory = {};                  // lstm: of c′; becomes that of c
  RowsOf<T> d_input, d_recurrent = {};      // of x and u, overwritten
  // Of h, overwritten by the part that does not come through u (gru: z·d_next), plus `more` in its first rows. May be
  // d_next itself.
  RowsOf<T> d_state = {};
  RowsOf<const T> more = {};
};
void cell_backward(Cell cell, const CellBackward<float>& rows);

namespace reference {

template <class T>
T logistic(T x) {
  return 1 / (1 + std::exp(-x));
}

template <class T>
void cell_forward(Cell cell, const CellForward<T>& at) {
  const std::size_t w = at.next_state.width;
  const auto keep = [w](const RowsOf<T>& to, std::size_t i, std::size_t c, std::size_t gate, T value) {
    if (to.data != nullptr) to.row(i)[gate * w + c] = value;
    return value;
  };
  for (std::size_t i = 0; i < at.next_state.count; ++i) {
    const T *x = at.input.row(i), *u = at.recurrent.row(i);
    for (std::size_t c = 0; c < w; ++c) {
      const T h = at.state.row(i)[c];
      const auto save = [&](std::size_t gate, T value) { return keep(at.gates, i, c, gate, value); };
      T next = 0;
      switch (cell) {
        case Cell::kTanh:
          next = save(0, std::tanh(x[c] + u[c]));
          break;
        case Cell::kGru: {
          const T r = save(0, logistic(x[c] + u[c]));
          const T z = save(1, logistic(x[w + c] + u[w + c]));
          const T n = save(2, std::tanh(x[2 * w + c] + r * u[2 * w + c]));
          keep(at.extra, i, c, 0, u[2 * w + c]);
          next = n + z * (h - n);
          break;
        }
        case Cell::kLstm: {
          const T in = save(0, logistic(x[c] + u[c]));
          const T forget = save(1, logistic(x[w + c] + u[w + c]));
          const T g = save(2, std::tanh(x[2 * w + c] + u[2 * w + c]));
          const T o = save(3, logistic(x[3 * w + c] + u[3 * w + c]));
          const T old = keep(at.old_memory, i, c, 0, at.memory.row(i)[c]);
          const T memory = at.next_memory.row(i)[c] = forget * old + in * g;
          next = o * keep(at.extra, i, c, 0, std::tanh(memory));
          break;
        }
      }
      at.next_state.row(i)[c] = keep(at.copy, i, c, 0, next);
    }
  }
}

template <class T>
void cell_backward(Cell cell, const CellBackward<T>& at) {
  const std::size_t w = at.d_next.width;
  for (std::size_t i = 0; i < at.d_next.count; ++i) {
    const T* keep = at.gates.row(i);
    const auto give = [&](std::size_t gate, std::size_t c, T to_input, T to_recurrent) {
      at.d_input.row(i)[gate * w + c] = to_input;
      if (at.d_recurrent.data != nullptr) at.d_recurrent.row(i)[gate * w + c] = to_recurrent;
    };
    for (std::size_t c = 0; c < w; ++c) {
      const T dy = at.d_next.row(i)[c];
      T direct = 0;
      switch (cell) {
        case Cell::kTanh: {
          const T dx = dy * (1 - keep[c] * keep[c]);
          give(0, c, dx, dx);
          break;
        }
        case Cell::kGru: {
          const T r = keep[c], z = keep[w + c], n = keep[2 * w + c], u_n = at.extra.row(i)[c];
          const T dn = dy * (1 - z) * (1 - n * n);
          const T dz = dy * (at.state.row(i)[c] - n) * z * (1 - z);
          const T dr = dn * u_n * r * (1 - r);
          give(0, c, dr, dr);
          give(1, c, dz, dz);
          give(2, c, dn, dn * r);
          direct = dy * z;
          break;
        }
        case Cell::kLstm: {
          const T in = keep[c], forget = keep[w + c], g = keep[2 * w + c], o = keep[3 * w + c], t = at.extra.row(i)[c];
          const T dm = at.d_memory.row(i)[c] + dy * o * (1 - t * t);
          const T gates[4] = {dm * g * in * (1 - in), dm * at.memory.row(i)[c] * forget * (1 - forget),
                              dm * in * (1 - g * g), dy * t * o * (1 - o)};
          for (std::size_t gate = 0; gate < 4; ++gate) give(gate, c, gates[gate], gates[gate]);
          at.d_memory.row(i)[c] = dm * forget;
          break;
        }
      }
      if (at.d_state.data != nullptr) at.d_state.row(i)[c] = i < at.more.count ? at.more.row(i)[c] + direct : direct;
    }
  }
}

}  // namespace reference

inline void cell_forward(Cell cell, const CellForward<double>& rows) { reference::cell_forward(cell, rows); }
inline void cell_backward(Cell cell, const CellBackward<double>& rows) { reference::cell_backward(cell, rows); }

}  // namespace regard
