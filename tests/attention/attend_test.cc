// Attention from stages: what is registered, and what holds for every mechanism: same bits whoever asks, beside whom
// and with how much padding; nothing hidden gets out; weights for the asking.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "attention/mechanism.h"
#include "kernels/target.h"
#include "regard/random.h"
#include "tensor/arena.h"
#include "verify/checks.h"

namespace regard {
namespace {

using verify::same_bits;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class F>
std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, make] : Registry<F>::all()) {
    const Card* card = find_card(name);
    EXPECT_NE(card, nullptr) << name;
    EXPECT_FALSE(card->formula.empty() || card->kernel.empty()) << name;
    EXPECT_EQ(card->family, kFamilyOf<F>) << name;
    all.push_back(name);
  }
  return all;
}

TEST(Registries, HoldTheStagesWeKnowByName) {
  EXPECT_EQ(names<Score>(),
            (std::vector<std::string>{"additive", "concat", "cosine", "dense_synth", "dot", "factorized_dense_synth",
                                      "factorized_random_synth", "general", "location", "mixture", "projected",
                                      "random_synth", "relative", "rotary", "scaled_dot"}));
  EXPECT_EQ(names<Scope>(), (std::vector<std::string>{"alibi", "bias", "causal", "documents", "global", "lengths",
                                                      "local_m", "local_p", "mask", "window"}));
  EXPECT_EQ(names<Align>(), (std::vector<std::string>{"entmax15", "hard", "softmax", "sparsemax", "uniform"}));
  EXPECT_EQ(names<Read>(), (std::vector<std::string>{"pointer", "relative_sum", "sum"}));
}

Tensor drawn(const Shape& shape, std::uint64_t seed) {
  Tensor result = Tensor::empty(shape);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    result.data<float>()[i] = 2 * uniform(RandomKey(seed), static_cast<std::uint64_t>(i)) - 1;
  }
  return result;
}

struct Called {
  Tensor q, k, v;
  AttendOptions options = {};
};

Called inputs(std::int64_t batch, std::int64_t heads, std::int64_t groups, std::int64_t queries, std::int64_t keys,
              std::int64_t width = 18, std::int64_t values = 21) {
  return {drawn({batch, heads, queries, width}, 1), drawn({batch, groups, keys, width}, 2),
          drawn({batch, groups, keys, values}, 3)};
}

struct Outcome {
  Tensor context, dq, dk, dv;
};

// The gradient of a context: what a row is given depends on its number alone, whatever the number of rows.
Tensor seed_of(const Shape& context) {
  const Tensor seed = Tensor::empty(context);
  for (std::int64_t i = 0; i < seed.size(); ++i) {
    const std::int64_t row = i / context[3] % context[2];
    seed.data<float>()[i] =
        uniform(RandomKey(7).at(static_cast<std::uint64_t>(row)), static_cast<std::uint64_t>(i % context[3])) - 0.5f;
  }
  return seed;
}

Outcome run(const Mechanism& mechanism, const Called& in, const std::function<void(const AttendTrace&)>& look = {}) {
  Tape tape;
  const Var q = tape.variable(in.q), k = tape.variable(in.k), v = tape.variable(in.v);
  AttendOptions options = in.options;
  // The tokens are the rows of all heads side by side.
  const auto tokens = [](Var x) { return reshape(transpose(x, 1, 2), {x[0], x[2], x[1] * x[3]}); };
  AttendSizes sizes{.heads = q[1], .groups = k[1], .values = v[3], .hidden = 6};
  if (mechanism.needs().rows) sizes.width = q[3];
  if (mechanism.needs().query_tokens) options.query_tokens = tokens(q);
  if (mechanism.needs().key_tokens) options.key_tokens = tokens(k);
  if (mechanism.needs().query_tokens) sizes.query_token = q[1] * q[3];
  if (mechanism.needs().key_tokens) sizes.key_token = k[1] * k[3];
  options.hidden = sizes.hidden;
  std::vector<Var> learned;
  for (const Learned& each : mechanism.learned(sizes)) {
    learned.push_back(tape.variable(drawn(each.shape, 10 + learned.size())));
  }
  options.learned = learned;
  const Attention made = attend(mechanism, q, k, v, options);
  if (look) look(made.trace);
  Outcome result;
  result.context = made.context.value().clone();
  tape.backward(made.context, seed_of(result.context.shape()));
  const auto gradient = [&](Var x) {  // who is not looked at has none
    const Tensor own = tape.gradient(x);
    return own.defined() ? own.clone() : Tensor::zeros(x.shape());
  };
  result.dq = gradient(q);
  result.dk = gradient(k);
  result.dv = gradient(v);
  return result;
}

