// A small translator that is trained for a few steps on made-up data: embedding, dropout, a recurrent encoder over
// ragged sequences, additive attention, a recurrent decoder, norms, activations and the loss. Its bits are the
// reference that targets, thread counts, batch neighbours, padding and compilers are compared by.
//
//     reference_hash()                                         // "5f0c…": of a whole training run
//     run_examples({4, 1, 7}, 3)                               // what examples 4, 1 and 7 get, three columns of
//     padding
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "regard/tensor/tensor.h"
#include "verify/table.h"

namespace regard::verify {

inline constexpr int kExamples = 9;

// XXH3-128 of all losses, log-probabilities, gradients and, in the end, weights; 32 hexadecimal digits.
std::string reference_hash();

// Likewise, of the outputs and gradients of all cases of an operation.
std::string operation_hash(const Row& row);

// All that belongs to one example and to nobody else.
struct ExampleResult {
  int example = 0;
  Tensor log_probabilities;   // [target tokens]
  Tensor embedding_gradient;  // [source tokens, width]
  Tensor weights;             // [1, source tokens]: of the first step of the decoder
};
// A forward and a backward pass over the given examples (0…kExamples−1), results in the same order.
std::vector<ExampleResult> run_examples(const std::vector<int>& examples, std::int64_t padding);

}  // namespace regard::verify
