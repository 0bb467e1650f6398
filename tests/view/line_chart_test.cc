// Lines over an axis.
#include "view/line_chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "support/occurrences.h"

namespace regard {
namespace {

TEST(LineChart, HasALineForEachAndItsName) {
  const std::string svg = line_chart({{"a < b", {{0, 1}, {1, 2}}}, {"c", {{0, 3}, {1, 1}}}}, {.title = "t & u"});
  EXPECT_EQ(occurrences(svg, "<polyline"), 2u);
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
  EXPECT_NE(svg.find("t &amp; u"), std::string::npos);
}

TEST(LineChart, WhatIsNoNumberIsAGap) {
  const double nan = std::nan("");
  EXPECT_EQ(occurrences(line_chart({{"x", {{0, 1}, {1, nan}, {2, 1}}}}, {}), "<polyline"), 2u);
  EXPECT_EQ(occurrences(line_chart({{"x", {{1, 0}, {2, 1}, {3, 2}}}}, {.log_up = true}), "<polyline"), 1u);
  EXPECT_EQ(line_chart({{"x", {{1, nan}}}}, {}).find("nan"), std::string::npos);
  EXPECT_EQ(line_chart({}, {.log_across = true, .log_up = true}).find("nan"), std::string::npos);
  EXPECT_EQ(line_chart({{"x", {{2, 5}}}}, {.log_across = true}).find("nan"), std::string::npos);
}

TEST(LineChart, CategoriesStandBelowTheirPoints) {
  const std::string svg = line_chart({{"x", {{0, 1}, {1, 2}}}}, {.categories = {"1–10", "11–20"}, .mark = 0.5});
  EXPECT_NE(svg.find("x=\"210\" y=\"397\""), std::string::npos) << svg;  // the middle of the left half
  EXPECT_NE(svg.find("x1=\"350\" y1=\"40\" x2=\"350\" y2=\"380\""), std::string::npos) << svg;
}

}  // namespace
}  // namespace regard
