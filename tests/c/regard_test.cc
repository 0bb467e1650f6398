// The C interface: what it computes, and what hostile arguments get.
#include "regard/regard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "regard/attention/attend.h"
#include "regard/nn/initial.h"
#include "verify/reference_run.h"

namespace regard {
namespace {

constexpr std::int64_t kBatch = 3, kQueries = 2, kKeys = 5, kHidden = 7, kWidth = 4;
const std::vector<std::int32_t> kLengths = {5, 0, 2};

// Inputs of a call, and room for its output.
struct Call {
  std::vector<float> query = drawn({kBatch, kQueries, kHidden}, 1), key = drawn({kBatch, kKeys, kHidden}, 2),
                     value = drawn({kBatch, kKeys, kWidth}, 3), theta = drawn({kHidden}, 4);
  std::vector<std::int32_t> lengths = kLengths;
  std::vector<float> output = std::vector<float>(kBatch * kQueries * kWidth, -1);
  regard_additive input = {.batch = kBatch,
                           .queries = kQueries,
                           .keys = kKeys,
                           .hidden = kHidden,
                           .width = kWidth,
                           .query = query.data(),
                           .key = key.data(),
                           .value = value.data(),
                           .theta = theta.data(),
                           .lengths = lengths.data()};
  regard_trace* trace = nullptr;

