#include "view/derive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "regard/error.h"
#include "regard/random.h"
#include "support/error_of.h"

namespace regard {
namespace {

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

std::vector<float> values(const Tensor& tensor) { return {tensor.data<float>(), tensor.data<float>() + tensor.size()}; }

// Rows that sum to one.
TraceMap some_map(std::int64_t layers, std::int64_t heads, std::int64_t rows, std::int64_t columns,
                  std::uint64_t seed) {
  TraceMap map{.name = "m",
               .rows = "a",
               .columns = "b",
               .weights = Tensor::empty({layers, heads, rows, columns}),
               .norms = Tensor::empty({layers, heads, columns})};
  for (std::int64_t i = 0; i < map.weights.size(); ++i) {
    map.weights.data<float>()[i] = uniform(RandomKey(seed), static_cast<std::uint64_t>(i));
  }
  for (std::int64_t row = 0; row < layers * heads * rows; ++row) {
    float* const at = map.weights.data<float>() + row * columns;
    const float sum = std::accumulate(at, at + columns, 0.0f);
    for (std::int64_t i = 0; i < columns; ++i) at[i] /= sum;
  }
  for (std::int64_t i = 0; i < map.norms.size(); ++i) {
    map.norms.data<float>()[i] = 1 + uniform(RandomKey(seed + 1), static_cast<std::uint64_t>(i));
  }
  return map;
}

double at(const TraceMap& map, std::int64_t layer, std::int64_t head, std::int64_t row, std::int64_t column) {
  const Tensor& w = map.weights;
  return static_cast<double>(w.data<float>()[((layer * w[1] + head) * w[2] + row) * w[3] + column]);
}

TEST(Derive, RolloutByHand) {
  // One layer, one head: half of the map, half of the identity.
  const TraceMap one{
      .name = "e", .rows = "a", .columns = "a", .weights = Tensor::of<float>({1, 1, 2, 2}, {0, 1, 0.5f, 0.5f})};
  EXPECT_EQ(values(rollout(one)), (std::vector<float>{0.5f, 0.5f, 0.25f, 0.75f}));
  // Two layers; the second swaps. (½·swap + ½·I) · (first)
  const TraceMap two{.name = "e",
                     .rows = "a",
                     .columns = "a",
                     .weights = Tensor::of<float>({2, 1, 2, 2}, {0, 1, 0.5f, 0.5f, 0, 1, 1, 0})};
  EXPECT_EQ(values(rollout(two)), (std::vector<float>{0.375f, 0.625f, 0.375f, 0.625f}));
  EXPECT_EQ(values(rollout(two, Tensor::of<float>({1, 2}, {1, 0}))), (std::vector<float>{0.375f, 0.625f}));
  // Who looks at nothing stays where it is.
  const TraceMap none{.name = "e", .rows = "a", .columns = "a", .weights = Tensor::zeros({1, 1, 2, 2})};
  EXPECT_EQ(values(rollout(none)), (std::vector<float>{1, 0, 0, 1}));
}

TEST(Derive, RolloutIsTheProductOfTheLayers) {
  for (const std::int64_t n : {1, 2, 7, 17}) {
    const TraceMap encoder = some_map(3, 2, n, n, 3), over = some_map(1, 1, 5, n, 4);
    std::vector<std::vector<double>> expected(static_cast<std::size_t>(n),
                                              std::vector<double>(static_cast<std::size_t>(n), 0));
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i][i] = 1;
    for (std::int64_t layer = 0; layer < 3; ++layer) {  // R ← A·R
      auto next = expected;
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (std::int64_t k = 0; k < n; ++k) {
            const double a = 0.25 * (at(encoder, layer, 0, i, k) + at(encoder, layer, 1, i, k)) + (i == k ? 0.5 : 0);
            sum += a * expected[static_cast<std::size_t>(k)][static_cast<std::size_t>(j)];
          }
          next[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = sum;
        }
      }
      expected = next;
    }
    const Tensor alone = rollout(encoder), through = rollout(encoder, weights_of(over, 0, 0));
    ASSERT_EQ(through.shape(), (Shape{5, n}));
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < n; ++i) {
        EXPECT_NEAR(alone.data<float>()[i * n + j], expected[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)],
                    1e-6);
      }
      for (std::int64_t i = 0; i < 5; ++i) {
        double sum = 0;
        for (std::int64_t k = 0; k < n; ++k)
          sum += at(over, 0, 0, i, k) * expected[static_cast<std::size_t>(k)][static_cast<std::size_t>(j)];
        EXPECT_NEAR(through.data<float>()[i * n + j], sum, 1e-6);
      }
    }
  }
  EXPECT_THROW(rollout(some_map(1, 1, 2, 3, 1)), Error);
  EXPECT_THROW(rollout(some_map(1, 1, 3, 3, 1), Tensor::zeros({1, 2})), Error);
}

