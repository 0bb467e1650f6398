#include "regard/autograd/tape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "autograd/allocations.h"
#include "base/pool.h"
#include "kernels/target.h"
#include "regard/attention/attend.h"
#include "regard/autograd/ops.h"
#include "regard/context.h"
#include "regard/random.h"
#include "tensor/arena.h"

namespace regard {
namespace {

Tensor drawn(const Shape& shape, std::uint64_t seed) {
  Tensor result = Tensor::empty(shape);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    result.data<float>()[i] = uniform(RandomKey(seed), static_cast<std::uint64_t>(i)) - 0.5f;
  }
  return result;
}

std::vector<float> values(const Tensor& x) {
  const Tensor dense = x.clone();
  return {dense.data<float>(), dense.data<float>() + dense.size()};
}

std::string text_of(const auto& call, ErrorKind kind = ErrorKind::kInput) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(Tape, AParameterUsedSeveralTimesGetsTheSumOfItsGradients) {
  Parameters parameters;
  const Parameter& w = parameters.add("w", Tensor::of<float>({2}, {3, -2}));
  Gradients gradients(parameters);
  Tape tape(gradients);
  const Var a = tape.use(w), b = tape.use(w);
  tape.backward(sum(a * b + a + a * a * b));  // w² + w + w³
  EXPECT_EQ(values(gradients.of(w)), (std::vector<float>{6 + 1 + 27, -4 + 1 + 12}));
}

TEST(Tape, GradientsOfParametersAddUpUntilZero) {
  Parameters parameters;
  const Parameter& w = parameters.add("w", Tensor::of<float>({2}, {3, -2}));
  Gradients gradients(parameters);
  Tape tape(gradients);
  for (int step = 1; step <= 3; ++step) {
    tape.backward(sum(tape.use(w) * tape.constant(Tensor::of<float>({2}, {10, 1}))));
    tape.reset();
    EXPECT_EQ(values(gradients.of(w)),
              (std::vector<float>{10.0f * static_cast<float>(step), static_cast<float>(step)}));
  }
  gradients.zero();
  tape.backward(sum(tape.use(w)));
  EXPECT_EQ(values(gradients.of(w)), (std::vector<float>{1, 1}));
}

TEST(Tape, GradientsThatNothingReachedSettleToZero) {
  Parameters parameters;
  const Parameter& used = parameters.add("used", Tensor::of<float>({1}, {3}));
  const Parameter& other = parameters.add("other", Tensor::of<float>({2}, {1, 1}));
  Gradients gradients(parameters);
  {
    Tape tape(gradients);
    tape.backward(sum(tape.use(used)) + sum(tape.use(other)));
  }
  gradients.zero();
  {
    Tape tape(gradients);
    tape.backward(sum(tape.use(used)));
  }
  gradients.settle();
  EXPECT_EQ(values(gradients.of(used)), std::vector<float>{1});
  EXPECT_EQ(values(gradients.of(other)), (std::vector<float>{0, 0}));
}

TEST(Tape, BackwardThroughTheSameNodesTwiceDoesNotCountWhatIsBetweenTwice) {
  Tape tape;
  const Var x = tape.variable(Tensor::of<float>({1}, {2}));
  const Var y = x * x, loss = sum(y * y);  // x⁴, slope 32
  tape.keep(y);
  tape.backward(loss);
  EXPECT_EQ(values(tape.gradient(x)), std::vector<float>{32});
  tape.backward(loss);
  EXPECT_EQ(values(tape.gradient(x)), std::vector<float>{64}) << "what x was given adds up";
  EXPECT_EQ(values(tape.gradient(y)), std::vector<float>{8}) << "what lies between does not";
}

TEST(Tape, BackwardFromTwoOutputsOfOneGraph) {
  Tape tape;
  const Var x = tape.variable(Tensor::of<float>({1}, {2}));
  const Var y = x * x, a = sum(y), b = sum(y * x);
  tape.backward(a);  // 2x
  tape.backward(b);  // + 3x²
  EXPECT_EQ(values(tape.gradient(x)), std::vector<float>{4 + 12});
}

TEST(Tape, OneValueAsBothOperands) {
  Tape tape;
  const Tensor value = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  const auto gradient = [&](Var (*call)(Var)) {
    const Var x = tape.variable(value);
    tape.backward(sum(call(x)));
    return values(tape.gradient(x));
  };
  EXPECT_EQ(gradient([](Var x) { return x + x; }), (std::vector<float>{2, 2, 2, 2}));
  EXPECT_EQ(gradient([](Var x) { return x - x; }), (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(gradient([](Var x) { return x * x; }), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(gradient([](Var x) { return x / x; }), (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(gradient([](Var x) { return matmul(x, x); }), (std::vector<float>{3 + 4, 7 + 4, 3 + 6, 7 + 6}));
  EXPECT_EQ(gradient([](Var x) { return concat({x, x, x}, 1); }), (std::vector<float>{3, 3, 3, 3}));
  EXPECT_EQ(gradient([](Var x) { return reshape(x, {4}) * reshape(x, {4}); }), (std::vector<float>{2, 4, 6, 8}));
}

// Reshape lends its gradient instead of copying it; what is added later must not reach the lender.
TEST(Tape, ALentGradientIsNotAddedTo) {
  Tape tape;
  const Var x = tape.variable(Tensor::of<float>({2, 2}, {1, 2, 3, 4}));
  const Var flat = reshape(x, {4}), other = x * x;
  tape.keep(flat);
  const Var y = flat * tape.constant(Tensor::of<float>({4}, {1, 10, 100, 1000}));
  tape.backward(sum(y) + sum(other) + sum(reshape(flat, {1, 4})));
  EXPECT_EQ(values(tape.gradient(flat)), (std::vector<float>{2, 11, 101, 1001}));
  EXPECT_EQ(values(tape.gradient(x)), (std::vector<float>{2 + 2, 11 + 4, 101 + 6, 1001 + 8}));
}

TEST(Tape, ALentGradientOutlastsTheNextPass) {
  Tape tape;
  const Var x = tape.variable(Tensor::of<float>({2}, {1, 2}));
  const Var y = reshape(x, {1, 2});
  tape.backward(sum(y * tape.constant(Tensor::of<float>({1, 2}, {10, 100}))));
  EXPECT_EQ(values(tape.gradient(x)), (std::vector<float>{10, 100}));
  tape.backward(sum(y * tape.constant(Tensor::of<float>({1, 2}, {1000, 2000}))));
  EXPECT_EQ(values(tape.gradient(x)), (std::vector<float>{1010, 2100}));
  tape.backward(y, Tensor::of<float>({1, 2}, {5, 7}));
  EXPECT_EQ(values(tape.gradient(x)), (std::vector<float>{1015, 2107}));
}

TEST(Tape, BackwardLeavesTheSeedAlone) {
  Tape tape;
  const Var x = tape.variable(Tensor::of<float>({2}, {1, 2}));
  const Var y = reshape(x, {1, 2}), z = y + x;
  const Tensor seed = Tensor::of<float>({1, 2}, {5, 7});
  tape.backward(y, seed);
  tape.backward(z, seed);
  tape.backward(y, seed);
  EXPECT_EQ(values(seed), (std::vector<float>{5, 7}));
  EXPECT_EQ(values(tape.gradient(x)), (std::vector<float>{20, 28}));
}

TEST(Tape, WhatNothingReachedHasNoGradient) {
  Tape tape;
  const Var x = tape.variable(Tensor::of<float>({1}, {2})), y = tape.variable(Tensor::of<float>({1}, {3}));
  tape.backward(sum(x));
  EXPECT_TRUE(tape.gradient(x).defined());
  EXPECT_FALSE(tape.gradient(y).defined());
}

TEST(Tape, WithoutGradientsItOnlyComputes) {
  Parameters parameters;
  const Parameter& w = parameters.add("w", Tensor::of<float>({1}, {3}));
  Tape tape;
  const Var y = tape.use(w) * tape.use(w);
  EXPECT_EQ(y.value().item(), 9);
  EXPECT_FALSE(y.needs_gradient());
  EXPECT_NE(text_of([&] { tape.backward(sum(y)); }).find("gradient"), std::string::npos);
}

TEST(Tape, FrozenParametersGetNoGradient) {
  Parameters parameters;
  const Parameter& a = parameters.add("encoder.weight", Tensor::of<float>({1}, {3}));
  const Parameter& b = parameters.add("decoder.weight", Tensor::of<float>({1}, {5}));
  Gradients gradients(parameters);
  parameters.freeze("encoder");
  const auto step = [&] {
    gradients.zero();
    Tape tape(gradients);
    tape.backward(sum(tape.use(a) * tape.use(b)));
    gradients.settle();
    return std::vector<float>{values(gradients.of(a))[0], values(gradients.of(b))[0]};
  };
  EXPECT_EQ(step(), (std::vector<float>{0, 3}));
  parameters.freeze("encoder", false);
  EXPECT_EQ(step(), (std::vector<float>{5, 3}));
  parameters.freeze("");
  EXPECT_THROW(step(), Error) << "nothing is left to learn";
}

TEST(Parameters, AreFoundByName) {
  Parameters parameters;
  parameters.add("encoder.weight", Tensor::zeros({2, 3}), "slow");
  parameters.add("decoder.weight", Tensor::zeros({4}));
  EXPECT_EQ(parameters.find("encoder.weight").group, "slow");
  EXPECT_EQ(parameters.find("decoder.weight").group, "");
  EXPECT_EQ(parameters.find("decoder.weight").index, 1u);
  EXPECT_EQ(parameters.count(), 10);
  EXPECT_EQ(parameters.size(), 2u);
  EXPECT_NE(text_of([&] { parameters.find("encoder.wait"); }).find("'encoder.wait'"), std::string::npos);
  EXPECT_NE(text_of([&] { parameters.add("decoder.weight", Tensor::zeros({1})); }).find("'decoder.weight'"),
            std::string::npos);
  EXPECT_NE(text_of([&] { parameters.freeze("embedding"); }).find("'embedding'"), std::string::npos);
  EXPECT_THROW(parameters.add("turned", Tensor::zeros({2, 3}).transpose(0, 1)), Error);
}

TEST(Parameters, ReferencesStayGoodWhenOthersAreAdded) {
  Parameters parameters;
  const Parameter& first = parameters.add("p0", Tensor::of<float>({1}, {42}));
  for (int i = 1; i < 1000; ++i) parameters.add("p" + std::to_string(i), Tensor::zeros({1}));
  EXPECT_EQ(first.name, "p0");
  EXPECT_EQ(first.value.item(), 42);
}

TEST(Gradients, OfAnotherModelAreAnError) {
  Parameters mine, other;
  mine.add("w", Tensor::zeros({2}));
  const Parameter& theirs = other.add("w", Tensor::zeros({3}));
  Gradients gradients(mine);
  EXPECT_NE(text_of([&] { gradients.of(theirs); }).find("'w'"), std::string::npos);
  const Parameter& late = mine.add("late", Tensor::zeros({2}));
  EXPECT_NE(text_of([&] { gradients.of(late); }).find("'late'"), std::string::npos);
  Tape tape(gradients);
  EXPECT_THROW(tape.use(late), Error);
}

TEST(Var, ThrowsAfterItsStepHasEnded) {
  Tape tape;
  const Var x = tape.variable(Tensor::of<float>({1}, {2}));
  const Var y = x * x;
  const Tensor value = y.value();
  tape.backward(sum(y));
  const Tensor gradient = tape.gradient(x);
  tape.reset();
  text_of([&] { x.value(); }, ErrorKind::kInternal);
  text_of([&] { y.shape(); }, ErrorKind::kInternal);
  text_of([&] { tanh(y); }, ErrorKind::kInternal);
  text_of([&] { tape.backward(y); }, ErrorKind::kInternal);
  text_of([&] { tape.gradient(x); }, ErrorKind::kInternal);
  text_of([&] { value.data<float>(); }, ErrorKind::kInternal);
  text_of([&] { gradient.data<float>(); }, ErrorKind::kInternal);
  const Var fresh = tape.variable(Tensor::of<float>({1}, {3}));  // takes the place of x
  EXPECT_EQ(fresh.value().item(), 3);
  text_of([&] { x.value(); }, ErrorKind::kInternal);
}

TEST(Var, ThrowsOnAnotherTape) {
  Tape one, other;
  const Var x = one.variable(Tensor::of<float>({1}, {2})), y = other.variable(Tensor::of<float>({1}, {2}));
  text_of([&] { x + y; }, ErrorKind::kInternal);
  text_of([&] { one.backward(y); }, ErrorKind::kInternal);
  text_of([&] { Var().value(); });
}

TEST(Tape, RefusesToGoBackFromWhatIsNoLoss) {
  Tape tape;
  const Var x = tape.variable(Tensor::zeros({2, 3})), constant = tape.constant(Tensor::zeros({}));
  EXPECT_NE(text_of([&] { tape.backward(x * x); }).find("[2, 3]"), std::string::npos);
  EXPECT_NE(text_of([&] { tape.backward(constant); }).find("gradient"), std::string::npos);
  EXPECT_NE(text_of([&] { tape.backward(x * x, Tensor::zeros({3, 2})); }).find("[3, 2]"), std::string::npos);
  EXPECT_NE(text_of([&] { tape.backward(x * x, Tensor::zeros({2, 3}, DType::kF64)); }).find("f64"), std::string::npos);
}

TEST(Tape, TakesViewsThatAreNotDense) {
  Tape tape;
  const Var x = tape.variable(Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}).transpose(0, 1));
  EXPECT_EQ(values((x + x).value()), (std::vector<float>{2, 8, 4, 10, 6, 12}));
  tape.backward(sum(x * x));
  EXPECT_EQ(values(tape.gradient(x)), (std::vector<float>{2, 8, 4, 10, 6, 12}));
}

TEST(Tape, GrowsAsLongAsTheStepIs) {
  Tape tape;
  Var y = tape.variable(Tensor::of<float>({1}, {1}));
  const Var x = y, one = tape.constant(Tensor::of<float>({1}, {1}));
  for (int i = 0; i < 2000; ++i) y = y * one;
  EXPECT_GT(tape.nodes(), 2000u);
  tape.backward(sum(y));
  EXPECT_EQ(values(tape.gradient(x)), std::vector<float>{1});
}

// A parameter is packed for the kernels once; the copy must follow every change.
TEST(Tape, PackedParametersFollowTheirVersion) {
  Parameters parameters;
  Parameter& w = parameters.add("w", drawn({5, 7}, 1));
  Gradients gradients(parameters);
  Tape tape(gradients);
  const Tensor x = drawn({3, 5}, 2);
  for (int step = 0; step < 4; ++step) {
    for (std::int64_t i = 0; i < w.value.size(); ++i) w.value.data<float>()[i] += 0.25f;
    ++w.version;
    const Tensor got = matmul(tape.constant(x), tape.use(w)).value();
    Tape fresh;
    EXPECT_EQ(values(got), values(matmul(fresh.constant(x), fresh.constant(w.value)).value())) << "step " << step;
    tape.reset();
  }
  w.value = drawn({5, 7}, 3);  // another tensor
  const Tensor got = matmul(tape.constant(x), tape.use(w)).value();
  Tape fresh;
  EXPECT_EQ(values(got), values(matmul(fresh.constant(x), fresh.constant(w.value)).value()));
}

// Both have the same memory.
TEST(Tape, APackedParameterAndItsTransposeTakeTurns) {
  Parameters parameters;
  const Parameter& w = parameters.add("w", drawn({37, 67}, 1));
  const Tensor x = drawn({3, 37}, 2), y = drawn({3, 67}, 3);
  Tape tape, fresh;
  const std::vector<float> along = values(matmul(fresh.constant(x), fresh.constant(w.value)).value());
  const std::vector<float> back =
      values(matmul(fresh.constant(y), fresh.constant(w.value), {.transpose_b = true}).value());
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(values(matmul(tape.constant(x), tape.use(w)).value()), along) << "round " << round;
    EXPECT_EQ(values(matmul(tape.constant(x), tape.use(w)).value()), along) << "round " << round;
    EXPECT_EQ(values(matmul(tape.constant(y), tape.use(w), {.transpose_b = true}).value()), back) << "round " << round;
  }
}

TEST(Tape, PackedParametersServeEveryTarget) {
  Parameters parameters;
  const Parameter& w = parameters.add("w", drawn({37, 67}, 1));
  Tape tape;
  const Tensor x = drawn({3, 37}, 2);
  std::vector<float> first;
  for (int round = 0; round < 2; ++round) {
    for (const std::string& name : targets()) {
      const TargetScope scope(name);
      const std::vector<float> got = values(matmul(tape.constant(x), tape.use(w)).value());
      if (first.empty()) first = got;
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], first[i], 1e-5) << name;
    }
  }
}

TEST(Tape, AThreeDimensionalParameterIsNotTakenForAMatrix) {
  Parameters parameters;
  const Parameter& w = parameters.add("w", drawn({2, 3, 5}, 1));
  const Tensor x = drawn({2, 4, 3}, 2);
  Tape tape;
  EXPECT_EQ(values(matmul(tape.constant(x), tape.use(w)).value()),
            values(matmul(tape.constant(x), tape.constant(w.value)).value()));
}

struct Model {
  Parameters parameters;
  const Parameter *first, *bias, *second, *recurrent, *recurrent_bias, *theta;

