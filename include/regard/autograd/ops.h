// The operations. Each takes values on a tape and puts its result there; f32 runs the kernels, f64 the references.
// Shapes that do not fit throw regard::Error. Masks and lengths select: what is out never reaches what is in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "regard/autograd/tape.h"
#include "regard/export.h"
#include "regard/kernels/cell.h"
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

// a∘σ(b), x = [a, b] along the last dimension.                             Dauphin et al. 2017
REGARD_API Var glu(Var x);

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
// The parts of the given sizes, which add up to the dimension, one after another. The list lives until the step ends.
REGARD_API std::span<const Var> split(Var x, int dimension, std::span<const std::int64_t> sizes);
REGARD_API std::span<const Var> split(Var x, int dimension, std::int64_t parts);  // of equal size

REGARD_API Var sum(Var x);                 // to a single number
REGARD_API Var sum(Var x, int dimension);  // the dimension goes away
REGARD_API Var mean(Var x);
REGARD_API Var mean(Var x, int dimension);
REGARD_API Var cumulative_sum(Var x, int dimension);  // y_i = Σ_{j ≤ i} x_j

// The largest of the last dimension: of equals the first, and a NaN counts as larger than everything.
struct Chosen {
  Var values;
  Tensor ids;  // i32, where each of the values stood; valid until the step ends
};
REGARD_API Chosen max(Var x);                    // the dimension goes away
REGARD_API Chosen top_k(Var x, std::int64_t k);  // [..., k], largest first
REGARD_API Tensor arg_max(Var x);                // the ids of max

// Sequences of unlike length one after another, x [Σ lengths, heads·width], as attention reads them: [items, heads,
// longest, width], zeros behind the end of each; and back. What works row by row is spared the padding so.
REGARD_API Var pad_sequences(Var x, std::span<const std::int32_t> lengths, std::int64_t longest,
                             std::int64_t heads = 1);
REGARD_API Var unpad_sequences(Var x, std::span<const std::int32_t> lengths);

// By number along the last dimension, ids i32. gather: y[…, k] = x[…, ids[…, k]]. scatter_add: y[…, ids[…, k]] += x[…,
// k] in the order of k, into `size` zeros. An id outside throws.
REGARD_API Var gather(Var x, const Tensor& ids);
REGARD_API Var scatter_add(Var x, const Tensor& ids, std::int64_t size);

// `value` where mask (i8, spread to x) is 0, whatever x holds there; x where it is not.
REGARD_API Var masked_fill(Var x, const Tensor& mask, double value);

// A convolution over time: x [batch, time, channels], weight [kernel·channels, out] (the earliest of a window first),
// bias [out] or none, to [batch, time, out]. The window of t covers t − kernel + 1 … t (causal) or has t in its middle
// (same; an even kernel has one more behind t than before). Outside of a sequence there are zeros; what lies behind its
// length is not read, and the result there is zeros.
enum class Padding { kCausal, kSame };
struct Convolution {
  std::int64_t kernel = 3;
  Padding padding = Padding::kSame;
  std::span<const std::int32_t> lengths = {};  // one an item; none: all are as long as time
};
REGARD_API Var conv1d(Var x, Var weight, Var bias = {}, const Convolution& options = {});

// Positions as angles: of x [..., positions, width] the features 2i and 2i+1 are turned by position·base^(−2i/width),
// so a product of two of them depends on their distance.                      Su et al. 2021
struct RotaryOptions {
  std::int64_t first = 0;  // position of the first row; the others follow
  Tensor positions = {};   // i32, spread to [..., positions]: instead, where a row has a position of its own
  double base = 10000;
};
REGARD_API Var rotary(Var x, const RotaryOptions& options = {});

// y = x/(1 − p) where kept, 0 where dropped. x [items, …]: item i draws its numbers from key.at(ids[i]), so they depend
// on the example, not on its place in the batch. Without ids, an item's id is its number.
REGARD_API Var dropout(Var x, float p, RandomKey key, std::span<const std::uint64_t> ids = {});

// One step of a recurrent layer (regard/kernels/cell.h has the equations): input [batch, gates·width] holds x·W + b,
// state [batch, width], recurrent [width, gates·width], bias [gates·width]. Gates stand in the order r, z, n (gru) and
// i, f, g, o (lstm). Rows from `active` on keep their state: sequences that have ended, in a batch sorted by length
// (−1: all rows are active).
REGARD_API Var tanh_cell(Var input, Var state, Var recurrent, Var bias, std::int64_t active = -1);
REGARD_API Var gru_cell(Var input, Var state, Var recurrent, Var bias, std::int64_t active = -1);
struct RecurrentState {
  Var state;   // [batch, width]
  Var memory;  // [batch, width], of an LSTM
};
REGARD_API RecurrentState lstm_cell(Var input, const RecurrentState& before, Var recurrent, Var bias,
                                    std::int64_t active = -1);

// A recurrent layer over whole sequences: x [time, batch, inputs], the batch sorted by length, longest first. Going
// backward a sequence starts at its own last element. Nothing behind the end of a sequence is read, and the states
// there are zeros. Without an initial state it is zeros.
enum class Direction { kForward, kBackward };
struct RecurrentWeights {
  Var input;           // [inputs, gates·width]
  Var input_bias;      // [gates·width]
  Var recurrent;       // [width, gates·width]
  Var recurrent_bias;  // [gates·width]
};
struct Recurrence {
  Var states;  // [time, batch, width]
  Var last;    // [batch, width]: after the last element read
  Var memory;  // [batch, width], of an LSTM: likewise
};
REGARD_API Recurrence recurrence(Cell cell, Var x, const RecurrentWeights& weights,
                                 std::span<const std::int32_t> lengths, Direction direction = Direction::kForward,
                                 const RecurrentState& initial = {});

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
