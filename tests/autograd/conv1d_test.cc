// Convolutions over sequences of unlike lengths.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "regard/autograd/ops.h"

namespace regard {
namespace {

struct Passes {
  Tensor y, dx, dweight, dbias;
};

// Sequences of 5 and 2 steps of 3 channels in [2, time, 3]; behind their ends there is NaN, in x and in dy.
Passes run(std::int64_t time, Padding padding) {
  const std::vector<std::int32_t> lengths = {5, 2};
  const auto fill = [&](std::int64_t width) {
    Tensor x = Tensor::empty({2, time, width});
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t i = 0; i < time * width; ++i) {
        const bool inside = i < lengths[static_cast<std::size_t>(b)] * width;
        x.data<float>()[b * time * width + i] =
            inside ? std::sin(static_cast<float>(17 * b + i)) : std::numeric_limits<float>::quiet_NaN();
      }
    }
    return x;
  };
  Tensor weight = Tensor::empty({9, 17});
  for (std::int64_t i = 0; i < weight.size(); ++i) weight.data<float>()[i] = std::cos(static_cast<float>(i));
  Tape tape;
  const Var x = tape.variable(fill(3)), w = tape.variable(weight), bias = tape.variable(Tensor::zeros({17}));
  const Var y = conv1d(x, w, bias, {.kernel = 3, .padding = padding, .lengths = lengths});
  tape.backward(y, fill(17));
  return {y.value().clone(), tape.gradient(x).clone(), tape.gradient(w).clone(), tape.gradient(bias).clone()};
}

TEST(Conv1d, NeitherReadsNorDependsOnWhatLiesBehindAnEnd) {
  for (const Padding padding : {Padding::kSame, Padding::kCausal}) {
    const Passes tight = run(5, padding), loose = run(9, padding);
    for (const bool gradient : {false, true}) {
      const Tensor a = gradient ? tight.dx : tight.y, b = gradient ? loose.dx : loose.y;
      for (std::int64_t item = 0; item < 2; ++item) {
        for (std::int64_t t = 0; t < 9; ++t) {
          for (std::int64_t c = 0; c < a[2]; ++c) {
            const float got = b.data<float>()[(item * 9 + t) * a[2] + c];
            EXPECT_EQ(got, t < 5 ? a.data<float>()[(item * 5 + t) * a[2] + c] : 0.0f);
            if (t >= (item == 0 ? 5 : 2)) {
              EXPECT_EQ(got, 0.0f);
            }
          }
        }
      }
    }
    EXPECT_EQ(std::memcmp(tight.dweight.raw(), loose.dweight.raw(), tight.dweight.bytes()), 0);
    EXPECT_EQ(std::memcmp(tight.dbias.raw(), loose.dbias.raw(), tight.dbias.bytes()), 0);
  }
}

TEST(Conv1d, CausalNeverLooksAhead) {
  Tape tape;
  const Var weight = tape.constant(Tensor::of({3, 1}, {1.0f, 10.0f, 100.0f}));
  const Tensor y = conv1d(tape.constant(Tensor::of({1, 4, 1}, {1.0f, 2.0f, 3.0f, 4.0f})), weight, {},
                          {.kernel = 3, .padding = Padding::kCausal})
                       .value();
  EXPECT_EQ(std::vector<float>(y.data<float>(), y.data<float>() + 4), (std::vector<float>{100, 210, 321, 432}));
}

}  // namespace
}  // namespace regard
