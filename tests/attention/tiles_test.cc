// What stages do to tiles, on every target, against plain loops.
#include "attention/tiles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/target.h"

namespace regard {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> drawn(std::size_t count, std::uint64_t seed) {
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = 2 * uniform(RandomKey(seed), i) - 1;
  return all;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || a.empty()) return a.size() == b.size();
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

constexpr std::size_t kSizes[] = {0, 1, 5, 6, 7, 15, 16, 17, 60, 64, 127, 128};

TEST(Tiles, ProductsHaveTheBitsOfGemm) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (const std::size_t rows : std::vector<std::size_t>{0, 1, 5, 6, 13, 60}) {
      for (const std::size_t keys : kSizes) {
        for (const std::size_t width : std::vector<std::size_t>{0, 1, 19, 64}) {
          const std::vector<float> q = drawn(rows * width, 1), k = drawn(keys * width, 2);
          std::vector<float> panels(packed_size(width, keys)), ours(rows * keys, 7), exact = ours;
          const PackedMatrix packed = pack(as_matrix(Rows{k.data(), keys, width, width}).transposed(), panels.data());
          product_tile({q.data(), rows, width, width}, packed, {ours.data(), rows, keys, keys});
          gemm(as_matrix(Rows{q.data(), rows, width, width}), packed, matrix(exact.data(), rows, keys));
          EXPECT_TRUE(same(ours, exact)) << name << ' ' << rows << 'x' << keys << 'x' << width;
        }
      }
    }
  }
}

TEST(Tiles, SelectedProductsAreGemmOrLeaveOutWhatHasNoWeight) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (const std::size_t rows : kSizes) {
      for (const std::size_t width : std::vector<std::size_t>{0, 1, 21, 64, 80}) {
        for (const bool fresh : {false, true}) {
          constexpr std::size_t kDepth = 37;
          std::vector<float> a = drawn(rows * kDepth, 3), b = drawn(kDepth * width, 4);
          for (std::size_t i = 0; i < rows; ++i) a[i * kDepth + 5] = 0;
          std::vector<float> ours = drawn(rows * width, 5), exact = ours, hidden = ours;
          const Matrix left{a.data(), rows, kDepth, kDepth, 1};
          selected_product(left, {b.data(), kDepth, width, width}, true, {ours.data(), rows, width, width}, fresh);
          gemm(left, matrix<const float>(b.data(), kDepth, width), matrix(exact.data(), rows, width),
               {.accumulate = !fresh});
          EXPECT_TRUE(same(ours, exact)) << name << ' ' << rows << 'x' << width;
          for (std::size_t c = 0; c < width; ++c) b[5 * width + c] = c % 2 == 0 ? kNan : kInfinity;
          selected_product(left, {b.data(), kDepth, width, width}, false, {hidden.data(), rows, width, width}, fresh);
          EXPECT_TRUE(same(hidden, exact)) << name << ' ' << rows << 'x' << width;
        }
      }
    }
  }
}

TEST(Tiles, WhatIsNotFiniteIsFoundWhereverItStands) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (const std::size_t width : std::vector<std::size_t>{1, 7, 16, 64, 67}) {
      for (const std::size_t stride : {width, width + 3}) {
        constexpr std::size_t kRows = 3;
        std::vector<float> x(kRows * stride, 3e38f);
        for (std::size_t i = 0; i < kRows; ++i) std::fill_n(x.data() + i * stride + width, stride - width, kNan);
        EXPECT_TRUE(all_finite({x.data(), kRows, width, stride})) << name;
        for (std::size_t at = 0; at < kRows * width; ++at) {
          for (const float strange : {kNan, kInfinity, -kInfinity}) {
            std::vector<float> bad = x;
            bad[at / width * stride + at % width] = strange;
            EXPECT_FALSE(all_finite({bad.data(), kRows, width, stride})) << name << ' ' << at;
          }
        }
      }
    }
    EXPECT_TRUE(all_finite(Rows{nullptr, 0, 5, 5}));
    EXPECT_TRUE(all_finite(Rows{nullptr, 5, 0, 0}));
  }
}

