// What the probes must find, whatever the numbers drawn.
#include "tasks/probes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/folder.h"
#include "support/occurrences.h"
#include "tasks/train_translation.h"

namespace regard {
namespace {

const ChartLine& line_of(const Probe& probe, const std::string& name) {
  for (const ChartLine& each : probe.lines) {
    if (each.name == name) return each;
  }
  throw std::runtime_error("no line " + name);
}

TEST(Probes, GradientsFadeOrGrowByTheNormOfTheMatrixAndAttentionReachesAll) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const Probe probe = probe_gradients({.length = 30, .width = 16, .seed = seed});
    for (const auto& [name, gain] : {std::pair{"tanh, |W| = 0.8", 0.8}, std::pair{"tanh, |W| = 1.2", 1.2}}) {
      const ChartLine& line = line_of(probe, name);
      ASSERT_EQ(line.points.size(), 30u);
      // An orthogonal matrix changes lengths by its gain; the map from input to state by a bounded factor.
      EXPECT_NEAR(std::log(line.points[29].second) / 29, std::log(gain), 0.05) << name;
    }
    const ChartLine& attention = line_of(probe, "attention");
    for (std::size_t d = 2; d < 30; ++d) {
      EXPECT_NEAR(attention.points[d].second / attention.points[1].second, 1, 0.1) << d;
    }
    EXPECT_GT(line_of(probe, "GRU, gates open").points[29].second, 100 * line_of(probe, "GRU").points[29].second);
    EXPECT_GT(line_of(probe, "LSTM, gates open").points[29].second, 100 * line_of(probe, "LSTM").points[29].second);
  }
}

TEST(Probes, SoftmaxSaturatesWithoutTheScaleAndNotWithIt) {
  const Probe probe = probe_saturation({.keys = 32, .queries = 64, .widest = 1024});
  const auto at = [&](const char* name, std::size_t i) { return line_of(probe, name).points[i].second; };
  const std::size_t last = line_of(probe, "entropy, 1").points.size() - 1;
  EXPECT_EQ(line_of(probe, "entropy, 1").points[last].first, 1024);
  EXPECT_LT(at("entropy, 1", last), 0.1);
  EXPECT_LT(at("gradient, 1", last), 0.05);  // nothing would be learned
  EXPECT_LT(at("entropy, 1", last), at("entropy, 1", 0));
  EXPECT_LT(at("gradient, 1", last), 0.2 * at("gradient, 1", 0));
  for (std::size_t i = 0; i <= last; ++i) {
    EXPECT_NEAR(at("entropy, 1/√d", i), at("entropy, 1/√d", last), 0.06) << i;  // the same for every width
    EXPECT_GT(at("entropy, 1/(8√d)", i), 0.99) << i;                            // hardly looks at all
  }
}

TEST(Probes, AttentionWithoutPositionsIsBlindToOrderAndNothingElseIs) {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const Probe probe = probe_order({.words = 11, .width = 16, .seed = seed});
    ASSERT_EQ(probe.chart.categories.size(), 9u);
    for (std::size_t i = 0; i < 9; ++i) {
      const double change = probe.lines[0].points[i].second;
      if (probe.chart.categories[i] == "attention" || probe.chart.categories[i] == "additive") {
        EXPECT_LT(change, 1e-5) << probe.chart.categories[i];
      } else {
        EXPECT_GT(change, 0.02) << probe.chart.categories[i];
      }
    }
  }
}

TEST(Probes, OneWrongWordIsWrongAndWithoutItNothingDiffers) {
  const Folder folder;
  std::vector<Translator> translators;
  std::vector<ProbedModel> models;
  for (const std::string name : {"gru-attention", "transformer-tiny"}) {
    ModelSettings model = preset(name);
    model.hidden = model.embedding = model.ffn = 16;
    model.encoder_layers = model.decoder_layers = 1;
    TranslationSettings settings;
    settings.tokenizer = "words";
    settings.stop_after = "2u";
    settings.valid_every = "2u";
    train_translation({.builtin = "zh-en", .builtin_lines = 40, .builtin_tests = 4}, model, settings,
                      {.path = folder / name}, {});
    translators.emplace_back(folder / name);
  }
  models = {{"gru", &translators[0]}, {"transformer", &translators[1]}};
  const TestSet set = builtin_test_set("zh-en", 12);
  const Probe probe = probe_errors(models, set.sources, {.at = 1, .distance = 5});
  const Probe control = probe_errors(models, set.sources, {.at = 1, .distance = 5, .wrong = false});
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(probe.lines[i].points[0].second, 1) << "the word itself";
    for (const auto& [d, share] : probe.lines[i].points) EXPECT_TRUE(share >= 0 && share <= 1) << d;
    for (const auto& [d, share] : control.lines[i].points) EXPECT_EQ(share, 0) << d;
  }
  const Probe one = probe_errors(models, set.sources, {.at = 1, .distance = 5}, {.threads = 1});
  EXPECT_EQ(to_text(one), to_text(probe));
}

TEST(Probes, NumbersAndPictureShowEveryLine) {
  const Probe probe{.about = "About.",
                    .lines = {{"a", {{0, 1}, {1, 0.5}}}, {"b", {{0, 2}}}},
                    .chart = {.across = "place", .categories = {"first", "second"}}};
  EXPECT_EQ(to_text(probe), "About.\n\n place    a  b\n first    1  2\nsecond  0.5  –\n");
  EXPECT_EQ(occurrences(to_svg(probe), "<polyline"), 2u);
  Probe many = probe;
  many.chart.categories.clear();
  for (int i = 0; i < 100; ++i) many.lines[0].points.emplace_back(i + 2, 1);
  EXPECT_LE(occurrences(to_text(many), "\n"), 20u);
}

}  // namespace
}  // namespace regard
