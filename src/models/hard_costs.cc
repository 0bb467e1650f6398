#include "models/hard_costs.h"

#include "attention/mechanism.h"
#include "autograd/by_type.h"

namespace regard {

HardCosts::HardCosts(const Tensor& log_probabilities, const Batch& batch)
    : size_(batch.size()),
      words_(static_cast<std::size_t>(batch.targets.size())),
      examples_(static_cast<std::size_t>(batch.size())) {
  double sum = 0, count = 0;
  by_type(log_probabilities.dtype(), [&]<class T>() {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const auto weight = static_cast<double>(batch.target_weights.data<float>()[i]);
      words_[i] = -weight * static_cast<double>(log_probabilities.data<T>()[i]);
      examples_[i % examples_.size()] += words_[i];
      sum += words_[i];
      count += weight;
    }
  });
  for (std::size_t i = 0; i < words_.size(); ++i) {
    if (batch.target_weights.data<float>()[i] != 0) words_[i] -= sum / count;
  }
  for (double& each : examples_) each -= sum / static_cast<double>(examples_.size());
}

template <class Cost>
void HardCosts::fill(const AttendTrace& trace, Cost cost) {
  const Tensor advantage = trace.advantage();
  if (!advantage.defined()) return;
  by_type(advantage.dtype(), [&]<class T>() {
    for (std::int64_t i = 0; i < advantage.size(); ++i) {
      advantage.data<T>()[i] = static_cast<T>(cost(i / advantage[1], i % advantage[1]));
    }
  });
}

void HardCosts::fill_steps(const AttendTrace& trace) const {
  fill(trace,
       [&](std::int64_t item, std::int64_t query) { return words_[static_cast<std::size_t>(query * size_ + item)]; });
}

void HardCosts::fill_examples(const AttendTrace& trace) const {
  fill(trace, [&](std::int64_t item, std::int64_t) { return examples_[static_cast<std::size_t>(item)]; });
}

void HardCosts::fill_places(const AttendTrace& trace, std::span<const std::int32_t> places) const {
  fill(trace, [&](std::int64_t item, std::int64_t) {
    return words_[static_cast<std::size_t>(places[static_cast<std::size_t>(item)])];
  });
}

bool learns_by_reinforce(const Mechanism& mechanism) {
  const Choosing* const choosing = mechanism.stages().align->choosing();
  return choosing != nullptr && choosing->estimator == Choosing::Estimator::kReinforce;
}

}  // namespace regard
