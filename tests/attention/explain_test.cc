// What is told about a call before it is made is what the call then does: memory byte by byte, pairs, reasons.
#include "regard/attention/explain.h"

#include <gtest/gtest.h>

#include <string>

#include "attention/mechanism.h"
#include "base/flops.h"
#include "base/pool.h"
#include "regard/autograd/ops.h"
#include "regard/error.h"
#include "tensor/arena.h"

namespace regard {
namespace {

struct Used {
  double forward = 0, backward = 0;
};

// What a call takes beyond its context and the gradients of q, k, v and what it learns.
Used used_by(const Mechanism& mechanism, const ExplainShape& s) {
  Tape tape;
  const Needs needs = mechanism.needs();
  const auto zeros = [&](const Shape& shape) { return tape.variable(Tensor::zeros(shape, s.dtype)); };
  const Var q = needs.rows ? zeros({s.batch, s.heads, s.queries, s.width}) : Var();
  const Var k = needs.rows ? zeros({s.batch, s.groups, s.keys, s.width}) : Var();
  const bool pointer = mechanism.stages().read->is_pointer();
  const Var v = pointer ? Var() : zeros({s.batch, s.groups, s.keys, s.values});
  AttendOptions options;
  options.heads = s.heads;
  options.first_query = s.first_query;
  if (needs.query_tokens) options.query_tokens = zeros({s.batch, s.queries, s.query_token});
  if (needs.key_tokens) options.key_tokens = zeros({s.batch, s.keys, s.key_token});
  std::vector<Var> inputs = {q, k, v, options.query_tokens, options.key_tokens}, learned;
  for (const Learned& each : mechanism.learned({.heads = s.heads,
                             .groups = s.groups,
                             .width = needs.rows ? s.width : 0,
                             .values = pointer ? 0 : s.values,
                             .query_token = needs.query_tokens ? s.query_token : 0,
                             .key_token = needs.key_tokens ? s.key_token : 0})) {
    learned.push_back(zeros(each.shape));
  }
  inputs.insert(inputs.end(), learned.begin(), learned.end());
  options.learned = learned;
  const auto bytes = [](const Tensor& x) { return static_cast<double>(x.bytes()); };
  const double before = static_cast<double>(tape.arena().used());
  const Attention made = attend(mechanism, q, k, v, options);
  const double after = static_cast<double>(tape.arena().used());
  Used used{.forward = after - before - bytes(made.context.value())};
  tape.backward(made.context, Tensor::zeros(made.context.shape(), s.dtype));
  used.backward = static_cast<double>(tape.arena().used()) - after;
  for (const Var x : inputs) {
    if (x.defined() && tape.gradient(x).defined()) used.backward -= bytes(tape.gradient(x));
  }
  return used;
}

ExplainShape sized(std::int64_t batch, std::int64_t heads, std::int64_t groups, std::int64_t queries, std::int64_t keys,
                   std::int64_t width) {
  ExplainShape shape;
  shape.batch = batch;
  shape.heads = heads;
  shape.groups = groups;
  shape.queries = queries;
  shape.keys = keys;
  shape.width = width;
  return shape;
}

TEST(Explain, MemoryIsWhatACallTakes) {
  for (const int count : {1, 2}) {
    const ThreadLimit limit(count);
    for (const char* line : {"scaled_dot", "dot | causal | sparsemax", "cosine | hard:samples=3",
                             "scaled_dot | uniform", "scaled_dot | pointer", "scaled_dot | window:9 | hard:gumbel"}) {
      for (const ExplainShape& shape : {sized(1, 2, 2, 300, 300, 16), sized(3, 4, 2, 61, 130, 20)}) {
        const Mechanism mechanism(line);
        const Explanation told = explain(mechanism, shape);
        EXPECT_EQ(told.threads, count);
        EXPECT_EQ(told.maps, 0u);
        const Used used = used_by(mechanism, told.shape);
        EXPECT_NEAR(static_cast<double>(told.forward_bytes), used.forward, 0.02 * used.forward + 2048) << line;
        EXPECT_NEAR(static_cast<double>(told.backward_bytes), used.backward, 0.02 * used.backward + 2048) << line;
      }
    }
  }
}

TEST(Explain, MapsAreCountedForEveryItem) {
  for (const char* line : {"additive", "general | causal", "rotary(scaled_dot)", "dense_synth:300", "relative:8",
                           "mixture(scaled_dot, additive)", "scaled_dot | local_p:8"}) {
    const Mechanism mechanism(line);
    const Explanation told = explain(mechanism, sized(5, 4, 4, 200, 200, 16));
    const Used used = used_by(mechanism, told.shape);
    EXPECT_GT(told.maps, 0u) << line;
    EXPECT_NEAR(static_cast<double>(told.forward_bytes), used.forward, 0.05 * used.forward) << line;
    EXPECT_NEAR(static_cast<double>(told.backward_bytes), used.backward, 0.5 * used.backward) << line;
  }
}

TEST(Explain, PairsFollowFromTheScopes) {
  const auto pairs = [](const char* line) {
    return explain(Mechanism(line), sized(2, 3, 3, 10, 10, 16)).visible_pairs;
  };
  EXPECT_EQ(pairs("dot"), 6 * 100);
  EXPECT_EQ(pairs("dot | causal"), 6 * 55);
  EXPECT_EQ(pairs("dot | window:1"), 6 * 28);
  EXPECT_EQ(pairs("dot | causal & window:1 & alibi"), 6 * 19);
  EXPECT_EQ(pairs("dot | bias"), 6 * 100);
  for (const char* line : {"dot | lengths", "dot | mask", "dot | documents", "dot | causal & local_p:3"}) {
    EXPECT_EQ(pairs(line), std::nullopt) << line;
  }
  ExplainShape one = sized(1, 1, 1, 1, 100, 16);  // the last of a hundred
  EXPECT_EQ(explain(Mechanism("dot | causal"), one).visible_pairs, 100);
  one.first_query = 9;
  EXPECT_EQ(explain(Mechanism("dot | causal"), one).visible_pairs, 10);
}

TEST(Explain, WorkIsThatOfThePairs) {
  const Explanation told = explain(Mechanism("dot | causal"), sized(2, 3, 3, 10, 10, 16));
  EXPECT_EQ(told.forward_flops, 6 * 55 * 4 * 16);
  EXPECT_EQ(told.backward_flops, 6 * 55 * 10 * 16);
}

TEST(Explain, NoSlowPathIsSilent) {
  const ThreadLimit limit(2);
  const auto slower = [](const char* line, const ExplainShape& shape) {
    std::string all;
    for (const std::string& each : explain(Mechanism(line), shape).slower) all += each + "\n";
    return all;
  };
  const ExplainShape usual = sized(2, 4, 4, 128, 128, 64);
  EXPECT_EQ(slower("scaled_dot | causal", usual), "");
  EXPECT_EQ(slower("scaled_dot | sparsemax", usual),
            "sparsemax needs whole rows: a thread holds 0.04 MiB of scores, where softmax goes from tile to tile\n");
  const auto says = [&](const char* line, const ExplainShape& shape, const std::string& words) {
    EXPECT_NE(slower(line, shape).find(words), std::string::npos) << line << ": " << slower(line, shape);
  };
  says("scaled_dot | hard", usual, "hard draws its keys one row after another");
  says("scaled_dot | pointer", usual, "a pointer reads whole rows: its weights are the result, 128 a query");
  says("additive", usual, "additive is no matrix product: additive tiles");
  says("mixture(scaled_dot, additive)", usual, "mixture computes its scores one after another");
  says("scaled_dot", sized(2, 4, 4, 128, 128, 20), "width 20 is no multiple of 16: of the last 16 lanes 12 are idle");
  says("scaled_dot", sized(2, 4, 4, 128, 128, 20), "values 20 wide are no multiple of 16");
  says("scaled_dot", sized(2, 4, 4, 1, 128, 64), "1 query uses one packing of the keys");
  says("scaled_dot | mask", usual, "mask is looked at element by element");
  says("scaled_dot | local_p:4", usual, "local_p changes every weight once more");
  says("scaled_dot", sized(1, 4, 1, 128, 128, 64), "the backward pass is 1 piece of work");
  ExplainShape wide = usual;
  wide.dtype = DType::kF64;
  says("scaled_dot", wide, "f64 runs the plain references");
}

TEST(Explain, EveryMechanismCanBeExplained) {
  int count = 0;
  for (const Card* card : cards()) {
    if (!card->module.empty()) continue;
    const std::string term = example_of(*card, 64);
    const std::string line = card->family == Family::kScore ? term : "relative:2 | " + term;
    const Explanation told = explain(Mechanism(line), sized(2, 2, 2, 64, 64, 16));
    EXPECT_FALSE(told.score.empty() || told.align.empty() || told.target.empty()) << line;
    EXPECT_GT(told.forward_bytes, 0u) << line;
    ++count;
  }
  EXPECT_GE(count, 30);
}

TEST(Explain, MistakesAreErrors) {
  EXPECT_THROW(explain(Mechanism("dot"), sized(0, 1, 1, 1, 1, 1)), Error);
  EXPECT_THROW(explain(Mechanism("dot"), sized(1, 3, 2, 1, 1, 1)), Error);
  EXPECT_THROW(explain(Mechanism("location:4"), sized(1, 1, 1, 5, 5, 2)), Error);
  ExplainShape whole;
  whole.dtype = DType::kI32;
  EXPECT_THROW(explain(Mechanism("dot"), whole), Error);
}

// What explain foretells of scores and reading is what is counted when the call is made; maps come on top.
TEST(Explain, FlopsAreThoseThatAreCounted) {
  const auto counted = [](const char* line, std::int64_t queries, std::int64_t keys) {
    Tape tape;
    const auto zeros = [&](std::int64_t length) { return tape.constant(Tensor::zeros({2, 3, length, 16})); };
    const FlopCount count;
    attend(Mechanism(line), zeros(queries), zeros(keys), zeros(keys), {.first_query = keys - queries});
    return count.flops();
  };
  for (const char* line : {"dot", "scaled_dot | causal", "dot | window:3 | sparsemax", "dot | causal & window:40"}) {
    SCOPED_TRACE(line);
    for (const auto& [queries, keys] : {std::pair<std::int64_t, std::int64_t>{7, 7}, {5, 300}, {200, 200}}) {
      const Explanation told =
          explain(Mechanism(line), {.batch = 2, .heads = 3, .queries = queries, .keys = keys, .width = 16});
      EXPECT_EQ(counted(line, queries, keys), told.forward_flops) << queries << " × " << keys;
    }
  }
  EXPECT_EQ(counted("dot", 7, 9), 2.0 * 3 * 7 * 9 * (2 * 16 + 2 * 16));
}

TEST(Explain, ProductsAreCountedWhileSomebodyAsks) {
  Tape tape;
  const Var a = tape.constant(Tensor::zeros({5, 7})), b = tape.constant(Tensor::zeros({7, 3}));
  double first = 0;
  {
    const FlopCount count;
    matmul(a, b);
    first = count.flops();
  }
  EXPECT_EQ(first, 2.0 * 5 * 7 * 3);
  EXPECT_FALSE(counts_flops());
  matmul(a, b);
  const FlopCount count;
  EXPECT_EQ(count.flops(), 0);
}

}  // namespace
}  // namespace regard
