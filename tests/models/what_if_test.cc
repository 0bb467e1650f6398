// Maps that a search keeps on its way, and what it finds if it is made to look elsewhere.
#include "models/what_if.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "base/pool.h"
#include "decode/search.h"
#include "models/ensemble.h"
#include "models/some_models.h"
#include "support/error_of.h"

namespace regard {
namespace {

struct Made {
  explicit Made(const ModelSettings& settings, std::uint64_t seed = 3)
      : model(make_model(Builder(parameters, RandomKey(seed)), settings)) {}
  Parameters parameters;
  std::unique_ptr<SequenceModel> model;
};

bool same(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  return a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

std::vector<SequencePair> some_sources() {
  return {some_pair(1, 7, 0), some_pair(2, 5, 0), some_pair(3, 4, 0), some_pair(4, 1, 0)};
}

constexpr SearchSettings kSearch = {.begin = 0, .end = 1, .beam = 3, .best = 3, .limit = {.factor = 1, .more = 4}};

// The forced pass of what was found: of every result, row after row of the batch.
std::vector<EveryMap> forced(const SequenceModel& model, const Batch& batch, const std::vector<Hypotheses>& found) {
  std::vector<EveryMap> made;
  for (std::int64_t row = 0; row < batch.size(); ++row) {
    SequencePair pair;
    for (std::int32_t t = 0; t < batch.lengths[static_cast<std::size_t>(row)]; ++t) {
      pair.source.push_back(batch.source.data<std::int32_t>()[t * batch.size() + row]);
    }
    for (const Hypothesis& each : found[static_cast<std::size_t>(row)]) {
      pair.target = each.words;
      const Batch one = make_batch(std::span(&pair, 1), {kSearch.begin, kSearch.end});
      std::vector<EveryMap> maps = model.every_attention(one);
      made.push_back(maps.empty() ? EveryMap{} : std::move(maps[0]));
    }
  }
  return made;
}

void expect_kept(const SequenceModel& model) {
  const Batch batch = make_batch(some_sources(), {kSearch.begin, kSearch.end});
  const std::vector<Hypotheses> plain = search(model, batch, kSearch);
  for (const Keeps keeps : {Keeps::kSource, Keeps::kMaps, Keeps::kEverything}) {
    SearchSettings settings = kSearch;
    settings.keeps = keeps;
    const std::vector<Hypotheses> found = search(model, batch, settings);
    const std::vector<EveryMap> expected = forced(model, batch, found);
    std::size_t at = 0;
    for (std::size_t row = 0; row < found.size(); ++row) {
      ASSERT_EQ(found[row].size(), plain[row].size());
      for (std::size_t i = 0; i < found[row].size(); ++i, ++at) {
        const Hypothesis& each = found[row][i];
        EXPECT_EQ(each.words, plain[row][i].words);
        EXPECT_EQ(each.log_probability, plain[row][i].log_probability);
        EXPECT_TRUE(same(each.looked.cross.weights, expected[at].cross.weights)) << row << ", " << i;
        if (keeps == Keeps::kSource) {
          EXPECT_FALSE(each.looked.encoder.weights.defined() || each.looked.decoder.weights.defined());
          continue;
        }
        EXPECT_TRUE(same(each.looked.encoder.weights, expected[at].encoder.weights)) << row << ", " << i;
        EXPECT_TRUE(same(each.looked.decoder.weights, expected[at].decoder.weights)) << row << ", " << i;
        const EveryMap norms = keeps == Keeps::kEverything ? expected[at] : EveryMap();
        EXPECT_TRUE(same(each.looked.cross.norms, norms.cross.norms)) << row << ", " << i;
        EXPECT_TRUE(same(each.looked.encoder.norms, norms.encoder.norms)) << row << ", " << i;
        EXPECT_TRUE(same(each.looked.decoder.norms, norms.decoder.norms)) << row << ", " << i;
      }
    }
  }
}

TEST(KeptLooks, ASearchKeepsTheMapsThatTheForcedPassHas) {
  std::vector<NamedModel> all = small_models();
  for (NamedModel& each : looking_models()) all.push_back(std::move(each));
  for (const NamedModel& each : all) {
    SCOPED_TRACE(each.name);
    expect_kept(*Made(each.settings).model);
  }
}

TEST(KeptLooks, AnEnsembleKeepsThoseOfAll) {
  const Made a(small_model("transformer")), b(with(small_model("bahdanau"), {{"target_words", "9"}}));
  expect_kept(Ensemble({a.model.get(), b.model.get()}));
}

TEST(KeptLooks, ThreadsWithPartsOfABatchFindTheSame) {
  std::vector<SequencePair> pairs;
  for (std::uint64_t i = 0; i < 19; ++i) pairs.push_back(some_pair(i, static_cast<std::uint32_t>(1 + i % 8), 0));
  for (const char* family : {"transformer", "bahdanau", "convs2s"}) {
    const Made made(small_model(family));
    const Batch batch = make_batch(pairs, {kSearch.begin, kSearch.end});
    SearchSettings settings = kSearch;
    settings.keeps = Keeps::kEverything;
    const auto found_by = [&](int threads, std::vector<SearchSteps>& steps) {
      const ThreadLimit limit(threads);
      return search(*made.model, batch, settings, {}, &steps);
    };
    std::vector<SearchSteps> steps_alone, steps_shared;
    const std::vector<Hypotheses> alone = found_by(1, steps_alone);
    for (const int threads : {2, 4}) {
      const std::vector<Hypotheses> shared = found_by(threads, steps_shared);
      ASSERT_EQ(shared.size(), alone.size());
      for (std::size_t row = 0; row < alone.size(); ++row) {
        ASSERT_EQ(shared[row].size(), alone[row].size());
        EXPECT_EQ(steps_shared[row].size(), steps_alone[row].size());
        for (std::size_t i = 0; i < alone[row].size(); ++i) {
          EXPECT_EQ(shared[row][i].words, alone[row][i].words);
          EXPECT_EQ(shared[row][i].log_probability, alone[row][i].log_probability);
          EXPECT_TRUE(same(shared[row][i].looked.cross.weights, alone[row][i].looked.cross.weights));
          EXPECT_TRUE(same(shared[row][i].looked.decoder.norms, alone[row][i].looked.decoder.norms));
        }
      }
    }
  }
}

Hypothesis best_of(const SequenceModel& model, const WhatIf* what_if, std::vector<std::int32_t> prefix = {}) {
  const SequencePair pair = some_pair(1, 7, 0);
  SearchSettings settings = kSearch;
  settings.keeps = Keeps::kEverything;
  settings.what_if = what_if;
  settings.prefix = std::move(prefix);
  return search(model, make_batch(std::span(&pair, 1), {kSearch.begin, kSearch.end}), settings)[0][0];
}

TEST(WhatIf, AHeadThatIsMutedReadsNothing) {
  const Made made(small_model("transformer"));
  const Hypothesis plain = best_of(*made.model, nullptr);
  const WhatIf nothing;
  EXPECT_EQ(best_of(*made.model, &nothing).log_probability, plain.log_probability);
  for (const LookKind kind : {LookKind::kCross, LookKind::kEncoder, LookKind::kDecoder}) {
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      const WhatIf what_if{.muted = {{kind, layer, 1}}};
      const Hypothesis edited = best_of(*made.model, &what_if);
      EXPECT_NE(edited.log_probability, plain.log_probability) << name_of(kind) << layer;
    }
  }
  // The look at the source with nothing but muted heads: what is written does not depend on where they look.
  const WhatIf all{
      .muted = {
          {LookKind::kCross, 0, 0}, {LookKind::kCross, 0, 1}, {LookKind::kCross, 1, 0}, {LookKind::kCross, 1, 1}}};
  WhatIf hidden = all;
  hidden.hidden = {0, 3};
  const Hypothesis blind = best_of(*made.model, &all), still_blind = best_of(*made.model, &hidden);
  EXPECT_EQ(blind.words, still_blind.words);
  EXPECT_EQ(blind.log_probability, still_blind.log_probability);
}

TEST(WhatIf, NobodyLooksAtAHiddenToken) {
  for (const char* family : {"transformer", "bahdanau", "luong", "convs2s"}) {
    SCOPED_TRACE(family);
    const Made made(small_model(family));
    const WhatIf what_if{.hidden = {2, 6}};
    const Hypothesis edited = best_of(*made.model, &what_if);
    EXPECT_NE(edited.log_probability, best_of(*made.model, nullptr).log_probability);
    for (const Tensor& map : {edited.looked.cross.weights, edited.looked.encoder.weights}) {
      if (!map.defined()) continue;
      const std::int64_t keys = map[3];
      for (std::int64_t i = 0; i < map.size(); i += keys) {
        const float* const row = map.data<float>() + i;
        EXPECT_EQ(row[2], 0);
        EXPECT_EQ(row[6], 0);
        double sum = 0;
        for (std::int64_t k = 0; k < keys; ++k) sum += static_cast<double>(row[k]);
        EXPECT_NEAR(sum, 1, 1e-5);
      }
    }
  }
}

TEST(WhatIf, AStepLooksWhereItIsTold) {
  for (const char* family : {"transformer", "bahdanau", "luong", "convs2s"}) {
    SCOPED_TRACE(family);
    const Made made(small_model(family));
    const Hypothesis plain = best_of(*made.model, nullptr);
    ASSERT_GE(plain.words.size(), 2u);
    std::vector<float> weights(7, 0.0f);
    weights[5] = 0.75f;
    weights[0] = 0.25f;
    const std::vector<std::int32_t> prefix(plain.words.begin(), plain.words.begin() + 1);
    for (const std::int64_t layer : {std::int64_t{-1}, std::int64_t{0}}) {
      const WhatIf what_if{.rows = {{.step = 1, .layer = layer, .weights = weights}}};
      const Hypothesis edited = best_of(*made.model, &what_if, prefix);
      EXPECT_EQ(edited.words[0], plain.words[0]);
      EXPECT_NE(edited.log_probability, plain.log_probability);
      const Tensor& map = edited.looked.cross.weights;
      for (std::int64_t l = 0; l < map[0]; ++l) {
        for (std::int64_t h = 0; h < map[1]; ++h) {
          const float* const rows = map.data<float>() + (l * map[1] + h) * map[2] * map[3];
          const float* const before =
              plain.looked.cross.weights.data<float>() + (l * map[1] + h) * plain.looked.cross.weights[2] * map[3];
          for (std::int64_t k = 0; k < map[3]; ++k) {
            EXPECT_EQ(rows[k], before[k]);  // the step before it
            if (layer < 0 || l == layer) {
              EXPECT_EQ(rows[map[3] + k], weights[static_cast<std::size_t>(k)]);
            }
          }
        }
      }
    }
  }
}

TEST(WhatIf, AnEnsembleHandsOutWhatIsSaid) {
  const Made a(small_model("transformer")), b(small_model("luong"));
  const Ensemble both({a.model.get(), b.model.get()});
  const Hypothesis plain = best_of(both, nullptr);
  const WhatIf last{.muted = {{LookKind::kCross, 2, 0}}};  // the only layer of the second
  EXPECT_NE(best_of(both, &last).log_probability, plain.log_probability);
  const WhatIf part = part_of(last, 2, 1);
  ASSERT_EQ(part.muted.size(), 1u);
  EXPECT_EQ(part.muted[0].layer, 0);
  EXPECT_TRUE(part_of(last, 0, 2).empty());
  const WhatIf row{.rows = {{.step = 0, .layer = 2, .weights = {1}}, {.step = 0, .weights = {1}}}};
  EXPECT_EQ(part_of(row, 0, 2).rows.size(), 1u);
  EXPECT_EQ(part_of(row, 2, 1).rows.size(), 2u);
}

TEST(WhatIf, IsOfOneSource) {
  const Made made(small_model("transformer"));
  const WhatIf what_if{.hidden = {0}};
  SearchSettings settings = kSearch;
  settings.what_if = &what_if;
  EXPECT_NE(error_of([&] {
              search(*made.model, make_batch(some_sources(), {0, 1}), settings);
            }).find("expected 1"),
            std::string::npos);
  const WhatIf outside{.hidden = {7}};
  EXPECT_NE(error_of([&] { best_of(*made.model, &outside); }).find("token 7 of the source, expected 0 to 6"),
            std::string::npos);
}

}  // namespace
}  // namespace regard