Tensor some(const Tensor& x, std::int64_t begin, std::int64_t end) { return x.slice(2, begin, end).clone(); }

bool all_zero(const Tensor& x) {
  const Tensor dense = x.clone();
  return std::all_of(dense.data<float>(), dense.data<float>() + dense.size(), [](float each) { return each == 0; });
}

class Attend : public testing::TestWithParam<std::string> {
 protected:
  // Every score with every alignment, under a scope.
  void for_each_mechanism(const std::string& scopes, const std::function<void(const Mechanism&)>& check) {
    constexpr std::int64_t kLongest = 400;
    int count = 0;
    for (const std::string& score : names<Score>()) {
      const std::vector<Argument>& arguments = find_card(score)->arguments;
      const bool by_place = std::any_of(arguments.begin(), arguments.end(), [](const Argument& x) { return x.grows; });
      if (by_place && scopes.find("documents") != std::string::npos) continue;  // refused
      for (const std::string& align : names<Align>()) {
        const std::string line = text(example_of(*find_card(score), kLongest), " | ", scopes, " | ",
                                      example_of(*find_card(align), kLongest), " | sum");
        SCOPED_TRACE(line);
        check(Mechanism(line));
        ++count;
      }
    }
    EXPECT_GE(count, 40);
  }

 private:
  TargetScope scope_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(All, Attend, testing::ValuesIn(targets()), [](const auto& each) { return each.param; });

TEST_P(Attend, WeightsSumToOneAndAskingChangesNothing) {
  for_each_mechanism("causal", [&](const Mechanism& mechanism) {
    const Called in = inputs(1, 2, 1, 131, 131);
    Tensor maps[2];
    const Outcome looked = run(mechanism, in, [&](const AttendTrace& trace) {
      for (int head = 0; head < 2; ++head) maps[head] = trace.weights({.head = head});
      EXPECT_TRUE(same_bits(trace.weights({.head = 1, .queries = Range{50, 70}}), maps[1].slice(0, 50, 70).clone()));
    });
    const Outcome plain = run(mechanism, in);
    EXPECT_TRUE(same_bits(looked.context, plain.context));
    EXPECT_TRUE(same_bits(looked.dq, plain.dq));
    EXPECT_TRUE(same_bits(looked.dk, plain.dk));
    EXPECT_TRUE(same_bits(looked.dv, plain.dv));
    for (std::int64_t head = 0; head < 2; ++head) {
      for (std::int64_t i = 0; i < 131; ++i) {
        double sum = 0, read = 0;
        for (std::int64_t j = 0; j < 131; ++j) {
          const float weight = maps[head].data<float>()[i * 131 + j];
          if (j > i) {
            ASSERT_EQ(weight, 0.0f);
          }
          ASSERT_GE(weight, 0.0f);
          sum += static_cast<double>(weight);
          read += static_cast<double>(weight) * static_cast<double>(in.v.data<float>()[j * 21 + 5]);
        }
        ASSERT_NEAR(sum, 1, 2e-6);
        ASSERT_NEAR(looked.context.data<float>()[(head * 131 + i) * 21 + 5], read, 2e-6);
      }
    }
  });
}

TEST_P(Attend, PaddingDoesNotMatter) {
  for_each_mechanism("lengths", [&](const Mechanism& mechanism) {
    const std::vector<std::int32_t> lengths = {130, 7};
    Called tight = inputs(2, 2, 1, 61, 130);
    tight.options.lengths = lengths;
    const Outcome expected = run(mechanism, tight);
    for (const std::int64_t more : {1, 200}) {
      Called padded = tight;
      padded.k = Tensor::empty({2, 1, 130 + more, 18});
      padded.v = Tensor::empty({2, 1, 130 + more, 21});
      std::fill_n(padded.k.data<float>(), padded.k.size(), kNan);
      std::fill_n(padded.v.data<float>(), padded.v.size(), kNan);
      padded.k.slice(2, 0, 130).copy_from(tight.k);
      padded.v.slice(2, 0, 130).copy_from(tight.v);
      const Outcome got = run(mechanism, padded);
      EXPECT_TRUE(same_bits(got.context, expected.context)) << more;
      EXPECT_TRUE(same_bits(got.dq, expected.dq)) << more;
      EXPECT_TRUE(same_bits(some(got.dk, 0, 130), expected.dk)) << more;
      EXPECT_TRUE(same_bits(some(got.dv, 0, 130), expected.dv)) << more;
      EXPECT_TRUE(all_zero(some(got.dk, 130, 130 + more)));
      EXPECT_TRUE(all_zero(some(got.dv, 130, 130 + more)));
    }
  });
}

TEST_P(Attend, NanInWhatIsHiddenReachesNobody) {
  constexpr std::int64_t kLength = 140, kDirty = 100;  // its own queries and those behind may see it
  for_each_mechanism("causal", [&](const Mechanism& mechanism) {
    const Called clean = inputs(1, 2, 1, kLength, kLength);
    const Outcome expected = run(mechanism, clean);
    for (const float poison : {kNan, kInfinity}) {
      Called dirty = clean;
      dirty.k = clean.k.clone();
      dirty.v = clean.v.clone();
      std::fill_n(dirty.k.data<float>() + kDirty * 18, 18, poison);
      std::fill_n(dirty.v.data<float>() + kDirty * 21, 21, poison);
      const Outcome got = run(mechanism, dirty);
      EXPECT_TRUE(same_bits(some(got.context, 0, kDirty), some(expected.context, 0, kDirty))) << poison;
      EXPECT_TRUE(same_bits(some(got.dq, 0, kDirty), some(expected.dq, 0, kDirty))) << poison;
    }
    // A query that is NaN: keys behind it do not see its gradient.
    Called dirty = clean;
    dirty.q = clean.q.clone();
    for (std::int64_t head = 0; head < 2; ++head) {
      std::fill_n(dirty.q.data<float>() + (head * kLength + kDirty) * 18, 18, kNan);
    }
    const Outcome got = run(mechanism, dirty);
    EXPECT_TRUE(same_bits(some(got.dk, kDirty + 1, kLength), some(expected.dk, kDirty + 1, kLength)));
    EXPECT_TRUE(same_bits(some(got.dv, kDirty + 1, kLength), some(expected.dv, kDirty + 1, kLength)));
  });
}

TEST_P(Attend, NanInAVisibleValueIsSeen) {
  Called dirty = inputs(1, 1, 1, 3, 5);
  dirty.v.data<float>()[2 * 21 + 4] = kNan;
  const Outcome got = run(Mechanism("dot"), dirty);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(got.context.data<float>()[i * 21 + 4]));
  EXPECT_FALSE(std::isnan(got.context.data<float>()[3]));
  dirty = inputs(1, 1, 1, 3, 5);
  dirty.k.data<float>()[2 * 18 + 4] = kNan;
  for (const char* align : {"softmax", "sparsemax", "entmax15"}) {
    EXPECT_TRUE(std::isnan(run(Mechanism(text("dot | ", align)), dirty).context.data<float>()[0]));
  }
}

