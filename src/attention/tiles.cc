#include "attention/tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/tiles.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr float kNothing = -std::numeric_limits<float>::infinity();

bool AllFinite(Rows x) {
  const Tag16 d;
  const Vector16 infinity = hn::Inf(d);
  for (std::size_t i = 0; i < x.count; ++i) {
    const float* row = x.row(i);
    Vector16 strange = hn::Zero(d);  // 1 in lanes that have seen NaN or ∞
    ForEachPart16(x.width, [&](std::size_t c, std::size_t, std::size_t lanes) HWY_ATTR {
      const auto fine = hn::Lt(hn::Abs(LoadPart16(row + c, lanes)), infinity);
      strange = hn::IfThenElse(fine, strange, hn::Set(d, 1.0f));
    });
    if (hn::GetLane(hn::MaxOfLanes(d, strange)) != 0.0f) return false;
  }
  return true;
}

// y += a·x, one step of the chain that a product is.
HWY_INLINE void AddScaled(float a, const float* x, float* y, std::size_t width) {
  const Vector16 factor = hn::Set(Tag16(), a);
  ForEachPart16(width, [&](std::size_t c, std::size_t, std::size_t lanes) HWY_ATTR {
    StorePart16(hn::MulAdd(factor, LoadPart16(x + c, lanes), LoadPart16(y + c, lanes)), y + c, lanes);
  });
}

void SelectedProduct(Matrix a, Rows b, Tile c) {
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) {
      const float factor = a.at(i, j);
      if (factor != 0.0f) AddScaled(factor, b.row(j), c.row(i), b.width);
    }
  }
}

void ScaleRows(Tile x, const float* factors) {
  for (std::size_t i = 0; i < x.count; ++i) {
    if (factors[i] == 1.0f) continue;
    Map([factor = factors[i]](auto d, auto v) HWY_ATTR { return hn::Mul(v, hn::Set(d, factor)); }, x.row(i), x.width,
        x.row(i));
  }
}

void PlainZeros(Tile x) {
  for (std::size_t i = 0; i < x.count; ++i) {
    Map([](auto d, auto v) HWY_ATTR { return hn::Add(v, hn::Zero(d)); }, x.row(i), x.width, x.row(i));
  }
}

void DotRows(Rows x, Rows y, float* to) {
  for (std::size_t i = 0; i < x.count; ++i) to[i] = Dot16(x.row(i), y.row(i), x.width);
}

void NormaliseRows(Rows x, float length, Tile y) {
  for (std::size_t i = 0; i < x.count; ++i) {
    const float own = std::sqrt(SumSquares16(x.row(i), x.width));
    const float divisor = own == 0.0f ? 1.0f : own;
    Map([=](auto d, auto v) HWY_ATTR { return hn::Mul(hn::Div(v, hn::Set(d, divisor)), hn::Set(d, length)); }, y.row(i),
        x.width, x.row(i));
  }
}

void NormaliseRowsBackward(Rows x, Rows dy, float length, Tile dx) {
  for (std::size_t i = 0; i < x.count; ++i) {
    const float *from = x.row(i), *gradient = dy.row(i);
    if (std::all_of(gradient, gradient + x.width, [](float g) { return g == 0.0f; })) continue;
    const float own = std::sqrt(SumSquares16(from, x.width));
    if (own == 0.0f) continue;
    const float along = SumOf16(
        x.width, [=](auto d, auto v, auto g) HWY_ATTR { return hn::Mul(hn::Div(v, hn::Set(d, own)), g); }, from,
        gradient);
    const float factor = length / own;
    Map(
        [=](auto d, auto old, auto v, auto g) HWY_ATTR {
          const auto across = hn::NegMulAdd(hn::Div(v, hn::Set(d, own)), hn::Set(d, along), g);
          return hn::MulAdd(across, hn::Set(d, factor), old);
        },
        dx.row(i), x.width, dx.row(i), from, gradient);
  }
}

// The largest score, NaN aside: that one comes back with the sum of the exponentials. No order is needed.
HWY_INLINE float RowPeak(const float* x, std::size_t n, float before) {
  const Tag16 d;
  Lanes16 peaks;
  for (Vector16& part : peaks.part) part = hn::Set(d, before);
  ForEachPart16(n, [&](std::size_t offset, std::size_t part, std::size_t count) HWY_ATTR {
    const Vector16 v = LoadPart16(x + offset, count);
    const Vector16 peak = hn::IfThenElse(hn::Gt(v, peaks.part[part]), v, peaks.part[part]);
    peaks.part[part] = ChangeFirst16(peak, peaks.part[part], count);
  });
  return Tree16(peaks, [](auto, auto a, auto b) HWY_ATTR { return hn::IfThenElse(hn::Gt(b, a), b, a); });
}

