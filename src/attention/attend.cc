#include "regard/attention/attend.h"

#include "attention/engine.h"
#include "autograd/by_type.h"
#include "base/check.h"

namespace regard {
namespace {

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

Attended attend_additive(Var q, Var k, Var v, Var theta, std::span<const std::int32_t> lengths) {
  check_same_type(Op::attend, {q, k, v, theta});
  check_shapes(q, k, v, theta, lengths);
  static const Mechanism additive("additive | lengths");
  const auto one_head = [](Var x) { return reshape(x, {x[0], 1, x[1], x[2]}); };
  Inputs in;
  in.tape = &q.tape();
  in.type = q.dtype();
  in.batch = q[0];
  in.queries = q[1];
  in.keys = k[1];
  in.sizes = {.values = v[2], .hidden = q[2]};
  const Lowered made{.q = one_head(q),
                     .k = one_head(k),
                     .theta = reshape(theta, {1, theta[0]}),
                     .table = {},
                     .centres = {},
                     .bias = {}};
  const Attention read = attend_lowered(additive, in, made, one_head(v), {.lengths = lengths});
  return {reshape(read.context, {q[0], q[1], v[2]}), read.trace};
}

}  // namespace regard
