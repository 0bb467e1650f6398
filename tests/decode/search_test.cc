// Search, on a model that is nothing but a table: its words depend on the source and on all that was written before.
#include "decode/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "base/pool.h"
#include "regard/error.h"
#include "regard/random.h"

namespace regard {
namespace {

using Words = std::vector<std::int32_t>;

std::vector<float> table_logits(const Words& source, const Words& written, std::int64_t vocabulary) {
  RandomKey key = RandomKey(5).at(source.size());
  for (const std::int32_t word : source) key = key.at(static_cast<std::uint64_t>(word));
  for (const std::int32_t word : written) key = key.at(100 + static_cast<std::uint64_t>(word));
  std::vector<float> logits;
  for (std::int64_t i = 0; i < vocabulary; ++i) {
    logits.push_back(static_cast<float>(random_below(key, static_cast<std::uint64_t>(i), 1000)) / 200);
  }
  return logits;
}

class TableModel final : public SequenceModel {
 public:
  explicit TableModel(std::int64_t vocabulary) : vocabulary_(vocabulary) {}
  Loss loss(Tape&, const Batch&, const LossOptions&) const override { throw std::logic_error("not asked for"); }
  Var logits(Tape&, const Batch&) const override { throw std::logic_error("not asked for"); }
  AttentionShape attention_shape() const override { return {}; }
  std::vector<Tensor> all_attention(const Batch&) const override { return {}; }
  std::int64_t target_words() const override { return vocabulary_; }
  std::unique_ptr<Decoding> decode(const Batch& batch, const DecodeOptions&) const override;

  mutable std::mutex told;                // threads that search a part of the batch each
  mutable std::vector<std::size_t> rows;  // of every step
  bool damaged = false;
  bool endless = false;  // nothing can ever end
  Room most = {};
  Room room() const override { return most; }

 private:
  std::int64_t vocabulary_;
};

class TableDecoding final : public Decoding {
 public:
  TableDecoding(const TableModel& model, const Batch& batch) : model_(model) {
    for (std::int64_t row = 0; row < batch.size(); ++row) {
      Words words;
      for (std::int32_t t = 0; t < batch.lengths[static_cast<std::size_t>(row)]; ++t) {
        words.push_back(batch.source.data<std::int32_t>()[t * batch.size() + row]);
      }
      sources_.push_back(words);
    }
  }
  Tensor step(std::span<const std::int32_t> sources, std::span<const std::int32_t> origins,
              std::span<const std::int32_t> previous) override {
    const std::int64_t vocabulary = model_.target_words();
    EXPECT_TRUE(std::is_sorted(sources.begin(), sources.end()));
    EXPECT_EQ(origins.size(), previous.size());
    EXPECT_EQ(previous.size() % sources.size(), 0u);
    const std::size_t width = previous.size() / sources.size();
    std::vector<Words> written;
    std::vector<std::int32_t> owner;
    Tensor logits = Tensor::empty({static_cast<std::int64_t>(previous.size()), vocabulary});
    for (std::size_t row = 0; row < previous.size(); ++row) {
      const std::int32_t source = sources[row / width];
      Words words;
      if (first_) {
        EXPECT_EQ(previous[row], 0);
      } else {
        EXPECT_EQ(owner_.at(static_cast<std::size_t>(origins[row])), source);
        words = written_.at(static_cast<std::size_t>(origins[row]));
        words.push_back(previous[row]);
      }
      const auto numbers = table_logits(sources_[static_cast<std::size_t>(source)], words, vocabulary);
      std::copy(numbers.begin(), numbers.end(), logits.data<float>() + static_cast<std::int64_t>(row) * vocabulary);
      if (model_.damaged) logits.data<float>()[static_cast<std::int64_t>(row) * vocabulary + 2] = NAN;
      if (model_.endless) logits.data<float>()[static_cast<std::int64_t>(row) * vocabulary + 1] = -INFINITY;
      written.push_back(words);
      owner.push_back(source);
    }
    written_ = written;
    owner_ = owner;
    first_ = false;
    const std::lock_guard lock(model_.told);
    model_.rows.push_back(previous.size());
    return logits;
  }

 private:
  const TableModel& model_;
  std::vector<Words> sources_, written_;
  std::vector<std::int32_t> owner_;
  bool first_ = true;
};

std::unique_ptr<Decoding> TableModel::decode(const Batch& batch, const DecodeOptions&) const {
  return std::make_unique<TableDecoding>(*this, batch);
}

Batch batch_of(const std::vector<Words>& sources) {
  std::vector<SequencePair> pairs;
  for (const Words& source : sources) pairs.push_back({.id = pairs.size(), .source = source});
  return make_batch(pairs, {});
}

std::vector<double> log_probabilities(const std::vector<float>& logits) {
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x));
  std::vector<double> all;
  for (const float x : logits) all.push_back(static_cast<double>(x) - std::log(sum));
  return all;
}

