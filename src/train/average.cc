#include "regard/train/average.h"

#include <utility>

#include "base/check.h"
#include "base/float_mode.h"
#include "kernels/optimizer.h"

namespace regard {

Average::Average(Parameters& parameters, double decay)
    : parameters_(parameters), decay_(decay), averages_(parameters.size()) {
  check(decay >= 0 && decay < 1, "average: decay is ", decay, ", expected 0 … 1");
}

void Average::update() {
  check(!in_use_, "average: update while the averages are in use");
  check(parameters_.size() == averages_.size(), "average: made for ", averages_.size(), " parameters, there are ",
        parameters_.size(), " now; make it after the model");
  const FloatMode mode;
  for (const Parameter& parameter : parameters_) {
    if (parameter.frozen) continue;
    Tensor& average = averages_[parameter.index];
    const auto count = static_cast<std::size_t>(parameter.value.size());
    if (!average.defined()) {
      average = parameter.value.clone();
    } else if (parameter.value.dtype() == DType::kF64) {
      follow(parameter.value.data<double>(), average.data<double>(), count, 1 - decay_);
    } else {
      follow(parameter.value.data<float>(), average.data<float>(), count, static_cast<float>(1 - decay_));
    }
  }
  ++updates_;
}

const Tensor& Average::of(const Parameter& parameter) const {
  check(parameter.index < averages_.size(), "average: parameter '", parameter.name, "' was added later");
  return averages_[parameter.index];
}

void Average::check_state(const std::map<std::string, Tensor>& averages, std::int64_t updates) const {
  check(!in_use_, "average: resume while the averages are in use");
  check(updates >= 0 && (updates > 0 || averages.empty()), "average: ", averages.size(), " averages after ", updates,
        " updates");
  std::size_t used = 0;
  for (const Parameter& parameter : parameters_) {
    const auto found = averages.find(parameter.name);
    if (found == averages.end()) continue;
    check(parameter.index < averages_.size() && found->second.shape() == parameter.value.shape() &&
              found->second.dtype() == parameter.value.dtype(),
          "average: '", parameter.name, "' is ", parameter.value, ", its average ", found->second);
    ++used;
  }
  check(used == averages.size(), "average: ", averages.size(), " averages, of which ", used, " are the model's");
}

void Average::resume(const std::map<std::string, Tensor>& averages, std::int64_t updates) {
  check_state(averages, updates);
  for (const Parameter& parameter : parameters_) {
    const auto found = averages.find(parameter.name);
    averages_[parameter.index] = found == averages.end() ? Tensor() : found->second.clone();
  }
  updates_ = updates;
}

void Average::swap() {
  for (Parameter& parameter : parameters_) {
    if (parameter.index >= averages_.size() || !averages_[parameter.index].defined()) continue;
    std::swap(parameter.value, averages_[parameter.index]);
    ++parameter.version;  // packed copies are out of date
  }
  in_use_ = !in_use_;
}

AverageInUse::AverageInUse(Average& average) : average_(average) {
  check(average.updates_ > 0, "average: nothing to use before the first update");
  check(!average.in_use_, "average: already in use");
  average_.swap();
}

AverageInUse::~AverageInUse() { average_.swap(); }

}  // namespace regard
