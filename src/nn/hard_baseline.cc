#include "regard/nn/hard_baseline.h"

#include "autograd/by_type.h"
#include "base/check.h"

namespace regard {

HardBaseline::HardBaseline(const HardBaselineSettings& settings) : settings_(settings) {
  check(settings.keep >= 0 && settings.keep <= 1, "hard baseline: keeps ", settings.keep, ", expected 0 to 1");
}

void HardBaseline::fill(std::span<const Attention> attentions, const Tensor& losses) {
  double sum = 0;
  const Tensor wide = losses.to(DType::kF64);
  const double* const values = wide.data<double>();
  for (std::int64_t i = 0; i < wide.size(); ++i) sum += values[i];
  for (const Attention& each : attentions) {
    const Tensor advantage = each.trace.advantage();
    check(advantage.defined(), "hard baseline: an attention that drew nothing, or does not learn by reinforce");
    const Shape shape = advantage.shape();
    check(losses.shape() == shape || losses.shape() == Shape{shape[0]}, "hard baseline: losses are ", losses,
          ", expected ", Shape{shape[0]}, " or ", shape);
    const std::int64_t queries = shape[1], step = losses.rank() == 1 ? queries : 1;
    by_type(advantage.dtype(), [&]<class T>() {
      for (std::int64_t i = 0; i < advantage.size(); ++i) {
        advantage.data<T>()[i] = static_cast<T>(settings_.weight * (values[i / step] - usual()));
      }
    });
  }
  if (wide.size() == 0) return;
  const double mean = sum / static_cast<double>(wide.size());
  usual_ = usual_ ? settings_.keep * *usual_ + (1 - settings_.keep) * mean : mean;
}

}  // namespace regard
