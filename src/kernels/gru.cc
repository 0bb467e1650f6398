#include "kernels/gru.h"

#include "kernels/chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gru.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One row.
void GruRow(const float* HWY_RESTRICT x, const float* HWY_RESTRICT u, const float* HWY_RESTRICT h, std::size_t width,
            float* HWY_RESTRICT saved, float* HWY_RESTRICT out) {
  const Tag16 d;
  using V = Vector16;
  ForEachPart16(width, [&](std::size_t c, std::size_t, std::size_t count) HWY_ATTR {
    const auto load = [&](const float* from) HWY_ATTR { return LoadPart16(from, count); };
    const auto store = [&](V v, float* to) HWY_ATTR { StorePart16(v, to, count); };
    const V u_n = load(u + 2 * width + c);
    const V r = Sigmoid(d, hn::Add(load(x + c), load(u + c)));
    const V z = Sigmoid(d, hn::Add(load(x + width + c), load(u + width + c)));
    const V n = Tanh(d, hn::MulAdd(r, u_n, load(x + 2 * width + c)));
    store(r, saved + c);
    store(z, saved + width + c);
    store(n, saved + 2 * width + c);
    store(u_n, saved + 3 * width + c);
    store(hn::MulAdd(z, hn::Sub(load(h + c), n), n), out + c);
  });
}

void GruBackRow(const float* HWY_RESTRICT saved, const float* HWY_RESTRICT h, const float* HWY_RESTRICT d_out,
                std::size_t width, float* HWY_RESTRICT d_input, bool add, float* HWY_RESTRICT d_recurrent,
                float* HWY_RESTRICT d_state) {
  const Tag16 d;
  using V = Vector16;
  const V one = hn::Set(d, 1.0f);
  ForEachPart16(width, [&](std::size_t c, std::size_t, std::size_t count) HWY_ATTR {
    const auto load = [&](const float* from) HWY_ATTR { return LoadPart16(from, count); };
    const auto store = [&](V v, float* to) HWY_ATTR { StorePart16(v, to, count); };
    const V r = load(saved + c), z = load(saved + width + c), n = load(saved + 2 * width + c);
    const V u_n = load(saved + 3 * width + c), dy = load(d_out + c);
    const V dn = hn::Mul(hn::Mul(dy, hn::Sub(one, z)), hn::NegMulAdd(n, n, one));
    const V dz = hn::Mul(hn::Mul(dy, hn::Sub(load(h + c), n)), hn::Mul(z, hn::Sub(one, z)));
    const V dr = hn::Mul(hn::Mul(dn, u_n), hn::Mul(r, hn::Sub(one, r)));
    const auto give = [&](V value, float* to) HWY_ATTR { store(add ? hn::Add(load(to), value) : value, to); };
    give(dr, d_input + c);
    give(dz, d_input + width + c);
    give(dn, d_input + 2 * width + c);
    store(dr, d_recurrent + c);
    store(dz, d_recurrent + width + c);
    store(hn::Mul(dn, r), d_recurrent + 2 * width + c);
    store(hn::Mul(dy, z), d_state + c);
  });
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
HWY_EXPORT(GruRow);
HWY_EXPORT(GruBackRow);

void gru_gates(RowsOf<const float> input, RowsOf<const float> recurrent, RowsOf<const float> state, RowsOf<float> saved,
               RowsOf<float> out) {
  in_row_chunks(state.count, state.width, [&](std::size_t begin, std::size_t count) {
    for (std::size_t i = begin; i < begin + count; ++i) {
      HWY_DYNAMIC_DISPATCH(GruRow)
      (input.row(i), recurrent.row(i), state.row(i), state.width, saved.row(i), out.row(i));
    }
  });
}

void gru_gates_backward(RowsOf<const float> saved, RowsOf<const float> state, RowsOf<const float> d_out,
                        RowsOf<float> d_input, bool add_input, RowsOf<float> d_recurrent, RowsOf<float> d_state) {
  in_row_chunks(state.count, state.width, [&](std::size_t begin, std::size_t count) {
    for (std::size_t i = begin; i < begin + count; ++i) {
      HWY_DYNAMIC_DISPATCH(GruBackRow)
      (saved.row(i), state.row(i), d_out.row(i), state.width, d_input.row(i), add_input, d_recurrent.row(i),
       d_state.row(i));
    }
  });
}

}  // namespace regard
#endif
