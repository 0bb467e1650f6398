// Drawing from a model: the right frequencies, and the same draw wherever a source stands.
#include "decode/sample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "base/check.h"

namespace regard {
namespace {

constexpr std::int32_t kWords = 6, kEnd = 1;

// Whatever it is told, the next word has these logits, moved by the length of the source; so a text is a chain of
// independent draws.
class ChainModel final : public SequenceModel {
 public:
  class Steps final : public Decoding {
   public:
    explicit Steps(std::vector<std::int32_t> lengths) : lengths_(std::move(lengths)) {}
    Tensor step(std::span<const std::int32_t> sources, std::span<const std::int32_t> origins,
                std::span<const std::int32_t> previous) override {
      EXPECT_EQ(origins.size(), previous.size());
      const std::size_t width = previous.size() / sources.size();
      const Tensor logits = Tensor::zeros({static_cast<std::int64_t>(previous.size()), kWords});
      for (std::size_t row = 0; row < previous.size(); ++row) {
        const std::int32_t length = lengths_[static_cast<std::size_t>(sources[row / width])];
        for (std::int32_t word = 0; word < kWords; ++word)
          logits.data<float>()[static_cast<std::int32_t>(row) * kWords + word] = logit(length, word);
      }
      return logits;
    }

   private:
    std::vector<std::int32_t> lengths_;
  };
  static float logit(std::int32_t length, std::int32_t word) {
    return static_cast<float>((word * 7 + length) % kWords) * 0.5f;
  }

  Loss loss(Tape&, const Batch&, const LossOptions&) const override { throw std::logic_error("not asked for"); }
  Var logits(Tape&, const Batch&) const override { throw std::logic_error("not asked for"); }
  AttentionShape attention_shape() const override { return {}; }
  std::vector<Tensor> all_attention(const Batch&) const override { return {}; }
  std::int64_t target_words() const override { return kWords; }
  std::unique_ptr<Decoding> decode(const Batch& batch, const DecodeOptions&) const override {
    return std::make_unique<Steps>(batch.lengths);
  }
};

Batch batch_of(const std::vector<std::int32_t>& lengths) {
  std::vector<SequencePair> pairs;
  for (const std::int32_t length : lengths)
    pairs.push_back({.id = pairs.size(), .source = std::vector<std::int32_t>(static_cast<std::size_t>(length), 2)});
  return make_batch(pairs, {});
}

std::vector<double> probabilities(std::int32_t length, double temperature) {
  std::vector<double> p;
  for (std::int32_t word = 0; word < kWords; ++word)
    p.push_back(std::exp(static_cast<double>(ChainModel::logit(length, word)) / temperature));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& each : p) each /= sum;
  return p;
}

// How often each word is the first, over many samples of one source.
std::vector<double> first_words(const SampleSettings& given, std::int64_t count) {
  SampleSettings settings = given;
  settings.samples = count;
  settings.limit = {.factor = 0, .more = 1};
  const std::vector<RandomKey> keys = {RandomKey(3)};
  std::vector<double> seen(kWords, 0);
  const std::vector<Hypotheses> drawn = sample(ChainModel(), batch_of({3}), keys, settings);
  for (const Hypothesis& each : drawn[0])
    seen[static_cast<std::size_t>(each.words.empty() ? kEnd : each.words[0])] += 1 / static_cast<double>(count);
  return seen;
}

TEST(Sample, DrawsWordsAsOftenAsTheyAreLikely) {
  for (const double temperature : {1.0, 0.5, 2.0}) {
    const std::vector<double> want = probabilities(3, temperature),
                              seen = first_words({.temperature = temperature}, 20000);
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(seen[i], want[i], 0.015) << i << " at " << temperature;
  }
}

TEST(Sample, TopKAndTopPKeepTheLikeliest) {
  const std::vector<double> all = probabilities(3, 1);
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return all[a] > all[b]; });
  const std::vector<double> k = first_words({.top_k = 2}, 20000);
  const double two = all[order[0]] + all[order[1]];
  EXPECT_NEAR(k[order[0]], all[order[0]] / two, 0.015);
  EXPECT_NEAR(k[order[1]], all[order[1]] / two, 0.015);
  for (std::size_t i = 2; i < order.size(); ++i) EXPECT_EQ(k[order[i]], 0);
  const std::vector<double> p = first_words({.top_p = two - 1e-3}, 20000);  // two words are needed, no third
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(p[order[i]] > 0, i < 2) << i;
  const std::vector<double> one = first_words({.top_p = 1e-6}, 500);
  EXPECT_NEAR(one[order[0]], 1, 1e-9);
}

TEST(Sample, NeighboursAndTheNumberOfSamplesChangeNothing) {
  const std::vector<std::int32_t> lengths = {9, 5, 4, 2, 1};
  std::vector<RandomKey> keys;
  for (const std::int32_t length : lengths) keys.push_back(RandomKey(8).at(static_cast<std::uint64_t>(length)));
  const auto together = sample(ChainModel(), batch_of(lengths), keys, {.samples = 4});
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto alone = sample(ChainModel(), batch_of({lengths[i]}), std::span(keys).subspan(i, 1), {.samples = 2});
    for (std::size_t k = 0; k < 2; ++k) {
      EXPECT_EQ(alone[0][k].words, together[i][k].words);
      EXPECT_EQ(alone[0][k].log_probability, together[i][k].log_probability);
    }
  }
}

TEST(Sample, ScoresAreTheModelsOwnAndLengthsAreKept) {
  const std::vector<RandomKey> keys = {RandomKey(1)};
  const std::vector<double> p = probabilities(4, 1);
  std::size_t longest = 0;
  const std::vector<Hypotheses> drawn =
      sample(ChainModel(), batch_of({4}), keys, {.samples = 200, .temperature = 3, .limit = {.factor = 1, .more = 3}});
  for (const Hypothesis& each : drawn[0]) {
    double want = std::log(p[kEnd]);
    for (const std::int32_t word : each.words) want += std::log(p[static_cast<std::size_t>(word)]);
    EXPECT_NEAR(each.log_probability, want, 1e-5);
    EXPECT_NEAR(each.score, want / static_cast<double>(each.words.size() + 1), 1e-5);
    longest = std::max(longest, each.words.size());
  }
  EXPECT_EQ(longest, 7u);
}

TEST(Sample, SettingsThatMakeNoSenseAreRefused) {
  const std::vector<RandomKey> keys = {RandomKey(1)};
  const Batch batch = batch_of({2});
  for (const SampleSettings& bad :
       {SampleSettings{.samples = 0}, {.top_k = -1}, {.top_p = 0}, {.top_p = 1.1}, {.temperature = 0}}) {
    EXPECT_THROW(sample(ChainModel(), batch, keys, bad), Error);
  }
  EXPECT_THROW(sample(ChainModel(), batch, {}, {}), Error);
  EXPECT_TRUE(sample(ChainModel(), batch_of({}), {}, {}).empty());
}

}  // namespace
}  // namespace regard
