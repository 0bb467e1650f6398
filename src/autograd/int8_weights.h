// Parameters in 8 bits, for decoding: a quarter of the memory, and a faster product. Matrices get them, by name and
// shape: what has two dimensions and is called `weight` (of a linear layer, a recurrent one, a convolution, the output)
// has one scale a column, what is called `table` (words, positions) one a row; so a table that is also the output has
// one scale a word in both places. The rest stays as it is: biases, norms, what attention learns by itself.
//
//     use_int8(parameters);                       // those that are there; values become what 8 bits can say
//
// The value of such a parameter is scale · byte, which lookups and products by other kernels read. A new value, whoever
// sets it, has a new version: then the bytes are out of date, and nobody multiplies by them any more.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/int8_gemm.h"
#include "regard/autograd/parameter.h"

namespace regard {

struct Int8Weights {
  Int8Matrix matrix;
  bool by_row = false;        // a scale a row: for x·wᵀ; else for x·w
  std::uint64_t version = 0;  // of the parameter
};

enum class Scaled { kNot, kByRow, kByColumn };
Scaled scaled(std::string_view name, int rank);  // how a parameter of this name becomes bytes

// value ≈ bytes · scales: bytes i8 of the same shape, scales f32 [rows, 1] or [1, columns].
struct Quantized {
  Tensor bytes, scales;
};
Quantized quantize(std::string_view name, const Tensor& value);  // throws if a number is not finite

Tensor dequantize(const Quantized& from);                                         // f32
void use_int8(Parameter& parameter, const Tensor& value, const Quantized& from);  // value: from dequantized
void use_int8(Parameters& parameters);

}  // namespace regard
