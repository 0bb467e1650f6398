#include "kernels/cross_entropy.h"

#include <algorithm>

#include "kernels/chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cross_entropy.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void CrossEntropyRow(float* x, std::size_t width, const CrossEntropyRows<float>& rows, std::size_t i) {
  const Tag16 d;
  const auto target = static_cast<std::size_t>(rows.targets[i]);
  const float weight = rows.weights[i], smoothing = rows.smoothing, peak = Max16(x, width);
  const Vector16 top = hn::Set(d, peak);
  const float mass = SumOf16(
      width, [&](auto tag, auto v) HWY_ATTR { return Exp(tag, hn::Sub(v, top)); }, x);
  const float tau = hn::GetLane(Log(d, hn::Set(d, mass)));
  const float log_p = (x[target] - peak) - tau;
  rows.log_probabilities[i] = log_p;
  float blend = log_p;
  if (smoothing != 0) {
    const float sum = SumOf16(
        width, [&](auto, auto v) HWY_ATTR { return hn::Sub(v, top); }, x);
    blend = (1.0f - smoothing) * log_p + smoothing * (sum / static_cast<float>(width) - tau);
  }
  rows.losses[i] = weight == 0 ? 0.0f : -weight * blend;
  if (!rows.gradients) return;
  if (weight == 0) {
    std::fill_n(x, width, 0.0f);
    return;
  }
  const float each = smoothing / static_cast<float>(width);
  const Vector16 rest = hn::Set(d, tau), factor = hn::Set(d, weight), less = hn::Set(d, each);
  const auto p = [&](Vector16 v) HWY_ATTR { return Exp(d, hn::Sub(hn::Sub(v, top), rest)); };
  const float own = hn::GetLane(p(hn::Set(d, x[target])));
  ForEachPart16(width, [&](std::size_t j, std::size_t, std::size_t count) HWY_ATTR {
    StorePart16(hn::Mul(factor, hn::Sub(p(LoadPart16(x + j, count)), less)), x + j, count);
  });
  x[target] = weight * ((own - (1.0f - smoothing)) - each);
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {

HWY_EXPORT(CrossEntropyRow);

void cross_entropy(RowsOf<float> logits, const CrossEntropyRows<float>& rows) {
  in_row_chunks(logits.count, logits.width, [&](std::size_t begin, std::size_t count) {
    for (std::size_t i = begin; i < begin + count; ++i)
      HWY_DYNAMIC_DISPATCH(CrossEntropyRow)(logits.row(i), logits.width, rows, i);
  });
}

}  // namespace regard
#endif
