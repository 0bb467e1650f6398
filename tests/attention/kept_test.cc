// Attention to what a decoder keeps: the bits of attend() over the same keys, wherever they stand.
#include "attention/kept.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "kernels/target.h"
#include "regard/random.h"

namespace regard {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor drawn(const Shape& shape, std::uint64_t seed) {
  const Tensor made = Tensor::empty(shape);
  for (std::int64_t i = 0; i < made.size(); ++i) {
    made.data<float>()[i] = 2 * uniform(RandomKey(seed), static_cast<std::uint64_t>(i)) - 1;
  }
  return made;
}

bool same(const float* a, const float* b, std::int64_t count) {
  return count == 0 || std::memcmp(a, b, static_cast<std::size_t>(count) * sizeof(float)) == 0;
}

Rows rows_of(const Tensor& x) {
  return {x.data<float>(), static_cast<std::size_t>(x[0]), static_cast<std::size_t>(x[1]),
          static_cast<std::size_t>(x[1])};
}

struct Sizes {
  std::int64_t rows, heads, width, value_width, keys;
};
constexpr Sizes kSizes[] = {{1, 1, 1, 1, 1},    {5, 4, 32, 32, 14},  {1, 8, 64, 64, 16},  {2, 3, 7, 5, 17},
                            {5, 2, 64, 80, 33}, {7, 2, 19, 64, 128}, {3, 2, 32, 32, 129}, {5, 1, 33, 21, 300}};

// What row `row` gets from attend(): its keys in its own order.
struct Expected {
  Tensor context;  // [heads, value_width]
  Tensor weights;  // [heads, keys]
};
Expected expected(const Mechanism& mechanism, const Sizes& s, const Tensor& queries, const Tensor& keys,
                  const Tensor& values, std::int64_t row, const std::vector<std::int32_t>& slots) {
  const Tensor q = Tensor::empty({1, s.heads, 1, s.width}), k = Tensor::empty({1, s.heads, s.keys, s.width}),
               v = Tensor::empty({1, s.heads, s.keys, s.value_width});
  std::copy_n(queries.data<float>() + row * s.heads * s.width, q.size(), q.data<float>());
  for (std::int64_t j = 0; j < s.keys; ++j) {
    const std::int64_t slot = slots[static_cast<std::size_t>(row * s.keys + j)];
    for (std::int64_t head = 0; head < s.heads; ++head) {
      std::copy_n(keys.data<float>() + (slot * s.heads + head) * s.width, s.width,
                  k.data<float>() + (head * s.keys + j) * s.width);
      std::copy_n(values.data<float>() + (slot * s.heads + head) * s.value_width, s.value_width,
                  v.data<float>() + (head * s.keys + j) * s.value_width);
    }
  }
  Tape tape;
  const Attention looked = attend(mechanism, tape.constant(q), tape.constant(k), tape.constant(v),
                                  {.first_query = s.keys - 1, .weights = true});
  return {looked.context.value().clone(), looked.trace.all_weights().clone()};
}

void compare(const Mechanism& mechanism, const Sizes& s, bool in_order, const Tensor& values) {
  const std::int64_t slots = in_order ? s.keys : 2 * s.keys + 3;
  const Tensor queries = drawn({s.rows, s.heads * s.width}, 1), keys = drawn({slots, s.heads * s.width}, 2);
  KeptKeys kept(s.heads, s.width, s.value_width);
  for (std::int64_t slot = 0; slot < slots; ++slot) {  // what was there is forgotten
    for (const bool last : {false, true}) {
      const std::int64_t from = last ? slot : slots - 1 - slot;
      kept.put(slot, keys.data<float>() + from * keys[1], values.data<float>() + from * values[1]);
    }
  }
  std::vector<std::int32_t> places;
  for (std::int64_t i = 0; i < s.rows * s.keys; ++i) {
    places.push_back(static_cast<std::int32_t>(in_order ? i % s.keys : (i * 7 + i / s.keys) % slots));
  }
  const Tensor context = Tensor::empty({s.rows, s.heads * s.value_width});
  for (const bool asked : {false, true}) {
    const std::int64_t size = KeptScores::size(s.heads * s.rows, s.keys);
    const Tensor memory = Tensor::zeros({size + 1});
    const KeptScores scores{.data = asked ? memory.data<float>() : nullptr, .rows = s.heads * s.rows, .keys = s.keys};
    attend_kept(mechanism, kept, rows_of(queries),
                {.keys = s.keys, .slots = in_order ? nullptr : places.data(), .kept = scores},
                {context.data<float>(), static_cast<std::size_t>(s.rows), static_cast<std::size_t>(context[1]),
                 static_cast<std::size_t>(context[1])});
    for (std::int64_t row = 0; row < s.rows; ++row) {
      const Expected want = expected(mechanism, s, queries, keys, values, row, places);
      EXPECT_TRUE(same(context.data<float>() + row * context[1], want.context.data<float>(), context[1]))
          << mechanism.text() << ", row " << row << ", " << s.keys << " keys, width " << s.width;
      for (std::int64_t head = 0; head < s.heads && asked; ++head) {
        const std::int64_t own = row * s.heads + head;
        float* const weights = scores.scores(own);
        weigh_kept(mechanism, {weights, 1, static_cast<std::size_t>(s.keys), static_cast<std::size_t>(s.keys)},
                   scores.peaks() + own, scores.taus() + own);
        EXPECT_TRUE(same(weights, want.weights.data<float>() + head * s.keys, s.keys)) << s.keys << " keys";
      }
    }
    EXPECT_EQ(memory.data<float>()[size], 0);  // nothing behind the end
  }
}

TEST(Kept, LooksHaveTheBitsOfAttendWhereverKeysStand) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (const char* line : {"scaled_dot | causal", "dot", "scaled_dot:scale=0.3 | softmax:temperature=0.7"}) {
      const Mechanism mechanism(line);
      for (const Sizes& s : kSizes) {
        for (const bool in_order : {true, false}) {
          SCOPED_TRACE(name);
          compare(mechanism, s, in_order, drawn({2 * s.keys + 3, s.heads * s.value_width}, 3));
        }
      }
    }
  }
}