  Call() = default;
  Call(const Call&) = delete;
  ~Call() { regard_trace_free(trace); }
  static std::vector<float> drawn(const Shape& shape, std::uint64_t seed) {
    const Tensor x = normal(shape, 1, RandomKey(seed));
    return {x.data<float>(), x.data<float>() + x.size()};
  }
  regard_status run(const regard_context* context = nullptr) {
    regard_trace_free(trace);
    return regard_attend_additive(context, &input, output.data(), &trace);
  }
  std::vector<float> weights(std::int64_t item) {
    std::vector<float> all(kQueries * kKeys, -1);
    EXPECT_EQ(regard_trace_weights(trace, item, all.data(), all.size()), REGARD_OK) << regard_last_error();
    return all;
  }
};

struct Handle {
  regard_context* context = regard_context_new();
  Handle() = default;
  Handle(const Handle&) = delete;
  ~Handle() { regard_context_free(context); }
};

bool says(const char* part) { return std::strstr(regard_last_error(), part) != nullptr; }

TEST(CInterface, GivesTheBitsThatCppGives) {
  Call call;
  ASSERT_EQ(call.run(), REGARD_OK) << regard_last_error();
  Tape tape;
  const auto on_tape = [&](const Shape& shape, std::uint64_t seed) {
    return tape.constant(normal(shape, 1, RandomKey(seed)));
  };
  const auto [context, trace] =
      attend_additive(on_tape({kBatch, kQueries, kHidden}, 1), on_tape({kBatch, kKeys, kHidden}, 2),
                      on_tape({kBatch, kKeys, kWidth}, 3), on_tape({kHidden}, 4), kLengths);
  EXPECT_EQ(std::memcmp(call.output.data(), context.value().raw(), context.value().bytes()), 0);
}

TEST(CInterface, WeightsSumToOneOverWhatIsVisible) {
  Call call;
  ASSERT_EQ(call.run(), REGARD_OK);
  for (std::int64_t item = 0; item < kBatch; ++item) {
    const std::vector<float> weights = call.weights(item);
    const std::int32_t visible = kLengths[static_cast<std::size_t>(item)];
    for (std::int64_t row = 0; row < kQueries; ++row) {
      double sum = 0;
      for (std::int64_t key = 0; key < kKeys; ++key) {
        const float weight = weights[static_cast<std::size_t>(row * kKeys + key)];
        EXPECT_EQ(weight > 0, key < visible);
        sum += weight;
      }
      EXPECT_NEAR(sum, visible == 0 ? 0 : 1, 1e-6);
    }
  }
}

TEST(CInterface, WeightsDoNotNeedTheCallersArraysAnyMore) {
  Call call;
  ASSERT_EQ(call.run(), REGARD_OK);
  const std::vector<float> before = call.weights(0);
  for (std::vector<float>* array : {&call.query, &call.key, &call.value, &call.theta}) {
    std::fill(array->begin(), array->end(), std::nanf(""));
  }
  std::fill(call.lengths.begin(), call.lengths.end(), -7);
  EXPECT_EQ(call.weights(0), before);
}

TEST(CInterface, NeitherTheTraceNorTheContextChangesABit) {
  Call call, other;
  Handle handle;
  ASSERT_EQ(regard_context_set_threads(handle.context, 1), REGARD_OK);
  ASSERT_EQ(call.run(handle.context), REGARD_OK);
  ASSERT_EQ(regard_attend_additive(nullptr, &other.input, other.output.data(), nullptr), REGARD_OK);
  EXPECT_EQ(call.output, other.output);
}

TEST(CInterface, WithoutLengthsAllKeysAreVisible) {
  Call call;
  call.input.lengths = nullptr;
  ASSERT_EQ(call.run(), REGARD_OK);
  for (const float weight : call.weights(1)) EXPECT_GT(weight, 0);
}

TEST(CInterface, SizesOfZeroWork) {
  for (std::int64_t regard_additive::*size :
       {&regard_additive::batch, &regard_additive::queries, &regard_additive::keys, &regard_additive::hidden,
        &regard_additive::width}) {
    Call call;
    call.input.*size = 0;
    call.input.lengths = nullptr;
    EXPECT_EQ(call.run(), REGARD_OK) << regard_last_error();
  }
  const regard_additive nothing = {};
  EXPECT_EQ(regard_attend_additive(nullptr, &nothing, nullptr, nullptr), REGARD_OK) << regard_last_error();
}

TEST(CInterface, NullIsAnErrorThatNamesIt) {
  Call call;
  const regard_additive good = call.input;
  const struct {
    const float* regard_additive::*array;
    const char* name;
  } arrays[] = {{&regard_additive::query, "query is NULL"},
                {&regard_additive::key, "key is NULL"},
                {&regard_additive::value, "value is NULL"},
                {&regard_additive::theta, "theta is NULL"}};
  for (const auto& [array, name] : arrays) {
    call.input = good;
    call.input.*array = nullptr;
    EXPECT_EQ(call.run(), REGARD_INPUT);
    EXPECT_TRUE(says(name)) << regard_last_error();
    EXPECT_EQ(call.trace, nullptr);
  }
  EXPECT_EQ(regard_attend_additive(nullptr, nullptr, call.output.data(), nullptr), REGARD_INPUT);
  EXPECT_EQ(regard_attend_additive(nullptr, &good, nullptr, nullptr), REGARD_INPUT);
  EXPECT_TRUE(says("output is NULL")) << regard_last_error();
  EXPECT_EQ(regard_context_set_threads(nullptr, 1), REGARD_INPUT);
  EXPECT_EQ(regard_context_set_memory_limit(nullptr, 1), REGARD_INPUT);
  EXPECT_EQ(regard_context_cancel(nullptr), REGARD_INPUT);
  EXPECT_EQ(regard_trace_weights(nullptr, 0, call.output.data(), 1), REGARD_INPUT);
  EXPECT_EQ(regard_reference_hash(nullptr, nullptr, 100), REGARD_INPUT);
  regard_context_free(nullptr);
  regard_trace_free(nullptr);
}

TEST(CInterface, SizesThatMakeNoSenseAreErrors) {
  constexpr std::int64_t kHostile[] = {-1,
                                       std::numeric_limits<std::int64_t>::min(),
                                       std::numeric_limits<std::int64_t>::max(),
                                       std::int64_t{1} << 62,
                                       std::int64_t{1} << 61,
                                       std::int64_t{1} << 45};
  for (std::int64_t regard_additive::*size :
       {&regard_additive::batch, &regard_additive::queries, &regard_additive::keys, &regard_additive::hidden,
        &regard_additive::width}) {
    for (const std::int64_t hostile : kHostile) {
      for (const bool others_are_zero : {false, true}) {
        Call call;
        if (others_are_zero) call.input.hidden = call.input.width = call.input.keys = 0;
        call.input.*size = hostile;
        call.input.lengths = nullptr;
        const regard_status status = call.run();
        if (hostile < 0) {
          EXPECT_EQ(status, REGARD_INPUT) << hostile;
        } else if (!others_are_zero) {
          EXPECT_NE(status, REGARD_OK) << hostile;
        }
        EXPECT_EQ(status == REGARD_OK, call.trace != nullptr) << hostile;
      }
    }
  }
}

TEST(CInterface, LengthsOutsideTheKeysAreErrors) {
  for (const std::int32_t length : {-1, static_cast<std::int32_t>(kKeys) + 1, INT32_MAX, INT32_MIN}) {
    Call call;
    call.lengths[1] = length;
    EXPECT_EQ(call.run(), REGARD_INPUT);
    EXPECT_TRUE(says("item 1")) << regard_last_error();
  }
}

TEST(CInterface, WeightsOfNoSuchItemOrIntoTheWrongRoomAreErrors) {
  Call call;
  ASSERT_EQ(call.run(), REGARD_OK);
  std::vector<float> room(kQueries * kKeys, -1);
  for (const std::int64_t item : {std::int64_t{-1}, kBatch, INT64_MAX}) {
    EXPECT_EQ(regard_trace_weights(call.trace, item, room.data(), room.size()), REGARD_INPUT);
  }
  EXPECT_EQ(regard_trace_weights(call.trace, 0, room.data(), room.size() - 1), REGARD_INPUT);
  EXPECT_EQ(regard_trace_weights(call.trace, 0, room.data(), SIZE_MAX), REGARD_INPUT);
  EXPECT_EQ(regard_trace_weights(call.trace, 0, nullptr, room.size()), REGARD_INPUT);
  EXPECT_EQ(room, std::vector<float>(room.size(), -1));
}

TEST(CInterface, TheMemoryLimitIsAnErrorAndTheProcessGoesOn) {
  Handle handle;
  ASSERT_EQ(regard_context_set_memory_limit(handle.context, 1000), REGARD_OK);
  Call call;
  EXPECT_EQ(call.run(handle.context), REGARD_LIMIT);
  EXPECT_TRUE(says("memory_limit")) << regard_last_error();
  ASSERT_EQ(regard_context_set_memory_limit(handle.context, 16 << 20), REGARD_OK);
  EXPECT_EQ(call.run(handle.context), REGARD_OK) << regard_last_error();
}

TEST(CInterface, CancelledIsAStatusOfItsOwn) {
  Handle handle;
  ASSERT_EQ(regard_context_cancel(handle.context), REGARD_OK);
  Call call;
  EXPECT_EQ(call.run(handle.context), REGARD_CANCELLED);
  EXPECT_EQ(call.trace, nullptr);
}

TEST(CInterface, ThreadsMayShareAContextAndATrace) {
  Handle handle;
  Call shared;
  ASSERT_EQ(shared.run(handle.context), REGARD_OK);
  const std::vector<float> output = shared.output, weights = shared.weights(0);
  const auto work = [&] {
    for (int i = 0; i < 50; ++i) {
      Call call;
      EXPECT_EQ(call.run(handle.context), REGARD_OK);
      EXPECT_EQ(call.output, output);
      EXPECT_EQ(shared.weights(0), weights);
      EXPECT_EQ(regard_context_set_threads(handle.context, i % 3), REGARD_OK);
    }
  };
  std::thread other(work);
  work();
  other.join();
}

TEST(CInterface, EveryThreadHasItsOwnLastError) {
  EXPECT_EQ(regard_context_cancel(nullptr), REGARD_INPUT);
  const std::string mine = regard_last_error();
  std::thread([] {
    EXPECT_STREQ(regard_last_error(), "");
    EXPECT_EQ(regard_context_set_threads(nullptr, 1), REGARD_INPUT);
  }).join();
  EXPECT_EQ(regard_last_error(), mine);
}

TEST(CInterface, TheHashIsThatOfTheReferenceRun) {
  char text[33] = "";
  ASSERT_EQ(regard_reference_hash(nullptr, text, sizeof(text)), REGARD_OK) << regard_last_error();
  EXPECT_EQ(text, verify::reference_hash());
  char small[8] = "before";
  EXPECT_EQ(regard_reference_hash(nullptr, small, sizeof(small)), REGARD_INPUT);
  EXPECT_STREQ(small, "before");
}

TEST(CInterface, NegativeThreadsAreAnError) {
  Handle handle;
  EXPECT_EQ(regard_context_set_threads(handle.context, -1), REGARD_INPUT);
}

}  // namespace
}  // namespace regard