TEST(Tiles, SoftmaxAbsorbsTilesAsTheReferenceDoes) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (const float sharpness : {1.0f, 0.7f}) {
      for (const std::size_t rows : std::vector<std::size_t>{1, 4, 12, 16, 17, 60}) {
        std::vector<float> peak(rows, -kInfinity), mass(rows, 0), factor(rows);
        std::vector<double> exact_peak(rows, -std::numeric_limits<double>::infinity()), exact_mass(rows, 0),
            exact_factor(rows);
        for (const std::size_t width : std::vector<std::size_t>{1, 16, 37, 128}) {
          std::vector<float> s = drawn(rows * width, 6 + width);
          for (std::size_t i = 0; i < s.size(); i += 5) s[i] = i % 2 == 0 ? -kInfinity : s[i] * 60;
          std::vector<double> exact(s.begin(), s.end());
          softmax_absorb({s.data(), rows, width, width}, sharpness, peak.data(), mass.data(), factor.data());
          reference::softmax_absorb(RowsOf<double>{exact.data(), rows, width, width}, double{sharpness},
                                    exact_peak.data(), exact_mass.data(), exact_factor.data());
          for (std::size_t i = 0; i < s.size(); ++i) {
            // the difference from the peak is a float already
            const double allowed = exact[i] == 0 ? 0 : 4e-7 - 2e-7 * std::log(exact[i]);
            EXPECT_NEAR(s[i], exact[i], allowed * exact[i] + 1e-38) << name << ' ' << exact[i];
          }
          for (std::size_t i = 0; i < rows; ++i) {
            EXPECT_EQ(peak[i], static_cast<float>(exact_peak[i])) << name;
            EXPECT_NEAR(mass[i], exact_mass[i], 1e-6 * (1 + exact_mass[i])) << name;
            EXPECT_NEAR(factor[i], exact_factor[i], 1e-6) << name;
          }
        }
      }
    }
  }
}

TEST(Tiles, WhatAMaskHidesBecomesMinusInfinityWhateverItWas) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (const std::size_t width : kSizes) {
      std::vector<float> s = drawn(width, 10), exact = s;
      std::vector<std::int8_t> mask(width);
      for (std::size_t j = 0; j < width; ++j) {
        mask[j] = static_cast<std::int8_t>(j % 3 == 0 ? 0 : j % 2 == 0 ? 1 : -128);
        if (j % 6 == 0) s[j] = kNan;
        exact[j] = mask[j] == 0 ? -kInfinity : s[j];
      }
      select_row(mask.data(), width, s.data());
      EXPECT_TRUE(same(s, exact)) << name << ' ' << width;
    }
  }
}

TEST(Tiles, DropoutIsThatOfItsElementsAndCanBeRepeated) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (const std::size_t width : std::vector<std::size_t>{1, 15, 16, 33, 64, 112, 128}) {
      for (const std::uint64_t first : std::vector<std::uint64_t>{0, 16, 48, 64, 4080}) {
        constexpr std::size_t kRows = 3;
        const std::vector<float> x = drawn(kRows * width, 8);
        std::vector<float> ours = x, exact = x, again = x;
        std::vector<std::uint8_t> kept(kRows * kKeptBytes);
        drop_tile({ours.data(), kRows, width, width}, 0.3f, RandomKey(9), 5, first, kept.data());
        for (std::size_t i = 0; i < kRows; ++i) {
          dropout(exact.data() + i * width, exact.data() + i * width, width, 0.3f, RandomKey(9).at(5 + i), first);
        }
        EXPECT_TRUE(same(ours, exact)) << name << ' ' << width << ' ' << first;
        keep_tile({again.data(), kRows, width, width}, 0.3f, kept.data());
        EXPECT_TRUE(same(again, exact)) << name << ' ' << width << ' ' << first;
        std::vector<float> reference = x;
        reference::drop_tile(Tile{reference.data(), kRows, width, width}, 0.3f, RandomKey(9), 5, first,
                             static_cast<std::uint8_t*>(nullptr));
        for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(ours[i], reference[i], 1e-6) << name;
      }
    }
  }
}

}  // namespace
}  // namespace regard