void SoftmaxAbsorb(Tile s, float sharpness, float* peak, float* mass, float* factor) {
  const Tag16 d;
  const Vector16 sharp = hn::Set(d, sharpness);
  for (std::size_t i = 0; i < s.count; ++i) {
    float* row = s.row(i);
    const float top = RowPeak(row, s.width, peak[i]);
    const Vector16 base = hn::Set(d, top == kNothing ? 0.0f : top);
    Lanes16 sums;
    for (Vector16& part : sums.part) part = hn::Zero(d);
    ForEachPart16(s.width, [&](std::size_t offset, std::size_t part, std::size_t count) HWY_ATTR {
      const Vector16 term = Exp(d, hn::Mul(hn::Sub(LoadPart16(row + offset, count), base), sharp));
      StorePart16(term, row + offset, count);
      sums.part[part] = ChangeFirst16(hn::Add(sums.part[part], term), sums.part[part], count);
    });
    factor[i] = top == peak[i] ? 1.0f : hn::GetLane(Exp(d, hn::Set(d, (peak[i] - top) * sharpness)));
    mass[i] = mass[i] * factor[i] + SumTree16(sums);
    peak[i] = top;
  }
}

void SoftmaxSettle(std::size_t count, float* peak, float* mass, float* factor) {
  const Tag16 d;
  for (std::size_t i = 0; i < count; ++i) {
    const bool nothing = mass[i] == 0.0f;
    if (nothing) peak[i] = 0.0f;
    factor[i] = nothing ? 0.0f : 1.0f / mass[i];
    mass[i] = nothing ? 0.0f : hn::GetLane(Log(d, hn::Set(d, mass[i])));
  }
}

HWY_INLINE Vector16 SoftmaxWeight(Vector16 s, Vector16 sharp, Vector16 top, Vector16 rest) {
  const Tag16 d;
  const Vector16 p = Exp(d, hn::Sub(hn::Mul(hn::Sub(s, top), sharp), rest));
  return hn::IfThenZeroElse(hn::Eq(s, hn::Set(d, kNothing)), p);
}

void SoftmaxWeigh(Tile s, float sharpness, const float* peak, const float* tau) {
  const Tag16 d;
  for (std::size_t i = 0; i < s.count; ++i) {
    float* row = s.row(i);
    const Vector16 sharp = hn::Set(d, sharpness), top = hn::Set(d, peak[i]), rest = hn::Set(d, tau[i]);
    ForEachPart16(s.width, [&](std::size_t j, std::size_t, std::size_t lanes) HWY_ATTR {
      StorePart16(SoftmaxWeight(LoadPart16(row + j, lanes), sharp, top, rest), row + j, lanes);
    });
  }
}

void SoftmaxPullback(Tile s, float sharpness, const float* peak, const float* tau, const float* delta, Tile dp) {
  const Tag16 d;
  for (std::size_t i = 0; i < s.count; ++i) {
    float *row = s.row(i), *gradient = dp.row(i);
    const Vector16 sharp = hn::Set(d, sharpness), top = hn::Set(d, peak[i]), rest = hn::Set(d, tau[i]);
    const Vector16 mean = hn::Set(d, delta[i]);
    ForEachPart16(s.width, [&](std::size_t j, std::size_t, std::size_t lanes) HWY_ATTR {
      const Vector16 p = SoftmaxWeight(LoadPart16(row + j, lanes), sharp, top, rest);
      const Vector16 ds = hn::Mul(hn::Mul(p, hn::Sub(LoadPart16(gradient + j, lanes), mean)), sharp);
      StorePart16(p, row + j, lanes);
      StorePart16(hn::IfThenZeroElse(hn::Eq(p, hn::Zero(d)), ds), gradient + j, lanes);
    });
  }
}

void AdditiveTile(Rows q, Rows k, const float* theta, Tile s) {
  for (std::size_t i = 0; i < q.count; ++i) {
    for (std::size_t j = 0; j < k.count; ++j) {
      s.row(i)[j] = SumTree16(Fold16(
          q.width, hn::Zero(Tag16()),
          [](auto d, auto sum, auto a, auto b, auto v) HWY_ATTR { return hn::MulAdd(v, Tanh(d, hn::Add(a, b)), sum); },
          q.row(i), k.row(j), theta));
    }
  }
}

