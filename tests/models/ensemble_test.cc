// Models that write together.
#include "models/ensemble.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "models/some_models.h"
#include "regard/autograd/ops.h"
#include "support/error_of.h"

namespace regard {
namespace {

struct Two {
  Two()
      : first(make_model(Builder(parameters, RandomKey(3)), small_model("transformer"))),
        second(make_model(Builder(other_parameters, RandomKey(4)), small_model("bahdanau"))),
        both({first.get(), second.get()}) {}
  Parameters parameters, other_parameters;
  std::unique_ptr<SequenceModel> first, second;
  Ensemble both;
};

TEST(Ensemble, IsTheMeanOfLogProbabilities) {
  const Two two;
  const Batch batch = make_batch(some_pairs(), {});
  Tape tape;
  const Tensor a = log_softmax(two.first->logits(tape, batch)).value();
  const Tensor b = log_softmax(two.second->logits(tape, batch)).value();
  const Tensor both = log_softmax(two.both.logits(tape, batch)).value();
  const SequenceModel::Loss loss = two.both.loss(tape, batch);
  double sum = 0;
  for (std::int64_t row = 0; row < a[0]; ++row) {
    const std::int64_t words = a[1];
    double mass = 0;
    for (std::int64_t i = 0; i < words; ++i)
      mass += std::exp((static_cast<double>(a.data<float>()[row * words + i]) +
                        static_cast<double>(b.data<float>()[row * words + i])) /
                       2);
    for (std::int64_t i = 0; i < words; ++i) {
      const std::int64_t at = row * words + i;
      const double want =
          (static_cast<double>(a.data<float>()[at]) + static_cast<double>(b.data<float>()[at])) / 2 - std::log(mass);
      EXPECT_NEAR(both.data<float>()[at], want, 3e-6);
      if (batch.target_weights.data<float>()[row] > 0 && batch.targets.data<std::int32_t>()[row] == i) {
        EXPECT_NEAR(loss.log_probabilities.data<float>()[row], want, 3e-6);
        sum -= want;
      }
    }
  }
  EXPECT_NEAR(loss.sum.value().item(), sum, 1e-4);
}

TEST(Ensemble, StepsGiveTheBitsOfTheForcedPass) {
  const Two two;
  const SequencePair pair = some_pairs()[0];
  const Batch batch = make_batch({&pair, 1}, {});
  Tape tape;
  const Tensor forced = two.both.logits(tape, batch).value();
  const std::unique_ptr<Decoding> decoding = two.both.decode(batch);
  const std::vector<std::int32_t> source = {0};
  for (std::int64_t t = 0; t < forced[0]; ++t) {
    const std::vector<std::int32_t> previous = {batch.previous.data<std::int32_t>()[t]};
    const Tensor step = decoding->step(source, source, previous);
    EXPECT_EQ(std::memcmp(step.data<float>(), forced.data<float>() + t * forced[1], step.bytes()), 0) << "step " << t;
  }
}

TEST(Ensemble, ShowsTheMapsOfAllItsModels) {
  const Two two;
  const Batch batch = make_batch(some_pairs(), {});
  const AttentionShape shape = two.both.attention_shape();
  EXPECT_EQ(shape.layers, two.first->attention_shape().layers + 1);
  EXPECT_EQ(shape.heads, 2);
  const auto all = two.both.all_attention(batch), a = two.first->all_attention(batch),
             b = two.second->all_attention(batch);
  ASSERT_EQ(all.size(), a.size());
  for (std::size_t row = 0; row < all.size(); ++row) {
    ASSERT_EQ(std::memcmp(all[row].data<float>(), a[row].data<float>(), a[row].bytes()), 0);
    ASSERT_EQ(std::memcmp(all[row].data<float>() + a[row].size(), b[row].data<float>(), b[row].bytes()), 0);
  }
}

TEST(Ensemble, ShowsHowItsFirstModelLooksAtItself) {
  const Two two;
  const Batch batch = make_batch(some_pairs(), {});
  const auto all = two.both.every_attention(batch), first = two.first->every_attention(batch);
  const std::vector<Tensor> cross = two.both.all_attention(batch);
  ASSERT_EQ(all.size(), first.size());
  for (std::size_t row = 0; row < all.size(); ++row) {
    ASSERT_EQ(all[row].cross.weights.shape(), cross[row].shape());
    EXPECT_EQ(std::memcmp(all[row].cross.weights.raw(), cross[row].raw(), cross[row].bytes()), 0);
    EXPECT_FALSE(all[row].cross.norms.defined());  // the second has none
    const Tensor &a = all[row].encoder.weights, &b = first[row].encoder.weights;
    ASSERT_EQ(a.shape(), b.shape());
    EXPECT_EQ(std::memcmp(a.raw(), b.raw(), b.bytes()), 0);
  }
  const Ensemble twice({two.first.get(), two.first.get()});
  EXPECT_EQ(twice.every_attention(batch)[0].cross.norms[0], 2 * two.first->attention_shape().layers);
}

TEST(Ensemble, OfModelsThatDoNotFitIsRefused) {
  Parameters parameters;
  ModelSettings wide = small_model("transformer");
  wide.target_words += 1;
  const auto other = make_model(Builder(parameters, RandomKey(5)), wide);
  const Two two;
  EXPECT_NE(error_of([&] { Ensemble bad({two.first.get(), other.get()}); }), "");
  EXPECT_NE(error_of([&] { Ensemble bad({}); }), "");
  Tape tape;
  EXPECT_NE(error_of([&] { two.both.loss(tape, make_batch(some_pairs(), {}), {.training = true}); }), "");
}

}  // namespace
}  // namespace regard
