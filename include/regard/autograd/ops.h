// The operations. Each takes values on a tape and puts its result there; f32 runs the kernels, f64 the references.
// Shapes that do not fit throw regard::Error. Masks and lengths select: what is out never reaches what is in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "regard/autograd/tape.h"
#include "regard/export.h"
#include "regard/random.h"

namespace regard {

// y = a·b + bias.  a [..., M, K], b [K, N] or [..., K, N] with the same leading sizes, bias [N]; with transpose_a or
// transpose_b that operand is stored the other way round.
struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  Var bias = {};
};
REGARD_API Var matmul(Var a, Var b, const MatmulOptions& options = {});

// Arithmetic with broadcasting: sizes are matched from the right, 1 fits anything.
REGARD_API Var add(Var a, Var b);
REGARD_API Var subtract(Var a, Var b);
REGARD_API Var multiply(Var a, Var b);
REGARD_API Var divide(Var a, Var b);
inline Var operator+(Var a, Var b) { return add(a, b); }
inline Var operator-(Var a, Var b) { return subtract(a, b); }
inline Var operator*(Var a, Var b) { return multiply(a, b); }
inline Var operator/(Var a, Var b) { return divide(a, b); }
REGARD_API Var number(Tape& tape, double value, DType type = DType::kF32);  // a constant of shape []

// Element by element.
REGARD_API Var tanh(Var x);
REGARD_API Var sigmoid(Var x);
REGARD_API Var relu(Var x);
REGARD_API Var gelu(Var x);       // x·Φ(x)
REGARD_API Var gelu_tanh(Var x);  // its tanh form, as in GPT-2
REGARD_API Var silu(Var x);
REGARD_API Var exp(Var x);
REGARD_API Var log(Var x);

// Over the last dimension. A row of nothing but −∞ has no weights: softmax gives zeros, log_softmax −∞, the gradient is
// zero.
REGARD_API Var softmax(Var x);
REGARD_API Var log_softmax(Var x);

// y = (x − mean)/√(variance + ε)·weight + bias, over the last dimension.   Ba et al. 2016
REGARD_API Var layer_norm(Var x, Var weight, Var bias, float epsilon = 1e-5f);
// y = x/√(mean of squares + ε)·weight.                                     Zhang and Sennrich 2019
REGARD_API Var rms_norm(Var x, Var weight, float epsilon = 1e-5f);

// Rows of table [count, width] by ids (i32, any shape): [ids…, width]. An id outside the table throws.
REGARD_API Var embedding(Var table, const Tensor& ids);

REGARD_API Var concat(std::span<const Var> parts, int dimension);
REGARD_API Var concat(std::initializer_list<Var> parts, int dimension);
REGARD_API Var slice(Var x, int dimension, std::int64_t begin, std::int64_t end);
REGARD_API Var transpose(Var x, int a, int b);
REGARD_API Var reshape(Var x, const Shape& shape);

REGARD_API Var sum(Var x);                 // to a single number
REGARD_API Var sum(Var x, int dimension);  // the dimension goes away
REGARD_API Var mean(Var x);
REGARD_API Var mean(Var x, int dimension);

// y = x/(1 − p) where kept, 0 where dropped. x [items, …]: item i draws its numbers from key.at(ids[i]), so they depend
// on the example, not on its place in the batch. Without ids, an item's id is its number.
REGARD_API Var dropout(Var x, float p, RandomKey key, std::span<const std::uint64_t> ids = {});

// One step of a gated recurrent unit (Cho et al. 2014, with the reset gate after the product):
//   r = σ(x_r + u_r), z = σ(x_z + u_z), n = tanh(x_n + r∘u_n), h′ = n + z∘(h − n),   [u_r u_z u_n] = h·recurrent + bias
// input [batch, 3·width] holds x·W + b in the order r, z, n; recurrent [width, 3·width]; bias [3·width]. Rows from
// `active` on keep their state: sequences that have ended, in a batch sorted by length (−1: all rows are active).
REGARD_API Var gru_cell(Var input, Var state, Var recurrent, Var bias, std::int64_t active = -1);

// The loss −Σ_i w_i · ((1 − ε)·log p_i[target_i] + ε·mean log p_i), p_i = softmax(x_i·weight + bias), without ever
// holding [rows, vocabulary]. x [rows, width], weight [width, vocabulary], bias [vocabulary] or none, targets i32
// [rows].
struct CrossEntropyOptions {
  Tensor token_weights = {};                 // w [rows]; none: all 1
  bool transposed = false;                   // the weight is [vocabulary, width]: that of an embedding, for instance
  double label_smoothing = 0;                // ε
  std::optional<std::int32_t> ignored = {};  // a row with this target has no loss and no gradient
};
struct CrossEntropy {
  Var loss;                  // []
  Tensor log_probabilities;  // [rows], of the targets, without smoothing; valid until the step ends
};
REGARD_API CrossEntropy linear_cross_entropy(Var x, Var weight, Var bias, const Tensor& targets,
                                             const CrossEntropyOptions& options = {});

}  // namespace regard
