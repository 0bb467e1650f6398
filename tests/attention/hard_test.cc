// Hard attention: what it draws, that everybody draws the same, and that its estimates of the gradient are right: by
// enumeration of all choices, since a choice has no finite differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "attention/mechanism.h"
#include "base/pool.h"
#include "kernels/target.h"
#include "regard/nn/hard_baseline.h"
#include "verify/checks.h"

namespace regard {
namespace {

using verify::same_bits;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor drawn(const Shape& shape, std::uint64_t seed, DType type = DType::kF32) {
  const Tensor result = Tensor::empty(shape);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    result.data<float>()[i] = 4 * uniform(RandomKey(seed), static_cast<std::uint64_t>(i)) - 2;
  }
  return result.to(type);
}

// One query a row, whose scores are given: q = 1, k = the scores, v = the number of the key.
constexpr std::int64_t kKeys = 5;
constexpr std::array<double, kKeys> kScores = {0.3, -1.1, 0.9, 0.0, -0.4};
constexpr std::array<double, kKeys> kValues = {1.5, -0.5, 2.0, -1.0, 0.25};

std::array<double, kKeys> softmax_of(const std::array<double, kKeys>& scores) {
  std::array<double, kKeys> p{};
  double mass = 0;
  for (const double s : scores) mass += std::exp(s);
  for (std::size_t j = 0; j < scores.size(); ++j) p[j] = std::exp(scores[j]) / mass;
  return p;
}

Tensor f64(const Shape& shape, const double* values) {
  const Tensor result = Tensor::empty(shape, DType::kF64);
  std::copy_n(values, result.size(), result.data<double>());
  return result;
}

struct Rows5 {  // the same keys for so many queries
  explicit Rows5(Tape& on, std::int64_t queries) : tape(on) {
    const Tensor ones = Tensor::empty({1, 1, queries, 1}, DType::kF64);
    std::fill_n(ones.data<double>(), queries, 1.0);
    q = tape.constant(ones);
    k = tape.constant(f64({1, 1, kKeys, 1}, kScores.data()));
    v = tape.variable(f64({1, 1, kKeys, 1}, kValues.data()));
    bias = tape.variable(Tensor::zeros({1, 1, queries, kKeys}, DType::kF64));  // its gradient is that of the scores
  }
  Tape& tape;
  Var q, k, v, bias;
};

TEST(Hard, ChoicesFollowSoftmax) {
  constexpr std::int64_t kDraws = 200000;
  Tape tape;
  const Rows5 in(tape, kDraws / 4);
  const Attention got = attend(Mechanism("dot | hard:samples=4"), in.q, in.k, in.v);
  ASSERT_EQ(got.trace.choices().shape(), (Shape{1, 1, kDraws / 4, 4}));
  std::array<std::int64_t, kKeys> counts{};
  std::int64_t same = 0;  // of neighbouring samples
  for (std::int64_t i = 0; i < kDraws; ++i) {
    const std::int32_t* choice = got.trace.choices().data<std::int32_t>() + i;
    ASSERT_TRUE(*choice >= 0 && *choice < kKeys);
    ++counts[static_cast<std::size_t>(*choice)];
    if (i % 4 != 0 && choice[0] == choice[-1]) ++same;
  }
  const auto p = softmax_of(kScores);
  double distance = 0, twice = 0;
  for (std::size_t j = 0; j < p.size(); ++j) {
    const double expected = p[j] * kDraws, gap = static_cast<double>(counts[j]) - expected;
    distance += gap * gap / expected;
    twice += p[j] * p[j];
  }
  EXPECT_LT(distance, 18.5);  // chi-square with 4 degrees of freedom: one in a thousand
  const double pairs = kDraws * 0.75;
  EXPECT_NEAR(static_cast<double>(same) / pairs, twice, 4 * std::sqrt(twice * (1 - twice) / pairs));
}

// The loss of a choice is some function of the context; with 2 samples of the mean of their values.
double loss_of(double context) { return (context - 1) * (context - 1) + std::sin(3 * context); }

std::array<double, kKeys> exact_gradient(std::size_t samples) {  // of E[loss] by the scores
  const auto p = softmax_of(kScores);
  std::array<double, kKeys> gradient{};
  for (std::size_t a = 0; a < kKeys; ++a) {
    for (std::size_t b = 0; b < (samples == 2 ? kKeys : 1); ++b) {
      const double likely = samples == 2 ? p[a] * p[b] : p[a];
      const double loss = loss_of(samples == 2 ? (kValues[a] + kValues[b]) / 2 : kValues[a]);
      for (std::size_t j = 0; j < kKeys; ++j) {
        double slope = (a == j ? 1.0 : 0.0) - p[j];
        if (samples == 2) slope += (b == j ? 1.0 : 0.0) - p[j];
        gradient[j] += likely * loss * slope;
      }
    }
  }
  return gradient;
}

struct Estimate {
  std::array<double, kKeys> mean{}, error{};
  double spread = 0;
};

// The mean of the gradients that so many draws give, and how far off it may be.
Estimate estimate(const char* line, bool with_baseline) {
  constexpr std::int64_t kDraws = 200000;
  Tape tape;
  const Rows5 in(tape, kDraws);
  const Attention got = attend(Mechanism(line), in.q, in.k, in.v, {.bias = in.bias});
  const double* const context = got.context.value().data<double>();
  const Tensor losses = Tensor::empty({1, kDraws}, DType::kF64);
  for (std::int64_t i = 0; i < kDraws; ++i) losses.data<double>()[i] = loss_of(context[i]);
  HardBaseline baseline;
  if (with_baseline) {
    const auto p = softmax_of(kScores);
    double usual = 0;
    for (std::size_t j = 0; j < kKeys; ++j) usual += p[j] * loss_of(kValues[j]);
    baseline.resume(usual);
  }
  baseline.fill(got, losses);
  tape.backward(got.context, Tensor::zeros(got.context.shape(), DType::kF64));
  const double* const gradient = tape.gradient(in.bias).data<double>();
  Estimate made;
  for (std::size_t j = 0; j < kKeys; ++j) {
    double squares = 0;
    for (std::int64_t i = 0; i < kDraws; ++i) made.mean[j] += gradient[i * kKeys + static_cast<std::int64_t>(j)];
    made.mean[j] /= kDraws;
    for (std::int64_t i = 0; i < kDraws; ++i) {
      const double gap = gradient[i * kKeys + static_cast<std::int64_t>(j)] - made.mean[j];
      squares += gap * gap;
    }
    made.error[j] = std::sqrt(squares / kDraws / kDraws);
    made.spread += squares / kDraws;
  }
  return made;
}

TEST(Hard, ReinforceHasTheGradientOfTheExpectedLossAsItsMean) {
  for (const std::size_t samples : {1u, 2u}) {
    const char* const line = samples == 2 ? "dot | hard:samples=2" : "dot | hard";
    const auto exact = exact_gradient(samples);
    const Estimate plain = estimate(line, false), better = estimate(line, true);
    for (std::size_t j = 0; j < kKeys; ++j) {
      EXPECT_GT(std::abs(exact[j]), 10 * better.error[j]) << j;  // there is something to find
      EXPECT_NEAR(plain.mean[j], exact[j], 4 * plain.error[j]) << j;
      EXPECT_NEAR(better.mean[j], exact[j], 4 * better.error[j]) << j;
    }
    EXPECT_LT(better.spread, 0.8 * plain.spread) << samples;
  }
}

TEST(Hard, EntropyIsAddedToTheLoss) {
  const auto entropy = [](const std::array<double, kKeys>& scores) {
    double sum = 0;
    for (const double p : softmax_of(scores)) sum -= p * std::log(p);
    return sum;
  };
  Tape tape;
  const Rows5 in(tape, 3);
  const Attention got = attend(Mechanism("dot | hard"), in.q, in.k, in.v, {.bias = in.bias, .entropy = -0.5f});
  tape.backward(got.context, Tensor::zeros(got.context.shape(), DType::kF64));
  for (std::size_t j = 0; j < kKeys; ++j) {
    auto more = kScores, less = kScores;
    more[j] += 1e-5;
    less[j] -= 1e-5;
    EXPECT_NEAR(tape.gradient(in.bias).data<double>()[j], -0.5 * (entropy(more) - entropy(less)) / 2e-5, 1e-8);
  }
}

TEST(Hard, GumbelPullsBackThroughTheSoftmaxOfItsNoise) {
  for (const char* line : {"dot | hard:gumbel", "dot | hard:samples=3,gumbel,temperature=0.7"}) {
    const Mechanism mechanism(line);
    const Choosing& how = *mechanism.stages().align->choosing();
    Tape tape;
    const Rows5 in(tape, 7);
    const Attention got = attend(mechanism, in.q, in.k, in.v, {.bias = in.bias, .key = RandomKey(4)});
    EXPECT_FALSE(got.trace.advantage().defined());
    const Tensor dy = drawn(got.context.shape(), 3, DType::kF64);
    tape.backward(got.context, dy);
    const auto p = softmax_of(kScores);
    for (std::int64_t i = 0; i < 7; ++i) {
      std::array<double, kKeys> expected{};
      for (std::int64_t sample = 0; sample < how.samples; ++sample) {
        const RandomKey key = RandomKey(4)
                                  .at(0)
                                  .at(0)
                                  .at(static_cast<std::uint64_t>(i))
                                  .at(0x68617264)
                                  .at(static_cast<std::uint64_t>(sample));
        std::array<double, kKeys> y{};
        double mass = 0, delta = 0;
        for (std::size_t j = 0; j < kKeys; ++j) {
          const double u = (random_bits(key, j) + 0.5) / 4294967296.0;
          const double noise = -std::log(-std::log1p(-u));
          y[j] = std::exp((std::log(p[j]) + noise) / how.temperature);
          mass += y[j];
        }
        const std::size_t largest = static_cast<std::size_t>(std::max_element(y.begin(), y.end()) - y.begin());
        EXPECT_EQ(got.trace.choices().data<std::int32_t>()[i * how.samples + sample],
                  static_cast<std::int32_t>(largest));
        const double from = dy.data<double>()[i];
        for (std::size_t j = 0; j < kKeys; ++j) delta += y[j] / mass * from * kValues[j];
        for (std::size_t j = 0; j < kKeys; ++j) {
          expected[j] += y[j] / mass * (from * kValues[j] - delta) / how.temperature / static_cast<double>(how.samples);
        }
      }
      for (std::size_t j = 0; j < kKeys; ++j) {
        EXPECT_NEAR(tape.gradient(in.bias).data<double>()[i * kKeys + static_cast<std::int64_t>(j)], expected[j],
                    1e-12);
      }
    }
  }
}

struct Drawing {
  Tensor context, choices, dq, dk, dv;
};

struct Call {
  Tensor q, k, v;
  AttendOptions options = {};
};

Call call_of(std::int64_t batch, std::int64_t queries, std::int64_t keys, DType type = DType::kF32) {
  return {drawn({batch, 4, queries, 9}, 1, type), drawn({batch, 2, keys, 9}, 2, type),
          drawn({batch, 2, keys, 7}, 3, type)};
}

Drawing run(const std::string& line, const Call& in, const std::function<void(const Attention&)>& look = {}) {
  Tape tape;
  const Var q = tape.variable(in.q), k = tape.variable(in.k), v = tape.variable(in.v);
  const Attention made = attend(Mechanism(line), q, k, v, in.options);
  if (look) look(made);
  const auto fill = [](const Tensor& x, std::int64_t width) {  // by row, whatever their number
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const auto row = static_cast<std::uint64_t>(i / width % x[-1 - (width > 1 ? 1 : 0)]);
      x.data<float>()[i] = uniform(RandomKey(7).at(row), static_cast<std::uint64_t>(i % width)) - 0.5f;
    }
  };
  const Tensor seed = Tensor::empty(made.context.shape());
  fill(seed, seed[3]);
  if (made.trace.advantage().defined()) fill(made.trace.advantage(), 1);
  tape.backward(made.context, seed);
  return {made.context.value().clone(), made.trace.choices().defined() ? made.trace.choices().clone() : Tensor(),
          tape.gradient(q).clone(), tape.gradient(k).clone(), tape.gradient(v).clone()};
}