// Every sequence of up to `longest` words.
void enumerate(const Words& source, std::int64_t vocabulary, std::int64_t longest, double penalty, Words& written,
               double so_far, Hypotheses& to) {
  const auto next = log_probabilities(table_logits(source, written, vocabulary));
  const double ended = so_far + next[1], length = static_cast<double>(written.size()) + 1;
  to.push_back({written, ended, ended / std::pow(length, penalty)});
  if (static_cast<std::int64_t>(written.size()) == longest) return;
  for (std::int32_t word = 0; word < vocabulary; ++word) {
    if (word == 1) continue;
    written.push_back(word);
    enumerate(source, vocabulary, longest, penalty, written, so_far + next[static_cast<std::size_t>(word)], to);
    written.pop_back();
  }
}

TEST(Search, AWideBeamFindsWhatTryingEverythingFinds) {
  const TableModel model(4);
  for (const double penalty : {0.0, 0.6, 1.0, 2.0}) {
    for (const Words& source : std::vector<Words>{{}, {3}, {2, 3}, {3, 3, 1}}) {
      const auto found = search(model, batch_of({source}),
                                {.beam = 500, .best = 20, .penalty = penalty, .limit = {.factor = 0, .more = 4}});
      Hypotheses all;
      Words written;
      enumerate(source, 4, 4, penalty, written, 0, all);
      ASSERT_EQ(all.size(), 121u);
      std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
      ASSERT_EQ(found.size(), 1u);
      ASSERT_EQ(found[0].size(), 20u);
      for (std::size_t i = 0; i < 20; ++i) {
        EXPECT_EQ(found[0][i].words, all[i].words) << "result " << i << ", penalty " << penalty;
        EXPECT_NEAR(found[0][i].log_probability, all[i].log_probability, 1e-5);
        EXPECT_NEAR(found[0][i].score, all[i].score, 1e-5);
      }
    }
  }
}

TEST(Search, ABeamOfOneTakesTheLikeliestWordEachTime) {
  const TableModel model(9);
  for (std::int32_t word = 0; word < 40; ++word) {
    const Words source = {word, 2, word};
    const auto found = search(model, batch_of({source}), {.limit = {.factor = 1, .more = 5}});
    Words want;
    while (want.size() < 8) {
      const auto logits = table_logits(source, want, 9);
      const auto best = static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
      if (best == 1) break;
      want.push_back(best);
    }
    EXPECT_EQ(found[0].at(0).words, want);
  }
}

TEST(Search, NeighboursChangeNothing) {
  const TableModel model(7);
  std::vector<Words> sources;
  for (std::int32_t i = 0; i < 12; ++i) sources.push_back(Words(static_cast<std::size_t>(i * 5 % 7), i));
  const SearchSettings settings = {.beam = 3, .best = 3, .limit = {.factor = 1, .more = 3}};
  const Batch batch = batch_of(sources);
  const auto together = search(model, batch, settings);
  for (std::size_t row = 0; row < sources.size(); ++row) {
    const auto alone = search(model, batch_of({sources[batch.order[row]]}), settings);
    ASSERT_EQ(alone[0].size(), together[row].size());
    for (std::size_t i = 0; i < alone[0].size(); ++i) {
      EXPECT_EQ(alone[0][i].words, together[row][i].words);
      EXPECT_EQ(alone[0][i].log_probability, together[row][i].log_probability);
    }
  }
}

// A model that is sure of one long sentence, and finds all else equally bad.
class SureModel final : public SequenceModel {
 public:
  Loss loss(Tape&, const Batch&, const LossOptions&) const override { throw std::logic_error("not asked for"); }
  Var logits(Tape&, const Batch&) const override { throw std::logic_error("not asked for"); }
  AttentionShape attention_shape() const override { return {}; }
  std::vector<Tensor> all_attention(const Batch&) const override { return {}; }
  std::int64_t target_words() const override { return 6; }
  std::unique_ptr<Decoding> decode(const Batch&, const DecodeOptions&) const override {
    struct Sure final : Decoding {
      Tensor step(std::span<const std::int32_t>, std::span<const std::int32_t>,
                  std::span<const std::int32_t> previous) override {
        const Tensor logits = Tensor::zeros({static_cast<std::int64_t>(previous.size()), 6});
        ++length;
        for (std::int64_t row = 0; row < logits[0]; ++row) {
          logits.data<float>()[row * 6 + (length == 9 ? 1 : 3)] = 12;
          if (length < 9) logits.data<float>()[row * 6 + 1] = 1;  // the end is the likeliest of the unlikely
        }
        return logits;
      }
      int length = 0;
    };
    return std::make_unique<Sure>();
  }
};

