// Heads side by side, with one mechanism or with several; a mechanism as a layer; attention in every layer of a
// convolutional decoder.
#include "regard/nn/multi_head.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "attention/cards.h"
#include "base/check.h"
#include "regard/error.h"
#include "regard/nn/multi_step.h"
#include "support/finite.h"
#include "verify/checks.h"

namespace regard {
namespace {

using verify::same_bits;

const std::vector<std::int32_t> kLengths = {4, 2};

struct Model {
  explicit Model(const MultiHeadSettings& settings, DType type = DType::kF64)
      : builder(parameters, RandomKey(11), type), attention(builder, settings) {
    const std::int64_t key = attention.settings().key, value = attention.settings().value;
    x = &builder.normal("x", {2, 3, attention.settings().query}, 1);
    k = &builder.normal("k", {2, 4, key}, 1);
    v = &builder.normal("v", {2, 4, value}, 1);
  }
  MultiHeadResult operator()(Tape& tape) const {
    return attention(tape.use(*x), tape.use(*k), tape.use(*v), {.lengths = kLengths, .first_query = 1});
  }

  Parameters parameters;
  Builder builder;
  MultiHead attention;
  const Parameter *x, *k, *v;
};

// What stands one sequence after another is read as if it were padded, bit for bit, and weights with it. Gradients of
// several uses are added up in another order.
TEST(MultiHead, SequencesWithoutPaddingGiveTheBitsOfThoseWithIt) {
  const std::vector<std::int32_t> lengths = {4, 0, 5, 1};
  const std::int64_t items = 4, longest = 5, width = 6;
  for (const std::vector<std::string>& lines : std::vector<std::vector<std::string>>{
           {"scaled_dot"}, {"additive"}, {"relative:3"}, {"dense_synth:8"}, {"general | window:1", "additive"}}) {
    Parameters parameters;
    const Builder builder(parameters, RandomKey(5));
    const MultiHead attention(builder, {.heads = 2, .query = width, .lines = lines});
    const Parameter& x = builder.normal("x", {10, width}, 1);
    const auto learned = [&](bool packed, Tensor& gradient) {
      Gradients gradients(parameters);
      Tape tape(gradients);
      const Var rows = tape.use(x), padded = pad_sequences(rows, lengths, longest),
                all = reshape(padded, {items, longest, width});
      const Sequences sequences{.lengths = lengths, .longest = longest};
      const AttendOptions options{.lengths = lengths, .first_query = 0};
      const MultiHeadResult made =
          packed ? attention.read(rows, attention.remember(rows, rows, &sequences), options, &sequences)
                 : attention(all, all, all, options);
      const Var y = packed ? made.output : unpad_sequences(reshape(made.output, {items, 1, longest, width}), lengths);
      std::vector<Tensor> results = {y.value().clone()};
      const Tensor weights = made.trace.all_weights();
      for (std::int64_t item = 0; item < items; ++item) {
        results.push_back(
            weights.slice(0, item, item + 1).slice(2, 0, lengths[static_cast<std::size_t>(item)]).clone());
      }
      tape.backward(sum(y * y));
      gradient = gradients.of(x).clone();
      return results;
    };
    Tensor one, other;
    const std::vector<Tensor> with = learned(false, one), without = learned(true, other);
    EXPECT_EQ(with[0].shape(), (Shape{10, width}));
    for (std::size_t i = 0; i < with.size(); ++i) EXPECT_TRUE(same_bits(with[i], without[i])) << lines[0] << ", " << i;
    for (std::int64_t i = 0; i < one.size(); ++i) {
      EXPECT_NEAR(one.data<float>()[i], other.data<float>()[i], 1e-5 * (1 + std::abs(one.data<float>()[i])))
          << lines[0];
    }
  }
}

TEST(MultiHead, SequencesThatDoNotFitAreErrors) {
  Parameters parameters;
  const MultiHead attention(Builder(parameters, RandomKey(5)), {.heads = 2, .query = 6});
  Tape tape;
  const std::vector<std::int32_t> lengths = {4, 1};
  const Sequences sequences{.lengths = lengths, .longest = 4};
  EXPECT_THROW(
      attention.remember(tape.constant(Tensor::zeros({2, 4, 6})), tape.constant(Tensor::zeros({2, 4, 6})), &sequences),
      Error);
  EXPECT_THROW(
      attention.remember(tape.constant(Tensor::zeros({6, 6})), tape.constant(Tensor::zeros({6, 6})), &sequences),
      Error);
}

// Number by number, from the parameters.
TEST(MultiHead, IsWhatItsFormulaSays) {
  for (const std::int64_t groups : {2, 1}) {
    Model model({.heads = 2, .groups = groups, .query = 6, .key = 5, .value = 4, .width = 3, .value_width = 2});
    Tape tape;
    const MultiHeadResult made = model(tape);
    ASSERT_EQ(made.output.shape(), (Shape{2, 3, 6}));
    const auto number = [&](const std::string& name, std::int64_t at) {
      return model.parameters.find(name).value.data<double>()[at];
    };
    const auto mapped = [&](const std::string& map, const Parameter& from, std::int64_t row, std::int64_t column) {
      const Tensor& weight = model.parameters.find(map + ".weight").value;
      double sum = number(map + ".bias", column);
      for (std::int64_t c = 0; c < weight[0]; ++c) {
        sum += from.value.data<double>()[row * weight[0] + c] * weight.data<double>()[c * weight[1] + column];
      }
      return sum;
    };
    const Tensor lengths =
        model.attention.value_lengths(model.attention.remember(tape.use(*model.k), tape.use(*model.v)));
    ASSERT_EQ(lengths.shape(), (Shape{2, 2, 4}));
    for (std::int64_t at = 0; at < lengths.size(); ++at) {
      const std::int64_t item = at / 8, head = at / 4 % 2, group = head * groups / 2;
      double squares = 0;
      for (std::int64_t out = 0; out < 6; ++out) {
        double sum = 0;
        for (std::int64_t c = 0; c < 2; ++c) {
          sum += mapped("value", *model.v, item * 4 + at % 4, group * 2 + c) *
                 number("output.weight", (head * 2 + c) * 6 + out);
        }
        squares += sum * sum;
      }
      EXPECT_NEAR(lengths.data<float>()[at], std::sqrt(squares), 1e-6);
    }
    for (std::int64_t item = 0; item < 2; ++item) {
      for (std::int64_t i = 0; i < 3; ++i) {
        double read[4] = {};
        for (std::int64_t head = 0; head < 2; ++head) {
          const std::int64_t group = head * groups / 2, seen = kLengths[static_cast<std::size_t>(item)];
          std::vector<double> p;
          double mass = 0;
          for (std::int64_t j = 0; j < seen; ++j) {
            double score = 0;
            for (std::int64_t c = 0; c < 3; ++c) {
              score += mapped("query", *model.x, item * 3 + i, head * 3 + c) *
                       mapped("key", *model.k, item * 4 + j, group * 3 + c);
            }
            p.push_back(std::exp(score / std::sqrt(3.0)));
            mass += p.back();
          }
          const Tensor weights = made.trace.weights({.item = item, .head = head});
          for (std::int64_t j = 0; j < seen; ++j) {
            const double weight = p[static_cast<std::size_t>(j)] / mass;
            EXPECT_NEAR(weights.data<double>()[i * 4 + j], weight, 1e-12);
            for (std::int64_t c = 0; c < 2; ++c) {
              read[head * 2 + c] += weight * mapped("value", *model.v, item * 4 + j, group * 2 + c);
            }
          }
        }
        for (std::int64_t c = 0; c < 6; ++c) {
          double sum = number("output.bias", c);
          for (std::int64_t h = 0; h < 4; ++h) sum += read[h] * number("output.weight", h * 6 + c);
          EXPECT_NEAR(made.output.value().data<double>()[(item * 3 + i) * 6 + c], sum, 1e-12);
        }
      }
    }
  }
}

TEST(MultiHead, MapsOfItsInputsBeginSmallerThanThatOfItsOutput) {
  Model model({.heads = 2, .query = 40});
  const auto largest = [&](const char* name) {
    const Tensor& weight = model.parameters.find(name).value;
    const double* values = weight.data<double>();
    return std::fabs(*std::max_element(values, values + weight.size(),
                                       [](double a, double b) { return std::fabs(a) < std::fabs(b); }));
  };
  const double limit = std::sqrt(6.0 / 80);
  EXPECT_NEAR(largest("output.weight"), limit, 0.01 * limit);
  for (const char* name : {"query.weight", "key.weight", "value.weight"}) {
    EXPECT_NEAR(largest(name), limit * std::sqrt(0.5), 0.01 * limit) << name;
  }
}

TEST(MultiHead, EveryScoreCanBeItsMechanismAndLearns) {
  int count = 0;
  for (const Card* card : cards()) {
    if (card->family != Family::kScore || !card->module.empty()) continue;
    SCOPED_TRACE(card->name);
    Model model({.heads = 2, .query = 4, .lines = {example_of(*card, 4)}});
    const auto loss = [&](Tape& tape) {
      const Var y = model(tape).output;
      return sum(y * y);
    };
    expect_gradients_match(model.parameters, loss, 20);
    ++count;
  }
  EXPECT_GE(count, 15);
}

TEST(MultiHead, HeadsMayDiffer) {
  const std::vector<std::string> lines = {"additive | window:1", "scaled_dot | sparsemax", "random_synth:4",
                                          "scaled_dot | sparsemax", "general | local_p:2"};
  Model model({.heads = 5, .query = 4, .width = 3, .lines = lines});
  const auto loss = [&](Tape& tape) {
    const Var y = model(tape).output;
    return sum(y * y);
  };
  expect_gradients_match(model.parameters, loss, 100);
  Tape tape;
  const MultiHeadResult made = model(tape);
  const Tensor window = made.trace.weights({.head = 0}), synthesized = made.trace.weights({.head = 2});
  EXPECT_EQ(window.data<double>()[0 * 4 + 3], 0);  // query 0 stands at place 1
  EXPECT_GT(window.data<double>()[0 * 4 + 2], 0);
  EXPECT_TRUE(same_bits(synthesized, made.trace.keep().weights({.head = 2})));
  EXPECT_FALSE(same_bits(made.trace.weights({.head = 1}), made.trace.weights({.head = 3})));
  EXPECT_THROW(made.trace.weights({.head = 5}), Error);
}

// Edits name heads as the layer numbers them, whichever of its mechanisms they belong to.
TEST(MultiHead, WhoWatchesReadsTheSameAndLearnsFromTheWeights) {
  for (const std::vector<std::string>& lines :
       {std::vector<std::string>{"scaled_dot"}, std::vector<std::string>{"additive", "scaled_dot", "additive"}}) {
    const auto heads = static_cast<std::int64_t>(lines.size());
    Model model({.heads = heads, .query = 6, .key = 5, .value = 4, .width = 3, .value_width = 2, .lines = lines});
    Tape tape;
    const MultiHeadResult plain = model(tape);
    const auto watch = [&](Tape& on) {
      return model.attention.watch(on.use(*model.x), model.attention.remember(on.use(*model.k), on.use(*model.v)),
                                   {.lengths = kLengths, .first_query = 1});
    };
    const MultiHeadResult watched = watch(tape);
    EXPECT_TRUE(same_bits(watched.output.value(), plain.output.value()));
    const Tensor read = watched.weights.value().clone(), asked = plain.trace.all_weights();
    ASSERT_EQ(read.shape(), asked.shape());
    for (std::int64_t i = 0; i < asked.size(); ++i) {  // read, not made again
      EXPECT_NEAR(read.data<double>()[i], asked.data<double>()[i], 1e-14);
    }
    EXPECT_FALSE(plain.weights.defined());
    expect_gradients_match(
        model.parameters,
        [&](Tape& on) {
          const Var weights = watch(on).weights;
          return sum(weights * weights);
        },
        10);
    EXPECT_THROW(
        model.attention.watch(tape.use(*model.x), model.attention.remember(tape.use(*model.k), tape.use(*model.v)),
                              {.dropout = 0.5f}),
        Error);
  }
}

TEST(MultiHead, EditsReachTheHeadsTheyName) {
  for (const std::vector<std::string>& lines :
       std::vector<std::vector<std::string>>{{"scaled_dot"}, {"dot", "scaled_dot", "dot"}}) {
    Model model({.heads = 3, .query = 6, .key = 5, .value = 4, .width = 2, .lines = lines});
    Tape tape;
    const auto run = [&](const Edits* edits) {
      return model.attention(tape.use(*model.x), tape.use(*model.k), tape.use(*model.v), {.edits = edits});
    };
    const MultiHeadResult plain = run(nullptr);
    const std::vector<float> weights = {0, 0.5f, 0, 2};
    Edits edits{.rows = {{.item = 1, .head = 2, .query = 1, .weights = weights}}};
    const MultiHeadResult replaced = run(&edits);
    for (std::int64_t head = 0; head < 3; ++head) {
      const Tensor before = plain.trace.weights({.item = 1, .head = head});
      const Tensor after = replaced.trace.weights({.item = 1, .head = head});
      EXPECT_EQ(same_bits(before, after), head != 2) << head;
      for (std::int64_t j = 0; j < 4 && head == 2; ++j) {
        EXPECT_EQ(after.data<double>()[4 + j], static_cast<double>(weights[static_cast<std::size_t>(j)]));
      }
    }
    // Without any head only the bias of the output is left; without the others, the outputs of single heads add up.
    const auto with = [&](std::vector<float> scale) {
      const Edits scaled{.head_scale = std::move(scale)};
      return run(&scaled).output.value().clone();
    };
    const Tensor none = with({0, 0, 0}), first = with({1, 0, 0}), second = with({0, 1, 0}), third = with({0, 0, 1});
    const Tensor two = with({2, 0, 0});
    for (std::int64_t i = 0; i < none.size(); ++i) {
      const auto at = [&](const Tensor& x) { return x.data<double>()[i] - none.data<double>()[i]; };
      EXPECT_NEAR(at(first) + at(second) + at(third), at(plain.output.value()), 1e-12);
      EXPECT_NEAR(at(two), 2 * at(first), 1e-12);
    }
    EXPECT_FALSE(same_bits(first, second));
    edits.rows[0].head = 3;
    EXPECT_THROW(run(&edits), Error);
    EXPECT_THROW(with({1, 2}), Error);
  }
}

TEST(MultiHead, WhatDoesNotFitIsAnError) {
  Parameters parameters;
  const Builder builder(parameters, RandomKey(1));
  EXPECT_THROW(MultiHead(builder.under("a"), {.heads = 3, .query = 4}), Error);
  EXPECT_THROW(MultiHead(builder.under("b"), {.heads = 4, .groups = 3, .query = 4}), Error);
  EXPECT_THROW(MultiHead(builder.under("c"), {.heads = 4, .query = 4, .lines = {"dot", "dot"}}), Error);
  EXPECT_THROW(MultiHead(builder.under("d"), {.heads = 2, .groups = 1, .query = 4, .lines = {"dot", "additive"}}),
               Error);
  EXPECT_THROW(MultiHead(builder.under("e"), {.heads = 0, .query = 4}), Error);
  EXPECT_THROW(MultiHead(builder.under("f"), {.heads = 2, .query = 4, .lines = {"dott"}}), Error);
}

TEST(AttentionLayer, FixedTablesDoNotLearn) {
  Parameters parameters;
  const AttentionLayer layer(Builder(parameters, RandomKey(1)), "random_synth:9,fixed", {.heads = 2});
  EXPECT_TRUE(parameters.find("random").frozen);
}

// A decoder prepares its keys once and looks at them at every step.
TEST(AttentionLayer, PreparedKeysGiveTheSameBits) {
  int count = 0;
  for (const Card* card : cards()) {
    if (card->family != Family::kScore || !card->module.empty()) continue;
    SCOPED_TRACE(card->name);
    const std::string line = example_of(*card, 5) + " | lengths";
    const Needs needs = Mechanism(line).needs();
    Parameters parameters;
    const Builder builder(parameters, RandomKey(8));
    const AttentionLayer layer(builder, line,
                               {.width = needs.rows ? 4 : 0,
                                .values = 3,
                                .query_token = needs.query_tokens ? 4 : 0,
                                .key_token = needs.key_tokens ? 4 : 0,
                                .hidden = 6});
    Tape tape;
    const Var q = tape.constant(normal({2, 1, 3, 4}, 1, RandomKey(1)));
    const Var k = tape.constant(normal({2, 1, 5, 4}, 1, RandomKey(2)));
    const Var v = tape.constant(normal({2, 1, 5, 3}, 1, RandomKey(3)));
    const AttendOptions options{.lengths = kLengths, .first_query = 0};
    AttendOptions prepared = options;
    prepared.prepared_keys = layer.prepare_keys(k);
    EXPECT_TRUE(same_bits(layer(q, {}, v, prepared).context.value(), layer(q, k, v, options).context.value()));
    EXPECT_THROW(layer(q, k, v, prepared), Error);
    ++count;
  }
  EXPECT_GE(count, 15);
}

TEST(MultiStep, GradientsMatchFiniteDifferencesAndTheReadIsOfBoth) {
  Parameters parameters;
  const Builder builder(parameters, RandomKey(3), DType::kF64);
  const MultiStepAttention attention(builder, {.state = 3, .embedding = 4});
  const Parameter &h = builder.normal("h", {2, 3, 3}, 1), &g = builder.normal("g", {2, 3, 4}, 1),
                  &z = builder.normal("z", {2, 4, 4}, 1), &e = builder.normal("e", {2, 4, 4}, 1);
  const auto call = [&](Tape& tape) {
    return attention(tape.use(h), tape.use(g), tape.use(z), tape.use(e), {.lengths = kLengths});
  };
  expect_gradients_match(
      parameters,
      [&](Tape& tape) {
        const Var c = call(tape).context;
        return sum(c * c);
      },
      60);
  Tape tape;
  const Attention made = call(tape);
  ASSERT_EQ(made.context.shape(), (Shape{2, 3, 4}));
  const Tensor p = made.trace.weights({.item = 1});
  double read = 0;
  for (std::int64_t j = 0; j < 2; ++j) {
    const std::int64_t at = (4 + j) * 4 + 2;
    read += p.data<double>()[2 * 4 + j] * (z.value.data<double>()[at] + e.value.data<double>()[at]);
  }
  EXPECT_NEAR(made.context.value().data<double>()[(3 + 2) * 4 + 2], read, 1e-12);
}

}  // namespace
}  // namespace regard
