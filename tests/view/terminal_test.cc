#include "view/terminal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "regard/error.h"

namespace regard {
namespace {

using Labels = std::vector<std::string>;

TEST(HeatMap, DrawsShadesInAFrame) {
  const Tensor weights = Tensor::of({2, 4}, {0.0f, 0.25f, 0.75f, 0.0f, 1.0f, 0.0f, 0.0f, 0.5f});
  const Labels rows = {"a", "b"}, columns = {"k", "#", "t", "c"};
  EXPECT_EQ(heat_map(weights, {.rows = rows, .columns = columns}),
            "     k # t c\n"
            "    ┌────────\n"
            "  a │  ░░▓▓\n"
            "  b │██    ▒▒\n");
}

TEST(HeatMap, LongLabelsAreReadDownwardsAndEndOnTheFrame) {
  const Tensor weights = Tensor::of({1, 2}, {1.0f, 0.0f});
  const Labels rows = {"cat"}, columns = {"the", "a"};
  EXPECT_EQ(heat_map(weights, {.rows = rows, .columns = columns}),
            "       t\n"
            "       h\n"
            "       e a\n"
            "      ┌────\n"
            "  cat │██\n");
}

TEST(HeatMap, ChineseLabelsTakeTwoColumns) {
  const Tensor weights = Tensor::of({2, 2}, {1.0f, 0.0f, 0.0f, 1.0f});
  const Labels rows = {"猫", "a"}, columns = {"注", "意"};
  EXPECT_EQ(heat_map(weights, {.rows = rows, .columns = columns}),
            "      注意\n"
            "     ┌────\n"
            "  猫 │██\n"
            "   a │  ██\n");
}

TEST(HeatMap, AMapWiderThanTheTerminalIsCutIntoParts) {
  const Tensor weights = Tensor::of({1, 5}, {1.0f, 0.0f, 0.0f, 0.0f, 1.0f});
  const Labels rows = {"a"}, columns = {"1", "2", "3", "4", "5"};
  EXPECT_EQ(heat_map(weights, {.rows = rows, .columns = columns}, {.width = 9}),
            "     1 2\n"
            "    ┌────\n"
            "  a │██\n"
            "\n"
            "     3 4\n"
            "    ┌────\n"
            "  a │\n"
            "\n"
            "     5\n"
            "    ┌──\n"
            "  a │██\n");
}

TEST(HeatMap, ColoursRiseFromDarkToBrightAndAreSwitchedOffAgain) {
  const Tensor weights = Tensor::of({1, 2}, {0.0f, 1.0f});
  const Labels rows = {"a"}, columns = {"x", "y"};
  EXPECT_EQ(heat_map(weights, {.rows = rows, .columns = columns}, {.colors = Colors::kAll}),
            "     x y\n"
            "    ┌────\n"
            "  a │\033[48;2;12;10;24m  \033[48;2;252;246;180m  \033[0m\n");
  EXPECT_EQ(heat_map(weights, {.rows = rows, .columns = columns}, {.colors = Colors::k256}),
            "     x y\n"
            "    ┌────\n"
            "  a │\033[48;5;233m  \033[48;5;229m  \033[0m\n");
}

TEST(HeatMap, WhatIsNoNumberIsShownAsSuch) {
  const Tensor weights = Tensor::of({1, 3}, {std::nanf(""), 7.0f, -1.0f});
  const Labels rows = {"a"}, columns = {"x", "y", "z"};
  for (const Colors colors : {Colors::kNone, Colors::k256, Colors::kAll}) {
    EXPECT_NE(heat_map(weights, {.rows = rows, .columns = columns}, {.colors = colors}).find("??"), std::string::npos);
  }
  EXPECT_NE(heat_map(weights, {.rows = rows, .columns = columns}).find("??██\n"), std::string::npos);
}

TEST(HeatMap, LabelsCannotCommandTheTerminal) {
  const Tensor weights = Tensor::of({1, 1}, {1.0f});
  const Labels rows = {"\033[2J"}, columns = {"\n"};
  const std::string map = heat_map(weights, {.rows = rows, .columns = columns});
  EXPECT_EQ(map.find('\033'), std::string::npos);
  EXPECT_EQ(std::count(map.begin(), map.end(), '\n'), 3);
  EXPECT_EQ(printable("a b\x7f\xff"
                      "c\u202e"),
            "a␣b��c�");
}

TEST(HeatMap, EmptyMapsAreFineAndWrongLabelsAreErrors) {
  EXPECT_EQ(heat_map(Tensor::zeros({0, 0}), {}), "\n   ┌\n");
  const Labels one = {"a"};
  EXPECT_THROW(heat_map(Tensor::zeros({2, 1}), {.rows = one, .columns = one}), Error);
}

TEST(HeatScale, ShowsEveryShade) { EXPECT_EQ(heat_scale(Colors::kNone), "0  ░▒▓█ 1"); }

TEST(HeatMap, TwoRowsShareALineInColour) {
  const Tensor weights = Tensor::of({3, 2}, {0.0f, 1.0f, 1.0f, 0.0f, 1.0f, std::nanf("")});
  const Labels rows = {"a", "b", "c"}, columns = {"k", "t"};
  const std::string low = "2;12;10;24m", high = "2;252;246;180m", unknown = "2;110;60;100m";
  const auto cells = [](const std::string& above, const std::string& below) {
    return "\033[38;" + above + "\033[" + (below.empty() ? "49m" : "48;" + below) + "▀▀";
  };
  EXPECT_EQ(heat_map(weights, {.rows = rows, .columns = columns}, {.colors = Colors::kAll, .half = true}),
            "         k t\n"
            "        ┌────\n"
            "  a / b │" +
                cells(low, high) + cells(high, low) + "\033[0m\n" + "      c │" + cells(high, "") + cells(unknown, "") +
                "\033[0m\n");
  // Without colours every row has its line.
  EXPECT_EQ(heat_map(weights, {.rows = rows, .columns = columns}, {.half = true}),
            heat_map(weights, {.rows = rows, .columns = columns}));
}

TEST(HeatMap, ADifferenceHasSignsOrTwoColours) {
  const Tensor weights = Tensor::of({1, 3}, {-1.0f, 0.0f, 0.5f});
  const Labels rows = {"a"}, columns = {"k", "t", "x"};
  EXPECT_EQ(heat_map(weights, {.rows = rows, .columns = columns}, {.difference = true}),
            "     k t x\n"
            "    ┌──────\n"
            "  a │-█  +▒\n");
  const std::string colored =
      heat_map(weights, {.rows = rows, .columns = columns}, {.colors = Colors::kAll, .difference = true});
  EXPECT_NE(colored.find("48;2;140;200;255m"), std::string::npos);  // blue
  EXPECT_NE(colored.find("48;2;176;92;24m"), std::string::npos);    // orange
}

TEST(ShadedText, HasItsShadesBeforeTheWordsOrColoursUnderThem) {
  const std::vector<ShadedPart> parts = {{"They", 0.0}, {" ", std::nan("")}, {"read", 1.0}, {"\033[31m", 0.5}};
  EXPECT_EQ(shaded_text(parts), "  They █read▒\uFFFD[31m\n");
  const std::string colored = shaded_text(parts, {.colors = Colors::kAll});
  EXPECT_NE(colored.find("\033[48;2;252;246;180m\033[38;2;0;0;0mread\033[0m"), std::string::npos) << colored;
}

TEST(ShadedText, LinesEndWhereTheTerminalDoes) {
  const std::vector<ShadedPart> parts(10, {"看看", 0.0});
  EXPECT_EQ(shaded_text(parts, {.width = 20}), "  看看看看看看看看\n  看看看看看看看看\n  看看看看\n");
}

TEST(DisplayWidth, CountsColumns) {
  EXPECT_EQ(display_width(""), 0);
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("注意"), 4);
  EXPECT_EQ(display_width("e\u0301"), 1);  // e with an accent of its own
  EXPECT_EQ(display_width("\xff\xfe"), 2);
}

TEST(Colors, FollowTheTerminalAndTheUsersWish) {
  setenv("COLORTERM", "truecolor", 1);
  EXPECT_EQ(colors_of(-1), Colors::kNone);  // no terminal
  EXPECT_EQ(colors_of(-1, WhenColors::kAlways), Colors::kAll);
  EXPECT_EQ(colors_of(-1, WhenColors::kNever), Colors::kNone);
  unsetenv("COLORTERM");
  EXPECT_EQ(colors_of(-1, WhenColors::kAlways), Colors::k256);
}

TEST(ProgressBar, IsAsWideAsItIsToldWhateverIsDone) {
  EXPECT_EQ(progress_bar(0, 4), "    ");
  EXPECT_EQ(progress_bar(1, 4), "████");
  EXPECT_EQ(progress_bar(0.5, 4), "██  ");
  EXPECT_EQ(progress_bar(0.625, 4), "██▌ ");
  EXPECT_EQ(progress_bar(7, 2), "██");
  for (int i = -1; i <= 101; ++i) EXPECT_EQ(display_width(progress_bar(i / 100.0, 10)), 10) << i;
}

TEST(WhenColors, AreKnownByName) {
  EXPECT_EQ(when_colors("auto"), WhenColors::kAuto);
  EXPECT_EQ(when_colors("always"), WhenColors::kAlways);
  EXPECT_EQ(when_colors("never"), WhenColors::kNever);
  EXPECT_THROW(when_colors("sometimes"), Error);
}

}  // namespace
}  // namespace regard
