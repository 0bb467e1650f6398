// A convolution over time: y[b, t] = Σ_j x[b, t + j − before]·W_j + bias, j = 0 … kernel − 1, zeros outside a sequence.
//
// x is copied once, with zeros around each sequence. A window is then `kernel` rows one after another in memory, and
// all windows of a sequence are a matrix whose rows overlap: each of the three passes is one product a sequence, and no
// window is ever written out. Backward, dx is a convolution of dy with the weights in the opposite order.
#include <algorithm>
#include <cstring>

#include "autograd/by_type.h"
#include "autograd/kernel_calls.h"
#include "autograd/weight_product.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "base/pool.h"
#include "regard/autograd/ops.h"
#include "tensor/arena.h"

namespace regard {
namespace {

std::size_t unsign(std::int64_t size) { return static_cast<std::size_t>(size); }

struct Sequences {
  std::int64_t batch, time, kernel;
  const std::int32_t* lengths;  // [batch]
};

// [batch, time, width] with zeros before and behind each sequence: [batch, time + kernel − 1, width].
template <class T>
Tensor surrounded(Tape& tape, const Sequences& s, const Tensor& x, std::int64_t before) {
  const std::int64_t width = x[2], rows = s.time + s.kernel - 1;
  const Tensor result = tape.make({s.batch, rows, width}, x.dtype());
  parallel(unsign(s.batch), [&](std::size_t item) {
    const auto b = static_cast<std::int64_t>(item);
    T* to = result.data<T>() + b * rows * width;
    const std::int64_t begin = before * width, end = begin + s.lengths[b] * width;
    std::fill(to, to + begin, T{0});
    std::copy_n(x.data<T>() + b * s.time * width, end - begin, to + begin);
    std::fill(to + end, to + rows * width, T{0});
  });
  return result;
}

// The windows of one sequence: [length, kernel·width].
template <class T>
MatrixOf<const T> windows(const Sequences& s, const Tensor& around, std::int64_t item) {
  const std::int64_t width = around[2];
  return {around.data<T>() + item * around[1] * width, unsign(s.lengths[item]), unsign(s.kernel * width), unsign(width),
          1};
}

// y [batch, time, weights.columns] (= or +=) windows·weights for every sequence; what lies behind its end becomes zeros
// unless something is added.
template <class T>
void convolve(const Sequences& s, const Tensor& around, const PackedWeights<T>& weights, const Tensor& y,
              const EpilogueOf<T>& epilogue) {
  const std::int64_t width = y[2];
  parallel(unsign(s.batch), [&](std::size_t item) {
    const auto b = static_cast<std::int64_t>(item);
    T* to = y.data<T>() + b * s.time * width;
    weights.multiply(windows<T>(s, around, b), to, epilogue);
    if (!epilogue.accumulate) std::fill(to + s.lengths[b] * width, to + s.time * width, T{0});
  });
}

// [kernel·channels, out] -> [kernel·out, channels], each W_j turned and the last one first.
template <class T>
Tensor turned(Tape& tape, const Tensor& weight, std::int64_t kernel) {
  const std::int64_t channels = weight[0] / kernel, out = weight[1];
  const Tensor result = tape.make({kernel * out, channels}, weight.dtype());
  for (std::int64_t j = 0; j < kernel; ++j) {
    const T* from = weight.data<T>() + (kernel - 1 - j) * channels * out;
    T* to = result.data<T>() + j * out * channels;
    for (std::int64_t o = 0; o < out; ++o) {
      for (std::int64_t c = 0; c < channels; ++c) to[o * channels + c] = from[c * out + o];
    }
  }
  return result;
}

}  // namespace

Var conv1d(Var x, Var weight, Var bias, const Convolution& options) {
  const FloatMode mode;
  constexpr const char* kName = "conv1d";
  check_same_type(Op::conv1d, {x, weight, bias});
  check(x.shape().rank() == 3, kName, ": x is ", x.shape(), ", expected [batch, time, channels]");
  check(options.kernel >= 1, kName, ": a kernel of ", options.kernel, ", expected at least 1");
  const std::int64_t batch = x[0], time = x[1], channels = x[2], kernel = options.kernel;
  check(weight.shape().rank() == 2 && weight[0] == kernel * channels, kName, ": the weight is ", weight.shape(),
        ", expected [", kernel * channels, ", out] for x ", x.shape(), " and a kernel of ", kernel);
  const std::int64_t out = weight[1];
  check(!bias.defined() || bias.shape() == Shape{out}, kName, ": the bias is ", bias.defined() ? bias.shape() : Shape{},
        ", expected ", Shape{out});
  check(options.lengths.empty() || static_cast<std::int64_t>(options.lengths.size()) == batch, kName, ": ",
        options.lengths.size(), " lengths for a batch of ", batch);
  Tape& tape = x.tape();
  const DType type = x.dtype();
  auto* lengths = static_cast<std::int32_t*>(tape.arena().allocate(unsign(batch) * sizeof(std::int32_t)));
  for (std::int64_t b = 0; b < batch; ++b) {
    lengths[b] = options.lengths.empty() ? static_cast<std::int32_t>(time) : options.lengths[unsign(b)];
    check(lengths[b] >= 0 && lengths[b] <= time, kName, ": a length of ", lengths[b], ", expected 0 to ", time);
  }
  const Sequences sequences{batch, time, kernel, lengths};
  const std::int64_t before = options.padding == Padding::kCausal ? kernel - 1 : (kernel - 1) / 2;

  const Tensor y = tape.make({batch, time, out}, type);
  const Tensor around = by_type(type, [&]<class T>() {
    const Tensor copy = surrounded<T>(tape, sequences, x.value(), before);
    convolve<T>(sequences, copy, PackedWeights<T>(tape, weight, false), y,
                {.bias = bias.defined() ? bias.value().data<T>() : nullptr});
    return copy;
  });
  return tape.record(Op::conv1d, y, {x, weight, bias}, [=, &tape](const Tensor& dy) {
    by_type(type, [&]<class T>() {
      if (const Target to = tape.target(x)) {
        const Tensor up = surrounded<T>(tape, sequences, dy, kernel - 1 - before);
        const Tensor weights = turned<T>(tape, weight.value(), kernel);
        convolve<T>(sequences, up, PackedWeights<T>(tape, tape.constant(weights), false), to.gradient,
                    {.accumulate = to.add});
      }
      const auto rows_of = [&](std::int64_t b) {
        return matrix(static_cast<const T*>(dy.data<T>() + b * time * out), unsign(lengths[b]), unsign(out));
      };
      if (const Target to = tape.target(weight)) {
        if (!to.add && to.gradient.bytes() > 0) std::memset(to.gradient.raw(), 0, to.gradient.bytes());
        for (std::int64_t b = 0; b < batch; ++b) {
          gemm(windows<T>(sequences, around, b).transposed(), rows_of(b),
               matrix(to.gradient.data<T>(), unsign(kernel * channels), unsign(out)),
               EpilogueOf<T>{.accumulate = true});
        }
      }
      if (const Target to = tape.target(bias)) {
        if (!to.add && to.gradient.bytes() > 0) std::memset(to.gradient.raw(), 0, to.gradient.bytes());
        for (std::int64_t b = 0; b < batch; ++b) {
          const std::size_t sizes[] = {unsign(lengths[b]), unsign(out)};
          sum_dimensions(sizes, 1, rows_of(b).data, to.gradient.data<T>(), true);
        }
      }
    });
  });
}

}  // namespace regard