// What fades away may be −0, which becomes 0 when a hidden key is added with weight 0, and stays when it is skipped.
TEST_P(Attend, ZeroHasTheSameSignWhateverIsHidden) {
  Called in = inputs(1, 1, 1, 2, 3, 1, 1);
  in.options.first_query = 0;
  std::copy_n(std::vector<float>{1, 1}.data(), 2, in.q.data<float>());
  std::copy_n(std::vector<float>{87, 0, 1}.data(), 3, in.k.data<float>());
  std::copy_n(std::vector<float>{0, -0.01f, 1}.data(), 3, in.v.data<float>());
  const Mechanism mechanism("dot | causal");
  const Outcome clean = run(mechanism, in);
  EXPECT_FALSE(std::signbit(clean.context.data<float>()[1]));
  in.v.data<float>()[2] = kNan;
  EXPECT_TRUE(same_bits(run(mechanism, in).context, clean.context));
}

TEST_P(Attend, AQueryThatSeesNothingReadsZeros) {
  for_each_mechanism("global", [&](const Mechanism& mechanism) {
    Called in = inputs(2, 2, 1, 3, 5);
    const std::vector<std::int32_t> lengths = {0, 5};
    in.options.lengths = lengths;
    const Outcome got = run(
        mechanism, in, [](const AttendTrace& trace) { EXPECT_TRUE(all_zero(trace.weights({.item = 0, .head = 1}))); });
    for (const Tensor& x : {got.context, got.dq, got.dk, got.dv}) EXPECT_TRUE(all_zero(x.slice(0, 0, 1)));
    EXPECT_FALSE(all_zero(got.context));
  });
}

