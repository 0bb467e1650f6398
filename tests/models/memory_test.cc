// Models give the memory of values back as soon as nothing reads them again. Filled with NaN, it would show in a loss
// or a gradient if something did.
#include <gtest/gtest.h>

#include <vector>

#include "models/some_models.h"
#include "tensor/arena.h"

namespace regard {
namespace {

std::vector<SequencePair> many_pairs() {
  std::vector<SequencePair> pairs;
  for (std::uint32_t i = 0; i < 24; ++i) pairs.push_back(some_pair(i, 3 + i % 7, 2 + i % 9));
  return pairs;
}

std::vector<float> step(ModelSettings settings) {
  settings.dropout = 0.2;
  Parameters parameters;
  const auto model = make_model(Builder(parameters, RandomKey(7)), settings);
  const Batch batch = make_batch(many_pairs(), {.begin = 1, .end = 2});
  Gradients gradients(parameters);
  Tape tape(gradients);
  std::vector<float> all;
  for (int i = 0; i < 2; ++i) {
    const SequenceModel::Loss loss = model->loss(tape, batch, {.training = true, .key = RandomKey(9)});
    all.push_back(static_cast<float>(loss.sum.value().item()));
    tape.backward_last(loss.sum);
    tape.reset();
  }
  gradients.settle();
  for (const Parameter& each : parameters) {
    const Tensor& gradient = gradients.of(each);
    all.insert(all.end(), gradient.data<float>(), gradient.data<float>() + gradient.size());
  }
  return all;
}

TEST(ModelMemory, WhatIsGivenBackIsNotReadAgain) {
  struct Poisoned {
    Poisoned() { Arena::poison(true); }
    ~Poisoned() { Arena::poison(false); }
  };
  std::vector<NamedModel> models = small_models();
  for (const NamedModel& each : looking_models()) models.push_back(each);
  for (const NamedModel& each : models) {
    const std::vector<float> plain = step(each.settings);
    const Poisoned poisoned;
    EXPECT_EQ(step(each.settings), plain) << each.name;
  }
}

}  // namespace
}  // namespace regard
