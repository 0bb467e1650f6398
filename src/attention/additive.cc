#include "attention/additive.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/additive.cc"
#include <hwy/foreach_target.h>

#include "attention/additive-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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
  AdditiveRowScores(item.queries.row(i), item.keys, item.theta, scores);
  *peak = Max16(scores, keys);
  const Vector16 top = hn::Set(d, *peak);
  const float mass = SumOf16(
      keys, [&](auto tag, auto v) HWY_ATTR { return Exp(tag, hn::Sub(v, top)); }, scores);
  *tau = hn::GetLane(Log(d, hn::Set(d, mass)));
  AdditiveWeigh(scores, keys, *peak, *tau);
  const auto read = [&](std::size_t c, auto vectors, std::size_t lanes) HWY_ATTR {  // a strip of columns
    constexpr std::size_t kVectors = decltype(vectors)::value;
    Vector16 sum[kVectors];
    for (Vector16& each : sum) each = hn::Zero(d);
    for (std::size_t j = 0; j < keys; ++j) {
      const Vector16 weight = hn::Set(d, scores[j]);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < kVectors; ++v)
        sum[v] = hn::MulAdd(weight, LoadPart16(values.row(j) + c + v * kPartLanes, lanes), sum[v]);
    }
#pragma GCC unroll 8
    for (std::size_t v = 0; v < kVectors; ++v) StorePart16(sum[v], context + c + v * kPartLanes, lanes);
  };
  std::size_t c = 0;
  for (; c + 8 * kPartLanes <= values.width; c += 8 * kPartLanes)
    read(c, std::integral_constant<std::size_t, 8>(), kPartLanes);
  for (; c < values.width; c += kPartLanes)
    read(c, std::integral_constant<std::size_t, 1>(), HWY_MIN(kPartLanes, values.width - c));
}

void AdditiveWeights(const AdditiveItem<float>& item, std::size_t i, float peak, float tau, float* weights) {
  AdditiveRowScores(item.queries.row(i), item.keys, item.theta, weights);
  AdditiveWeigh(weights, item.keys.count, peak, tau);
}

void AdditiveBack(const AdditiveItem<float>& item, std::size_t i, RowsOf<const float> values, float peak, float tau,
                  const float* d_context, float* weights, float* d_scores, float* kept,
                  const AdditiveGradients<float>& to) {
  const std::size_t keys = item.keys.count;
  AdditiveRowScores(item.queries.row(i), item.keys, item.theta, weights, kept);
  AdditiveWeigh(weights, keys, peak, tau);
  for (std::size_t j = 0; j < keys; ++j) {
    d_scores[j] = Dot16(d_context, values.row(j), values.width);
    AddScaledRow(weights[j], d_context, to.values.row(j), values.width);
  }
  const float total = Dot16(weights, d_scores, keys);
  for (std::size_t j = 0; j < keys; ++j) d_scores[j] = weights[j] * (d_scores[j] - total);
  AdditiveRowGradients<false>(item.queries.row(i), item.keys, item.theta, d_scores, to.query, to.keys, to.theta, kept);
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
                             float tau, const float* d_context, float* weights, float* d_scores, float* kept,
                             const AdditiveGradients<float>& to) {
  HWY_DYNAMIC_DISPATCH(AdditiveBack)(item, i, values, peak, tau, d_context, weights, d_scores, kept, to);
}

}  // namespace regard
#endif
