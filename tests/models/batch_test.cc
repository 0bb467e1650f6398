#include "models/batch.h"

#include <gtest/gtest.h>

#include <vector>

namespace regard {
namespace {

TEST(Batch, IsSortedPaddedAndKnowsWhereEachPairWent) {
  const std::vector<SequencePair> pairs = {{.id = 7, .source = {3}, .target = {4, 5}},
                                           {.id = 8, .source = {6, 7}, .target = {8}}};
  const Batch batch = make_batch(pairs, {.begin = 0, .end = 1});
  EXPECT_EQ(batch.lengths, (std::vector<std::int32_t>{2, 1}));
  EXPECT_EQ(batch.ids, (std::vector<std::uint64_t>{8, 7}));
  EXPECT_EQ(batch.order, (std::vector<std::size_t>{1, 0}));
  EXPECT_EQ(batch.target_count, 5);
  const auto list = [](const Tensor& x) {
    const std::int32_t* data = x.data<std::int32_t>();
    return std::vector<std::int32_t>(data, data + x.size());
  };
  EXPECT_EQ(list(batch.source), (std::vector<std::int32_t>{6, 3, 7, 0}));
  EXPECT_EQ(list(batch.previous), (std::vector<std::int32_t>{0, 0, 8, 4, 0, 5}));
  EXPECT_EQ(list(batch.targets), (std::vector<std::int32_t>{8, 4, 1, 5, 0, 1}));
}

}  // namespace
}  // namespace regard
