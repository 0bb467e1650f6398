// The last layer and the loss in one: logits exist for one chunk of rows at a time, in cache. A chunk's size depends on
// the vocabulary alone. If somebody wants gradients they are made right away, for a loss whose own gradient is 1, while
// the logits are there: backward only multiplies them by what comes from above, instead of making the logits again
// (a quarter of the work). The gradient of the weight is made where it belongs, if nobody has added to it yet; who goes
// back twice pays with making it again. Every sum over rows runs through all chunks as one chain, so the result is the
// same as without chunks, bit for bit.
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
#include "tensor/arena.h"

namespace regard {
namespace {

// Each chunk reads the weights twice and changes their gradient, which should be little beside what it calculates:
// 2048 rows, a vocabulary of 32768: chunks of 128 rows take 860 ms, 256: 781, 512: 741, 1024: 730. Of these 256, which
// hold 32 MB. A small vocabulary has larger chunks, of 8 MB.
constexpr std::int64_t kChunkRows = 256, kChunkElements = 1 << 21;

// Words at a time: a matrix product packs all that it is given.
constexpr std::size_t kSlice = 2048;

// From row to row of the logits: an odd number of cache lines, so that a column's lines do not push each other out (a
// vocabulary of 32768, chunks of 256 rows: 800 ms in all, without gaps 860).
std::int64_t row_stride(std::int64_t vocabulary) { return ((vocabulary + 15) / 16 | 1) * 16; }

// Rows of x for the gradient of the weight: zeros in place of rows with scale 0, whose NaN would survive the product.
template <class T>
const T* selected_rows(const Tensor& x, std::int64_t first, std::int64_t size, const Tensor& scales,
                       const Tensor& room) {
  const std::int64_t width = x[1];
  const T *from = x.data<T>() + first * width, *scale = scales.data<T>() + first;
  if (std::find(scale, scale + size, T{0}) == scale + size) return from;
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

// What is asked for, checked.
struct Loss {
  Var x, weight, bias;
  bool transposed;
  std::int64_t count, width, vocabulary;
  Tensor ids;      // i32 [count]; 0 where a row is ignored
  Tensor weights;  // [count]; 0 where a row is ignored
};

Loss checked(Var x, Var weight, Var bias, const Tensor& targets, const CrossEntropyOptions& options) {
  constexpr const char* kName = "linear_cross_entropy";
  check_same_type(Op::linear_cross_entropy, {x, weight, bias});
  check(x.shape().rank() == 2, kName, ": x is ", x.shape(), ", expected [rows, width]");
  check(weight.shape().rank() == 2, kName, ": the weight is ", weight.shape(), ", expected two dimensions");
  const bool transposed = options.transposed;
  const std::int64_t count = x[0], width = x[1], vocabulary = weight[transposed ? 0 : 1];
  check(weight[transposed ? 1 : 0] == width, kName, ": the weight is ", weight.shape(), ", expected ",
        transposed ? Shape{vocabulary, width} : Shape{width, vocabulary});
  check(vocabulary > 0 || count == 0, kName, ": the vocabulary is empty");
  check(!bias.defined() || bias.shape() == Shape{vocabulary}, kName, ": the bias is ",
        bias.defined() ? bias.shape() : Shape{}, ", expected ", Shape{vocabulary});
  check(targets.dtype() == DType::kI32 && targets.shape() == Shape{count}, kName, ": the targets are ", targets,
        ", expected i32 ", Shape{count});
  const Tensor& token_weights = options.token_weights;
  check(!token_weights.defined() || (token_weights.shape() == Shape{count} && token_weights.dtype() == x.dtype()),
        kName, ": the token weights are ", token_weights, ", expected ", x.dtype(), " ", Shape{count});
  check(options.label_smoothing >= 0 && options.label_smoothing < 1, kName, ": label smoothing of ",
        options.label_smoothing, ", expected 0 to below 1");

  Tape& tape = x.tape();
  Loss loss{x,
            weight,
            bias,
            transposed,
            count,
            width,
            vocabulary,
            tape.make({count}, DType::kI32),
            tape.make({count}, x.dtype())};
  loss.ids.copy_from(targets);
  by_type(x.dtype(), [&]<class T>() {
    T* weigh = loss.weights.data<T>();
    if (token_weights.defined()) {
      loss.weights.copy_from(token_weights);
    } else {
      std::fill_n(weigh, count, T{1});
    }
    for (std::int64_t i = 0; i < count; ++i) {
      std::int32_t& id = loss.ids.data<std::int32_t>()[i];
      if (options.ignored && id == *options.ignored) {
        id = 0;
        weigh[i] = 0;
      }
      check(id >= 0 && id < vocabulary, kName, ": target ", id, " at row ", i, ", expected 0 to ", vocabulary - 1);
    }
  });
  return loss;
}

// y (= or +=) factor·x
template <class T>
void add_product(const Tensor& x, T factor, const Target& to) {
  const auto size = static_cast<std::size_t>(x.size());
  const T* from = x.data<T>();
  if (to.add) {
    add_scaled(from, factor, to.gradient.data<T>(), size);
  } else {
    scale(from, factor, to.gradient.data<T>(), size);
  }
}

// Where what is calculated goes; what is not defined is not wanted.
struct Results {
  Tensor log_p, loss, dx, d_weight, d_bias;
  bool learns() const { return dx.defined() || d_weight.defined() || d_bias.defined(); }
};

template <class T>
void calculate(Tape& tape, const Loss& asked, double smoothing, const Results& to) {
  const std::int64_t count = asked.count, width = asked.width, vocabulary = asked.vocabulary;
  const auto w = static_cast<std::size_t>(width), v = static_cast<std::size_t>(vocabulary);
  const DType type = asked.x.dtype();
  const std::int64_t chunk = std::min(count, std::max(kChunkRows, vocabulary > 0 ? kChunkElements / vocabulary : 0));
  const std::int64_t stride = row_stride(vocabulary);
  const Arena::Scope temporary(tape.arena());
  const Tensor logits = tape.make({chunk, stride}, type), losses = tape.make({count}, type);
  for (std::int64_t i = 0; i < chunk; ++i)
    std::fill(logits.data<T>() + i * stride + vocabulary, logits.data<T>() + (i + 1) * stride, T{0});
  const Tensor room = to.d_weight.defined() ? tape.make({chunk, width}, type) : Tensor();
  const T* values = asked.x.value().data<T>();
  const T* bias = asked.bias.defined() ? asked.bias.value().data<T>() : nullptr;
  MatrixOf<const T> table =
      matrix(static_cast<const T*>(asked.weight.value().data<T>()), asked.transposed ? v : w, asked.transposed ? w : v);
  if (asked.transposed) table = table.transposed();
  const auto for_each_slice = [&](auto&& each) {
    for (std::size_t first = 0; first < v; first += kSlice) {
      const std::size_t words = std::min(kSlice, v - first);
      each(first, words, MatrixOf<const T>{&table.at(0, first), w, words, table.row_stride, table.column_stride});
    }
  };
  for (std::int64_t first = 0; first < count; first += chunk) {
    const std::int64_t size = std::min(chunk, count - first);
    const auto n = static_cast<std::size_t>(size);
    const MatrixOf<const T> in = matrix(values + first * width, n, w);
    const RowsOf<T> part{logits.data<T>(), n, v, static_cast<std::size_t>(stride)};
    const auto words_of = [&](std::size_t begin, std::size_t words) {
      return MatrixOf<T>{part.data + begin, n, words, part.stride, 1};
    };
    if (to.learns()) {
      for_each_slice([&](std::size_t begin, std::size_t words, MatrixOf<const T> slice) {
        gemm(in, slice, words_of(begin, words), {.bias = bias == nullptr ? nullptr : bias + begin});
      });
    } else {  // a weight that stays is packed once
      multiply_by_weight<T>(tape, in, asked.weight, asked.transposed, words_of(0, v), {.bias = bias});
    }
    cross_entropy(part, {.targets = asked.ids.data<std::int32_t>() + first,
                         .weights = asked.weights.data<T>() + first,
                         .smoothing = static_cast<T>(smoothing),
                         .losses = losses.data<T>() + first,
                         .log_probabilities = to.log_p.data<T>() + first,
                         .gradients = to.learns()});
    const bool more = first > 0;
    if (to.dx.defined()) {
      for_each_slice([&](std::size_t begin, std::size_t words, MatrixOf<const T> slice) {
        gemm(MatrixOf<const T>(words_of(begin, words)), slice.transposed(),
             matrix(to.dx.data<T>() + first * width, n, w), {.accumulate = begin > 0});
      });
    }
    if (to.d_weight.defined()) {
      const MatrixOf<const T> read = matrix(selected_rows<T>(asked.x.value(), first, size, asked.weights, room), n, w);
      for_each_slice([&](std::size_t begin, std::size_t words, MatrixOf<const T>) {
        const MatrixOf<const T> up = words_of(begin, words);
        T* const d = to.d_weight.data<T>() + (asked.transposed ? begin * w : begin);
        if (asked.transposed) {
          gemm(up.transposed(), read, matrix(d, words, w), {.accumulate = more});
        } else {
          gemm(read.transposed(), up, MatrixOf<T>{d, w, words, v, 1}, {.accumulate = more});
        }
      });
    }
    if (to.d_bias.defined()) sum_to<T>(logits.slice(0, 0, size), {to.d_bias, more});
  }
  if (count == 0) {  // nothing was written
    for (const Tensor& empty : {to.d_weight, to.d_bias}) {
      if (empty.defined()) std::memset(empty.raw(), 0, empty.bytes());
    }
  }
  sum_to<T>(losses, {to.loss, false});
}

}  // namespace

CrossEntropy linear_cross_entropy(Var x, Var weight, Var bias, const Tensor& targets,
                                  const CrossEntropyOptions& options) {
  const FloatMode mode;
  const Loss asked = checked(x, weight, bias, targets, options);
  const double smoothing = options.label_smoothing;
  Tape& tape = x.tape();
  const DType type = x.dtype();
  const auto wanted = [&](Var of, const Shape& shape) {
    return of.defined() && of.needs_gradient() ? tape.make(shape, type) : Tensor();
  };
  Results made{.log_p = tape.make({asked.count}, type),
               .loss = tape.make({}, type),
               .dx = wanted(x, x.shape()),
               .d_weight = tape.borrow(weight),
               .d_bias = wanted(bias, {row_stride(asked.vocabulary)})};
  const bool borrowed = made.d_weight.defined();
  if (!borrowed) made.d_weight = wanted(weight, weight.shape());
  by_type(type, [&]<class T>() { calculate<T>(tape, asked, smoothing, made); });

  const Var result = tape.record(Op::linear_cross_entropy, made.loss, {x, weight, bias}, [=, &tape](const Tensor& dy) {
    by_type(dy.dtype(), [&]<class T>() {
      const T factor = *dy.data<T>();
      if (const Target to = tape.target(x)) add_product<T>(made.dx, factor, to);
      if (const Target to = tape.target(bias)) {
        add_product<T>(made.d_bias.slice(0, 0, asked.vocabulary), factor, to);
      }
      if (!made.d_weight.defined()) return;
      Tape::GivenBack back{made.d_weight};
      if (borrowed) back = tape.give_back(weight);
      if (back.in_place) {
        if (factor != 1) add_product<T>(back.work, factor, {back.work, false});
        return;
      }
      if (!back.work.defined()) {
        back.work = tape.make(weight.shape(), dy.dtype());
        calculate<T>(tape, asked, smoothing,
                     {.log_p = tape.make({asked.count}, dy.dtype()),
                      .loss = tape.make({}, dy.dtype()),
                      .dx = {},
                      .d_weight = back.work,
                      .d_bias = {}});
      }
      add_product<T>(back.work, factor, tape.target(weight));
    });
  });
  return {result, made.log_p};
}

}  // namespace regard