TEST(Derive, NormsMakeWeightsCount) {
  TraceMap hand{.name = "m",
                .rows = "a",
                .columns = "b",
                .weights = Tensor::of<float>({1, 1, 3, 2}, {0.5f, 0.5f, 1, 0, 0, 0}),
                .norms = Tensor::of<float>({1, 1, 2}, {1, 3})};
  EXPECT_EQ(values(norm_weighted(hand)), (std::vector<float>{0.25f, 0.75f, 1, 0, 0, 0}));
  hand.norms.data<float>()[1] = kUnknown;  // what is not looked at need not be known
  EXPECT_EQ(norm_weighted(hand).data<float>()[2], 1.0f);
  EXPECT_TRUE(std::isnan(norm_weighted(hand).data<float>()[0]));
  const TraceMap map = some_map(2, 3, 4, 5, 7);
  const Tensor made = norm_weighted(map);
  for (std::int64_t i = 0; i < made.size(); ++i) {
    const std::int64_t column = i % 5, head = i / 20;
    double sum = 0;
    const auto product = [&](std::int64_t c) {
      return static_cast<double>(map.weights.data<float>()[i - column + c]) *
             static_cast<double>(map.norms.data<float>()[head * 5 + c]);
    };
    for (std::int64_t c = 0; c < 5; ++c) sum += product(c);
    EXPECT_NEAR(made.data<float>()[i], product(column) / sum, 1e-6);
  }
  EXPECT_EQ(error_of([] {
              norm_weighted({.name = "m", .rows = "a", .columns = "b", .weights = Tensor::zeros({1, 1, 1, 1})});
            }),
            "trace: map 'm' has no norms");
}

TEST(Derive, EntropyOfRowsAndHeads) {
  EXPECT_EQ(entropy(std::vector<float>{1, 0, 0}), 0);
  EXPECT_NEAR(entropy(std::vector<float>{0.25f, 0.25f, 0.25f, 0.25f}), std::log(4.0), 1e-12);
  EXPECT_NEAR(entropy(std::vector<float>{0.125f, 0.125f}), std::log(2.0), 1e-12);  // over its sum
  for (const std::vector<float>& row : {std::vector<float>{}, {0, 0}, {kUnknown, 1}, {-1, 2}}) {
    EXPECT_TRUE(std::isnan(entropy(row)));
  }
  TraceMap map = some_map(2, 2, 3, 4, 9);
  const auto mean = [&](std::int64_t layer, std::int64_t head, std::int64_t first) {
    double sum = 0;
    for (std::int64_t row = first; row < 3; ++row) {
      for (std::int64_t i = 0; i < 4; ++i) sum -= at(map, layer, head, row, i) * std::log(at(map, layer, head, row, i));
    }
    return sum / static_cast<double>(3 - first);
  };
  Tensor made = entropies(map);
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_NEAR(made.data<float>()[i], mean(i / 2, i % 2, 0), 1e-5);
  map.weights.data<float>()[0] = kUnknown;  // the first row of the first head does not count
  made = entropies(map);
  EXPECT_NEAR(made.data<float>()[0], mean(0, 0, 1), 1e-5);
  EXPECT_TRUE(std::isnan(
      entropies({.name = "m", .rows = "a", .columns = "b", .weights = Tensor::zeros({1, 1, 0, 3})}).data<float>()[0]));
}