bool all_zero(const Tensor& x) {
  const Tensor dense = x.clone();
  return std::all_of(dense.data<float>(), dense.data<float>() + dense.size(), [](float each) { return each == 0; });
}

void expect_same(const Drawing& got, const Drawing& expected, const std::string& what) {
  EXPECT_TRUE(same_bits(got.choices, expected.choices)) << what;
  EXPECT_TRUE(same_bits(got.context, expected.context)) << what;
  EXPECT_TRUE(same_bits(got.dq, expected.dq)) << what;
  EXPECT_TRUE(same_bits(got.dk, expected.dk)) << what;
  EXPECT_TRUE(same_bits(got.dv, expected.dv)) << what;
}

const char* const kLines[] = {"scaled_dot | causal | hard", "scaled_dot | causal | hard:samples=5",
                              "scaled_dot | causal | hard:samples=2,gumbel,temperature=0.5"};

// Targets without a fused multiply-add have bits of their own.
bool has_promised_bits(const std::string& target) { return target.starts_with("avx"); }

TEST(Hard, EverybodyDrawsTheSame) {
  for (const char* line : kLines) {
    const Call in = call_of(3, 150, 150);
    const Drawing expected = run(line, in);
    EXPECT_FALSE(all_zero(expected.dq));
    for (const std::string& name : targets()) {
      const TargetScope scope(name);
      const Drawing own = run(line, in);
      if (has_promised_bits(name)) expect_same(own, expected, name);  // under a sanitizer there may be none
      for (const int count : {1, 2, 3}) {
        const ThreadLimit limit(count);
        expect_same(run(line, in), own, text(name, ", ", count, " threads"));
      }
    }
    Call staged = in;
    staged.options.staged = true;
    expect_same(run(line, staged), expected, "staged");
  }
}

