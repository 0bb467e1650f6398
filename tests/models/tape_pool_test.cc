// Tapes that are used again: the same bits, and nothing left of the batch before.
#include "models/tape_pool.h"

#include <gtest/gtest.h>

#include <cstring>

#include "models/some_models.h"

namespace regard {
namespace {

std::vector<float> first_logits(const SequenceModel& model, const Batch& batch) {
  std::vector<std::int32_t> sources(static_cast<std::size_t>(batch.size()));
  for (std::size_t i = 0; i < sources.size(); ++i) sources[i] = static_cast<std::int32_t>(i);
  const std::vector<std::int32_t> previous(sources.size(), 0);
  const std::unique_ptr<Decoding> decoding = model.decode(batch);
  const Tensor logits = decoding->step(sources, sources, previous);
  return {logits.data<float>(), logits.data<float>() + logits.size()};
}

TEST(TapePool, GivesTheSameBitsAsATapeOfItsOwn) {
  for (const NamedModel& each : small_models()) {
    SCOPED_TRACE(each.name);
    Parameters parameters;
    const auto model = make_model(Builder(parameters, RandomKey(3)), each.settings);
    const std::vector<SequencePair> pairs = some_pairs();
    const Batch all = make_batch(pairs, {}), one = make_batch({&pairs[0], 1}, {});
    const std::vector<float> want_all = first_logits(*model, all), want_one = first_logits(*model, one);
    TapePool pool;
    const TapePoolScope scope(pool);
    for (int turn = 0; turn < 2; ++turn) {
      EXPECT_EQ(first_logits(*model, all), want_all);
      EXPECT_EQ(first_logits(*model, one), want_one);
    }
    for (Parameter& parameter : parameters) {  // a tape that has packed the weights before sees new ones
      for (std::int64_t i = 0; i < parameter.value.size(); ++i) parameter.value.data<float>()[i] *= 0.5f;
      ++parameter.version;
    }
    const std::vector<float> changed = first_logits(*model, all);
    EXPECT_NE(changed, want_all);
    TapePool other;
    const TapePoolScope fresh(other);
    EXPECT_EQ(first_logits(*model, all), changed);
  }
}

TEST(TapePool, WhatIsSharedIsMadeOnceForEveryVersionOfTheWeights) {
  TapePool pool;
  const int model = 0, another = 0;
  int made = 0;
  const auto ask = [&](const void* of, std::uint64_t version) {
    return *pooled<int>(of, version, [&] { return ++made; });
  };
  EXPECT_EQ(ask(&model, 1), 1);  // no pool is in force
  EXPECT_EQ(ask(&model, 1), 2);
  const TapePoolScope scope(pool);
  EXPECT_EQ(ask(&model, 1), 3);
  EXPECT_EQ(ask(&model, 1), 3);
  EXPECT_EQ(ask(&another, 1), 4);
  EXPECT_EQ(ask(&model, 2), 5);
  EXPECT_EQ(ask(&model, 2), 5);
}

// Norms of values are made with the weights as they are, not as they were for the batch before.
TEST(TapePool, NormsFollowTheWeights) {
  Parameters parameters;
  const auto model = make_model(Builder(parameters, RandomKey(3)), small_model("transformer"));
  const std::vector<SequencePair> pairs = some_pairs();
  TapePool pool;
  const TapePoolScope scope(pool);
  const auto norm = [&] {
    const std::vector<std::int32_t> row = {0}, previous = {0};
    const std::unique_ptr<Decoding> decoding =
        model->decode(make_batch({&pairs[0], 1}, {}), {.keeps = Keeps::kEverything});
    decoding->step(row, row, previous);
    return decoding->looked(0, row).cross.norms.data<float>()[0];
  };
  const float before = norm();
  EXPECT_EQ(norm(), before);
  for (Parameter& parameter : parameters) {
    if (parameter.name.find("cross.output") == std::string::npos) continue;
    for (std::int64_t i = 0; i < parameter.value.size(); ++i) parameter.value.data<float>()[i] *= 2;
    ++parameter.version;
  }
  EXPECT_NEAR(norm(), 2 * before, 1e-5f * before);
}

TEST(TapePool, ATapeIsUsedByOneDecodingAtATimeAndByItsModelAgain) {
  TapePool pool;
  const int model = 0, another = 0;
  std::unique_ptr<Tape> first = pool.take(&model), second = pool.take(&model);
  EXPECT_NE(first.get(), second.get());
  const Tape* const address = first.get();
  pool.give_back(&model, std::move(first));
  EXPECT_NE(pool.take(&another).get(), address);
  EXPECT_EQ(pool.take(&model).get(), address);
}

}  // namespace
}  // namespace regard
