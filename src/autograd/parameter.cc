#include "regard/autograd/parameter.h"

#include <algorithm>
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

Gradients::Gradients(const Parameters& parameters, Place place) : place_(place) {
  for (const Parameter& parameter : parameters) {
    Slot& added = slots_.emplace_back();
    added.shape = parameter.value.shape();
    added.type = parameter.value.dtype();
    if (place == Place::kOwn) added.use_own();
  }
}

const Gradients::Slot& Gradients::slot(const Parameter& parameter) const {
  check(parameter.index < slots_.size() && slots_[parameter.index].shape == parameter.value.shape(), "parameter '",
        parameter.name, "' has no gradient here: it was added later, or belongs to another model");
  return slots_[parameter.index];
}

const Tensor& Gradients::of(const Parameter& parameter) const { return slot(parameter).gradient; }

void Gradients::zero() {
  for (Slot& slot : slots_) {
    slot.fresh = true;
    slot.lent = false;
    slot.kept = Tensor();
    if (place_ == Place::kOwn) continue;
    slot.forget();
    slot.gradient = slot.own;
  }
}

void Gradients::keep() {
  place_ = Place::kOwn;
  for (Slot& slot : slots_) {
    const Tensor before = slot.gradient;
    slot.use_own();
    slot.lent = false;
    slot.kept = Tensor();
    if (before.defined() && !slot.fresh && before.raw() != slot.own.raw()) slot.own.copy_from(before);
  }
}

void Gradients::settle() {
  for (Slot& slot : slots_) {
    if (!slot.gradient.defined()) slot.use_own();
    if (slot.fresh) slot.clear();
    slot.fresh = slot.lent = false;
    std::sort(slot.rows.begin(), slot.rows.end());
  }
}

std::optional<std::span<const std::int32_t>> Gradients::rows(const Parameter& parameter) const {
  const Slot& found = slot(parameter);
  if (!found.by_rows) return std::nullopt;
  return found.rows;
}

void Gradients::forget_rows() {
  for (Slot& slot : slots_) slot.forget();
}

void Gradients::Slot::use_own() {
  if (!own.defined()) own = Tensor::zeros(shape, type);
  gradient = own;
}

void Gradients::Slot::forget() {
  for (const std::int32_t row : rows) is_used[static_cast<std::size_t>(row)] = 0;
  rows.clear();
  by_rows = false;
}

void Gradients::Slot::clear() {
  if (gradient.bytes() == 0) return;
  if (!by_rows) {
    std::memset(gradient.raw(), 0, gradient.bytes());
    return;
  }
  const std::size_t bytes = gradient.bytes() / static_cast<std::size_t>(gradient[0]);
  for (const std::int32_t row : rows) {
    std::memset(gradient.raw() + static_cast<std::size_t>(row) * bytes, 0, bytes);
    is_used[static_cast<std::size_t>(row)] = 0;
  }
  rows.clear();
}

void Gradients::Slot::use(std::span<const std::int32_t> more) {
  if (fresh) {
    clear();
    fresh = false;
    by_rows = true;
    const auto count = static_cast<std::size_t>(gradient[0]);
    if (is_used.size() != count) is_used.assign(count, 0);
    rows.reserve(count);
  }
  if (!by_rows) return;
  for (const std::int32_t row : more) {
    std::uint8_t& used = is_used[static_cast<std::size_t>(row)];
    if (used == 0) rows.push_back(row);
    used = 1;
  }
}

}  // namespace regard
