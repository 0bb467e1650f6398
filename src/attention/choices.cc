#include "attention/choices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/random_group.h"

namespace regard {
namespace {

constexpr std::uint64_t kStream = 0x68617264;  // other numbers than those of dropout, which has the same row
constexpr auto kGroup = static_cast<std::int64_t>(kRandomGroup);

RandomKey sample_key(const RowNoise& noise, std::size_t sample) { return noise.key.at(kStream).at(sample); }

double even(std::uint32_t bits) { return (bits + 0.5) * 0x1p-32; }  // in (0, 1)

// each(column, u) for all columns with p > 0, in their order.
template <class T, class Each>
void for_each_number(const ChoiceRow<T>& row, const RowNoise& noise, std::size_t sample, Each each) {
  const RandomKey key = sample_key(noise, sample);
  std::uint32_t bits[kGroup];
  for (std::int64_t begin = 0, end; begin < row.keys.count(); begin = end) {
    const std::int64_t group = (noise.first + begin) / kGroup, skipped = (noise.first + begin) % kGroup;
    end = std::min(row.keys.count(), begin + kGroup - skipped);
    if (std::none_of(row.p + begin, row.p + end, [](T weight) { return weight > 0; })) continue;
    random_group(key, static_cast<std::uint64_t>(group), bits);
    for (std::int64_t j = begin; j < end; ++j) {
      if (row.p[j] > 0) each(static_cast<std::size_t>(j), even(bits[skipped + j - begin]));
    }
  }
}

template <class T>
bool has_nan(const ChoiceRow<T>& row) {
  return std::any_of(row.p, row.p + row.keys.count(), [](T weight) { return std::isnan(weight); });
}

template <class T>
void count_choices(const ChoiceRow<T>& row, std::span<const std::int32_t> choices) {
  if (!choices.empty() && choices[0] >= 0) {  // then there is no NaN
    std::fill_n(row.p, row.keys.count(), T(0));
  } else {
    for (T* p = row.p; p < row.p + row.keys.count(); ++p) *p = std::isnan(*p) ? *p : T(0);
  }
  for (const std::int32_t key : choices) {
    if (key >= row.keys.begin && key < row.keys.end) row.p[key - row.keys.begin] += 1;
  }
}

template <class T>
void share(const ChoiceRow<T>& row, std::size_t samples) {
  for (T* p = row.p; p < row.p + row.keys.count() && samples != 1; ++p) *p /= static_cast<T>(samples);
}

}  // namespace

template <class T>
void draw_keys(const ChoiceRow<T>& row, const RowNoise& noise, std::span<std::int32_t> choices) {
  std::fill(choices.begin(), choices.end(), -1);
  if (has_nan(row)) return;
  for (std::size_t sample = 0; sample < choices.size(); ++sample) {
    double least = std::numeric_limits<double>::infinity();
    for_each_number(row, noise, sample, [&](std::size_t j, double u) {
      const double p = static_cast<double>(row.p[j]);
      if (u >= least * p) return;
      const double wait = -std::log1p(-u);
      if (wait >= least * p) return;
      least = wait / p;
      choices[sample] = static_cast<std::int32_t>(row.keys.begin + static_cast<std::int64_t>(j));
    });
  }
}

template <class T>
void likeliest_key(const ChoiceRow<T>& row, std::span<std::int32_t> choices) {
  const T* const best = std::max_element(row.p, row.p + row.keys.count());
  const bool none = row.keys.count() == 0 || has_nan(row) || *best == 0;
  std::fill(choices.begin(), choices.end(), none ? -1 : static_cast<std::int32_t>(row.keys.begin + (best - row.p)));
}

template <class T>
void read_choices(const ChoiceRow<T>& row, std::span<const std::int32_t> choices) {
  count_choices(row, choices);
  share(row, choices.size());
}

template <class T>
void reinforce_pullback(const ChoiceRow<T>& row, std::span<const std::int32_t> choices, double advantage,
                        double entropy, T* ds) {
  const std::int64_t count = row.keys.count();
  std::copy_n(row.p, count, ds);  // what they were drawn from, until the gradient takes its place
  double spread = 0;
  for (std::int64_t j = 0; j < count && entropy != 0; ++j) {
    const double p = static_cast<double>(ds[j]);
    if (p != 0) spread -= p * std::log(p);
  }
  count_choices(row, choices);
  const double samples = static_cast<double>(choices.size());
  for (std::int64_t j = 0; j < count; ++j) {
    const double p = static_cast<double>(ds[j]);
    if (p == 0) continue;
    double gradient = advantage * (static_cast<double>(row.p[j]) - samples * p);
    if (entropy != 0) gradient -= entropy * p * (std::log(p) + spread);
    ds[j] = static_cast<T>(gradient);
  }
  share(row, choices.size());
}

template <class T>
void gumbel_pullback(const ChoiceRow<T>& row, const RowNoise& noise, std::span<const std::int32_t> choices,
                     double temperature, T* dp) {
  const std::size_t count = static_cast<std::size_t>(row.keys.count());
  if (has_nan(row)) {  // as softmax has it: NaN for all that is visible
    for (std::size_t j = 0; j < count; ++j) dp[j] = row.p[j] == 0 ? T(0) : row.p[j];
    return read_choices(row, choices);
  }
  thread_local std::vector<double> soft, sum;
  soft.assign(count, 0);
  sum.assign(count, 0);
  for (std::size_t sample = 0; sample < choices.size(); ++sample) {
    double peak = -std::numeric_limits<double>::infinity(), mass = 0, delta = 0;
    for_each_number(row, noise, sample, [&](std::size_t j, double u) {
      soft[j] = (std::log(static_cast<double>(row.p[j])) - std::log(-std::log1p(-u))) / temperature;
      peak = std::max(peak, soft[j]);
    });
    for (std::size_t j = 0; j < count; ++j) {
      if (row.p[j] == 0) continue;
      soft[j] = std::exp(soft[j] - peak);
      mass += soft[j];
      delta += soft[j] * static_cast<double>(dp[j]);
    }
    for (std::size_t j = 0; j < count; ++j) {
      if (row.p[j] != 0) sum[j] += soft[j] / mass * (static_cast<double>(dp[j]) - delta / mass);
    }
  }
  const double share = 1 / (temperature * static_cast<double>(choices.size()));
  for (std::size_t j = 0; j < count; ++j) dp[j] = row.p[j] == 0 ? T(0) : static_cast<T>(sum[j] * share);
  read_choices(row, choices);
}

template void draw_keys(const ChoiceRow<float>&, const RowNoise&, std::span<std::int32_t>);
template void likeliest_key(const ChoiceRow<float>&, std::span<std::int32_t>);
template void read_choices(const ChoiceRow<float>&, std::span<const std::int32_t>);
template void reinforce_pullback(const ChoiceRow<float>&, std::span<const std::int32_t>, double, double, float*);
template void gumbel_pullback(const ChoiceRow<float>&, const RowNoise&, std::span<const std::int32_t>, double, float*);
template void draw_keys(const ChoiceRow<double>&, const RowNoise&, std::span<std::int32_t>);
template void likeliest_key(const ChoiceRow<double>&, std::span<std::int32_t>);
template void read_choices(const ChoiceRow<double>&, std::span<const std::int32_t>);
template void reinforce_pullback(const ChoiceRow<double>&, std::span<const std::int32_t>, double, double, double*);
template void gumbel_pullback(const ChoiceRow<double>&, const RowNoise&, std::span<const std::int32_t>, double,
                              double*);

}  // namespace regard
