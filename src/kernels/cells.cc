#include "kernels/cells.h"

#include "kernels/chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cells.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

template <class T>
HWY_INLINE T* RowOrNull(const RowsOf<T>& rows, std::size_t i) {
  return rows.data == nullptr ? nullptr : rows.row(i);
}

// `count` lanes at column c; a gate stands that many widths further on.
struct Columns {
  std::size_t c, width, count;
  HWY_INLINE Vector16 Load(const float* row, std::size_t gate = 0) const {
    return LoadPart16(row + gate * width + c, count);
  }
  HWY_INLINE void Store(Vector16 v, float* row, std::size_t gate = 0) const {
    if (row != nullptr) StorePart16(v, row + gate * width + c, count);
  }
};

HWY_INLINE Vector16 SigmoidSlope(Vector16 y) { return hn::Mul(y, hn::Sub(hn::Set(Tag16(), 1.0f), y)); }
HWY_INLINE Vector16 TanhSlope(Vector16 y) { return hn::NegMulAdd(y, y, hn::Set(Tag16(), 1.0f)); }

template <Cell cell>
HWY_INLINE void ForwardRow(const CellForward<float>& all, std::size_t i) {
  const Tag16 d;
  using V = Vector16;
  const std::size_t width = all.next_state.width;
  const float *x = all.input.row(i), *u = all.recurrent.row(i);
  float *gates = RowOrNull(all.gates, i), *extra = RowOrNull(all.extra, i), *next = all.next_state.row(i),
        *copy = RowOrNull(all.copy, i);
  ForEachPart16(width, [&](std::size_t c, std::size_t, std::size_t count) HWY_ATTR {
    const Columns at{c, width, count};
    const auto sum = [&](std::size_t gate) HWY_ATTR { return hn::Add(at.Load(x, gate), at.Load(u, gate)); };
    V y;
    if constexpr (cell == Cell::kTanh) {
      y = Tanh(d, sum(0));
      at.Store(y, gates);
    } else if constexpr (cell == Cell::kGru) {
      const V h = at.Load(all.state.row(i)), u_n = at.Load(u, 2), r = Sigmoid(d, sum(0)), z = Sigmoid(d, sum(1));
      const V n = Tanh(d, hn::MulAdd(r, u_n, at.Load(x, 2)));
      at.Store(r, gates, 0);
      at.Store(z, gates, 1);
      at.Store(n, gates, 2);
      at.Store(u_n, extra);
      y = hn::MulAdd(z, hn::Sub(h, n), n);
    } else {
      const V in = Sigmoid(d, sum(0)), forget = Sigmoid(d, sum(1)), g = Tanh(d, sum(2)), o = Sigmoid(d, sum(3));
      const V old = at.Load(all.memory.row(i)), memory = hn::MulAdd(forget, old, hn::Mul(in, g)), t = Tanh(d, memory);
      at.Store(in, gates, 0);
      at.Store(forget, gates, 1);
      at.Store(g, gates, 2);
      at.Store(o, gates, 3);
      at.Store(t, extra);
      at.Store(old, RowOrNull(all.old_memory, i));
      at.Store(memory, all.next_memory.row(i));
      y = hn::Mul(o, t);
    }
    at.Store(y, next);
    at.Store(y, copy);
  });
}

template <Cell cell>
HWY_INLINE void BackwardRow(const CellBackward<float>& all, std::size_t i) {
  const Tag16 d;
  using V = Vector16;
  const V one = hn::Set(d, 1.0f);
  const std::size_t width = all.d_next.width;
  const float *gates = all.gates.row(i), *extra = RowOrNull(all.extra, i), *d_next = all.d_next.row(i);
  const float* more = i < all.more.count ? all.more.row(i) : nullptr;
  float *dx = all.d_input.row(i), *du = RowOrNull(all.d_recurrent, i), *d_state = RowOrNull(all.d_state, i);
  ForEachPart16(width, [&](std::size_t c, std::size_t, std::size_t count) HWY_ATTR {
    const Columns at{c, width, count};
    const V dy = at.Load(d_next);
    V direct = hn::Zero(d);
    const auto give = [&](std::size_t gate, V value) HWY_ATTR {
      at.Store(value, dx, gate);
      at.Store(value, du, gate);
    };
    if constexpr (cell == Cell::kTanh) {
      give(0, hn::Mul(dy, TanhSlope(at.Load(gates))));
    } else if constexpr (cell == Cell::kGru) {
      const V r = at.Load(gates, 0), z = at.Load(gates, 1), n = at.Load(gates, 2), u_n = at.Load(extra);
      const V h = at.Load(all.state.row(i));
      const V dn = hn::Mul(hn::Mul(dy, hn::Sub(one, z)), TanhSlope(n));
      give(0, hn::Mul(hn::Mul(dn, u_n), SigmoidSlope(r)));
      give(1, hn::Mul(hn::Mul(dy, hn::Sub(h, n)), SigmoidSlope(z)));
      at.Store(dn, dx, 2);
      at.Store(hn::Mul(dn, r), du, 2);
      direct = hn::Mul(dy, z);
    } else {
      const V in = at.Load(gates, 0), forget = at.Load(gates, 1), g = at.Load(gates, 2), o = at.Load(gates, 3);
      const V t = at.Load(extra), old = at.Load(all.memory.row(i));
      const V dm = hn::MulAdd(hn::Mul(dy, o), TanhSlope(t), at.Load(all.d_memory.row(i)));
      give(0, hn::Mul(hn::Mul(dm, g), SigmoidSlope(in)));
      give(1, hn::Mul(hn::Mul(dm, old), SigmoidSlope(forget)));
      give(2, hn::Mul(hn::Mul(dm, in), TanhSlope(g)));
      give(3, hn::Mul(hn::Mul(dy, t), SigmoidSlope(o)));
      at.Store(hn::Mul(dm, forget), all.d_memory.row(i));
    }
    at.Store(more == nullptr ? direct : hn::Add(at.Load(more), direct), d_state);
  });
}

}  // namespace

void CellRows(Cell cell, const CellForward<float>& all, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    switch (cell) {
      case Cell::kTanh:
        ForwardRow<Cell::kTanh>(all, i);
        break;
      case Cell::kGru:
        ForwardRow<Cell::kGru>(all, i);
        break;
      case Cell::kLstm:
        ForwardRow<Cell::kLstm>(all, i);
        break;
    }
  }
}

void CellBackRows(Cell cell, const CellBackward<float>& all, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    switch (cell) {
      case Cell::kTanh:
        BackwardRow<Cell::kTanh>(all, i);
        break;
      case Cell::kGru:
        BackwardRow<Cell::kGru>(all, i);
        break;
      case Cell::kLstm:
        BackwardRow<Cell::kLstm>(all, i);
        break;
    }
  }
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {

HWY_EXPORT(CellRows);
HWY_EXPORT(CellBackRows);

void cell_forward(Cell cell, const CellForward<float>& rows) {
  in_row_chunks(rows.next_state.count, rows.input.width, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(CellRows)(cell, rows, begin, begin + count);
  });
}

void cell_backward(Cell cell, const CellBackward<float>& rows) {
  in_row_chunks(rows.d_next.count, rows.d_input.width, [&](std::size_t begin, std::size_t count) {
    HWY_DYNAMIC_DISPATCH(CellBackRows)(cell, rows, begin, begin + count);
  });
}

}  // namespace regard
#endif
