#include "nn/builder.h"

#include <cmath>

namespace regard {
namespace {

RandomKey key_for(RandomKey key, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return key.at(hash);
}

}  // namespace

Tensor uniform(const Shape& shape, double limit, RandomKey key) {
  Tensor result = Tensor::empty(shape);
  float* values = result.data<float>();
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const double place = uniform(key, static_cast<std::uint64_t>(i));
    values[i] = static_cast<float>(limit * (2 * place - 1));
  }
  return result;
}

Tensor xavier(const Shape& shape, RandomKey key, std::int64_t parts) {
  check(shape.rank() >= 1, "xavier: a single number has no rows and columns");
  const std::int64_t rows = shape.rank() == 1 ? 1 : shape[-2], columns = shape[-1] / parts;
  return uniform(shape, std::sqrt(6.0 / static_cast<double>(rows + columns)), key);
}

Builder Builder::under(std::string_view name) const {
  Builder inner = *this;
  inner.prefix_ = full(name) + ".";
  return inner;
}

Builder Builder::in_group(std::string_view group) const {
  Builder inner = *this;
  inner.group_ = group;
  return inner;
}

std::string Builder::full(std::string_view name) const { return prefix_ + std::string(name); }

Parameter& Builder::add(std::string name, const Tensor& value) const {
  return parameters_->add(std::move(name), value.to(type_), group_);
}

Parameter& Builder::xavier(std::string_view name, const Shape& shape, std::int64_t parts) const {
  return add(full(name), regard::xavier(shape, key_for(key_, full(name)), parts));
}

Parameter& Builder::uniform(std::string_view name, const Shape& shape, double limit) const {
  return add(full(name), regard::uniform(shape, limit, key_for(key_, full(name))));
}

Parameter& Builder::zeros(std::string_view name, const Shape& shape) const {
  return add(full(name), Tensor::zeros(shape));
}

}  // namespace regard
