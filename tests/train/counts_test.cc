#include "train/counts.h"

#include <gtest/gtest.h>

#include "regard/error.h"
#include "support/error_of.h"

namespace regard {
namespace {

TEST(Counts, AreReadWithTheirUnits) {
  EXPECT_EQ(parse_count("10e", "x"), epochs(10));
  EXPECT_EQ(parse_count("0.5e", "x"), epochs(0.5));
  EXPECT_EQ(parse_count("5000u", "x"), updates(5000));
  EXPECT_EQ(parse_count("90s", "x"), seconds(90));
  EXPECT_EQ(parse_count("20m", "x"), seconds(1200));
  EXPECT_EQ(parse_count("2h", "x"), seconds(7200));
  EXPECT_EQ(parse_count("1.5h", "x"), seconds(5400));
  EXPECT_EQ(parse_count("never", "x"), Count{});
}

TEST(Counts, WhatIsNoneIsAnErrorThatNamesTheSetting) {
  for (const char* bad : {"", "e", "10", "-5u", "0u", "1.5u", "10x", "1e3u", "10 e", " 10e", "nanu", "infe", "1e",
                          "1..5e", "9999999999999999u", "0x10u", "+5u"}) {
    if (std::string_view(bad) == "1e") continue;  // one epoch
    const std::string text = error_of([&] { parse_count(bad, "--stop-after"); });
    EXPECT_NE(text.find("--stop-after: '"), std::string::npos) << bad;
    EXPECT_NE(text.find("5000u"), std::string::npos) << bad;
  }
}

TEST(Counts, TheirTextIsReadAsTheSame) {
  for (const char* text : {"10e", "0.5e", "5000u", "90s", "20m", "2h", "1000000000u", "0.25s", "never"}) {
    EXPECT_EQ(to_text(parse_count(text, "x")), text);
  }
}

TEST(Counts, AreOverWhenReached) {
  EXPECT_FALSE(is_over(updates(5), {.updates = 4}));
  EXPECT_TRUE(is_over(updates(5), {.updates = 5}));
  EXPECT_TRUE(is_over(epochs(2), {.epochs = 2}));
  EXPECT_FALSE(is_over(epochs(2), {.epochs = 1.999}));
  EXPECT_TRUE(is_over(seconds(60), {.seconds = 61}));
  EXPECT_FALSE(is_over({}, {.updates = 1000, .epochs = 1000, .seconds = 1e9}));
  EXPECT_EQ(share_done(updates(10), {.updates = 4}), 0.4);
}

TEST(Counts, AreDueAgainAndAgain) {
  EXPECT_TRUE(is_due(updates(5), {.updates = 9}, {.updates = 10}, 0));
  EXPECT_FALSE(is_due(updates(5), {.updates = 10}, {.updates = 11}, 0));
  EXPECT_TRUE(is_due(epochs(1), {.epochs = 0.9}, {.epochs = 1}, 0));
  EXPECT_FALSE(is_due(epochs(2), {.epochs = 0.9}, {.epochs = 1}, 0));
  EXPECT_TRUE(is_due(epochs(0.25), {.epochs = 0.7}, {.epochs = 0.8}, 0));
  EXPECT_TRUE(is_due(seconds(10), {.seconds = 19}, {.seconds = 21}, 11));
  EXPECT_FALSE(is_due(seconds(10), {.seconds = 19}, {.seconds = 20}, 11));
  EXPECT_FALSE(is_due({}, {}, {.updates = 1}, 0));
}

}  // namespace
}  // namespace regard
