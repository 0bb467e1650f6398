#include "regard/random.h"

#include <gtest/gtest.h>

#include <set>

namespace regard {
namespace {

// Known answers of Philox 4×32-10, from Random123's kat_vectors.
TEST(Philox, MatchesThePublishedVectors) {
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(Philox::block(Block{0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox::block(Block{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox::block(Block{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomKey, PlacesDoNotCollide) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (std::uint64_t step = 0; step < 20; ++step) {
      for (std::uint64_t layer = 0; layer < 20; ++layer) seen.insert(RandomKey(seed).at(step).at(layer).value());
    }
  }
  EXPECT_EQ(seen.size(), 8000u);
}

TEST(Uniform, HasTheMomentsOfAUniform) {
  const RandomKey key(7);
  double sum = 0, squares = 0;
  constexpr int kCount = 100000;
  for (int element = 0; element < kCount; ++element) {
    const double u = uniform(key, static_cast<std::uint64_t>(element));
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / kCount, 0.5, 0.005);
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 0.005);
}

TEST(Normal, HasTheMomentsOfANormal) {
  const RandomKey key(9);
  double sum = 0, squares = 0;
  constexpr int kCount = 100000;
  for (int element = 0; element < kCount; ++element) {
    const double z = normal(key, static_cast<std::uint64_t>(element));
    sum += z;
    squares += z * z;
  }
  EXPECT_NEAR(sum / kCount, 0.0, 0.02);
  EXPECT_NEAR(squares / kCount, 1.0, 0.02);
}

TEST(RandomBelow, StaysBelowAndReachesAll) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t element = 0; element < 1000; ++element) seen.insert(random_below(RandomKey(1), element, 7));
  EXPECT_EQ(seen, (std::set<std::uint64_t>{0, 1, 2, 3, 4, 5, 6}));
}

}  // namespace
}  // namespace regard