Tensor some(const Tensor& x, int dimension, std::int64_t begin, std::int64_t end) {
  return x.slice(dimension, begin, end).clone();
}

TEST(Hard, NeighboursAndPaddingDoNotMatter) {
  for (const char* line : kLines) {
    const std::vector<std::int32_t> lengths = {150, 9, 131};
    Call in = call_of(3, 150, 150);
    in.options.lengths = lengths;
    const Drawing all = run(line, in);
    for (std::int64_t item = 0; item < 3; ++item) {
      Call alone;
      alone.q = some(in.q, 0, item, item + 1);
      alone.k = some(in.k, 0, item, item + 1);
      alone.v = some(in.v, 0, item, item + 1);
      const std::vector<std::int32_t> length = {lengths[static_cast<std::size_t>(item)]};
      const std::vector<std::uint64_t> id = {static_cast<std::uint64_t>(item)};
      alone.options.lengths = length;
      alone.options.ids = id;
      const Drawing got = run(line, alone);
      EXPECT_TRUE(same_bits(got.choices, some(all.choices, 0, item, item + 1)));
      EXPECT_TRUE(same_bits(got.context, some(all.context, 0, item, item + 1)));
      EXPECT_TRUE(same_bits(got.dk, some(all.dk, 0, item, item + 1)));
      // Without what is behind its length.
      alone.k = some(alone.k, 2, 0, length[0]);
      alone.v = some(alone.v, 2, 0, length[0]);
      alone.options.first_query = 0;
      EXPECT_TRUE(same_bits(run(line, alone).choices, got.choices));
    }
  }
}

