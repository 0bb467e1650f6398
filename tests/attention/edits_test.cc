// What if: hidden keys, scaled heads and replaced rows do what they say to those they name, and nothing to others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "attention/mechanism.h"
#include "regard/error.h"
#include "verify/checks.h"

namespace regard {
namespace {

using verify::same_bits;

constexpr std::int64_t kBatch = 2, kHeads = 4, kGroups = 2, kQueries = 70, kKeys = 140, kWidth = 9, kValues = 7;

Tensor drawn(const Shape& shape, std::uint64_t seed) {
  const Tensor result = Tensor::empty(shape);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    result.data<float>()[i] = 2 * uniform(RandomKey(seed), static_cast<std::uint64_t>(i)) - 1;
  }
  return result;
}

struct Outcome {
  Tensor context, dq, dk, dv;
  AttendTrace trace;
};

struct Called {
  Tensor q = drawn({kBatch, kHeads, kQueries, kWidth}, 1), k = drawn({kBatch, kGroups, kKeys, kWidth}, 2),
         v = drawn({kBatch, kGroups, kKeys, kValues}, 3);
};

Outcome run(const std::string& line, AttendOptions options, const Called& in = {}) {
  Tape tape;
  const Var q = tape.variable(in.q), k = tape.variable(in.k), v = tape.variable(in.v);
  options.first_query = kKeys - kQueries;
  const Mechanism mechanism(line);
  std::vector<Var> learned;
  for (const Learned& each :
       mechanism.learned({.heads = kHeads, .groups = kGroups, .width = kWidth, .values = kValues})) {
    learned.push_back(tape.variable(drawn(each.shape, 9)));
  }
  options.learned = learned;
  const Attention made = attend(mechanism, q, k, v, options);
  tape.backward(made.context, drawn(made.context.shape(), 5));
  const auto gradient = [&](Var x) {
    return tape.gradient(x).defined() ? tape.gradient(x).clone() : Tensor::zeros(x.shape());
  };
  return {made.context.value().clone(), gradient(q), gradient(k), gradient(v), made.trace.keep()};
}

void expect_same(const Outcome& got, const Outcome& expected) {
  EXPECT_TRUE(same_bits(got.context, expected.context));
  EXPECT_TRUE(same_bits(got.dq, expected.dq));
  EXPECT_TRUE(same_bits(got.dk, expected.dk));
  EXPECT_TRUE(same_bits(got.dv, expected.dv));
}

bool is_hidden(std::int64_t i, std::int64_t j) { return (i * 3 + j) % 4 == 0; }

Tensor bytes(const Shape& shape, const std::function<bool(std::int64_t)>& is_set) {
  const Tensor result = Tensor::empty(shape, DType::kI8);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    result.data<std::int8_t>()[i] = static_cast<std::int8_t>(is_set(i) ? 1 : 0);
  }
  return result;
}

const char* const kLines[] = {"scaled_dot | causal", "scaled_dot | causal | sparsemax", "dot | hard:samples=3",
                              "scaled_dot | pointer", "relative:5 | causal"};

TEST(Edits, NoEditsChangeNothing) {
  for (const char* line : kLines) {
    const Edits none;
    expect_same(run(line, {.edits = &none}), run(line, {}));
    const Edits ones{.head_scale = {1, 1, 1, 1}};
    expect_same(run(line, {.edits = &ones}), run(line, {}));
  }
}

TEST(Edits, HiddenKeysAreAMask) {
  const auto hidden_at = [](std::int64_t i) { return is_hidden(i / kKeys % kQueries, i % kKeys); };
  const Edits edits{.hidden = bytes({1, 1, kQueries, kKeys}, hidden_at)};
  const Tensor open = bytes({1, 1, kQueries, kKeys}, [&](std::int64_t i) { return !hidden_at(i); });
  const Tensor first_half = bytes({1, 1, kQueries, kKeys}, [](std::int64_t i) { return i % kKeys < 75; });
  const Tensor both = bytes({1, 1, kQueries, kKeys}, [&](std::int64_t i) { return !hidden_at(i) && i % kKeys < 75; });
  for (const char* line : kLines) {
    const Outcome got = run(line, {.edits = &edits});
    expect_same(got, run(line, {.mask = open}));
    EXPECT_FALSE(same_bits(got.context, run(line, {}).context));
    const Tensor weights = got.trace.weights({.item = 1, .head = 2});
    for (std::int64_t i = 0; i < weights.size(); ++i) {
      if (hidden_at(i)) {
        ASSERT_EQ(weights.data<float>()[i], 0.0f);
      }
    }
    expect_same(run(line, {.mask = first_half, .edits = &edits}), run(line, {.mask = both}));
  }
}

