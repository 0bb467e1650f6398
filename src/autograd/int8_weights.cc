#include "autograd/int8_weights.h"

#include <utility>

#include "base/check.h"

namespace regard {
namespace {

template <class T>
MatrixOf<const T> view(const Tensor& x) {
  return matrix(static_cast<const T*>(x.data<T>()), static_cast<std::size_t>(x[0]), static_cast<std::size_t>(x[1]));
}

// By the shape of its scales; a single number can be either.
bool is_by_row(const Quantized& from) { return from.scales[1] == 1 && from.scales[0] == from.bytes[0]; }

}  // namespace

Scaled scaled(std::string_view name, int rank) {
  if (rank != 2) return Scaled::kNot;
  const std::string_view last = name.substr(name.rfind('.') + 1);  // the whole if there is no point
  return last == "table" ? Scaled::kByRow : last == "weight" ? Scaled::kByColumn : Scaled::kNot;
}

Quantized quantize(std::string_view name, const Tensor& value) {
  const bool by_row = scaled(name, value.rank()) == Scaled::kByRow;
  Quantized made{Tensor::empty(value.shape(), DType::kI8),
                 Tensor::empty(by_row ? Shape{value[0], 1} : Shape{1, value[1]})};
  Matrix from = view<float>(value);
  MatrixOf<std::int8_t> to = matrix(made.bytes.data<std::int8_t>(), from.rows, from.columns);
  if (by_row) {
    from = from.transposed();
    to = to.transposed();
  }
  check(quantize_columns(from, to, made.scales.data<float>()), "weights '", name, "' are not all finite");
  return made;
}

Tensor dequantize(const Quantized& from) {
  const Tensor value = Tensor::empty(from.bytes.shape());
  widen_rows(rows<const std::int8_t>(from.bytes.data<std::int8_t>(), static_cast<std::size_t>(value[0]),
                                     static_cast<std::size_t>(value[1])),
             from.scales.data<float>(), is_by_row(from), value.data<float>());
  return value;
}

void use_int8(Parameter& parameter, const Tensor& value, const Quantized& from) {
  parameter.value = value;
  ++parameter.version;  // packed copies are out of date
  parameter.int8.reset();
  const bool by_row = is_by_row(from);
  MatrixOf<const std::int8_t> bytes = view<std::int8_t>(from.bytes);
  if (by_row) bytes = bytes.transposed();
  if (bytes.rows > kInt8MostDepth) return;  // the value serves
  auto made = std::make_shared<Int8Weights>();
  made->matrix = Int8Matrix(bytes, from.scales.data<float>());
  made->by_row = by_row;
  made->version = parameter.version;
  parameter.int8 = std::move(made);
}

void use_int8(Parameters& parameters) {
  for (Parameter& parameter : parameters) {
    const Tensor& value = parameter.value;
    if (value.dtype() != DType::kF32 || scaled(parameter.name, value.rank()) == Scaled::kNot) continue;
    if (parameter.int8 != nullptr && parameter.int8->version == parameter.version) continue;
    const Quantized made = quantize(parameter.name, value);
    use_int8(parameter, dequantize(made), made);
  }
}

}  // namespace regard