TEST(Hard, OneQueryDrawsWhatItsRowDraws) {
  for (const char* line : kLines) {
    const Call whole = call_of(1, 150, 150);
    const Drawing all = run(line, whole);
    for (const std::int64_t i : {0, 1, 60, 128, 149}) {
      Call one = whole;
      one.q = some(whole.q, 2, i, i + 1);
      one.options.first_query = i;
      const Drawing got = run(line, one);
      EXPECT_TRUE(same_bits(got.choices, some(all.choices, 2, i, i + 1))) << i;
      EXPECT_TRUE(same_bits(got.context, some(all.context, 2, i, i + 1))) << i;
    }
  }
}

TEST(Hard, AnotherKeyHeadOrExampleDrawsOtherKeys) {
  Call in = call_of(2, 60, 60);
  const Drawing first = run("dot | hard", in);
  in.options.key = RandomKey(1);
  EXPECT_FALSE(same_bits(run("dot | hard", in).choices, first.choices));
  for (const Tensor& x : {in.q, in.k, in.v}) {
    std::fill_n(x.data<float>(), x.size(), 0.5f);
  }
  const Drawing even = run("dot | hard", in);
  EXPECT_FALSE(same_bits(some(even.choices, 0, 0, 1), some(even.choices, 0, 1, 2)));
  EXPECT_FALSE(same_bits(some(even.choices, 1, 0, 1), some(even.choices, 1, 1, 2)));
}