void AdditiveTileBackward(Rows q, Rows k, const float* theta, Rows ds, Tile dq, Tile dk, float* d_theta) {
  const Tag16 d;
  const Vector16 one = hn::Set(d, 1.0f);
  for (std::size_t i = 0; i < q.count; ++i) {
    const float* query = q.row(i);
    float* d_query = dq.row(i);
    for (std::size_t j = 0; j < k.count; ++j) {
      if (ds.row(i)[j] == 0.0f) continue;
      const Vector16 factor = hn::Set(d, ds.row(i)[j]);
      const float* key = k.row(j);
      float* d_key = dk.row(j);
      ForEachPart16(q.width, [&](std::size_t c, std::size_t, std::size_t lanes) HWY_ATTR {
        const Vector16 t = Tanh(d, hn::Add(LoadPart16(query + c, lanes), LoadPart16(key + c, lanes)));
        const Vector16 g = hn::Mul(hn::Mul(factor, LoadPart16(theta + c, lanes)), hn::NegMulAdd(t, t, one));
        StorePart16(hn::Add(LoadPart16(d_query + c, lanes), g), d_query + c, lanes);
        StorePart16(hn::Add(LoadPart16(d_key + c, lanes), g), d_key + c, lanes);
        StorePart16(hn::MulAdd(factor, t, LoadPart16(d_theta + c, lanes)), d_theta + c, lanes);
      });
    }
  }
}

}  // namespace
}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(AllFinite);
HWY_EXPORT(SelectedProduct);
HWY_EXPORT(ScaleRows);
HWY_EXPORT(PlainZeros);
HWY_EXPORT(DotRows);
HWY_EXPORT(NormaliseRows);
HWY_EXPORT(NormaliseRowsBackward);
HWY_EXPORT(SoftmaxAbsorb);
HWY_EXPORT(SoftmaxSettle);
HWY_EXPORT(SoftmaxWeigh);
HWY_EXPORT(SoftmaxPullback);
HWY_EXPORT(AdditiveTile);
HWY_EXPORT(AdditiveTileBackward);

}  // namespace

bool all_finite(Rows x) { return HWY_DYNAMIC_DISPATCH(AllFinite)(x); }

void selected_product(Matrix a, Rows b, bool finite, Tile c) {
  if (finite) {
    gemm(a, as_matrix(b), as_matrix(c), {.accumulate = true});
  } else {
    HWY_DYNAMIC_DISPATCH(SelectedProduct)(a, b, c);
  }
}

void scale_rows(Tile x, const float* factors) { HWY_DYNAMIC_DISPATCH(ScaleRows)(x, factors); }
void plain_zeros(Tile x) { HWY_DYNAMIC_DISPATCH(PlainZeros)(x); }
void dot_rows(Rows x, Rows y, float* to) { HWY_DYNAMIC_DISPATCH(DotRows)(x, y, to); }
void normalise_rows(Rows x, float length, Tile y) { HWY_DYNAMIC_DISPATCH(NormaliseRows)(x, length, y); }
void normalise_rows_backward(Rows x, Rows dy, float length, Tile dx) {
  HWY_DYNAMIC_DISPATCH(NormaliseRowsBackward)(x, dy, length, dx);
}
void softmax_absorb(Tile s, float sharpness, float* peak, float* mass, float* factor) {
  HWY_DYNAMIC_DISPATCH(SoftmaxAbsorb)(s, sharpness, peak, mass, factor);
}
void softmax_settle(std::size_t count, float* peak, float* mass, float* factor) {
  HWY_DYNAMIC_DISPATCH(SoftmaxSettle)(count, peak, mass, factor);
}
void softmax_weigh(Tile s, float sharpness, const float* peak, const float* tau) {
  HWY_DYNAMIC_DISPATCH(SoftmaxWeigh)(s, sharpness, peak, tau);
}
void softmax_pullback(Tile s, float sharpness, const float* peak, const float* tau, const float* delta, Tile dp) {
  HWY_DYNAMIC_DISPATCH(SoftmaxPullback)(s, sharpness, peak, tau, delta, dp);
}
void additive_tile(Rows q, Rows k, const float* theta, Tile s) { HWY_DYNAMIC_DISPATCH(AdditiveTile)(q, k, theta, s); }
void additive_tile_backward(Rows q, Rows k, const float* theta, Rows ds, Tile dq, Tile dk, float* d_theta) {
  HWY_DYNAMIC_DISPATCH(AdditiveTileBackward)(q, k, theta, ds, dq, dk, d_theta);
}

}  // namespace regard
#endif