// A decoder that goes one query at a time gets the rows of the whole.
TEST_P(Attend, OneQueryHasTheBitsOfItsRow) {
  for_each_mechanism("causal & window:150", [&](const Mechanism& mechanism) {
    const Called whole = inputs(1, 2, 2, 300, 300, 8, 5);
    const Outcome all = run(mechanism, whole);
    for (const std::int64_t i : {0, 59, 60, 128, 299}) {
      Called one = whole;
      one.q = some(whole.q, i, i + 1);
      one.options.first_query = i;
      EXPECT_TRUE(same_bits(run(mechanism, one).context, some(all.context, i, i + 1))) << i;
    }
  });
}

TEST_P(Attend, OneVariableAsQueriesKeysAndValuesAddsItsThreeGradients) {
  for (const char* line : {"scaled_dot | causal", "cosine | causal | sparsemax"}) {
    const Mechanism mechanism(line);
    Called in = inputs(2, 2, 2, 70, 70, 8, 8);
    in.k = in.v = in.q;
    const Outcome apart = run(mechanism, in);
    Tape tape;
    const Var x = tape.variable(in.q), y = attend(mechanism, x, x, x).context;
    EXPECT_TRUE(same_bits(y.value(), apart.context));
    tape.backward(y, seed_of(y.shape()));
    for (std::int64_t i = 0; i < in.q.size(); ++i) {
      const float sum = apart.dq.data<float>()[i] + apart.dk.data<float>()[i] + apart.dv.data<float>()[i];
      ASSERT_NEAR(tape.gradient(x).data<float>()[i], sum, 2e-5) << i;
    }
  }
}

TEST_P(Attend, OneQueryDropsWhatItsRowDrops) {
  for_each_mechanism("causal", [&](const Mechanism& mechanism) {
    Called whole = inputs(1, 2, 1, 70, 70, 8, 5);
    whole.options.dropout = 0.5f;
    const Outcome all = run(mechanism, whole);
    for (const std::int64_t i : {1, 65}) {
      Called one = whole;
      one.q = some(whole.q, i, i + 1);
      one.options.first_query = i;
      EXPECT_TRUE(same_bits(run(mechanism, one).context, some(all.context, i, i + 1))) << i;
    }
  });
}

