#include "kernels/cross_entropy.h"

#include "kernels/chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cross_entropy.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"
#include "kernels/reduce-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void CrossEntropyRow(const float* x, std::size_t width, std::int32_t target, float* peak, float* tau,
                     float* log_probability) {
  const Tag16 d;
  *peak = Max16(x, width);
  const Vector16 top = hn::Set(d, *peak);
  const float mass = SumOf16(
      width, [&](auto tag, auto v) HWY_ATTR { return Exp(tag, hn::Sub(v, top)); }, x);
  *tau = hn::GetLane(Log(d, hn::Set(d, mass)));
  *log_probability = (x[target] - *peak) - *tau;
}

void CrossEntropyBackRow(float* x, std::size_t width, std::int32_t target, float peak, float tau, float scale) {
  const Tag16 d;
  const Vector16 top = hn::Set(d, peak), rest = hn::Set(d, tau), factor = hn::Set(d, scale);
  const float own = x[target];
  const auto weight = [&](Vector16 v) HWY_ATTR { return Exp(d, hn::Sub(hn::Sub(v, top), rest)); };
  ForEachPart16(width, [&](std::size_t j, std::size_t, std::size_t count)
                           HWY_ATTR { StorePart16(hn::Mul(factor, weight(LoadPart16(x + j, count))), x + j, count); });
  x[target] = scale * (hn::GetLane(weight(hn::Set(d, own))) - 1.0f);
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {

HWY_EXPORT(CrossEntropyRow);
HWY_EXPORT(CrossEntropyBackRow);

void cross_entropy(RowsOf<const float> logits, const std::int32_t* targets, float* peaks, float* taus,
                   float* log_probabilities) {
  in_row_chunks(logits.count, logits.width, [&](std::size_t begin, std::size_t count) {
    for (std::size_t i = begin; i < begin + count; ++i) {
      HWY_DYNAMIC_DISPATCH(CrossEntropyRow)
      (logits.row(i), logits.width, targets[i], peaks + i, taus + i, log_probabilities + i);
    }
  });
}

void cross_entropy_backward(RowsOf<float> logits, const std::int32_t* targets, const float* peaks, const float* taus,
                            const float* scales) {
  in_row_chunks(logits.count, logits.width, [&](std::size_t begin, std::size_t count) {
    for (std::size_t i = begin; i < begin + count; ++i) {
      if (scales[i] == 0) {  // whatever the logits are: a row that does not count may hold NaN
        std::fill_n(logits.row(i), logits.width, 0.0f);
      } else {
        HWY_DYNAMIC_DISPATCH(CrossEntropyBackRow)
        (logits.row(i), logits.width, targets[i], peaks[i], taus[i], scales[i]);
      }
    }
  });
}

}  // namespace regard
#endif
