// First values of parameters. Every number is a function of a key and of its own place, so neither threads nor the
// instruction set nor other parameters change it. Weights stand as [inputs, outputs]: rows are inputs.
//
//     Tensor weight = xavier({128, 256}, RandomKey(seed).at(7));
#pragma once

#include <cstdint>

#include "regard/export.h"
#include "regard/random.h"
#include "regard/tensor/tensor.h"

namespace regard {

// Uniform in [−limit, limit).
REGARD_API Tensor uniform(const Shape& shape, double limit, RandomKey key);
// Normal around 0.
REGARD_API Tensor normal(const Shape& shape, double deviation, RandomKey key);
// Uniform with limit √(6/(rows + columns)), so that values and gradients keep their size.   Glorot and Bengio 2010
// `parts`: the columns are that many matrices side by side (the gates of a GRU), each of them counted by itself.
// `gain`: times that.
REGARD_API Tensor xavier(const Shape& shape, RandomKey key, std::int64_t parts = 1, double gain = 1);
// Uniform with limit √(6/rows), so that values keep their size through ReLU, which drops half.   He et al. 2015
REGARD_API Tensor kaiming(const Shape& shape, RandomKey key);
// Rows (or columns, if there are fewer) of length `gain` at right angles to each other: a product neither grows nor
// shrinks what passes through it.   Saxe et al. 2014
// `parts`: as above, each of them orthogonal by itself.
REGARD_API Tensor orthogonal(const Shape& shape, RandomKey key, double gain = 1, std::int64_t parts = 1);

}  // namespace regard
