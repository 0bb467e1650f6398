#include "regard/train/clip.h"

#include <cmath>

#include "base/float_mode.h"
#include "kernels/elementwise.h"

namespace regard {
namespace {

// Calls work(elements, count) with the gradient's elements, float or double.
template <class Work>
void with_elements(const Tensor& gradient, Work work) {
  const auto count = static_cast<std::size_t>(gradient.size());
  if (gradient.dtype() == DType::kF64) {
    work(gradient.data<double>(), count);
  } else {
    work(gradient.data<float>(), count);
  }
}

}  // namespace

GradientNorm global_norm(const Parameters& parameters, Gradients& gradients) {
  const FloatMode mode;
  gradients.settle();
  GradientNorm result;
  double sum = 0;
  for (const Parameter& parameter : parameters) {
    if (parameter.frozen) continue;
    double square = 0;
    with_elements(gradients.of(parameter), [&]<class T>(const T* elements, std::size_t count) {
      const auto rows = gradients.rows(parameter);
      square = rows ? squared_norm(elements, count, *rows, static_cast<std::size_t>(parameter.value[0]))
                    : squared_norm(elements, count);
    });
    if (result.not_finite == nullptr && !std::isfinite(square)) result.not_finite = &parameter;
    sum += square;
  }
  result.norm = std::sqrt(sum);
  return result;
}

double clip_scale(double norm, double limit) { return limit > 0 && norm > limit ? limit / norm : 1; }

double clip_global_norm(const Parameters& parameters, Gradients& gradients, double limit) {
  const double norm = global_norm(parameters, gradients).norm;
  const double factor = clip_scale(norm, limit);
  if (factor == 1) return norm;
  const FloatMode mode;
  for (const Parameter& parameter : parameters) {
    if (parameter.frozen) continue;
    with_elements(gradients.of(parameter), [&]<class T>(T* elements, std::size_t count) {
      scale(elements, static_cast<T>(factor), elements, count);
    });
  }
  return norm;
}

}  // namespace regard
