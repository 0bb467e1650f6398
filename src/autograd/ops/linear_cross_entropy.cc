// The last layer and the loss in one: logits exist for one chunk of rows at a time, in cache, forward and again
// backward. A chunk's size depends on the vocabulary alone. Every sum over rows runs through all chunks as one chain,
// so the result is the same as without chunks, bit for bit.
#include <algorithm>
#include <cstring>

#include "autograd/by_type.h"
#include "autograd/kernel_calls.h"
#include "autograd/weight_product.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "kernels/cross_entropy.h"
#include "kernels/gemm.h"
#include "regard/autograd/ops.h"

namespace regard {
namespace {

constexpr std::int64_t kChunkElements = 1 << 19;  // 2 MB of logits
constexpr std::int64_t kChunkRows = 32;           // at the least: each chunk reads the whole weight matrix

// Rows of x for the gradient of the weight: zeros in place of rows with scale 0, whose NaN would survive the product.
template <class T>
const T* selected_rows(const Tensor& x, std::int64_t first, std::int64_t size, const Tensor& scales,
                       const Tensor& room) {
  const std::int64_t width = x[1];
  const T *from = x.data<T>() + first * width, *scale = scales.data<T>() + first;
  if (!room.defined() || std::find(scale, scale + size, T{0}) == scale + size) return from;
  T* to = room.data<T>();
  for (std::int64_t i = 0; i < size; ++i) {
    if (scale[i] == 0) {
      std::fill_n(to + i * width, width, T{0});
    } else {
      std::copy_n(from + i * width, width, to + i * width);
    }
  }
  return to;
}

}  // namespace

CrossEntropy linear_cross_entropy(Var x, Var weight, Var bias, const Tensor& targets, const Tensor& token_weights,
                                  bool transposed) {
  const FloatMode mode;
  constexpr const char* kName = "linear_cross_entropy";
  check_same_type(Op::linear_cross_entropy, {x, weight, bias});
  check(x.shape().rank() == 2, kName, ": x is ", x.shape(), ", expected [rows, width]");
  check(weight.shape().rank() == 2, kName, ": the weight is ", weight.shape(), ", expected two dimensions");
  const std::int64_t count = x[0], width = x[1], vocabulary = weight[transposed ? 0 : 1];
  check(weight[transposed ? 1 : 0] == width, kName, ": the weight is ", weight.shape(), ", expected ",
        transposed ? Shape{vocabulary, width} : Shape{width, vocabulary});
  check(vocabulary > 0 || count == 0, kName, ": the vocabulary is empty");
  check(!bias.defined() || bias.shape() == Shape{vocabulary}, kName, ": the bias is ",
        bias.defined() ? bias.shape() : Shape{}, ", expected ", Shape{vocabulary});
  check(targets.dtype() == DType::kI32 && targets.shape() == Shape{count}, kName, ": the targets are ", targets,
        ", expected i32 ", Shape{count});
  check(!token_weights.defined() || (token_weights.shape() == Shape{count} && token_weights.dtype() == x.dtype()),
        kName, ": the token weights are ", token_weights, ", expected ", x.dtype(), " ", Shape{count});

  Tape& tape = x.tape();
  const DType type = x.dtype();
  const Tensor ids = tape.make({count}, DType::kI32);
  ids.copy_from(targets);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t id = ids.data<std::int32_t>()[i];
    check(id >= 0 && id < vocabulary, kName, ": target ", id, " at row ", i, ", expected 0 to ", vocabulary - 1);
  }
  const Tensor peaks = tape.make({count}, type), taus = tape.make({count}, type), log_p = tape.make({count}, type);
  const Tensor weights = tape.make({count}, type), loss = tape.make({}, type);
  const std::int64_t chunk = std::min(count, std::max(kChunkRows, vocabulary > 0 ? kChunkElements / vocabulary : 0));
  const Tensor logits = tape.make({chunk, vocabulary}, type);
  const auto w = static_cast<std::size_t>(width), v = static_cast<std::size_t>(vocabulary);