TEST(Edits, HiddenKeysOfOneHeadLeaveTheOthersAlone) {
  const Edits edits{.hidden = bytes({kBatch, kHeads, kQueries, kKeys}, [](std::int64_t i) {
                      return i / kKeys / kQueries == 5 && i % kKeys > 3;  // item 1, head 1
                    })};
  const Outcome plain = run("scaled_dot", {}), got = run("scaled_dot", {.edits = &edits});
  for (std::int64_t list = 0; list < kBatch * kHeads; ++list) {
    const auto part = [&](const Tensor& x) {
      return x.slice(0, list / kHeads, list / kHeads + 1).slice(1, list % kHeads, list % kHeads + 1).clone();
    };
    EXPECT_EQ(same_bits(part(got.context), part(plain.context)), list != 5) << list;
  }
}

TEST(Edits, AHeadIsScaledWithItsGradients) {
  const Edits edits{.head_scale = {1, 0, -2, 0.5f}};
  for (const char* line : kLines) {
    const Outcome plain = run(line, {}), got = run(line, {.edits = &edits});
    const std::int64_t width = plain.context[3];
    for (std::int64_t i = 0; i < plain.context.size(); ++i) {
      const auto head = static_cast<std::size_t>(i / (kQueries * width) % kHeads);
      ASSERT_EQ(got.context.data<float>()[i], plain.context.data<float>()[i] * edits.head_scale[head]);
    }
    for (std::int64_t i = 0; i < plain.dq.size(); ++i) {
      const auto head = static_cast<std::size_t>(i / (kQueries * kWidth) % kHeads);
      ASSERT_NEAR(got.dq.data<float>()[i], plain.dq.data<float>()[i] * edits.head_scale[head], 1e-5);
    }
    EXPECT_TRUE(same_bits(got.trace.weights({.head = 2}), plain.trace.weights({.head = 2})));
  }
}

TEST(Edits, AReplacedRowReadsWithItsWeightsAndOthersHaveTheirBits) {
  std::vector<float> weights(kKeys, 0.0f);
  weights[3] = 0.25f;
  weights[139] = -1.5f;  // whatever causal says
  const Edits edits{.rows = {{.item = 1, .head = 3, .query = 17, .weights = weights}}};
  for (const char* line : kLines) {
    const Mechanism mechanism(line);
    const bool pointer = mechanism.stages().read->is_pointer();
    const bool relative = mechanism.text().find("relative_sum") != std::string::npos;
    Called poisoned;
    std::fill_n(poisoned.q.data<float>() + ((kHeads + 3) * kQueries + 17) * kWidth, kWidth,
                std::numeric_limits<float>::quiet_NaN());
    const Outcome plain = run(line, {.dropout = 0.25f});
    const Outcome got = run(line, {.dropout = 0.25f, .edits = &edits});
    expect_same(run(line, {.dropout = 0.25f, .edits = &edits}, poisoned), got);  // its scores are not looked at
    const std::int64_t width = plain.context[3], row = (kHeads + 3) * kQueries + 17;
    const Called in;
    for (std::int64_t i = 0; i < plain.context.size(); ++i) {
      const float value = got.context.data<float>()[i];
      if (i / width != row) {
        ASSERT_EQ(value, plain.context.data<float>()[i]);
      } else if (pointer) {
        ASSERT_EQ(value, weights[static_cast<std::size_t>(i % width)]);
      } else if (!relative) {
        const auto v = [&](std::int64_t j) { return in.v.data<float>()[(3 * kKeys + j) * kValues + i % width]; };
        ASSERT_NEAR(value, 0.25f * v(3) - 1.5f * v(139), 1e-6);
      }
    }
    for (std::int64_t c = 0; c < kWidth; ++c) ASSERT_EQ(got.dq.data<float>()[row * kWidth + c], 0.0f);
    const Tensor some = got.trace.weights({.item = 1, .head = 3, .queries = Range{10, 20}});
    EXPECT_TRUE(std::equal(weights.begin(), weights.end(), some.data<float>() + 7 * kKeys));
    const Tensor before = plain.trace.weights({.item = 1, .head = 3});
    EXPECT_TRUE(std::equal(some.data<float>(), some.data<float>() + 7 * kKeys, before.data<float>() + 10 * kKeys));
    EXPECT_TRUE(same_bits(got.trace.weights({.item = 0, .head = 3}), plain.trace.weights({.item = 0, .head = 3})));
  }
}