TEST(Hard, WeightsAreThoseItReadWith) {
  for (const char* line : kLines) {
    const Call in = call_of(2, 140, 140);
    run(line, in, [&](const Attention& made) {
      const std::int64_t samples = made.trace.choices()[3];
      const AttendTrace kept = made.trace.keep();
      const Tensor weights = kept.weights({.item = 1, .head = 2});
      const Tensor expected = kept.weights({.item = 1, .head = 2, .expected = true});
      const Tensor soft = Tensor::zeros({140, 140});
      for (std::int64_t i = 0; i < 140; ++i) {
        std::vector<float> counts(140, 0.0f);
        for (std::int64_t k = 0; k < samples; ++k) {
          const std::int32_t key = made.trace.choices().data<std::int32_t>()[((4 + 2) * 140 + i) * samples + k];
          ASSERT_TRUE(key >= 0 && key <= i);
          counts[static_cast<std::size_t>(key)] += 1;
        }
        double read = 0, sum = 0;
        for (std::int64_t j = 0; j < 140; ++j) {
          const float weight = weights.data<float>()[i * 140 + j];
          ASSERT_EQ(weight, counts[static_cast<std::size_t>(j)] / static_cast<float>(samples));
          read += static_cast<double>(weight) * static_cast<double>(in.v.data<float>()[((2 + 1) * 140 + j) * 7 + 4]);
          sum += static_cast<double>(expected.data<float>()[i * 140 + j]);
        }
        ASSERT_NEAR(made.context.value().data<float>()[((4 + 2) * 140 + i) * 7 + 4], read, 1e-6);
        ASSERT_NEAR(sum, 1, 2e-6);
      }
    });
  }
}

TEST(Hard, WhoDoesNotDrawReadsTheLikeliestKeyOrWhatItExpects) {
  Call in = call_of(2, 70, 140);
  in.options.draws = false;
  const Drawing largest = run("scaled_dot | hard:samples=3", in, [&](const Attention& made) {
    EXPECT_FALSE(made.trace.choices().defined() || made.trace.advantage().defined());
    const Tensor weights = made.trace.weights({.item = 1, .head = 3});
    const Tensor expected = made.trace.weights({.item = 1, .head = 3, .expected = true});
    for (std::int64_t i = 0; i < 70; ++i) {
      const float* row = expected.data<float>() + i * 140;
      const auto best = std::max_element(row, row + 140) - row;
      for (std::int64_t j = 0; j < 140; ++j) {
        ASSERT_EQ(weights.data<float>()[i * 140 + j], j == best ? 1.0f : 0.0f);
      }
      ASSERT_EQ(made.context.value().data<float>()[((4 + 3) * 70 + i) * 7 + 2],
                in.v.data<float>()[((2 + 1) * 140 + best) * 7 + 2]);
    }
  });
  EXPECT_TRUE(all_zero(largest.dq));
  EXPECT_FALSE(all_zero(largest.dv));
  const Drawing soft = run("scaled_dot", in), expected = run("scaled_dot | hard:expected", in);
  const auto expect_near = [](const Tensor& a, const Tensor& b) {
    for (std::int64_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a.data<float>()[i], b.data<float>()[i], 2e-6);
  };
  expect_near(expected.context, soft.context);
  expect_near(expected.dq, soft.dq);
  expect_near(expected.dk, soft.dk);
  expect_near(expected.dv, soft.dv);
}

