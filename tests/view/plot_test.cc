// The picture of training runs.
#include "view/plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "regard/error.h"

namespace regard {
namespace {

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++found;
  return found;
}

std::string metrics(double scale) {
  std::string out;
  for (int update = 100; update <= 3000; update += 100) {
    out += "{\"kind\":\"report\",\"update\":" + std::to_string(update) +
           ",\"epoch\":0.5,\"loss\":" + std::to_string(scale * (1 + 500.0 / update)) +
           ",\"rate\":0.001,\"norm\":1.25,\"tokens_per_second\":9000,\"health\":{\"dead\":0},\"note\":\"x\"}\n";
    if (update % 500 == 0)
      out += "{\"kind\":\"validation\",\"update\":" + std::to_string(update) +
             ",\"loss\":2.5,\"score\":" + std::to_string(update / 100.0) + ",\"best\":true,\"sample\":\"a < b\"}\n";
  }
  return out;
}

#if REGARD_SIMDJSON
TEST(Plot, DrawsEveryPanelThatHasNumbers) {
  const std::vector<PlotRun> runs = {parse_metrics(metrics(1), "gru"), parse_metrics(metrics(2), "a <b> & \"c\"")};
  EXPECT_EQ(runs[0].series.at("report.loss").size(), 30u);
  EXPECT_EQ(runs[0].series.at("validation.score").size(), 6u);
  EXPECT_TRUE(runs[0].notes.empty());
  const std::string svg = plot_svg(runs);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"")) << svg.substr(0, 80);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  for (const char* title : {">loss<", ">BLEU<", ">learning rate<", ">gradient norm<", ">tokens per second<"})
    EXPECT_EQ(count(svg, title), 1u) << title;
  EXPECT_EQ(count(svg, ">updates<"), 5u);
  EXPECT_EQ(count(svg, "<path") - 5, 2 * 6u);  // of two runs: five lines and the loss of the validation
  EXPECT_GE(count(svg, "a &lt;b&gt; &amp; &quot;c&quot;"), 1u);
  EXPECT_EQ(svg.find("<b>"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_EQ(plot_svg(runs), svg);
  EXPECT_EQ(count(plot_svg(runs, {.log = true}), "(logarithmic)"), 3u);
}

TEST(Plot, OtherWordsForTheSameAreUnderstood) {
  const PlotRun run = parse_metrics("{\"kind\":\"valid\",\"update\":500,\"loss\":3.9,\"bleu\":12.1}\n", "x");
  EXPECT_EQ(run.series.at("validation.loss")[0].value, 3.9);
  EXPECT_EQ(run.series.at("validation.score")[0].value, 12.1);
}

TEST(Plot, ALastLineThatIsNotCompleteIsNoted) {
  const std::string text = metrics(1) + "{\"kind\":\"report\",\"upd";
  const PlotRun run = parse_metrics(text, "run");
  ASSERT_EQ(run.notes.size(), 1u);
  EXPECT_EQ(run.notes[0], "run: the last line, 37, is not complete and was left out");
  EXPECT_EQ(run.series.at("report.loss").size(), 30u);
  EXPECT_TRUE(
      parse_metrics(metrics(1).substr(0, metrics(1).size() - 1), "run").notes.empty());  // no newline at the end
}

TEST(Plot, LinesThatAreNoObjectsAreCounted) {
  const PlotRun run = parse_metrics("[1]\n" + metrics(1) + "\n\nhello\n{\"kind\":\"end\"}\n", "run");
  ASSERT_EQ(run.notes.size(), 1u);
  EXPECT_EQ(run.notes[0], "run: 2 lines left out, no JSON object: the first is line 1");
}

TEST(Plot, NumbersThatAreMissingOrNotFiniteAreLeftOut) {
  const PlotRun run = parse_metrics(
      "{\"update\":1,\"loss\":null}\n{\"update\":2,\"loss\":1}\n{\"update\":3,\"loss\":\"x\"}\n{\"loss\":5}\n", "run");
  ASSERT_EQ(run.series.at("report.loss").size(), 1u);
  EXPECT_EQ(run.series.at("report.loss")[0].update, 2);
  const std::string svg = plot_svg({&run, 1});  // one point
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(count(svg, "<circle"), 1u);
}

TEST(Plot, NothingToDrawIsAnError) {
  for (const char* text : {"", "\n", "{\"update\":3}\n", "{\"kind\":\"report\",\"update\":1,\"epoch\":3}\n", "garbage"})
    EXPECT_THROW(parse_metrics(text, "run"), Error) << text;
  EXPECT_THROW(plot_svg({}), Error);
}
#endif

TEST(Plot, ManyPointsBecomeFew) {
  PlotRun run{.name = "long", .series = {}, .notes = {}};
  for (int i = 0; i < 200'000; ++i) run.series["report.loss"].push_back({i * 10.0, 3 + std::sin(i * 0.001)});
  const std::string svg = plot_svg({&run, 1});
  EXPECT_LT(svg.size(), 60'000u);
  EXPECT_GT(svg.size(), 10'000u);
}

TEST(Plot, ZeroAndNegativeValuesDoNotBreakTheLogarithm) {
  PlotRun run{.name = "zeros", .series = {}, .notes = {}};
  run.series["report.loss"] = {{1, 0}, {2, -1}};
  run.series["report.norm"] = {{1, 0}, {2, 1e-12}, {3, 1e12}};
  const std::string svg = plot_svg({&run, 1}, {.log = true});
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(Plot, TicksAreRoundAndInside) {
  EXPECT_EQ(plot_ticks(0, 10, 5, false), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(plot_ticks(0.9, 1000, 5, true), (std::vector<double>{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}));
  for (const auto& [least, most] : std::vector<std::pair<double, double>>{
           {0, 1}, {-3, 7}, {0.00012, 0.00098}, {1e-9, 2e-9}, {5, 5.001}, {0, 1e12}, {123456, 654321}}) {
    for (const bool log : {false, true}) {
      if (log && least <= 0) continue;
      const std::vector<double> ticks = plot_ticks(least, most, 5, log);
      EXPECT_GE(ticks.size(), 2u) << least << " " << most;
      EXPECT_LE(ticks.size(), 14u) << least << " " << most;
      EXPECT_TRUE(std::is_sorted(ticks.begin(), ticks.end()));
      EXPECT_GE(ticks.front(), least - 1e-6 * (most - least));
      EXPECT_LE(ticks.back(), most + 1e-6 * (most - least));
    }
  }
  EXPECT_EQ(plot_ticks(3, 3, 5, false), std::vector<double>{3});
}

TEST(Plot, NumbersAreShort) {
  EXPECT_EQ(plot_number(0), "0");
  EXPECT_EQ(plot_number(0.001), "0.001");
  EXPECT_EQ(plot_number(2500), "2500");
  EXPECT_EQ(plot_number(15000), "15k");
  EXPECT_EQ(plot_number(2.5e6), "2.5M");
}

}  // namespace
}  // namespace regard
