// Runs a template for the element type of a tensor: f32 (the kernels) or f64 (the references).
#pragma once

#include <initializer_list>

#include "base/check.h"
#include "regard/autograd/tape.h"

namespace regard {

template <class Body>
decltype(auto) by_type(DType type, Body body) {
  switch (type) {
    case DType::kF32:
      return body.template operator()<float>();
    case DType::kF64:
      return body.template operator()<double>();
    case DType::kBF16:
    case DType::kI8:
    case DType::kI32:
      break;
  }
  fail(ErrorKind::kInput, "operations take f32 or f64, got ", type);
}

inline void check_same_type(Op op, std::initializer_list<Var> inputs) {
  const Var* first = nullptr;
  for (const Var& input : inputs) {
    if (!input.defined()) continue;
    if (first == nullptr) first = &input;
    check(input.dtype() == first->dtype(), name_of(op), ": the inputs differ in type: ", first->value(), " and ",
          input.value());
  }
}

}  // namespace regard