  // logits = x[first…first+size]·weight + bias
  const auto project = [=, &tape]<class T>(std::int64_t first, std::int64_t size) {
    const T* from = x.value().data<T>() + first * width;
    const EpilogueOf<T> epilogue{.bias = bias.defined() ? bias.value().data<T>() : nullptr};
    multiply_by_weight<T>(tape, matrix(from, static_cast<std::size_t>(size), w), weight, transposed, logits.data<T>(),
                          epilogue);
    return rows(logits.data<T>(), static_cast<std::size_t>(size), v);
  };

  by_type(type, [&]<class T>() {
    T* weigh = weights.data<T>();
    if (token_weights.defined()) {
      weights.copy_from(token_weights);
    } else {
      std::fill_n(weigh, count, T{1});
    }
    for (std::int64_t first = 0; first < count; first += chunk) {
      const std::int64_t size = std::min(chunk, count - first);
      const RowsOf<T> part = project.template operator()<T>(first, size);
      cross_entropy(RowsOf<const T>(part), ids.data<std::int32_t>() + first, peaks.data<T>() + first,
                    taus.data<T>() + first, log_p.data<T>() + first);
    }
    const Tensor terms = tape.make({count}, type);
    for (std::int64_t i = 0; i < count; ++i) {
      terms.data<T>()[i] = weigh[i] == 0 ? T{0} : -weigh[i] * log_p.data<T>()[i];
    }
    sum_to<T>(terms, {loss, false});
  });

  const Var result = tape.record(Op::linear_cross_entropy, loss, {x, weight, bias}, [=, &tape](const Tensor& dy) {
    by_type(dy.dtype(), [&]<class T>() {
      const T upstream = *dy.data<T>();
      const Target dx = tape.target(x), d_weight = tape.target(weight), d_bias = tape.target(bias);
      const Tensor scales = tape.make({count}, type);
      for (std::int64_t i = 0; i < count; ++i) scales.data<T>()[i] = weights.data<T>()[i] * upstream;
      const Tensor kept = d_weight ? tape.make({chunk, width}, type) : Tensor();
      bool add_weight = d_weight.add, add_bias = d_bias.add;
      for (std::int64_t first = 0; first < count; first += chunk) {
        const std::int64_t size = std::min(chunk, count - first);
        const RowsOf<T> part = project.template operator()<T>(first, size);
        cross_entropy_backward(part, ids.data<std::int32_t>() + first, peaks.data<T>() + first, taus.data<T>() + first,
                               scales.data<T>() + first);
        const MatrixOf<const T> up = matrix(static_cast<const T*>(logits.data<T>()), part.count, v);
        const MatrixOf<const T> in = matrix(selected_rows<T>(x.value(), first, size, scales, kept), part.count, w);
        if (dx)
          multiply_by_weight<T>(tape, up, weight, !transposed, dx.gradient.data<T>() + first * width,
                                {.accumulate = dx.add});
        if (d_weight) {
          const EpilogueOf<T> epilogue{.accumulate = add_weight};
          if (transposed) {
            gemm(up.transposed(), in, matrix(d_weight.gradient.data<T>(), v, w), epilogue);
          } else {
            gemm(in.transposed(), up, matrix(d_weight.gradient.data<T>(), w, v), epilogue);
          }
          add_weight = true;
        }
        if (d_bias) {
          sum_to<T>(logits.slice(0, 0, size), {d_bias.gradient, add_bias});
          add_bias = true;
        }
      }
      if (count == 0) {  // nothing was written
        for (const Target& to : {d_weight, d_bias}) {
          if (to && !to.add) std::memset(to.gradient.raw(), 0, to.gradient.bytes());
        }
      }
    });
  });
  return {result, log_p};
}

}  // namespace regard