TEST(Kept, WhatHasNoWeightIsNotRead) {
  const Sizes s{2, 1, 16, 16, 20};
  const Mechanism mechanism("dot");
  const Tensor queries = drawn({s.rows, s.width}, 1), keys = drawn({s.keys, s.width}, 2),
               values = drawn({s.keys, s.value_width}, 3), context = Tensor::empty({s.rows, s.value_width});
  std::fill_n(queries.data<float>(), queries.size(), 1.0f);
  std::fill_n(keys.data<float>() + 3 * s.width, s.width, -1e4f);  // its weight is 0
  std::fill_n(values.data<float>() + 3 * s.value_width, s.value_width, kNan);
  KeptKeys kept(s.heads, s.width, s.value_width);
  for (std::int64_t slot = 0; slot < s.keys; ++slot) {
    kept.put(slot, keys.data<float>() + slot * s.width, values.data<float>() + slot * s.value_width);
  }
  std::vector<std::int32_t> places;
  for (std::int64_t i = 0; i < s.rows * s.keys; ++i) places.push_back(static_cast<std::int32_t>(i % s.keys));
  EXPECT_FALSE(kept.is_finite());
  for (const bool listed : {false, true}) {
    const std::int32_t* const slots = listed ? places.data() : nullptr;
    attend_kept(mechanism, kept, rows_of(queries), {.keys = s.keys, .slots = slots},
                {context.data<float>(), 2, 16, 16});
    for (std::int64_t row = 0; row < s.rows; ++row) {
      const Expected want = expected(mechanism, s, queries, keys, values, row, places);
      EXPECT_TRUE(same(context.data<float>() + row * 16, want.context.data<float>(), 16));
      EXPECT_EQ(context.data<float>()[row * 16], context.data<float>()[row * 16]) << "NaN";
    }
  }
}

TEST(Kept, NothingToSeeReadsZeros) {
  const Tensor queries = drawn({3, 32}, 1), context = drawn({3, 32}, 2);
  attend_kept(Mechanism("scaled_dot"), KeptKeys(2, 16, 16), rows_of(queries), {}, {context.data<float>(), 3, 32, 32});
  for (std::int64_t i = 0; i < context.size(); ++i) EXPECT_EQ(context.data<float>()[i], 0);
}

TEST(Kept, SumsAreThoseOfPlainLoops) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (const std::int64_t width : {1, 7, 16, 33, 64, 100}) {
      const Tensor weights = drawn({6, 9}, 1), values = drawn({2 * 11, width}, 2), start = drawn({6, width}, 3);
      weights.data<float>()[4] = 0;
      const std::vector<std::int32_t> slots = {4, 10, 0, 0, 7, 2, 9, 1, 3, 8, 8, 5, 1, 0,
                                               2, 3,  4, 6, 5, 5, 5, 5, 5, 5, 5, 5, 5};
      for (const bool goes_on : {false, true}) {
        const Tensor ours = start.clone(), exact = start.clone();
        SlotSums sums{.weights = rows_of(weights),
                      .slots = slots.data(),
                      .slot_stride = 9,
                      .values = values.data<float>(),
                      .heads = 2,
                      .head_stride = 11,
                      .width = static_cast<std::size_t>(width),
                      .goes_on = goes_on,
                      .out = ours.data<float>()};
        sum_slots(sums);
        sums.out = exact.data<float>();
        reference::sum_slots(sums);
        for (std::int64_t i = 0; i < ours.size(); ++i) {
          EXPECT_NEAR(ours.data<float>()[i], exact.data<float>()[i], 2e-6 * 10) << name << ' ' << width;
        }
      }
    }
  }
}

TEST(Kept, OnlyPlainMechanismsCanBe) {
  for (const char* line : {"scaled_dot", "dot | causal", "scaled_dot | softmax:temperature=2", "dot | lengths"}) {
    EXPECT_TRUE(can_keep(Mechanism(line))) << line;
  }
  for (const char* line : {"additive", "general", "rotary(scaled_dot)", "cosine", "relative:8", "projected",
                           "scaled_dot | window:3", "scaled_dot | alibi", "dot | sparsemax", "dot | local_p:3",
                           "dot | hard", "mixture(dot, scaled_dot)", "location:20"}) {
    EXPECT_FALSE(can_keep(Mechanism(line))) << line;
  }
}

}  // namespace
}  // namespace regard