TEST_P(Attend, DocumentsAreSequencesOfTheirOwn) {
  for_each_mechanism("documents & causal", [&](const Mechanism& mechanism) {
    Called packed = inputs(1, 2, 1, 200, 200, 8, 5);
    packed.options.documents = Tensor::empty({1, 200}, DType::kI32);
    for (int i = 0; i < 200; ++i) {
      packed.options.documents.data<std::int32_t>()[i] = i < 37 ? 0 : i < 190 ? 3 : -1;
    }
    const Outcome all = run(mechanism, packed);
    for (const Range range : {Range{0, 37}, Range{37, 190}}) {
      Called alone;
      alone.q = some(packed.q, range.begin, range.end);
      alone.k = some(packed.k, range.begin, range.end);
      alone.v = some(packed.v, range.begin, range.end);
      alone.options.documents = Tensor::zeros({1, range.count()}, DType::kI32);
      EXPECT_TRUE(same_bits(run(mechanism, alone).context, some(all.context, range.begin, range.end)));
    }
    EXPECT_TRUE(all_zero(some(all.context, 190, 200)));
    EXPECT_TRUE(all_zero(some(all.dk, 190, 200)));
  });
}

TEST_P(Attend, DroppedWeightsAreThoseThatWereApplied) {
  for_each_mechanism("causal", [&](const Mechanism& mechanism) {
    Called in = inputs(2, 2, 1, 70, 70);
    const std::vector<std::uint64_t> ids = {5, 9};
    in.options.dropout = 0.25f;
    in.options.key = RandomKey(3);
    in.options.ids = ids;
    Tensor kept, dropped;
    const Outcome got = run(mechanism, in, [&](const AttendTrace& trace) {
      kept = trace.weights({.item = 1, .head = 1});
      dropped = trace.weights({.item = 1, .head = 1, .dropped = true});
    });
    std::int64_t gone = 0, seen = 0;
    for (std::int64_t i = 0; i < 70; ++i) {
      double read = 0;
      for (std::int64_t j = 0; j < 70; ++j) {
        const float p = kept.data<float>()[i * 70 + j], d = dropped.data<float>()[i * 70 + j];
        if (p != 0) {
          ++seen;
          gone += d == 0 ? 1 : 0;
        }
        if (d != 0) {
          ASSERT_NEAR(d, p / 0.75f, 1e-6);
        }
        read += static_cast<double>(d) * static_cast<double>(in.v.data<float>()[(70 + j) * 21 + 3]);
      }
      ASSERT_NEAR(got.context.data<float>()[((2 + 1) * 70 + i) * 21 + 3], read, 3e-6);
    }
    const double seen_keys = static_cast<double>(seen);  // of hard attention one a query
    EXPECT_NEAR(static_cast<double>(gone) / seen_keys, 0.25, 4 * std::sqrt(0.25 * 0.75 / seen_keys));
  });
}

// Scores that take long to make are held for the backward pass; who goes stage by stage makes them again.
TEST_P(Attend, GradientsOfHeldScoresAreThoseOfScoresMadeAgain) {
  const std::vector<std::int32_t> lengths = {61, 3};
  for (const char* line : {"additive:80", "additive:80 | causal & window:9", "concat:70 | lengths | sparsemax",
                           "dot | causal & alibi", "location:400 | window:20", "mixture(dot, additive:9) | causal"}) {
    SCOPED_TRACE(line);
    Called in = inputs(2, 2, 2, 70, 61, 130);
    in.options.first_query = 0;
    if (std::string_view(line).find("lengths") != std::string_view::npos) in.options.lengths = lengths;
    const Mechanism mechanism(line);
    const Outcome got = run(mechanism, in);
    in.options.staged = true;
    const Outcome expected = run(mechanism, in);
    EXPECT_TRUE(same_bits(got.context, expected.context));
    EXPECT_TRUE(same_bits(got.dq, expected.dq));
    EXPECT_TRUE(same_bits(got.dk, expected.dk));
    EXPECT_TRUE(same_bits(got.dv, expected.dv));
  }
}

