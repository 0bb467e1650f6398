// The loss makes the gradient of its weight in the parameter's own place before backward asks for it. Whatever happens
// in between, the gradient is what it would be without that.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "regard/autograd/ops.h"
#include "regard/random.h"

namespace regard {
namespace {

constexpr std::int64_t kRows = 7, kWidth = 5, kWords = 11;

Tensor numbers(const Shape& shape, std::uint64_t seed) {
  const Tensor made = Tensor::empty(shape);
  for (std::int64_t i = 0; i < made.size(); ++i) {
    made.data<float>()[i] =
        static_cast<float>(random_below(RandomKey(seed), static_cast<std::uint64_t>(i), 2001)) / 1000 - 1;
  }
  return made;
}

class Borrowed : public testing::Test {
 protected:
  Borrowed() : weight(parameters.add("weight", numbers({kWords, kWidth}, 1))), gradients(parameters) {}

  Var loss(Tape& tape, std::uint64_t seed, double factor = 1) {
    const Tensor targets = Tensor::empty({kRows}, DType::kI32);
    for (std::int64_t i = 0; i < kRows; ++i) {
      targets.data<std::int32_t>()[i] = static_cast<std::int32_t>((static_cast<std::uint64_t>(i) * 3 + seed) % kWords);
    }
    const Var x = tape.constant(numbers({kRows, kWidth}, seed));
    return linear_cross_entropy(x, tape.use(weight), {}, targets, {.transposed = true}).loss * number(tape, factor);
  }
  Var look_up(Tape& tape) {
    const Tensor ids = Tensor::of<std::int32_t>({3}, {2, 5, 2});
    return sum(embedding(tape.use(weight), ids) * tape.constant(numbers({3, kWidth}, 9)));
  }
  // The gradient that `steps` leave, beginning with zeros or with gradients of ones: those are nobody's place to work
  // in.
  std::vector<float> gradient(bool fresh, const std::function<void(Tape&)>& steps) {
    Tape tape(gradients);
    gradients.zero();
    if (!fresh) {
      gradients.settle();
      const Tensor& all = gradients.of(weight);
      std::fill_n(all.data<float>(), all.size(), 0.0f);
      gradients.forget_rows();
    }
    steps(tape);
    gradients.settle();
    const Tensor& all = gradients.of(weight);
    return {all.data<float>(), all.data<float>() + all.size()};
  }
  void expect_same(const std::function<void(Tape&)>& steps) {
    const auto fresh = gradient(true, steps), used = gradient(false, steps);
    ASSERT_EQ(fresh.size(), used.size());
    bool any = false;
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      EXPECT_FLOAT_EQ(fresh[i], used[i]) << "element " << i;
      any |= fresh[i] != 0;
    }
    EXPECT_TRUE(any);
  }

  Parameters parameters;
  Parameter& weight;
  Gradients gradients;
};

TEST_F(Borrowed, ALossAlone) {
  expect_same([&](Tape& tape) { tape.backward(loss(tape, 3)); });
}
TEST_F(Borrowed, AFactorAboveTheLoss) {
  expect_same([&](Tape& tape) { tape.backward(loss(tape, 3, 0.125)); });
}
TEST_F(Borrowed, GoingBackTwiceAddsTwice) {
  const auto once = gradient(true, [&](Tape& tape) { tape.backward(loss(tape, 3, 0.5)); });
  const auto twice = gradient(true, [&](Tape& tape) {
    const Var made = loss(tape, 3, 0.5);
    tape.backward(made);
    tape.backward(made);
  });
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_FLOAT_EQ(twice[i], 2 * once[i]);
}
TEST_F(Borrowed, TwoLossesShareAWeight) {
  expect_same([&](Tape& tape) { tape.backward(loss(tape, 3, 0.5) + loss(tape, 4, 2)); });
}
TEST_F(Borrowed, TwoLossesOneAfterTheOther) {
  expect_same([&](Tape& tape) {
    const Var first = loss(tape, 3, 0.5), second = loss(tape, 4, 2);
    tape.backward(first);
    tape.backward(second);
  });
}
TEST_F(Borrowed, ATiedWeightIsLookedUpToo) {
  expect_same([&](Tape& tape) {
    const Var words = look_up(tape);
    tape.backward(loss(tape, 3, 0.5) + words);
  });
}
TEST_F(Borrowed, OthersMayComeFirst) {
  expect_same([&](Tape& tape) {
    const Var made = loss(tape, 3, 0.5);
    tape.backward(look_up(tape));
    tape.backward(made);
  });
  expect_same([&](Tape& tape) {
    const Var made = loss(tape, 3, 0.5);
    tape.backward(sum(tape.use(weight)));
    tape.backward(made);
  });
}
TEST_F(Borrowed, GradientsMayBeClearedInBetween) {
  const auto plain = gradient(true, [&](Tape& tape) { tape.backward(loss(tape, 3)); });
  const auto cleared = gradient(true, [&](Tape& tape) {
    const Var made = loss(tape, 3);
    gradients.zero();
    tape.backward(made);
  });
  EXPECT_EQ(plain, cleared);
}
TEST_F(Borrowed, ALossThatNobodyGoesBackFromLeavesNothing) {
  const auto left = gradient(true, [&](Tape& tape) { loss(tape, 3); });
  EXPECT_EQ(left, std::vector<float>(left.size(), 0.0f));
  const auto other = gradient(true, [&](Tape& tape) {
    loss(tape, 3);
    tape.reset();
    tape.backward(look_up(tape));
  });
  const auto alone = gradient(true, [&](Tape& tape) { tape.backward(look_up(tape)); });
  EXPECT_EQ(other, alone);
}

}  // namespace
}  // namespace regard
