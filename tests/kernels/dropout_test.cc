#include "kernels/dropout.h"

#include <cmath>
#include <limits>

#include "kernels/guarded.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dropout_test.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/random-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace {

void RandomGroup(RandomKey key, std::uint64_t group, std::uint32_t* bits) {  // the 64 elements of a group
  const hn::CappedTag<std::uint32_t, 16> du;
  const PhiloxKeys keys(key);
  for (std::size_t lane = 0; lane < 16; lane += hn::Lanes(du)) {
    const auto words = PhiloxBlocks(du, keys, group * 16 + lane);
    for (std::size_t w = 0; w < 4; ++w) hn::StoreU(words.word[w], du, bits + w * 16 + lane);
  }
}

}  // namespace
}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(RandomGroup);

TEST(RandomBits, VectorsGiveWhatTheScalarFunctionGives) {
  for (const std::string& name : targets()) {
    SCOPED_TRACE(name);
    const TargetScope scope(name);
    for (std::uint64_t seed : {0u, 1u, 99u}) {
      const RandomKey key = RandomKey(seed).at(3);
      for (std::uint64_t group : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{77}, (std::uint64_t{1} << 28) - 1,
                                  std::uint64_t{1} << 28, (std::uint64_t{5} << 40) + 3}) {  // also beyond 32 bits
        std::uint32_t bits[64];
        HWY_DYNAMIC_DISPATCH(RandomGroup)(key, group, bits);
        for (std::uint64_t e = 0; e < 64; ++e)
          ASSERT_EQ(bits[e], random_bits(key, group * 64 + e)) << "element " << e << " of group " << group;
      }
    }
  }
}

TEST(Dropout, IsTheReferenceBitForBit) {
  for (std::size_t n : {0u, 1u, 15u, 16u, 17u, 63u, 64u, 65u, 1000u, 40000u}) {
    for (std::uint64_t first : {0u, 1u, 63u, 64u, 1000003u}) {
      for (float p : {0.0f, 0.1f, 0.5f, 0.9f, 1.0f}) {
        for (bool add : {false, true}) {
          if (n > 1000 && (first > 1 || add)) continue;
          SCOPED_TRACE(testing::Message() << n << " from " << first << ", p " << p << ", add " << add);
          const Guarded x(random_floats(n, 1)), before(random_floats(n, 2));
          std::vector<float> expected = before.values();
          reference::dropout(x.data(), expected.data(), n, p, RandomKey(5), first, add);
          on_every_target(
              [&] {
                Guarded y = before;
                dropout(x.data(), y.data(), n, p, RandomKey(5), first, add);
                return y.values();
              },
              [&](const auto& y) { EXPECT_TRUE(same_bits(y, expected)); });
        }
      }
    }
  }
}

TEST(Dropout, KeepsTheExpectedShare) {
  const std::vector<float> x(100000, 1.0f);
  std::vector<float> y(x.size());
  for (float p : {0.1f, 0.5f, 0.9f}) {
    dropout(x.data(), y.data(), x.size(), p, RandomKey(7), 0);
    double kept = 0, sum = 0;
    for (float v : y) {
      kept += v != 0 ? 1 : 0;
      sum += static_cast<double>(v);
    }
    EXPECT_NEAR(kept / 1e5, 1 - static_cast<double>(p), 0.005);
    EXPECT_NEAR(sum / 1e5, 1, 0.03);
  }
}

TEST(Dropout, NothingAndEverythingAreExact) {
  const std::vector<float> x = random_floats(1000, 3);
  std::vector<float> y(x.size());
  dropout(x.data(), y.data(), x.size(), 0.0f, RandomKey(7), 5);
  EXPECT_TRUE(same_bits(y, x));
  dropout(x.data(), y.data(), x.size(), 1.0f, RandomKey(7), 5);
  EXPECT_EQ(y, std::vector<float>(x.size(), 0.0f));
}

TEST(Dropout, ADroppedElementIsZeroWhateverItWas) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    const std::vector<float> x(640, std::numeric_limits<float>::quiet_NaN());
    std::vector<float> y(x.size());
    dropout(x.data(), y.data(), x.size(), 0.5f, RandomKey(1), 0);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const bool dropped = random_bits(RandomKey(1), i) < dropout_threshold(0.5f);
      EXPECT_EQ(std::isnan(y[i]), !dropped);
      if (dropped) {
        EXPECT_EQ(y[i], 0.0f);
      }
    }
  }
}

TEST(Dropout, RowsFollowTheirKeysNotTheirPlaces) {
  std::vector<RandomKey> keys;
  for (std::uint64_t i = 0; i < 40; ++i) keys.push_back(RandomKey(9).at(i));
  const std::vector<float> x = random_floats(40 * 513, 4);
  std::vector<float> expected(x.size());
  for (std::size_t i = 0; i < 40; ++i)
    reference::dropout(x.data() + i * 513, expected.data() + i * 513, 513, 0.3f, keys[i], 0);
  on_every_target(
      [&] {
        Guarded y(x.size());
        dropout_rows(rows(x.data(), 40, 513), rows(y.data(), 40, 513), 0.3f, keys.data());
        return y.values();
      },
      [&](const auto& y) { EXPECT_TRUE(same_bits(y, expected)); });
}

TEST(Dropout, OutputMayBeTheInput) {
  std::vector<float> x = random_floats(777, 6), y(x.size());
  dropout(x.data(), y.data(), x.size(), 0.2f, RandomKey(2), 9);
  dropout(x.data(), x.data(), x.size(), 0.2f, RandomKey(2), 9);
  EXPECT_TRUE(same_bits(x, y));
}

}  // namespace
}  // namespace regard
#endif
