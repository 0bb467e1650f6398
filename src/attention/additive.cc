#include "attention/additive.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/additive.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void AdditiveScores(const AdditiveItem<float>& item, std::size_t i, float* scores) {
  const float* q = item.queries.row(i);
  for (std::size_t j = 0; j < item.keys.count; ++j) {
    scores[j] = SumTree16(Fold16(
        item.queries.width, hn::Zero(Tag16()),
        [](auto d, auto sum, auto a, auto b, auto v) HWY_ATTR { return hn::MulAdd(v, Tanh(d, hn::Add(a, b)), sum); }, q,
        item.keys.row(j), item.theta));
  }
}

// Scores become weights.
void AdditiveWeigh(float* scores, std::size_t count, float peak, float tau) {
  const Tag16 d;
  const Vector16 top = hn::Set(d, peak), rest = hn::Set(d, tau);
  ForEachPart16(count, [&](std::size_t j, std::size_t, std::size_t lanes) HWY_ATTR {
    StorePart16(Exp(d, hn::Sub(hn::Sub(LoadPart16(scores + j, lanes), top), rest)), scores + j, lanes);
  });
}

// y += a·x
void AddScaledRow(float a, const float* x, float* y, std::size_t width) {
  const Vector16 factor = hn::Set(Tag16(), a);
  ForEachPart16(width, [&](std::size_t c, std::size_t, std::size_t lanes) HWY_ATTR {
    StorePart16(hn::MulAdd(factor, LoadPart16(x + c, lanes), LoadPart16(y + c, lanes)), y + c, lanes);
  });
}

void AdditiveQuery(const AdditiveItem<float>& item, std::size_t i, RowsOf<const float> values, float* scores,
                   float* peak, float* tau, float* context) {
  const Tag16 d;
  const std::size_t keys = item.keys.count;
  std::fill_n(context, values.width, 0.0f);
  *peak = *tau = 0.0f;
  if (keys == 0) return;
  AdditiveScores(item, i, scores);
  *peak = Max16(scores, keys);
  const Vector16 top = hn::Set(d, *peak);
  const float mass = SumOf16(
      keys, [&](auto tag, auto v) HWY_ATTR { return Exp(tag, hn::Sub(v, top)); }, scores);
  *tau = hn::GetLane(Log(d, hn::Set(d, mass)));
  AdditiveWeigh(scores, keys, *peak, *tau);
  for (std::size_t j = 0; j < keys; ++j) AddScaledRow(scores[j], values.row(j), context, values.width);
}

void AdditiveWeights(const AdditiveItem<float>& item, std::size_t i, float peak, float tau, float* weights) {
  AdditiveScores(item, i, weights);
  AdditiveWeigh(weights, item.keys.count, peak, tau);
}

void AdditiveBack(const AdditiveItem<float>& item, std::size_t i, RowsOf<const float> values, float peak, float tau,
                  const float* d_context, float* weights, float* d_scores, const AdditiveGradients<float>& to) {
  const Tag16 d;
  const std::size_t keys = item.keys.count, width = item.queries.width;
  AdditiveWeights(item, i, peak, tau, weights);
  for (std::size_t j = 0; j < keys; ++j) {
    d_scores[j] = Dot16(d_context, values.row(j), values.width);
    AddScaledRow(weights[j], d_context, to.values.row(j), values.width);
  }
  const float total = Dot16(weights, d_scores, keys);
  const Vector16 one = hn::Set(d, 1.0f);
  const float* q = item.queries.row(i);
  for (std::size_t j = 0; j < keys; ++j) {
    const Vector16 ds = hn::Set(d, weights[j] * (d_scores[j] - total));
    const float* k = item.keys.row(j);
    float* dk = to.keys.row(j);
    ForEachPart16(width, [&](std::size_t c, std::size_t, std::size_t lanes) HWY_ATTR {
      const Vector16 t = Tanh(d, hn::Add(LoadPart16(q + c, lanes), LoadPart16(k + c, lanes)));
      const Vector16 g = hn::Mul(hn::Mul(ds, LoadPart16(item.theta + c, lanes)), hn::NegMulAdd(t, t, one));
      StorePart16(hn::Add(LoadPart16(to.query + c, lanes), g), to.query + c, lanes);
      StorePart16(hn::Add(LoadPart16(dk + c, lanes), g), dk + c, lanes);
      StorePart16(hn::MulAdd(ds, t, LoadPart16(to.theta + c, lanes)), to.theta + c, lanes);
    });
  }
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {

HWY_EXPORT(AdditiveQuery);
HWY_EXPORT(AdditiveWeights);
HWY_EXPORT(AdditiveBack);

void additive_query(const AdditiveItem<float>& item, std::size_t i, RowsOf<const float> values, float* scores,
                    float* peak, float* tau, float* context) {
  HWY_DYNAMIC_DISPATCH(AdditiveQuery)(item, i, values, scores, peak, tau, context);
}

void additive_weights(const AdditiveItem<float>& item, std::size_t i, float peak, float tau, float* weights) {
  HWY_DYNAMIC_DISPATCH(AdditiveWeights)(item, i, peak, tau, weights);
}

void additive_query_backward(const AdditiveItem<float>& item, std::size_t i, RowsOf<const float> values, float peak,
                             float tau, const float* d_context, float* weights, float* d_scores,
                             const AdditiveGradients<float>& to) {
  HWY_DYNAMIC_DISPATCH(AdditiveBack)(item, i, values, peak, tau, d_context, weights, d_scores, to);
}

}  // namespace regard
#endif
