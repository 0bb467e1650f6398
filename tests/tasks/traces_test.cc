// What a model did, as a trace: every map, the beam, the erasure test; and that asking changes nothing.
#include "tasks/traces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "support/error_of.h"
#include "tasks/small_translators.h"
#include "view/derive.h"

namespace regard {
namespace {

class TracesTest : public SmallTranslators {};

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

double row_sum(const Tensor& map, std::int64_t row) {
  const float* const at = map.data<float>() + row * map[map.rank() - 1];
  return std::accumulate(at, at + map[map.rank() - 1], 0.0);
}

TEST_F(TracesTest, HaveEveryMapOfEveryKindOfModelAndCanBeWritten) {
  struct Case {
    std::vector<std::string> models;
    bool int8;
    std::size_t maps;
    bool norms;
  };
  for (const Case& each : {Case{{path("gru-attention")}, false, 1, false},
                           {{path("transformer-tiny")}, false, 3, true},
                           {{path("transformer-tiny")}, true, 3, true},
                           {{path("transformer-tiny"), path("gru-attention")}, false, 3, false}}) {
    const Translator translator(each.models, each.int8);
    const std::vector<std::string> sources = lines(4);
    for (const std::int64_t longest : {200, 5}) {  // as it is, and cut
      const auto found = translator.translate(sources, {.beam = 2, .longest_line = longest});
      std::vector<Translator::Result> results;
      for (const auto& one : found) results.push_back(one.best[0]);
      const std::vector<TraceItem> items = traces_of(translator, sources, results);
      const std::vector<Translator::Looked> looked = translator.look(sources, results);
      ASSERT_EQ(items.size(), sources.size());
      for (std::size_t i = 0; i < items.size(); ++i) {
        const TraceItem& item = items[i];
        ASSERT_EQ(item.maps.size(), each.maps);
        const TraceAxis &source = item.axis("source"), &target = item.axis("target");
        EXPECT_EQ(source.text, sources[i]);
        EXPECT_EQ(target.text, results[i].text);
        EXPECT_EQ(source.tokens.back().text, translator.source().piece(translator.source().special().end));
        EXPECT_EQ(source.tokens.back().word, -1);
        EXPECT_EQ(source.tokens[0].word, 0);
        EXPECT_EQ(*item.log_probability, results[i].log_probability);
        ASSERT_TRUE(item.choice);
        EXPECT_EQ(item.choice->layer, translator.attention_shape().layers - 1);
        const TraceMap& cross = item.map("cross");
        EXPECT_TRUE(same_bits(cross.weights, looked[i].weights));
        EXPECT_EQ(cross.norms.defined(), each.norms);
        if (each.maps < 3) continue;
        const TraceMap &encoder = item.map("encoder"), &decoder = item.map("decoder");
        EXPECT_TRUE(decoder.causal);
        EXPECT_EQ(item.axis("written").size(), target.size());
        EXPECT_EQ(item.axis("written").tokens[1].text, target.tokens[0].text);
        for (const TraceMap* map : {&encoder, &decoder}) {
          const std::int64_t rows = map->weights.size() / map->weights[3];
          for (std::int64_t row = 0; row < rows; ++row) EXPECT_NEAR(row_sum(map->weights, row), 1, 1e-5) << map->name;
          for (std::int64_t k = 0; k < map->norms.size(); ++k) EXPECT_GT(map->norms.data<float>()[k], 0);
        }
        // No part of a line looks at another.
        const auto& parts = results[i].parts;
        if (longest == 5) {
          EXPECT_GT(parts.size(), 1u);
        }
        const auto part_of = [&](const TraceToken& token) {
          for (std::size_t p = 0; p < parts.size(); ++p) {
            if (token.begin < parts[p].end) return p;
          }
          return parts.size();
        };
        const std::int64_t n = source.size();
        for (std::int64_t row = 0; row + 1 < n; ++row) {
          for (std::int64_t column = 0; column + 1 < n; ++column) {
            if (part_of(source.tokens[static_cast<std::size_t>(row)]) ==
                part_of(source.tokens[static_cast<std::size_t>(column)])) {
              continue;
            }
            EXPECT_EQ(encoder.weights.data<float>()[row * n + column], 0);
          }
        }
      }
      const Trace trace{items};
      EXPECT_EQ(Trace::parse(trace.bytes(), "it").bytes(), trace.bytes());
      // Alone it is the same.
      const Trace alone{{trace_of(translator, sources[1], results[1])}}, one{{items[1]}};
      EXPECT_EQ(alone.bytes(), one.bytes());
    }
  }
}

TEST_F(TracesTest, EmptyLinesAndOtherChoices) {
  const Translator translator(path("transformer-tiny"));
  const std::vector<std::string> sources = {"", lines(1)[0]};
  const auto found = translator.translate(sources, {.beam = 1});
  const std::vector<Translator::Result> results = {found[0].best[0], found[1].best[0]};
  TraceSettings settings{.erasure = true};
  settings.alignment.layer = 0;
  settings.alignment.head = 1;
  settings.alignment.shift = 1;
  const Trace trace{traces_of(translator, sources, results, settings)};
  EXPECT_FALSE(trace.items[0].erasure);
  EXPECT_TRUE(trace.items[1].erasure);
  EXPECT_EQ(trace.items[1].choice->head, 1);
  EXPECT_EQ(trace.items[1].choice->shift, 1);
  EXPECT_EQ(trace.items[0].map("encoder").weights.shape(), (Shape{2, 2, 1, 1}));
  EXPECT_EQ(Trace::parse(trace.bytes(), "it").items.size(), 2u);
  settings.maps = Keeps::kSource;
  EXPECT_EQ(traces_of(translator, sources, results, settings)[1].maps.size(), 1u);
  settings.alignment.head = 2;
  EXPECT_EQ(error_of([&] { traces_of(translator, sources, results, settings); }),
            "alignment: head 2, the model has 2 (0 to 1, or -1 for their mean)");
}

TEST_F(TracesTest, TheBeamLeadsBackToWhatWasFoundAndRecordingItChangesNothing) {
  for (const char* name : {"gru-attention", "transformer-tiny"}) {
    const Translator translator(path(name));
    const std::vector<std::string> sources = lines(6);
    for (const std::int64_t beam : {1, 4}) {
      const auto plain = translator.translate(sources, {.beam = beam, .best = beam, .longest_line = 200});
      const auto found =
          translator.translate(sources, {.beam = beam, .best = beam, .longest_line = 200, .beams = true});
      for (std::size_t i = 0; i < sources.size(); ++i) {
        EXPECT_TRUE(plain[i].beams.empty());
        ASSERT_EQ(found[i].beams.size(), 1u);
        ASSERT_EQ(found[i].best.size(), plain[i].best.size());
        const SearchSteps& steps = found[i].beams[0];
        const std::int32_t end = translator.target().special().end;
        std::vector<std::vector<std::int32_t>> ended;
        std::vector<double> likely;
        for (std::size_t step = 0; step < steps.size(); ++step) {
          for (const SearchRow& row : steps[step]) {
            if (row.word != end) continue;
            std::vector<std::int32_t> words;
            std::int32_t parent = row.parent;
            for (std::size_t back = step; back > 0; --back) {
              const SearchRow& before = steps[back - 1].at(static_cast<std::size_t>(parent));
              words.insert(words.begin(), before.word);
              parent = before.parent;
            }
            EXPECT_EQ(parent, -1);
            ended.push_back(words);
            likely.push_back(row.log_probability);
          }
        }
        for (std::size_t k = 0; k < found[i].best.size(); ++k) {
          const Translator::Result &a = plain[i].best[k], &b = found[i].best[k];
          EXPECT_EQ(a.text, b.text);
          EXPECT_EQ(a.log_probability, b.log_probability);
          EXPECT_EQ(a.tokens, b.tokens);
          const auto at = std::find(ended.begin(), ended.end(), ids_of(b.tokens));
          ASSERT_NE(at, ended.end());
          EXPECT_EQ(likely[static_cast<std::size_t>(at - ended.begin())], b.log_probability);
        }
        TraceItem item = trace_of(translator, sources[i], found[i].best[0]);
        item.beam = beam_of(translator, found[i].beams);
        EXPECT_EQ(item.beam->steps.size(), steps.size());
        EXPECT_NO_THROW(Trace::parse(Trace{{item}}.bytes(), "it"));
      }
    }
    const auto cut = translator.translate(sources, {.beam = 2, .longest_line = 5, .beams = true});
    EXPECT_EQ(cut[0].beams.size(), cut[0].best[0].parts.size());
    TraceItem item = trace_of(translator, sources[0], cut[0].best[0]);
    item.beam = beam_of(translator, cut[0].beams);
    EXPECT_NO_THROW(Trace::parse(Trace{{item}}.bytes(), "it"));
  }
}

TEST_F(TracesTest, StayWithinASizeAndKeepTheFirst) {
  const Translator translator(path("transformer-tiny"));
  const std::vector<std::string> sources = lines(10);
  std::vector<Translator::Result> results;
  std::vector<std::string> titles;
  for (auto& each : translator.translate(sources, {.beam = 1})) {
    titles.push_back("line " + std::to_string(titles.size() + 1));
    results.push_back(each.best[0]);
  }
  TraceCollector all({});
  all.add(translator, sources, results, titles, {});
  ASSERT_EQ(all.trace().items.size(), 10u);
  EXPECT_EQ(all.left_out(), 0u);
  EXPECT_EQ(all.trace().items[9].title, "line 10");
  std::uint64_t header = 0, data = 0;
  std::vector<std::uint64_t> sizes;
  for (const TraceItem& each : all.trace().items) {
    const TraceRecord record(each, sizes.size());
    header += record.header;
    data += record.data;
    sizes.push_back(record.data);
  }
  const std::string bytes = all.trace().bytes();
  EXPECT_LE(bytes.size(), header + data + 1024);
  EXPECT_GE(bytes.size(), data);
  TraceCollector some({}, sizes[0] + sizes[1] + sizes[2]);
  some.add(translator, std::span(sources).first(5), std::span(results).first(5), {}, {});
  some.add(translator, std::span(sources).subspan(5), std::span(results).subspan(5), {}, {});
  EXPECT_EQ(some.trace().items.size(), 3u);
  EXPECT_EQ(some.left_out(), 7u);
  EXPECT_EQ(some.trace().items[2].axis("source").text, sources[2]);
}

TEST(Erasure, TakesWordsAndTheBlanksBesideThem) {
  const std::vector<TextUnit> words = {{0, 2}, {3, 5}, {6, 8}};
  const std::vector<Translator::Part> parts = {{0, 5, 3}, {5, 8, 1}};
  const auto without = [&](std::vector<std::size_t> gone) { return erased("ab cd ef", parts, words, gone); };
  EXPECT_EQ(without({}).text, "ab cd ef");
  EXPECT_EQ(without({0}).text, "cd ef");
  EXPECT_EQ(without({1}).text, "ab ef");
  EXPECT_EQ(without({2}).text, "ab cd ");
  EXPECT_EQ(without({0, 1, 2}).text, "");
  const ErasedLine one = without({1});
  ASSERT_EQ(one.parts.size(), 2u);
  EXPECT_EQ(one.parts[0].end, 3u);
  EXPECT_EQ(one.parts[1].begin, 3u);
  EXPECT_EQ(one.parts[1].end, 5u);
  EXPECT_EQ(one.parts[1].tokens, 1u);
  EXPECT_EQ(erased("看书了", {}, {{0, 3}, {3, 6}, {6, 9}}, std::vector<std::size_t>{1}).text, "看了");
}

TEST(Erasure, AFifthOfTheWordsButNeitherNoneNorAll) {
  EXPECT_EQ(erased_words(0, 0.2), 0);
  EXPECT_EQ(erased_words(1, 0.2), 0);
  EXPECT_EQ(erased_words(2, 0.2), 1);
  EXPECT_EQ(erased_words(5, 0.2), 1);
  EXPECT_EQ(erased_words(10, 0.2), 2);
  EXPECT_EQ(erased_words(2, 0.99), 1);
}

TEST_F(TracesTest, TheErasureTestIsTheDifferenceOfForcedTranslations) {
  const Translator translator(path("transformer-tiny"));
  const std::vector<std::string> sources = lines(5);
  std::vector<Translator::Result> results;
  for (auto& each : translator.translate(sources, {.beam = 2, .longest_line = 200})) results.push_back(each.best[0]);
  const auto looked = translator.look(sources, results, Keeps::kSource);
  const AlignmentChoice choice = choice_of(translator);
  const ErasureSettings settings{.draws = 3, .seed = 5};
  const auto all = erasures(translator, sources, results, looked, choice, settings);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    ASSERT_TRUE(all[i]);
    // By hand: the words with the greatest sums, and the line without them.
    const PairUnits units =
        units_of(translator, {sources[i], results[i].text}, *looked[i], AlignmentLevel::kWord, WordCut::kAutomatic);
    const UnitWeights weights = unit_weights(*looked[i], units, choice);
    std::vector<std::pair<double, std::size_t>> sums;
    for (std::size_t s = 0; s < weights.sources; ++s) {
      double sum = 0;
      for (std::size_t t = 0; t < weights.targets; ++t) sum += weights.at(t, s);
      sums.emplace_back(-sum, s);
    }
    std::sort(sums.begin(), sums.end());
    const auto count = static_cast<std::size_t>(all[i]->words);
    EXPECT_EQ(all[i]->words, erased_words(static_cast<std::int64_t>(weights.sources), 0.2));
    std::vector<std::size_t> gone;
    for (std::size_t k = 0; k < count; ++k) gone.push_back(sums[k].second);
    std::sort(gone.begin(), gone.end());
    const std::vector<std::string> texts = {sources[i], erased(sources[i], {}, units.source, gone).text};
    std::vector<Translator::Result> both(2);
    for (Translator::Result& each : both) each.tokens = results[i].tokens;
    const auto likely = translator.log_probabilities(texts, both);
    EXPECT_NEAR(likely[0], results[i].log_probability, 1e-4);
    EXPECT_EQ(all[i]->most, likely[0] - likely[1]);
    // A line has the same numbers wherever it stands, and others with another seed.
    const auto alone = erasures(translator, std::span(sources).subspan(i, 1), std::span(results).subspan(i, 1),
                                std::span(looked).subspan(i, 1), choice, settings);
    EXPECT_EQ(alone[0]->most, all[i]->most);
    EXPECT_EQ(alone[0]->random, all[i]->random);
  }
  const auto other = erasures(translator, sources, results, looked, choice, {.draws = 3, .seed = 6});
  EXPECT_TRUE(std::any_of(sources.begin(), sources.end(), [&](const std::string& line) {
    const auto i = static_cast<std::size_t>(&line - sources.data());
    return other[i]->random != all[i]->random;
  }));
}

}  // namespace
}  // namespace regard
