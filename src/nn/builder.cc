#include "regard/nn/builder.h"

#include <algorithm>
#include <utility>

namespace regard {

Builder Builder::blank(Parameters& parameters, DType type, Fits fits) {
  Builder made(parameters, RandomKey(0), type);
  made.draws_ = false;
  made.fits_ = std::move(fits);
  return made;
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

template <class Draw>
Parameter& Builder::add(std::string_view name, const Shape& shape, const Draw& draw) const {
  if (fits_) fits_(full(name), shape);
  const Tensor value = draws_ ? draw().to(type_) : Tensor::empty(shape, type_);
  return parameters_->add(full(name), value, group_);
}

RandomKey Builder::key(std::string_view name) const {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char letter : full(name)) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return key_.at(hash);
}

Parameter& Builder::xavier(std::string_view name, const Shape& shape, std::int64_t parts, double gain) const {
  return add(name, shape, [&] { return regard::xavier(shape, key(name), parts, gain); });
}

Parameter& Builder::kaiming(std::string_view name, const Shape& shape) const {
  return add(name, shape, [&] { return regard::kaiming(shape, key(name)); });
}

Parameter& Builder::orthogonal(std::string_view name, const Shape& shape, double gain, std::int64_t parts) const {
  return add(name, shape, [&] { return regard::orthogonal(shape, key(name), gain, parts); });
}

Parameter& Builder::uniform(std::string_view name, const Shape& shape, double limit) const {
  return add(name, shape, [&] { return regard::uniform(shape, limit, key(name)); });
}

Parameter& Builder::normal(std::string_view name, const Shape& shape, double deviation) const {
  return add(name, shape, [&] { return regard::normal(shape, deviation, key(name)); });
}

Parameter& Builder::constant(std::string_view name, const Shape& shape, float value) const {
  return add(name, shape, [&] {
    const Tensor result = Tensor::empty(shape);
    std::fill_n(result.data<float>(), result.size(), value);
    return result;
  });
}

Parameter& Builder::zeros(std::string_view name, const Shape& shape) const { return constant(name, shape, 0); }

}  // namespace regard