TEST(Hard, WhoSeesNothingChoosesNothing) {
  const std::vector<std::int32_t> lengths = {0, 3};
  for (const char* line : {"dot | hard:samples=2", "dot | hard:samples=2,gumbel"}) {
    Call in = call_of(2, 5, 8);
    in.options.lengths = lengths;
    const Drawing got = run(line, in);
    for (std::int64_t i = 0; i < got.choices.size(); ++i) {
      const std::int32_t choice = got.choices.data<std::int32_t>()[i];
      EXPECT_TRUE(i < got.choices.size() / 2 ? choice == -1 : choice >= 0 && choice < 3) << choice;
    }
    for (const Tensor& x : {got.context, got.dq, got.dk, got.dv}) EXPECT_TRUE(all_zero(x.slice(0, 0, 1)));
  }
  for (const Shape& shape : {Shape{0, 4, 5, 9}, Shape{1, 4, 0, 9}}) {
    Call in = call_of(shape[0], shape[2], 8);
    EXPECT_EQ(run("dot | hard", in).choices.shape(), (Shape{shape[0], 4, shape[2], 1}));
  }
  EXPECT_EQ(run("dot | hard", call_of(1, 2, 0)).choices.data<std::int32_t>()[0], -1);
}

TEST(Hard, NanIsNeverChosenAwayButHiddenOnesAre) {
  for (const char* line : {"dot | causal | hard", "dot | causal | hard:gumbel"}) {
    Call in = call_of(1, 6, 6);
    const Drawing clean = run(line, in);
    in.k = in.k.clone();
    in.v = in.v.clone();
    for (int group = 0; group < 2; ++group) std::fill_n(in.k.data<float>() + (group * 6 + 3) * 9, 9, kNan);
    const Drawing got = run(line, in);
    EXPECT_TRUE(same_bits(some(got.context, 2, 0, 3), some(clean.context, 2, 0, 3)));
    EXPECT_TRUE(same_bits(some(got.dq, 2, 0, 3), some(clean.dq, 2, 0, 3)));
    for (int i = 3; i < 6; ++i) EXPECT_TRUE(std::isnan(got.context.data<float>()[i * 7])) << i;
    EXPECT_TRUE(std::isnan(got.dq.data<float>()[5 * 9]));
  }
}

TEST(HardBaseline, KeepsAMovingAverageThatDoesNotSeeTheLossesItIsTakenFrom) {
  Tape tape;
  const Var x = tape.constant(drawn({2, 1, 3, 2}, 1));
  const Attention read = attend(Mechanism("dot | hard"), x, x, x);
  HardBaseline baseline({.entropy = -0.25f, .weight = 0.5});
  AttendOptions options;
  baseline.prepare(options);
  EXPECT_EQ(options.entropy, -0.25f);
  baseline.fill(read, Tensor::of<float>({2}, {2, 6}));
  EXPECT_EQ(read.trace.advantage().data<float>()[2], 1);
  EXPECT_EQ(read.trace.advantage().data<float>()[3], 3);
  EXPECT_DOUBLE_EQ(baseline.usual(), 4);
  baseline.fill(read, Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read.trace.advantage().data<float>()[0], -1.5f);
  EXPECT_EQ(read.trace.advantage().data<float>()[5], 1);
  EXPECT_DOUBLE_EQ(baseline.usual(), 0.9 * 4 + 0.1 * 3.5);
  EXPECT_THROW(baseline.fill(read, Tensor::zeros({3})), Error);
  EXPECT_THROW(baseline.fill(attend(Mechanism("dot"), x, x, x), Tensor::zeros({2})), Error);
  EXPECT_THROW(HardBaseline({.keep = 1.5}), Error);
}

}  // namespace
}  // namespace regard