TEST(Search, UnlikelyEndsDoNotHideALikelySentence) {
  for (const std::int64_t beam : {1, 2, 4, 8}) {
    const auto found = search(SureModel(), batch_of({{2, 3}}), {.beam = beam});
    EXPECT_EQ(found[0].at(0).words, Words(8, 3)) << "beam " << beam;
  }
}

TEST(Search, WhatIsFoundLeavesTheBatch) {
  const ThreadLimit one(1);  // who has several gives each a part of the batch
  const TableModel model(7);
  std::vector<Words> sources;
  for (std::int32_t i = 0; i < 12; ++i) sources.push_back(Words(3, i));
  search(model, batch_of(sources), {.beam = 2});
  ASSERT_GT(model.rows.size(), 2u);
  EXPECT_EQ(model.rows[0], 12u);
  EXPECT_EQ(model.rows[1], 24u);
  EXPECT_LT(model.rows.back(), 24u);
  EXPECT_TRUE(std::is_sorted(model.rows.rbegin(), model.rows.rend() - 1));
}

TEST(Search, ABeamWiderThanTheVocabularyWorks) {
  const TableModel model(3);
  const auto found = search(model, batch_of({{2}, {}}), {.beam = 10, .best = 10, .limit = {.factor = 0, .more = 1}});
  for (const Hypotheses& each : found) EXPECT_EQ(each.size(), 3u);  // nothing, 0 and 2
}

TEST(Search, NoSourcesGiveNoResults) { EXPECT_TRUE(search(TableModel(5), batch_of({}), {.beam = 4}).empty()); }

TEST(Search, ResultsBeginAsTheyAreTold) {
  const TableModel model(6);
  for (const std::int64_t beam : {1, 3}) {
    for (const Words& prefix : {Words{3}, Words{4, 2, 5}, Words{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}}) {
      const Batch batch = batch_of({{2, 3}, {4, 5, 2}});
      SearchSettings settings{.beam = beam, .best = beam, .limit = {.factor = 1, .more = 3}};
      settings.prefix = prefix;
      for (const Hypotheses& found : search(model, batch, settings)) {
        ASSERT_FALSE(found.empty());
        for (const Hypothesis& each : found) {
          ASSERT_GE(each.words.size(), prefix.size());
          EXPECT_TRUE(std::equal(prefix.begin(), prefix.end(), each.words.begin()));
        }
      }
      // What is likely without being told is found with the same probability.
      settings.prefix.clear();
      const std::vector<Hypotheses> free = search(model, batch, settings);
      ASSERT_FALSE(free[1][0].words.empty());
      settings.prefix = {free[1][0].words[0]};
      EXPECT_GE(search(model, batch, settings)[1][0].log_probability, free[1][0].log_probability - 1e-9);
    }
  }
}

TEST(Search, WhatCannotBeIsRefused) {
  TableModel model(5);
  const Batch batch = batch_of({{2, 3}});
  EXPECT_THROW(search(model, batch, {.beam = 0}), Error);
  EXPECT_THROW(search(model, batch, {.beam = 2, .best = 3}), Error);
  EXPECT_THROW(search(model, batch, {.end = 5}), Error);
  EXPECT_THROW(search(model, batch, {.penalty = -1}), Error);
  EXPECT_THROW(search(model, batch, {.limit = {.factor = 1e9}}), Error);
  model.damaged = true;
  EXPECT_THROW(search(model, batch, {}), Error);
}

TEST(Search, AModelThatCanEndNothingIsDamaged) {
  TableModel model(5);
  model.endless = true;
  try {
    search(model, batch_of({{2, 3}}), {});
    FAIL() << "found something";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("the model is damaged"), std::string::npos) << error.what();
  }
}

TEST(Search, NothingIsLongerThanTheModelHasRoomFor) {
  TableModel model(5);
  const Batch batch = batch_of({{2, 3, 4, 2, 3}, {3}});
  std::size_t longest = 0;
  for (const Hypotheses& found : search(model, batch, {.beam = 3, .best = 3, .penalty = 2})) {
    for (const Hypothesis& each : found) longest = std::max(longest, each.words.size());
  }
  ASSERT_GT(longest, 3u);
  model.most.target = 4;  // with the end
  for (const Hypotheses& found : search(model, batch, {.beam = 3, .best = 3, .penalty = 2})) {
    for (const Hypothesis& each : found) EXPECT_LE(each.words.size(), 3u);
  }
}

TEST(Search, CanBeStopped) {
  std::stop_source stop;
  stop.request_stop();
  try {
    search(TableModel(5), batch_of({{2, 3}}), {}, {.cancel = stop.get_token()});
    FAIL() << "went on";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
  }
}

}  // namespace
}  // namespace regard
