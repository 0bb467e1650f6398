#include "regard/train/optimizer.h"

#include <cmath>
#include <set>

#include "base/check.h"
#include "base/float_mode.h"
#include "kernels/optimizer.h"

namespace regard {
namespace {

// By squaring, in plain IEEE steps: the same bits everywhere, which a library's pow does not promise.
double power(double base, std::int64_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) result *= base;
  }
  return result;
}

Tensor zeros_like(const Tensor& value) { return Tensor::zeros(value.shape(), value.dtype()); }

// Calls work(T{}) with the type of the numbers, float or double.
template <class Work>
void with_type(const Parameter& parameter, Work work) {
  switch (parameter.value.dtype()) {
    case DType::kF32:
      return work(float{});
    case DType::kF64:
      return work(double{});
    case DType::kBF16:
    case DType::kI8:
    case DType::kI32:
      break;
  }
  fail(ErrorKind::kInput, "parameter '", parameter.name, "' holds ", parameter.value.dtype(),
       " and cannot be trained; expected f32");
}

}  // namespace

Optimizer::Optimizer(Parameters& parameters, const Groups& groups) : parameters_(parameters) {
  std::set<std::string> unused;
  for (const auto& [name, group] : groups) unused.insert(name);
  for (const Parameter& parameter : parameters) {
    const auto found = groups.find(parameter.group);
    group_of_.push_back(found == groups.end() ? Group{} : found->second);
    unused.erase(parameter.group);
  }
  unused.erase("");
  check(unused.empty(), "optimiser: no parameter belongs to group '", unused.empty() ? "" : *unused.begin(), "'");
}

void Optimizer::check_parameters() const {
  check(parameters_.size() == group_of_.size(), "optimiser: made for ", group_of_.size(), " parameters, there are ",
        parameters_.size(), " now; make it after the model");
}

void Optimizer::step(Gradients& gradients, double rate, double gradient_scale) {
  check_parameters();
  const FloatMode mode;
  gradients.settle();
  ++steps_;
  for (Parameter& parameter : parameters_) {
    if (parameter.frozen) continue;
    const Group& group = group_of_[parameter.index];
    change(parameter, gradients.of(parameter), {rate * group.rate_factor, group.decay, gradient_scale});
    ++parameter.version;
  }
}

OptimizerState Optimizer::state() {
  check_parameters();
  OptimizerState out{.kind = kind(), .steps = steps_};
  for (const Parameter& parameter : parameters_) {
    for (const Kept& each : kept(parameter)) {
      const std::string name = parameter.name + '/' + each.name;
      if (each.tensor != nullptr && each.tensor->defined()) out.tensors.emplace(name, *each.tensor);
      if (each.count != nullptr) out.counts.emplace(name, *each.count);
    }
  }
  return out;
}

void Optimizer::check_state(const OptimizerState& state) {
  check_parameters();
  check(state.kind == kind(), "optimiser: a state of ", state.kind, " for ", kind());
  check(state.steps >= 0, "optimiser: a state after ", state.steps, " steps");
  std::size_t tensors = 0, counts = 0;
  for (const Parameter& parameter : parameters_) {
    for (const Kept& each : kept(parameter)) {
      const std::string name = parameter.name + '/' + each.name;
      if (each.count != nullptr) {
        const auto found = state.counts.find(name);
        check(found != state.counts.end() && found->second >= 0, "optimiser: the state has no count '", name, "'");
        ++counts;
      } else if (const auto found = state.tensors.find(name); found != state.tensors.end()) {
        check(found->second.shape() == parameter.value.shape() && found->second.dtype() == parameter.value.dtype(),
              "optimiser: '", name, "' is ", found->second, ", the parameter ", parameter.value);
        ++tensors;
      }
    }
  }
  check(tensors == state.tensors.size() && counts == state.counts.size(), "optimiser: the state is of a model with ",
        state.tensors.size(), " tensors and ", state.counts.size(), " counts, here there are ", tensors, " and ",
        counts);
}

void Optimizer::resume(const OptimizerState& state) {
  check_state(state);
  for (const Parameter& parameter : parameters_) {
    for (const Kept& each : kept(parameter)) {
      const std::string name = parameter.name + '/' + each.name;
      if (each.count != nullptr) {
        *each.count = state.counts.at(name);
      } else {
        const auto found = state.tensors.find(name);  // none if it was never changed
        *each.tensor = found == state.tensors.end() ? Tensor() : found->second.clone();
      }
    }
  }
  steps_ = state.steps;
}

Sgd::Sgd(Parameters& parameters, const SgdSettings& settings)
    : Optimizer(parameters, settings.groups), settings_(settings), moments_(parameters.size()) {
  check(settings.momentum >= 0 && settings.momentum < 1, "sgd: momentum is ", settings.momentum, ", expected 0 … 1");
}

