// How a query is made, and what becomes of a context.
#include "regard/nn/query_module.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "regard/error.h"
#include "support/finite.h"

namespace regard {
namespace {

TEST(QueryModule, AddsUpTheProductsOfItsPartsAndTheBias) {
  Parameters parameters;
  const QueryModule module(Builder(parameters, RandomKey(3)), {.input = 1, .state = 2, .query = 2});
  ASSERT_EQ(parameters.size(), 3u);
  parameters.find("input.weight").value.copy_from(Tensor::of({1, 2}, {1.0f, 2.0f}));
  parameters.find("state.weight").value.copy_from(Tensor::of({2, 2}, {3.0f, 4.0f, 5.0f, 6.0f}));
  parameters.find("bias").value.copy_from(Tensor::of({2}, {100.0f, 200.0f}));
  Gradients gradients(parameters);
  Tape tape(gradients);
  // One state for both inputs of the item.
  const Var input = tape.variable(Tensor::of({1, 2, 1}, {10.0f, 20.0f})),
            state = tape.variable(Tensor::of({1, 1, 2}, {1.0f, -1.0f}));
  const Var query = module({.input = input, .state = state});
  ASSERT_EQ(query.shape(), (Shape{1, 2, 2}));
  const float expected[] = {108, 218, 118, 238};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(query.value().data<float>()[i], expected[i]) << i;
  tape.backward(sum(query));
  EXPECT_EQ(tape.gradient(input).data<float>()[1], 3);
  EXPECT_EQ(tape.gradient(state).data<float>()[0], 14);  // (3 + 4) for each of two queries
}

TEST(QueryModule, PartsThatDoNotFitAreAnError) {
  Parameters parameters;
  const Builder builder(parameters, RandomKey(3));
  const QueryModule module(builder.under("one"), {.context = 2, .query = 2});
  Tape tape;
  const Var x = tape.constant(Tensor::zeros({1, 2}));
  EXPECT_NO_THROW(module({.context = x}));
  EXPECT_THROW(module({.input = x}), Error);
  EXPECT_THROW(module({.input = x, .context = x}), Error);
  EXPECT_THROW(module({}), Error);
  EXPECT_THROW(QueryModule(builder.under("none"), {.query = 2}), Error);
  EXPECT_THROW(QueryModule(builder.under("less"), {.input = -1, .query = 2}), Error);
}

TEST(ReadOut, IsAFunctionOfAProduct) {
  const struct {
    Activation function;
    double (*expected)(double);
  } all[] = {{Activation::kNone, [](double x) { return x; }},
             {Activation::kTanh, [](double x) { return std::tanh(x); }},
             {Activation::kRelu, [](double x) { return std::max(x, 0.0); }},
             {Activation::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
             {Activation::kGelu, [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }}};
  for (const auto& [function, expected] : all) {
    Parameters parameters;
    const ReadOut read_out(Builder(parameters, RandomKey(3)), 2, 2, function);
    parameters.find("weight").value.copy_from(Tensor::of({2, 2}, {1.0f, -1.0f, 0.5f, 0.0f}));
    parameters.find("bias").value.copy_from(Tensor::of({2}, {0.25f, -0.25f}));
    Tape tape;
    const Tensor y = read_out(tape.constant(Tensor::of({1, 2}, {1.0f, 0.5f}))).value();
    EXPECT_NEAR(y.data<float>()[0], expected(1.5), 1e-6);
    EXPECT_NEAR(y.data<float>()[1], expected(-1.25), 1e-6);
  }
}

TEST(QueryModule, GradientsMatchFiniteDifferencesWithItsReadOut) {
  Parameters parameters;
  const Builder builder(parameters, RandomKey(4), DType::kF64);
  const QueryModule module(builder.under("query"), {.input = 3, .state = 2, .context = 2, .query = 4});
  const ReadOut read_out(builder.under("out"), 4, 3, Activation::kTanh);
  const Parameter &input = builder.normal("input", {2, 3, 3}, 1), &state = builder.normal("state", {2, 1, 2}, 1),
                  &context = builder.normal("context", {2, 1, 2}, 1);
  expect_gradients_match(
      parameters,
      [&](Tape& tape) {
        const Var q = module({.input = tape.use(input), .state = tape.use(state), .context = tape.use(context)});
        const Var y = read_out(q);
        return sum(y * y);
      },
      60);
}

}  // namespace
}  // namespace regard
