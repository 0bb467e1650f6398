#include "regard/tensor/shape.h"

#include <gtest/gtest.h>

#include <limits>

#include "regard/error.h"

namespace regard {
namespace {

ErrorKind kind_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorKind::kInternal;
}

std::string text_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(Shape, TellsItsSizes) {
  const Shape shape = {2, 17, 64};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[-1], 64);
  EXPECT_EQ(shape[-3], 2);
  EXPECT_EQ(shape.size(), 2 * 17 * 64);
  EXPECT_EQ(shape.row_count(), 34);
  EXPECT_EQ(shape.row_width(), 64);
  EXPECT_EQ(to_text(shape), "[2, 17, 64]");
}

TEST(Shape, ASingleNumberHasOneElement) {
  const Shape shape;
  EXPECT_EQ(shape.rank(), 0);
  EXPECT_EQ(shape.size(), 1);
  EXPECT_EQ(shape.row_count(), 1);
  EXPECT_EQ(shape.row_width(), 1);
  EXPECT_EQ(to_text(shape), "[]");
}

TEST(Shape, AnySizeMayBeZero) {
  EXPECT_EQ((Shape{0}.size()), 0);
  EXPECT_EQ((Shape{3, 0, 5}.size()), 0);
  EXPECT_EQ((Shape{3, 0, 5}.row_count()), 0);
  EXPECT_EQ((Shape{3, 0}.row_count()), 3);
  EXPECT_EQ((Shape{3, 0}.row_width()), 0);
}

TEST(Shape, TooManyElementsAreALimitNotAnOverflow) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  EXPECT_EQ(kind_of([] { return Shape{kHuge, kHuge}.size(); }), ErrorKind::kLimit);
  EXPECT_EQ(kind_of([] { return Shape{std::numeric_limits<std::int64_t>::max(), 2}.size(); }), ErrorKind::kLimit);
  EXPECT_EQ((Shape{kHuge, kHuge, 0}.size()), 0) << "a zero makes it small again";
  EXPECT_EQ((Shape{kHuge, kHuge, 0, kHuge}.size()), 0);
  EXPECT_EQ((Shape{std::int64_t{1} << 31, 2}.size()), std::int64_t{1} << 32);
}

TEST(Shape, RefusesNegativeSizesAndTooManyDimensions) {
  EXPECT_NE(text_of([] { Shape{2, -1}; }).find("[2, -1]"), std::string::npos);
  EXPECT_EQ(kind_of([] { Shape{1, 1, 1, 1, 1, 1, 1}; }), ErrorKind::kInput);
  EXPECT_EQ(kind_of([] { Shape{1, 1, 1, 1, 1, 1}.plus(1); }), ErrorKind::kInput);
  EXPECT_EQ(kind_of([] { Shape{1}.plus(-1); }), ErrorKind::kInput);
  EXPECT_EQ(kind_of([] { Shape{1}.with(0, -1); }), ErrorKind::kInput);
}

TEST(Shape, RefusesDimensionsItDoesNotHave) {
  const Shape shape = {2, 3};
  for (const int dimension : {2, -3, 100}) {
    const std::string text = text_of([&] { return shape[dimension]; });
    EXPECT_NE(text.find(std::to_string(dimension)), std::string::npos) << text;
  }
  EXPECT_EQ(kind_of([] { return Shape()[0]; }), ErrorKind::kInput);
}

TEST(Shape, ChangesOneDimension) {
  EXPECT_EQ((Shape{2, 3, 4}.without(1)), (Shape{2, 4}));
  EXPECT_EQ((Shape{2, 3, 4}.without(-1)), (Shape{2, 3}));
  EXPECT_EQ((Shape{2}.without(0)), Shape());
  EXPECT_EQ((Shape{2, 3}.with(-1, 7)), (Shape{2, 7}));
  EXPECT_EQ((Shape{2, 3}.plus(7)), (Shape{2, 3, 7}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
}

TEST(Broadcast, MatchesSizesFromTheRight) {
  EXPECT_EQ(broadcast({2, 3}, {3}, "test"), (Shape{2, 3}));
  EXPECT_EQ(broadcast({3}, {2, 3}, "test"), (Shape{2, 3}));
  EXPECT_EQ(broadcast({2, 1, 5}, {7, 1}, "test"), (Shape{2, 7, 5}));
  EXPECT_EQ(broadcast({}, {2, 3}, "test"), (Shape{2, 3}));
  EXPECT_EQ(broadcast({}, {}, "test"), Shape());
  EXPECT_EQ(broadcast({1}, {0}, "test"), Shape{0}) << "1 fits 0 as well";
  EXPECT_EQ(broadcast({5, 0}, {1, 1}, "test"), (Shape{5, 0}));
}

TEST(Broadcast, SaysWhatDoesNotFit) {
  const std::string text = text_of([] { broadcast({2, 3, 5}, {4, 5}, "add"); });
  for (const char* word : {"add", "[2, 3, 5]", "[4, 5]", "dimension 1", "3 and 4", "expected"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << " is not in: " << text;
  }
  EXPECT_EQ(kind_of([] { broadcast({0}, {2}, "add"); }), ErrorKind::kInput);
}

}  // namespace
}  // namespace regard