std::vector<Optimizer::Kept> Sgd::kept(const Parameter& parameter) {
  return {{.name = "moment", .tensor = &moments_[parameter.index]}};
}

void Sgd::change(const Parameter& parameter, const Tensor& gradient, const Change& change) {
  Tensor& moment = moments_[parameter.index];
  if (settings_.momentum > 0 && !moment.defined()) moment = zeros_like(parameter.value);
  with_type(parameter, [&]<class T>(T) {
    const SgdNumbers<T> numbers = {
        .gradient_scale = static_cast<T>(change.gradient_scale),
        .momentum = static_cast<T>(settings_.momentum),
        .rate = static_cast<T>(change.rate),
        .keep = static_cast<T>(1 - change.rate * change.decay),
    };
    sgd(gradient.data<T>(), parameter.value.data<T>(), moment.defined() ? moment.data<T>() : nullptr,
        static_cast<std::size_t>(gradient.size()), numbers);
  });
}

Adadelta::Adadelta(Parameters& parameters, const AdadeltaSettings& settings)
    : Optimizer(parameters, settings.groups), settings_(settings), squares_(parameters.size()) {
  check(settings.decay >= 0 && settings.decay < 1, "adadelta: decay is ", settings.decay, ", expected 0 … 1");
  check(settings.epsilon > 0, "adadelta: epsilon is ", settings.epsilon, ", expected more than 0");
}

std::vector<Optimizer::Kept> Adadelta::kept(const Parameter& parameter) {
  Squares& squares = squares_[parameter.index];
  return {{.name = "gradients", .tensor = &squares.gradients}, {.name = "changes", .tensor = &squares.changes}};
}

void Adadelta::change(const Parameter& parameter, const Tensor& gradient, const Change& change) {
  Squares& squares = squares_[parameter.index];
  if (!squares.gradients.defined()) {
    squares.gradients = zeros_like(parameter.value);
    squares.changes = zeros_like(parameter.value);
  }
  with_type(parameter, [&]<class T>(T) {
    const AdadeltaNumbers<T> numbers = {
        .gradient_scale = static_cast<T>(change.gradient_scale),
        .decay = static_cast<T>(settings_.decay),
        .rest = static_cast<T>(1 - settings_.decay),
        .epsilon = static_cast<T>(settings_.epsilon),
        .rate = static_cast<T>(change.rate),
        .keep = static_cast<T>(1 - change.rate * change.decay),
    };
    adadelta(gradient.data<T>(), parameter.value.data<T>(), squares.gradients.data<T>(), squares.changes.data<T>(),
             static_cast<std::size_t>(gradient.size()), numbers);
  });
}

Adam::Adam(Parameters& parameters, const AdamSettings& settings)
    : Optimizer(parameters, settings.groups), settings_(settings), moments_(parameters.size()) {
  check(settings.beta1 >= 0 && settings.beta1 < 1, "adam: beta1 is ", settings.beta1, ", expected 0 … 1");
  check(settings.beta2 >= 0 && settings.beta2 < 1, "adam: beta2 is ", settings.beta2, ", expected 0 … 1");
  check(settings.epsilon > 0, "adam: epsilon is ", settings.epsilon, ", expected more than 0");
}

std::vector<Optimizer::Kept> Adam::kept(const Parameter& parameter) {
  Moments& moments = moments_[parameter.index];
  return {{.name = "first", .tensor = &moments.first},
          {.name = "second", .tensor = &moments.second},
          {.name = "steps", .count = &moments.steps}};
}

void Adam::change(const Parameter& parameter, const Tensor& gradient, const Change& change) {
  Moments& moments = moments_[parameter.index];
  if (!moments.first.defined()) {
    moments.first = zeros_like(parameter.value);
    moments.second = zeros_like(parameter.value);
  }
  ++moments.steps;
  const double first_correction = 1 - power(settings_.beta1, moments.steps);
  const double second_correction = 1 - power(settings_.beta2, moments.steps);
  with_type(parameter, [&]<class T>(T) {
    const AdamNumbers<T> numbers = {
        .gradient_scale = static_cast<T>(change.gradient_scale),
        .first_rest = static_cast<T>(1 - settings_.beta1),
        .second_keep = static_cast<T>(settings_.beta2),
        .second_rest = static_cast<T>(1 - settings_.beta2),
        .rate = static_cast<T>(change.rate / first_correction),
        .root_scale = static_cast<T>(1 / std::sqrt(second_correction)),
        .epsilon = static_cast<T>(settings_.epsilon),
        .keep = static_cast<T>(1 - change.rate * change.decay),
    };
    adam(gradient.data<T>(), parameter.value.data<T>(), moments.first.data<T>(), moments.second.data<T>(),
         static_cast<std::size_t>(gradient.size()), numbers);
  });
}

}  // namespace regard