  explicit Model(std::uint64_t seed) {
    first = &parameters.add("first", drawn({9, 12}, seed));
    bias = &parameters.add("bias", drawn({12}, seed + 1));
    second = &parameters.add("second", drawn({4, 5}, seed + 2));
    recurrent = &parameters.add("recurrent", drawn({4, 12}, seed + 3));
    recurrent_bias = &parameters.add("recurrent_bias", drawn({12}, seed + 4));
    theta = &parameters.add("theta", drawn({4}, seed + 5));
  }

  Var loss(Tape& tape, const Tensor& x) const {
    const Var input = matmul(tape.constant(x), tape.use(*first), {.bias = tape.use(*bias)});
    Tensor zeros = tape.make({x[0], 4});
    std::fill_n(zeros.data<float>(), zeros.size(), 0.0f);
    const Var state = gru_cell(input, tape.constant(zeros), tape.use(*recurrent), tape.use(*recurrent_bias));
    const Var memory = reshape(state, {1, x[0], 4});
    const std::int32_t lengths[] = {static_cast<std::int32_t>(std::min<std::int64_t>(x[0], 300))};
    const Var read = attend_additive(memory, memory, memory, tape.use(*theta), lengths).context;
    const Var y = softmax(gelu(matmul(read, tape.use(*second))));
    return mean(dropout(y, 0.1f, RandomKey(1)) * y);
  }
};

// What is given back is NaN from then on: had anybody read it, it would show.
TEST(Tape, MemoryGivenBackShowsNowhere) {
  struct Poisoned {
    Poisoned() { Arena::poison(true); }
    ~Poisoned() { Arena::poison(false); }
  };
  const Model model(10);
  const Tensor input = drawn({300, 9}, 3);  // large enough for its parts to be given back
  const auto train = [&](bool last) {
    Gradients gradients(model.parameters);
    Tape tape(gradients);
    std::vector<float> all;
    for (int step = 0; step < 3; ++step) {
      gradients.zero();
      const Var x = tape.variable(drawn({300, 4}, 5)), view = reshape(x, {100, 12});
      const Var twice = view + view, other = tanh(twice) - view;
      const Var loss = model.loss(tape, input) + sum(other * reshape(twice, {100, 12}));
      if (last) {
        tape.backward_last(loss);
      } else {
        tape.backward(loss);
        EXPECT_FALSE(std::isnan(loss.value().item()));
      }
      for (const float each : values(tape.gradient(x))) all.push_back(each);
      if (!last) tape.backward(sum(view * other));  // over the same nodes
      if (!last) tape.backward(view, drawn({100, 12}, 6));
      if (!last) {
        for (const float each : values(tape.gradient(x))) all.push_back(each);
      }
      gradients.settle();
      for (const Parameter& each : model.parameters) {
        for (const float value : values(gradients.of(each))) all.push_back(value);
      }
      tape.reset();
    }
    return all;
  };
  for (const bool last : {false, true}) {
    const std::vector<float> plain = train(last);
    const Poisoned poisoned;
    EXPECT_EQ(train(last), plain);
  }
}

// Gradients in the tape's memory: the same bits, there until the tape is reset, or for good if they are kept.
TEST(Tape, GradientsInItsMemoryAreTheSame) {
  const Model model(10);
  const Tensor input = drawn({300, 9}, 3);
  const auto all = [&](Gradients& gradients) {
    gradients.settle();
    std::vector<std::vector<float>> read;
    for (const Parameter& each : model.parameters) read.push_back(values(gradients.of(each)));
    return read;
  };
  Gradients own(model.parameters), placed(model.parameters, Gradients::Place::kTape);
  Tape plain(own), tape(placed);
  const Parameter& first = model.parameters[0];
  for (int step = 0; step < 3; ++step) {
    own.zero();
    placed.zero();
    tape.reset();
    plain.backward_last(model.loss(plain, input));
    tape.backward_last(model.loss(tape, input));
    plain.reset();
    tape.end();
    EXPECT_EQ(all(placed), all(own)) << step;
  }
  const Tensor kept = placed.of(first);
  placed.keep();
  tape.reset();
  text_of([&] { values(kept); }, ErrorKind::kInternal);
  EXPECT_EQ(all(placed), all(own)) << "they were moved";
  plain.backward_last(model.loss(plain, input));
  tape.backward_last(model.loss(tape, input));
  EXPECT_EQ(all(placed), all(own)) << "and are added to";
  Parameters others;
  const Parameter& unused = others.add("unused", drawn({3}, 1));
  Gradients nothing(others, Gradients::Place::kTape);
  nothing.settle();
  EXPECT_EQ(values(nothing.of(unused)), std::vector<float>(3, 0)) << "nothing was added";
}

TEST(Tape, AGradientThatWasNotKeptIsAnError) {
  Tape tape;
  const Var x = tape.variable(Tensor::of<float>({1}, {2})), y = x * x;
  tape.backward(sum(y));
  EXPECT_NE(text_of([&] { tape.gradient(y); }).find("keep"), std::string::npos);
}

TEST(Tape, AReleasedValueIsUsedAgainAndNotRead) {
  Tape tape;
  const Tensor numbers = drawn({40, 40}, 1);
  const Var x = tape.variable(numbers), product = matmul(x, x), y = product + x, squashed = tanh(y);
  const std::byte* place = product.value().raw();
  tape.release(product);
  tape.release(squashed);  // looks at itself: stays
  EXPECT_EQ((x + x).value().raw(), place);
  EXPECT_FALSE(std::isnan(values(squashed.value())[0]));
  EXPECT_EQ(product.shape(), Shape({40, 40}));
  text_of([&] { product.value(); }, ErrorKind::kInternal);
  tape.backward(sum(squashed));
  Tape plain;
  const Var again = plain.variable(numbers);
  plain.backward(sum(tanh(matmul(again, again) + again)));
  EXPECT_EQ(values(tape.gradient(x)), values(plain.gradient(again)));
}

TEST(Arena, GivesOutAgainWhatWasGivenBack) {
  Arena arena;
  void* const first = arena.allocate(6400);
  void* const second = arena.allocate(6400);
  void* const third = arena.allocate(6400);
  arena.recycle(first, 6400);
  arena.recycle(third, 6400);
  EXPECT_EQ(arena.allocate(6400), first) << "the first of equals";
  arena.recycle(first, 6400);
  arena.recycle(second, 6400);
  EXPECT_EQ(arena.allocate(19200), first) << "neighbours are one";
  void* inner = nullptr;
  {
    const Arena::Scope scope(arena);
    inner = arena.allocate(6400);
    const Arena::Scope lasting(arena, true);
    EXPECT_NE(arena.allocate(6400), inner);
  }
  EXPECT_EQ(arena.allocate(6400), inner);
  EXPECT_NE(arena.allocate(6400), inner);
}

TEST(Arena, SmallPiecesDoNotKeepLargeOnesApart) {
  Arena arena;
  void* const small = arena.allocate(64);
  void* const first = arena.allocate(6400);
  arena.allocate(64);
  void* const second = arena.allocate(6400);
  arena.allocate(64);
  arena.recycle(first, 6400);
  arena.recycle(second, 6400);
  EXPECT_NE(small, first);
  EXPECT_EQ(arena.allocate(12800), first);
}

TEST(Arena, WhatIsFreeAtItsEndGrows) {
  Arena arena;
  arena.allocate(6400);
  void* const last = arena.allocate(6400);
  arena.recycle(last, 6400);
  EXPECT_EQ(arena.allocate(64000), last);
}

TEST(Arena, ThinLeavesWhatWasGivenOut) {
  constexpr std::size_t kBytes = 3 << 20;
  Arena arena;
  std::vector<unsigned char*> pieces;
  for (int i = 0; i < 9; ++i) {
    pieces.push_back(static_cast<unsigned char*>(arena.allocate(kBytes)));
    std::fill_n(pieces.back(), kBytes, static_cast<unsigned char>(i + 1));
  }
  for (std::size_t i = 0; i < 9; i += 2) arena.recycle(pieces[i], kBytes);
  arena.thin();
  for (std::size_t i = 1; i < 9; i += 2) {
    EXPECT_EQ(std::count(pieces[i], pieces[i] + kBytes, static_cast<unsigned char>(i + 1)), std::ptrdiff_t{kBytes})
        << i;
  }
}

TEST(Tape, AsksTheHeapForNothingAfterWarmingUp) {
  for (const int threads : {1, 2}) {
    const ThreadLimit limit(threads);
    const Model model(10);
    Gradients gradients(model.parameters);
    Tape tape(gradients);
    const Tensor x = drawn({6, 9}, 3);
    const auto step = [&] {
      gradients.zero();
      tape.backward(model.loss(tape, x));
      gradients.settle();
      tape.reset();
    };
    for (int warm = 0; warm < 3; ++warm) step();
    const long before = allocations();
    const std::size_t reserved = tape.arena().reserved();
    for (int round = 0; round < 10; ++round) step();
    EXPECT_EQ(allocations() - before, 0) << threads << " threads";
    EXPECT_EQ(tape.arena().reserved(), reserved);
  }
}

TEST(Tape, TwoModelsInTwoThreadsDoNotMeet) {
  constexpr int kThreads = 4, kRounds = 50;
  const auto train = [](std::uint64_t seed) {
    Model model(seed);
    Gradients gradients(model.parameters);
    Tape tape(gradients);
    std::vector<float> trail;
    for (int round = 0; round < kRounds; ++round) {
      gradients.zero();
      const Var loss = model.loss(tape, drawn({6, 9}, seed + static_cast<std::uint64_t>(round)));
      trail.push_back(static_cast<float>(loss.value().item()));
      tape.backward(loss);
      gradients.settle();
      for (Parameter& parameter : model.parameters) {
        const float* gradient = gradients.of(parameter).data<float>();
        for (std::int64_t i = 0; i < parameter.value.size(); ++i)
          parameter.value.data<float>()[i] -= 0.1f * gradient[i];
        ++parameter.version;
      }
      tape.reset();
    }
    for (const Parameter& parameter : model.parameters) {
      for (const float value : values(parameter.value)) trail.push_back(value);
    }
    return trail;
  };
  std::vector<std::vector<float>> serial, together(kThreads);
  for (std::uint64_t i = 0; i < kThreads; ++i) serial.push_back(train(100 * i));
  std::vector<std::thread> workers;
  for (std::uint64_t i = 0; i < kThreads; ++i) workers.emplace_back([&, i] { together[i] = train(100 * i); });
  for (std::thread& worker : workers) worker.join();
  for (std::size_t i = 0; i < kThreads; ++i) EXPECT_EQ(serial[i], together[i]);
  EXPECT_NE(serial[0], serial[1]);
}

TEST(Tape, AStepThatDoesNotFitIsALimitAndTheNextOneRuns) {
  const Model model(10);
  Gradients gradients(model.parameters);
  Tape tape(gradients);
  const Tensor small = drawn({6, 9}, 3);
  const auto step = [&](const Tensor& x) {
    gradients.zero();
    const Var loss = model.loss(tape, x);
    tape.backward(loss);
    const double value = loss.value().item();
    tape.reset();
    return value;
  };
  const double expected = step(small);
  const Tensor large = drawn({20000, 9}, 3);
  {
    const ContextScope scope({.memory_limit = 4 << 20});
    text_of([&] { step(large); }, ErrorKind::kLimit);
    tape.reset();
    EXPECT_EQ(step(small), expected) << "under the limit";
  }
  EXPECT_EQ(step(small), expected);
}

}  // namespace
}  // namespace regard