TEST(Derive, MeansDifferencesAndTheGreatest) {
  const TraceMap map = some_map(2, 2, 3, 4, 11);
  const Tensor mean = weights_of(map, 1, -1), head = weights_of(map, 1, 0), change = difference(mean, head);
  for (std::int64_t i = 0; i < 12; ++i) {
    EXPECT_NEAR(mean.data<float>()[i], (at(map, 1, 0, i / 4, i % 4) + at(map, 1, 1, i / 4, i % 4)) / 2, 1e-6);
    EXPECT_EQ(head.data<float>()[i], static_cast<float>(at(map, 1, 0, i / 4, i % 4)));
    EXPECT_EQ(change.data<float>()[i], mean.data<float>()[i] - head.data<float>()[i]);
  }
  EXPECT_THROW(difference(mean, Tensor::zeros({3, 3})), Error);
  const Tensor row = Tensor::of<float>({2, 5}, {9, 9, 9, 9, 9, 0.25f, kUnknown, 0.5f, 0.25f, -1});
  const auto best = top(row, 1, 3);
  ASSERT_EQ(best.size(), 3u);
  EXPECT_EQ(best[0].column, 2);
  EXPECT_EQ(best[0].weight, 0.5f);
  EXPECT_EQ(best[1].column, 0);
  EXPECT_EQ(best[2].column, 3);
  EXPECT_EQ(top(row, 1, 100).size(), 4u);
  EXPECT_TRUE(top(row, 1, 0).empty());
  EXPECT_THROW(top(row, 2, 1), Error);
}

TEST(Derive, TokensBecomeWords) {
  const TraceAxis source{.name = "source",
                         .text = "ab cd",
                         .tokens = {{"_a", 0, 1, 0}, {"b", 1, 2, 0}, {"cd", 3, 5, 1}, {"</s>", 5, 5, -1}}};
  const TraceAxis target{
      .name = "target", .text = "xy", .tokens = {{"x", 0, 1, 0}, {"y", 1, 2, 0}, {"</s>", 2, 2, -1}}};
  const TraceAxis words = to_words(source);
  ASSERT_EQ(words.tokens.size(), 3u);
  EXPECT_EQ(words.tokens[0].text, "ab");
  EXPECT_EQ(words.tokens[0].end, 2u);
  EXPECT_EQ(words.tokens[1].text, "cd");
  EXPECT_EQ(words.tokens[1].word, 1);
  EXPECT_EQ(words.tokens[2].text, "</s>");
  EXPECT_EQ(words.text, "ab cd");
  const Tensor map = Tensor::of<float>({3, 4}, {0.5f, 0.25f, 0.25f, 0,  //
                                                0, 0.25f, 0.5f, 0.25f,  //
                                                0, 0, 0, 1});
  EXPECT_EQ(values(to_words(map, target, source)), (std::vector<float>{0.5f, 0.375f, 0.125f, 0, 0, 1}));
  const TraceAxis grid{.name = "g", .kind = TraceAxis::Kind::kGrid, .rows = 2, .columns = 2};
  EXPECT_EQ(values(to_words(map, target, grid)), (std::vector<float>{0.25f, 0.25f, 0.375f, 0.125f, 0, 0, 0, 1}));
  const TraceAxis bare{.name = "b", .tokens = {{"a", 0, 0, 3}, {"b", 0, 0, 3}}};  // no text to take words from
  EXPECT_EQ(to_words(bare).tokens[0].text, "ab");
  EXPECT_THROW(to_words(map, source, target), Error);
}

TEST(Derive, TheChoiceIsTheWritersOrTheLastLayers) {
  TraceItem item{.axes = {}, .maps = {some_map(2, 2, 3, 4, 11)}};
  EXPECT_EQ(values(chosen_map(item)), values(weights_of(item.maps[0], 1, -1)));
  item.choice = TraceChoice{.map = "m", .layer = 0, .head = 1, .shift = 1};
  const std::vector<float> shifted = values(chosen_map(item)), whole = values(weights_of(item.maps[0], 0, 1));
  EXPECT_TRUE(std::equal(shifted.begin(), shifted.begin() + 8, whole.begin() + 4));
  EXPECT_TRUE(std::all_of(shifted.begin() + 8, shifted.end(), [](float each) { return std::isnan(each); }));
  EXPECT_EQ(error_of([] { chosen_map({.axes = {}, .maps = {}}); }), "trace: there is no map to look at");
}

}  // namespace
}  // namespace regard
