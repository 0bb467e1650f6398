// Copies between views with different strides: slices, concatenation, transposition and their backward passes.
#pragma once

#include <cstdint>

#include "regard/tensor/shape.h"

namespace regard {

// to[i…] (= or +=) from[i…] for every index of `shape`; strides in elements, one a dimension.
template <class T>
void move_strided(const Shape& shape, T* to, const std::int64_t* to_strides, const T* from,
                  const std::int64_t* from_strides, bool add);

}  // namespace regard
