#include "view/sound.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace regard {

Seconds time_of(const TraceAxis& axis) {
  const double step = axis.step > 0 && std::isfinite(axis.step) ? axis.step : 1;
  return {std::isfinite(axis.first) ? axis.first : 0, step * static_cast<double>(axis.frames)};
}

std::vector<Extent> wave_of(const TraceAxis& axis, std::size_t points) {
  if (axis.frames <= 0 || !axis.sound.defined() || axis.sound.size() == 0) return {};
  const Seconds time = time_of(axis);
  const float* samples = axis.sound.data<float>();
  const auto count = static_cast<double>(axis.sound.size());
  const double rate = axis.rate > 0 && std::isfinite(axis.rate) ? axis.rate : count / time.length;
  const auto sample = [&](std::size_t point) {
    const double at = (time.first + time.length * static_cast<double>(point) / static_cast<double>(points)) * rate;
    return at > 0 ? static_cast<std::int64_t>(std::min(at, count)) : 0;  // a stranger's times may be no numbers
  };
  std::vector<Extent> wave(points);
  for (std::size_t i = 0; i < points; ++i) {
    const std::int64_t end = std::max(sample(i + 1), std::min(sample(i) + 1, axis.sound.size()));
    for (std::int64_t k = sample(i); k < end; ++k) {
      const double value = static_cast<double>(samples[k]);
      if (!std::isfinite(value)) continue;
      wave[i].low = std::max(-1.0, std::min(wave[i].low, value));
      wave[i].high = std::min(1.0, std::max(wave[i].high, value));
    }
  }
  return wave;
}

Tensor spectrum_of(const TraceAxis& axis) {
  if (!axis.spectrum.defined() || axis.spectrum.size() == 0) return {};
  const std::int64_t times = axis.spectrum[0], bands = axis.spectrum[1];
  const float* values = axis.spectrum.data<float>();
  float least = std::numeric_limits<float>::infinity(), most = -least;
  for (std::int64_t i = 0; i < axis.spectrum.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    least = std::min(least, values[i]);
    most = std::max(most, values[i]);
  }
  Tensor out = Tensor::empty({bands, times});
  for (std::int64_t time = 0; time < times; ++time) {
    for (std::int64_t band = 0; band < bands; ++band) {
      const float value = values[time * bands + band];
      out.data<float>()[(bands - 1 - band) * times + time] = most > least ? (value - least) / (most - least) : 0;
    }
  }
  return out;
}

}  // namespace regard
