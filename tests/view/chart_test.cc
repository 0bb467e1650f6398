// Bars, clouds and SVG.
#include "view/chart.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "support/occurrences.h"
#include "view/svg.h"

namespace regard {
namespace {

TEST(Bars, EveryLengthHasItsRow) {
  EXPECT_EQ(bars(std::vector<std::uint64_t>{0, 2, 4, 0, 0}, {.title = "Lengths", .width = 35}),
            "Lengths\n"
            "  1  ▇▇▇▇▇  2  33.3 %\n"
            "  2  ▇▇▇▇▇▇▇▇▇▇  4  66.7 %\n");
  EXPECT_EQ(bars(std::vector<std::uint64_t>{1, 0, 3}, {.width = 35}),
            "   0  ▇▇▇  1  25.0 %\n"
            "   1  0  0.0 %\n"
            "  2…  ▇▇▇▇▇▇▇▇▇▇  3  75.0 %\n");
  EXPECT_EQ(bars(std::vector<std::uint64_t>(5, 0), {}), "  nothing to count\n");
}

TEST(Bars, ManyLengthsShareARow) {
  std::vector<std::uint64_t> counts(41, 1);
  counts[0] = 0;
  counts[40] = 7;
  const std::string text = bars(counts, {.width = 60});
  EXPECT_EQ(occurrences(text, "\n"), 8u) << text;
  EXPECT_NE(text.find("   1–5  "), std::string::npos) << text;
  EXPECT_NE(text.find("  6–10  "), std::string::npos) << text;
  EXPECT_NE(text.find("  36…  "), std::string::npos) << text;
  EXPECT_NE(text.find("11  23.9 %"), std::string::npos) << text;
}

TEST(Cloud, ShowsWherePairsAre) {
  Cloud pairs = {.side = 16, .cells = std::vector<std::uint64_t>(256, 0)};
  EXPECT_EQ(cloud(pairs, 80), "  nothing to count\n");
  for (std::size_t i = 0; i < 8; ++i) pairs.cells[i * 16 + i] = 50;
  const std::string text = cloud(pairs, 80);
  EXPECT_EQ(occurrences(text, "██"), 8u) << text;
  EXPECT_NE(text.find("source"), std::string::npos);
  const std::string svg = cloud_svg(pairs, "a < b");
  EXPECT_EQ(occurrences(svg, "<rect"), 9u);
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
}

TEST(Svg, IsWellFormedWhateverIsWritten) {
  EXPECT_EQ(svg_number(1.0), "1");
  EXPECT_EQ(svg_number(-0.001), "0");
  EXPECT_EQ(svg_number(12.346), "12.35");
  EXPECT_EQ(svg_number(std::numeric_limits<double>::quiet_NaN()), "0");
  EXPECT_EQ(svg_escape("<a&\"b\">\x01\xFF"
                       "他"),
            "&lt;a&amp;&quot;b&quot;&gt;\uFFFD\uFFFD他");
  Svg picture(20, 10);
  picture.line(0, 0, 1, 1, "#000");
  picture.path({{0, 1}, {2, 3.5}}, "#111");
  picture.words(1, 2, "<x>", {.anchor = "end", .upwards = true});
  const std::string text = picture.text();
  EXPECT_TRUE(text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"20\" height=\"10\""));
  EXPECT_TRUE(text.ends_with("</svg>\n"));
  EXPECT_NE(text.find("points=\"0,1 2,3.5\""), std::string::npos);
  EXPECT_NE(text.find(">&lt;x&gt;</text>"), std::string::npos);
  EXPECT_EQ(bars_svg({{"one", {0, 3, 4}}, {"two", {0, 1}}}, "t"), bars_svg({{"one", {0, 3, 4}}, {"two", {0, 1}}}, "t"));
  EXPECT_EQ(occurrences(bars_svg({{"one", {0, 3, 4}}, {"two", {0, 1}}}, "t"), "<rect"), 1u + 3u + 2u);
}

}  // namespace
}  // namespace regard
