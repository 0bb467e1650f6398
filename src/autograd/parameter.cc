#include "regard/autograd/parameter.h"

#include <cstring>

#include "base/check.h"

namespace regard {

Parameter& Parameters::add(std::string name, Tensor value, std::string group) {
  for (const Parameter& other : all_) check(other.name != name, "two parameters are called '", name, "'");
  check(value.is_dense(), "parameter '", name, "' is not dense");
  Parameter& added = all_.emplace_back();
  added.name = std::move(name);
  added.value = std::move(value);
  added.group = std::move(group);
  added.index = all_.size() - 1;
  return added;
}

Parameter& Parameters::find(std::string_view name) {
  for (Parameter& parameter : all_) {
    if (parameter.name == name) return parameter;
  }
  fail(ErrorKind::kInput, "there is no parameter '", name, "' among ", all_.size());
}

void Parameters::freeze(std::string_view prefix, bool frozen) {
  bool any = false;
  for (Parameter& parameter : all_) {
    if (!parameter.name.starts_with(prefix)) continue;
    parameter.frozen = frozen;
    any = true;
  }
  check(any, "freeze: no parameter begins with '", prefix, "'");
}

std::int64_t Parameters::count() const {
  std::int64_t total = 0;
  for (const Parameter& parameter : all_) total += parameter.value.size();
  return total;
}

Gradients::Gradients(const Parameters& parameters) : slots_(parameters.size()) {
  for (const Parameter& parameter : parameters) {
    slots_[parameter.index].gradient = Tensor::zeros(parameter.value.shape(), parameter.value.dtype());
  }
}

const Tensor& Gradients::of(const Parameter& parameter) const {
  check(parameter.index < slots_.size() && slots_[parameter.index].gradient.shape() == parameter.value.shape(),
        "parameter '", parameter.name, "' has no gradient here: it was added later, or belongs to another model");
  return slots_[parameter.index].gradient;
}

void Gradients::zero() {
  for (Slot& slot : slots_) slot.fresh = true;
}

void Gradients::settle() {
  for (Slot& slot : slots_) {
    if (!slot.fresh) continue;
    if (slot.gradient.bytes() > 0) std::memset(slot.gradient.raw(), 0, slot.gradient.bytes());
    slot.fresh = false;
  }
}

}  // namespace regard
