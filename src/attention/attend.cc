#include "regard/attention/attend.h"

#include <algorithm>
#include <cstring>

#include "attention/additive.h"
#include "autograd/by_type.h"
#include "autograd/kernel_calls.h"
#include "base/check.h"
#include "base/float_mode.h"
#include "base/pool.h"

namespace regard {
namespace {

constexpr std::int64_t kMostKept = 64 * 1024;  // numbers that stay in the second cache

// Item b of [batch, count, width], its first `count` rows.
template <class T>
RowsOf<T> item_rows(const Tensor& x, std::int64_t item, std::int64_t count) {
  return rows(x.data<T>() + item * x[1] * x[2], static_cast<std::size_t>(count), static_cast<std::size_t>(x[2]));
}

template <class T>
AdditiveItem<T> item_of(const Tensor& q, const Tensor& k, const Tensor& theta, std::int64_t item,
                        std::int64_t visible) {
  return {item_rows<T>(q, item, q[1]), item_rows<T>(k, item, visible), theta.data<T>()};
}

void check_shapes(Var q, Var k, Var v, Var theta, std::span<const std::int32_t> lengths) {
  constexpr const char* kName = "attend_additive";
  check(q.shape().rank() == 3 && k.shape().rank() == 3 && v.shape().rank() == 3, kName, ": queries ", q.shape(),
        ", keys ", k.shape(), ", values ", v.shape(), ": expected three dimensions each: [batch, length, width]");
  check(q[0] == k[0] && k[0] == v[0], kName, ": the batch sizes differ: queries ", q.shape(), ", keys ", k.shape(),
        ", values ", v.shape());
  check(q[2] == k[2], kName, ": queries and keys differ in width: queries ", q.shape(), ", keys ", k.shape());
  check(k[1] == v[1], kName, ": keys and values differ in length: keys ", k.shape(), ", values ", v.shape(),
        " (dimension 1: ", k[1], " and ", v[1], ")");
  check(theta.shape() == Shape{q[2]}, kName, ": theta is ", theta.shape(), ", expected ", Shape{q[2]});
  check(static_cast<std::int64_t>(lengths.size()) == q[0], kName, ": ", lengths.size(), " lengths for a batch of ",
        q[0]);
  for (std::size_t item = 0; item < lengths.size(); ++item) {
    check(lengths[item] >= 0 && lengths[item] <= k[1], kName, ": item ", item, " has length ", lengths[item],
          ", expected 0 to ", k[1]);
  }
}

}  // namespace

Tensor Trace::weights(const WeightsQuery& query) const {
  check(queries_.defined(), "weights of a trace that holds nothing");
  check(query.item >= 0 && query.item < queries_[0], "weights: item ", query.item, ", expected 0 to ", queries_[0] - 1);
  const FloatMode mode;
  const std::int64_t visible = lengths_.data<std::int32_t>()[query.item], count = queries_[1];
  const Tensor result = Tensor::empty({count, visible}, queries_.dtype());
  by_type(result.dtype(), [&]<class T>() {
    const auto item = item_of<T>(queries_, keys_, theta_, query.item, visible);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = query.item * count + i;
      additive_weights(item, static_cast<std::size_t>(i), peaks_.data<T>()[row], taus_.data<T>()[row],
                       result.data<T>() + i * visible);
    }
  });
  return result;
}

Attended attend_additive(Var q, Var k, Var v, Var theta, std::span<const std::int32_t> lengths) {
  const FloatMode mode;
  check_same_type(Op::attend_additive, {q, k, v, theta});
  check_shapes(q, k, v, theta, lengths);
  Tape& tape = q.tape();
  const DType type = q.dtype();
  const std::int64_t batch = q[0], queries = q[1], keys = k[1], width = v[2], hidden = q[2];
  const Tensor visible = tape.make({batch}, DType::kI32);
  std::copy(lengths.begin(), lengths.end(), visible.data<std::int32_t>());
  const Tensor peaks = tape.make({batch, queries}, type), taus = tape.make({batch, queries}, type);
  const Tensor context = tape.make({batch, queries, width}, type);

  by_type(type, [&]<class T>() {
    const Tensor scratch = tape.make({threads(), keys}, type);
    parallel(static_cast<std::size_t>(batch * queries), [&](std::size_t work, int worker) {
      const auto row = static_cast<std::int64_t>(work);
      const std::int64_t item = row / queries, length = visible.data<std::int32_t>()[item];
      additive_query(item_of<T>(q.value(), k.value(), theta.value(), item, length),
                     work % static_cast<std::size_t>(queries), RowsOf<const T>(item_rows<T>(v.value(), item, length)),
                     scratch.data<T>() + worker * keys, peaks.data<T>() + row, taus.data<T>() + row,
                     context.data<T>() + row * width);
    });
  });

  // Backward: an item is one piece of work, for its queries share keys and values; what it adds to theta stays apart
  // until all are done, and is then added up in the order of the items.
  const Var result = tape.record(Op::attend_additive, context, {q, k, v, theta}, [=, &tape](const Tensor& dy) {
    by_type(dy.dtype(), [&]<class T>() {
      const auto gradient_of = [&](Var x) {  // zeros to add to, whether or not somebody wants them
        Target to = tape.target(x);
        if (!to) to = {tape.make(x.shape(), type), false};
        if (!to.add) std::memset(to.gradient.raw(), 0, to.gradient.bytes());
        return to.gradient;
      };
      const Tensor dq = gradient_of(q), dk = gradient_of(k), dv = gradient_of(v);
      const Tensor d_thetas = tape.make({batch, hidden}, type);
      std::memset(d_thetas.raw(), 0, d_thetas.bytes());
      const std::int64_t kept = keys * hidden <= kMostKept ? keys * hidden : 0;
      const Tensor scratch = tape.make({threads(), 2 * keys + kept}, type);
      parallel(static_cast<std::size_t>(batch), [&](std::size_t work, int worker) {
        const auto item = static_cast<std::int64_t>(work);
        const std::int64_t length = visible.data<std::int32_t>()[item];
        T* weights = scratch.data<T>() + worker * (2 * keys + kept);
        for (std::int64_t i = 0; i < queries; ++i) {
          const std::int64_t row = item * queries + i;
          const AdditiveGradients<T> to{dq.data<T>() + row * hidden, item_rows<T>(dk, item, length),
                                        item_rows<T>(dv, item, length), d_thetas.data<T>() + item * hidden};
          additive_query_backward(item_of<T>(q.value(), k.value(), theta.value(), item, length),
                                  static_cast<std::size_t>(i), RowsOf<const T>(item_rows<T>(v.value(), item, length)),
                                  peaks.data<T>()[row], taus.data<T>()[row], dy.data<T>() + row * width, weights,
                                  weights + keys, kept == 0 ? nullptr : weights + 2 * keys, to);
        }
      });
      if (const Target d_theta = tape.target(theta)) sum_to<T>(d_thetas, d_theta);
    });
  });
  return {result, Trace(q.value(), k.value(), theta.value(), visible, peaks, taus)};
}

}  // namespace regard