TEST(Edits, GradientsMatchFiniteDifferences) {
  for (const std::string line :
       {"scaled_dot | causal", "relative:2 | causal", "relative:2 | pointer", "dot | entmax15"}) {
    verify::Case each;
    each.name = line;
    each.inputs = {{.name = "q", .shape = {2, 2, 4, 3}}, {.name = "k", .shape = {2, 1, 4, 3}}};
    const bool pointer = line.find("pointer") != std::string::npos;
    if (!pointer) each.inputs.push_back({.name = "v", .shape = {2, 1, 4, 2}});
    const std::size_t first = each.inputs.size();
    const Mechanism mechanism(line);
    for (const Learned& learned : mechanism.learned({.heads = 2, .groups = 1, .width = 3, .values = 2})) {
      each.inputs.push_back({.name = "learned", .shape = learned.shape});
    }
    each.build = [=](Tape&, std::span<const Var> x, verify::Items) {
      const Edits edits{
          .hidden = bytes({1, 1, 4, 4}, [](std::int64_t i) { return i == 9; }),
          .head_scale = {-0.5f, 2},
          .rows = {{.item = 1, .head = 0, .query = 2, .weights = {0.5f, 0, -1, 0.25f}}, {.weights = {1, 2, 3, 4}}}};
      const AttendOptions options{.learned = x.subspan(first), .edits = &edits};
      return attend(mechanism, x[0], x[1], pointer ? Var() : x[2], options).context;
    };
    const verify::GradientReport report = verify::check_gradient(each, verify::draw(each));
    EXPECT_LE(report.worst, 1) << line << ": " << report.where;
    EXPECT_TRUE(report.any);
  }
}

TEST(Edits, MistakesSayWhatIsWrong) {
  const auto error_of = [](const Edits& edits) -> std::string {
    try {
      run("scaled_dot", {.edits = &edits});
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of({.hidden = Tensor::zeros({1, 1, 3, kKeys}, DType::kI8)}).find("attend: hidden"), 0u);
  EXPECT_EQ(error_of({.hidden = Tensor::zeros({1, 1, kQueries, kKeys})}),
            "attend: what edits hide is f32 [1, 1, 70, 140], expected i8, spread to [2, 4, 70, 140]");
  EXPECT_EQ(error_of({.head_scale = {1, 2}}), "attend: edits have 2 scales for 4 heads");
  const std::vector<float> weights(kKeys);
  EXPECT_EQ(error_of({.rows = {{.query = 70, .weights = weights}}}),
            "attend: row 0 of the edits is item 0, head 0, query 70, expected below 2, 4, 70");
  EXPECT_EQ(error_of({.rows = {{.weights = {1, 2}}}}), "attend: row 0 of the edits has 2 weights for 140 keys");
  EXPECT_EQ(error_of({.rows = {{.head = 1, .weights = weights}, {.head = 1, .weights = weights}}}),
            "attend: row 1 of the edits, item 0, head 1, query 0, is replaced twice");
}

}  // namespace
}  // namespace regard
