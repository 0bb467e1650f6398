#include "base/suggest.h"

#include <gtest/gtest.h>

namespace regard {
namespace {

const std::vector<std::string> kKnown = {"additive", "concat", "dot", "general", "scaled_dot"};

TEST(Suggest, OneWrongLetterFindsTheName) {
  EXPECT_EQ(closest("aditive", kKnown), "additive");
  EXPECT_EQ(closest("geneal", kKnown), "general");
  EXPECT_EQ(closest("dto", kKnown), "dot");
  EXPECT_EQ(closest("scaleddot", kKnown), "scaled_dot");
}

TEST(Suggest, NothingNearGivesNothing) {
  EXPECT_EQ(closest("transformer", kKnown), "");
  EXPECT_EQ(closest("", kKnown), "");
  EXPECT_EQ(closest("x", kKnown), "");
  EXPECT_EQ(closest("dot", {}), "");
  EXPECT_EQ(closest(std::string(100000, 'a'), kKnown), "");
}

TEST(Suggest, DistanceCountsInsertionsRemovalsReplacementsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("abc", ""), 3u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("bench", "bnech"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

}  // namespace
}  // namespace regard