TEST_P(Attend, ATraceThrowsOnceItsStepHasEndedUnlessItIsKept) {
  const Called in = inputs(1, 2, 1, 3, 5);
  const Mechanism mechanism("scaled_dot");
  Tape tape;
  const AttendTrace trace =
      attend(mechanism, tape.constant(in.q.clone()), tape.constant(in.k), tape.constant(in.v)).trace;
  const AttendTrace kept = trace.keep();
  const Tensor before = trace.weights({.head = 1});
  EXPECT_EQ(before.shape(), (Shape{3, 5}));
  EXPECT_THROW(trace.weights({.item = 1}), Error);
  EXPECT_THROW(trace.weights({.head = 2}), Error);
  EXPECT_THROW(trace.weights({.queries = Range{2, 4}}), Error);
  EXPECT_THROW(AttendTrace().weights(), Error);
  tape.reset();
  EXPECT_THROW(trace.weights(), Error);
  EXPECT_TRUE(same_bits(kept.weights({.head = 1}), before));
}

// The first step towards τ adds up a number a key, and has the last digit of this large sum; and the last digit of τ
// counts once a key, which is a lot if one of them is far ahead.
TEST_P(Attend, SparseWeightsOfManyKeysSumToOne) {
  for (const char* align : {"sparsemax", "entmax15"}) {
    for (const float ahead : {0.0f, 0.9f, 0.5f}) {
      Called in = inputs(1, 1, 1, 40, 500, 2, 1);
      for (std::int64_t i = 0; i < in.k.size(); ++i) in.k.data<float>()[i] *= 0.002f;
      in.q.data<float>()[0] = 1;
      if (ahead > 0) in.k.data<float>()[0] = ahead;
      run(Mechanism(text("dot | ", align)), in, [](const AttendTrace& trace) {
        const Tensor weights = trace.weights();
        for (std::int64_t i = 0; i < 40; ++i) {
          EXPECT_NEAR(std::accumulate(weights.data<float>() + i * 500, weights.data<float>() + (i + 1) * 500, 0.0), 1,
                      5e-7);
        }
      });
    }
  }
}

TEST(AttendShapes, NoHeadsWithABiasOfAll) {
  Tape tape;
  const Var q = tape.variable(Tensor::empty({2, 0, 3, 4})), k = tape.variable(Tensor::empty({2, 0, 5, 4}));
  const Var bias = tape.variable(drawn({3, 5}, 1));
  const Var y = attend(Mechanism("dot"), q, k, k, {.bias = bias}).context;
  tape.backward(y, Tensor::empty(y.shape()));
  EXPECT_EQ(y.shape(), (Shape{2, 0, 3, 4}));
  EXPECT_TRUE(all_zero(tape.gradient(bias)));
}

TEST_P(Attend, WeightsKeepTheirDigitsAtLargeScores) {
  for (const char* align : {"softmax", "sparsemax", "entmax15"}) {
    Called in = inputs(1, 1, 1, 1, 4, 1, 1);
    in.q.data<float>()[0] = 1e4f;
    std::fill_n(in.k.data<float>(), 4, 1.0f);
    run(Mechanism(text("dot | ", align)), in, [](const AttendTrace& trace) {
      const Tensor weights = trace.weights();
      for (int j = 0; j < 4; ++j) EXPECT_NEAR(weights.data<float>()[j], 0.25, 1e-6);
    });
  }
}

TEST(AttendMemory, GrowsWithTheLengthNotWithItsSquare) {
  for (const char* align : {"softmax", "sparsemax"}) {
    std::size_t used[2] = {};
    for (const int twice : {0, 1}) {
      const std::int64_t length = twice == 1 ? 2000 : 1000;
      const Called in = inputs(1, 1, 1, length, length, 4, 4);
      Tape tape;
      const Var q = tape.variable(in.q), k = tape.variable(in.k), v = tape.variable(in.v);
      const Var y = attend(Mechanism(text("dot | ", align)), q, k, v).context;
      tape.backward(y, drawn(y.shape(), 5));
      used[twice] = tape.arena().used();
    }
    EXPECT_LT(used[1], 2 * used[0] + 4096) << align;
  }
}

}  // namespace
}  // namespace regard
