#include "kernels/gemm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/pool.h"
#include "kernels/target.h"
#include "regard/random.h"
#include "support/cases.h"

namespace regard {
namespace {

constexpr float kGuard = std::bit_cast<float>(0x7fc0beefu);  // a NaN: whoever reads it shows, whoever writes it too

enum class Order { kRowMajor, kColumnMajor };

// A matrix with NaN before, behind and between its rows (or columns).
class GuardedMatrix {
 public:
  GuardedMatrix(std::size_t rows, std::size_t columns, Order order = Order::kRowMajor, std::size_t gap = 0)
      : rows_(rows), columns_(columns), order_(order), stride_((order == Order::kRowMajor ? columns : rows) + gap) {
    memory_.assign(2 * kMargin + (order == Order::kRowMajor ? rows : columns) * stride_, kGuard);
  }

  MatrixOf<float> view() {
    float* data = memory_.data() + kMargin;
    return order_ == Order::kRowMajor ? MatrixOf<float>{data, rows_, columns_, stride_, 1}
                                      : MatrixOf<float>{data, rows_, columns_, 1, stride_};
  }
  template <class Value>
  GuardedMatrix& fill(Value value) {
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t j = 0; j < columns_; ++j) view().at(i, j) = static_cast<float>(value(i, j));
    }
    return *this;
  }
  GuardedMatrix& integers(std::uint64_t seed) {
    return fill([&](std::size_t i, std::size_t j) {
      return static_cast<int>(random_below(RandomKey(seed), i * columns_ + j, 17)) - 8;
    });
  }
  GuardedMatrix& normals(std::uint64_t seed) {
    return fill([&](std::size_t i, std::size_t j) { return normal(RandomKey(seed), i * columns_ + j); });
  }

  bool guards_stand() {
    std::vector<float> expected(memory_.size(), kGuard);
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t j = 0; j < columns_; ++j)
        expected[static_cast<std::size_t>(&view().at(i, j) - memory_.data())] = view().at(i, j);
    }
    return std::memcmp(expected.data(), memory_.data(), memory_.size() * sizeof(float)) == 0;
  }
  std::vector<float> values() {  // row by row
    std::vector<float> out;
    for (std::size_t i = 0; i < rows_; ++i) {
      for (std::size_t j = 0; j < columns_; ++j) out.push_back(view().at(i, j));
    }
    return out;
  }
  bool operator==(const GuardedMatrix& other) const {
    return memory_.size() == other.memory_.size() &&
           std::memcmp(memory_.data(), other.memory_.data(), memory_.size() * sizeof(float)) == 0;
  }

 private:
  static constexpr std::size_t kMargin = 80;
  std::size_t rows_, columns_;
  Order order_;
  std::size_t stride_;
  std::vector<float> memory_;
};

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> out;
  for (float value : values) out.push_back(std::bit_cast<std::uint32_t>(value));
  return out;
}

struct Shape {
  std::size_t rows, columns, depth;
};
std::string to_text(Shape s) {
  return std::to_string(s.rows) + " x " + std::to_string(s.columns) + " x " + std::to_string(s.depth);
}

// What has bitten someone: nothing, one, one more and one less than a register block (6 rows; 16, 64 columns), than a
// step of packing (4) and than a block of k; primes; enough of everything for several tiles and threads.
std::vector<Shape> shapes() {
  std::vector<Shape> out = {
      {0, 0, 0},     {0, 5, 3},     {5, 0, 3},      {5, 3, 0},     {1, 1, 1},       {1, 1, 2048},   {1, 64, 5000},
      {2, 3, 5},     {7, 130, 9},   {13, 200, 40},  {1, 700, 300}, {5, 700, 300},   {100, 200, 70}, {6, 64, 2049},
      {7, 65, 4100}, {3, 17, 2047}, {97, 15, 101},  {101, 1, 103}, {1, 103, 101},   {200, 66, 130}, {12, 640, 64},
      {13, 16, 64},  {150, 150, 3}, {300, 130, 33}, {2, 2000, 20}, {97, 1024, 200}, {40, 260, 1100}};
  constexpr std::size_t kSizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  11, 12, 13, 15, 16, 17,  18,  19,
                                    31, 32, 33, 47, 48, 49, 63, 64, 65, 66, 79, 80, 97, 127, 128, 129};
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(cases(200)); ++i) {
    const auto pick = [&](std::uint64_t which) {
      return kSizes[random_below(RandomKey(1), 3 * i + which, std::size(kSizes))];
    };
    out.push_back({pick(0), pick(1), pick(2)});
  }
  return out;
}

TEST(Gemm, SmallIntegersGiveExactResults) {
  std::uint64_t number = 0;
  for (const Shape& shape : shapes()) {
    ++number;
    const auto [rows, columns, depth] = shape;
    const auto choose = [&](std::uint64_t what, std::uint32_t count) {
      return random_below(RandomKey(2).at(number), what, count);
    };
    for (const Order a_order : {Order::kRowMajor, Order::kColumnMajor}) {
      for (const Order b_order : {Order::kRowMajor, Order::kColumnMajor}) {
        GuardedMatrix a(rows, depth, a_order, choose(0, 2) * 5), b(depth, columns, b_order, choose(1, 2) * 3);
        GuardedMatrix c(rows, columns, Order::kRowMajor, choose(2, 2) * 7), bias(1, columns);
        a.integers(3 * number);
        b.integers(3 * number + 1);
        c.integers(3 * number + 2);
        bias.integers(number);
        const Epilogue epilogue{.bias = choose(3, 2) != 0 ? &bias.view().at(0, 0) : nullptr,
                                .activation = choose(4, 2) != 0 ? Activation::kRelu : Activation::kNone,
                                .accumulate = choose(5, 2) != 0};
        GuardedMatrix expected = c;
        reference::gemm<float>(a.view(), b.view(), expected.view(), epilogue);
        const GuardedMatrix a_before = a, b_before = b;
        for (const std::string& name : targets()) {
          const TargetScope scope(name);
          const std::string where = name + ", " + to_text(shape) + (a_order == Order::kRowMajor ? ", a" : ", aᵀ") +
                                    (b_order == Order::kRowMajor ? "·b" : "·bᵀ");
          GuardedMatrix plain = c;
          gemm(a.view(), b.view(), plain.view(), epilogue);
          ASSERT_TRUE(plain == expected) << where;
          GuardedMatrix panels(1, packed_size(depth, columns)), packed = c;
          gemm(a.view(), pack(b.view(), panels.view().data), packed.view(), epilogue);
          ASSERT_TRUE(packed == expected) << where << ", packed";
          ASSERT_TRUE(panels.guards_stand()) << where;
        }
        ASSERT_TRUE(a == a_before && b == b_before);
      }
    }
  }
}

// The definition, word for word.
std::vector<float> chains(MatrixOf<const float> a, MatrixOf<const float> b, MatrixOf<const float> c,
                          const Epilogue& epilogue) {
  std::vector<float> out;
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < b.columns; ++j) {
      float sum = epilogue.accumulate ? c.at(i, j) : 0.0f;
      for (std::size_t k = 0; k < a.columns; ++k) sum = std::fma(a.at(i, k), b.at(k, j), sum);
      if (epilogue.bias != nullptr) sum += epilogue.bias[j];
      out.push_back(reference::activate(epilogue.activation, sum));
    }
  }
  return out;
}

bool fuses(const std::string& name) { return name != "sse4"; }

// Large enough for several tiles, threads, blocks of k and passes over B, and for every way to read A and B.
constexpr Shape kBitShapes[] = {{1, 512, 512},  {2, 300, 700},   {3, 200, 2500}, {5, 513, 130},  {6, 64, 64},
                                {7, 129, 300},  {16, 515, 200},  {64, 65, 190},  {61, 200, 201}, {300, 140, 90},
                                {65, 70, 2100}, {1100, 70, 130}, {98, 80, 1100}, {20, 1024, 40}, {70, 300, 520},
                                {4, 96, 77},    {5, 32, 519},    {6, 288, 30},   {37, 2048, 16}, {130, 80, 7},
                                {41, 48, 1},    {9, 1024, 13},   {3, 48, 83},    {1, 16, 1060}};

void expect_chains(const Shape& shape, bool with_bias) {
  const auto [rows, columns, depth] = shape;
  GuardedMatrix bias(1, columns), c(rows, columns);
  bias.normals(5);
  c.normals(6);
  const Epilogue epilogue{.bias = with_bias ? bias.view().data : nullptr, .accumulate = true};
  std::vector<std::uint32_t> expected;
  for (const Order a_order : {Order::kRowMajor, Order::kColumnMajor}) {
    for (const Order b_order : {Order::kRowMajor, Order::kColumnMajor}) {
      GuardedMatrix a(rows, depth, a_order), b(depth, columns, b_order);
      a.normals(7);
      b.normals(8);
      if (expected.empty()) expected = bits(chains(a.view(), b.view(), c.view(), epilogue));
      for (const std::string& name : targets()) {
        if (!fuses(name)) continue;
        const TargetScope scope(name);
        for (const int limit : {1, 2, 3}) {
          const ThreadLimit threads(limit);
          const std::string where = name + ", " + std::to_string(limit) + " threads, " + to_text(shape);
          GuardedMatrix plain = c;
          gemm(a.view(), b.view(), plain.view(), epilogue);
          ASSERT_EQ(bits(plain.values()), expected) << where;
          GuardedMatrix panels(1, packed_size(depth, columns)), packed = c;
          gemm(a.view(), pack(b.view(), panels.view().data), packed.view(), epilogue);
          ASSERT_EQ(bits(packed.values()), expected) << where << ", packed";
        }
      }
    }
  }
}

TEST(Gemm, EveryElementIsOneChainOfFusedMultiplyAdds) {
  for (const Shape& shape : kBitShapes) expect_chains(shape, true);
}

TEST(Gemm, EveryElementIsOneChainWithoutABiasToo) {
  for (const Shape& shape : kBitShapes) expect_chains(shape, false);
}

TEST(Gemm, RowsDoNotDependOnTheirNeighbours) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (const auto& [rows, columns, depth] : kBitShapes) {
      GuardedMatrix a(rows, depth), b(depth, columns), together(rows, columns), alone(rows, columns);
      a.normals(1);
      b.normals(2);
      gemm(a.view(), b.view(), together.view());
      for (std::size_t i = 0; i < rows; ++i) {
        MatrixOf<float> row = a.view(), out = alone.view();
        row.data += i * row.row_stride;
        out.data += i * out.row_stride;
        row.rows = out.rows = 1;
        gemm(row, b.view(), out);
      }
      EXPECT_TRUE(together == alone) << name << ", " << to_text({rows, columns, depth});
    }
  }
}

TEST(Gemm, AThreadOfAnotherCallGivesTheSameBits) {
  const ThreadLimit limit(3);
  const auto [rows, columns, depth] = Shape{70, 150, 600};
  GuardedMatrix a(rows, depth), b(depth, columns), expected(rows, columns);
  a.normals(1);
  b.normals(2);
  gemm(a.view(), b.view(), expected.view());
  std::vector<GuardedMatrix> results(8, GuardedMatrix(rows, columns));
  parallel(results.size(), [&](std::size_t item) { gemm(a.view(), b.view(), results[item].view()); });
  for (const GuardedMatrix& result : results) EXPECT_TRUE(result == expected);
}

TEST(Gemm, IsCloseToTheDoubleReference) {
  for (const Shape& shape : kBitShapes) {
    const std::size_t rows = shape.rows, columns = shape.columns, depth = shape.depth;
    GuardedMatrix a(rows, depth), b(depth, columns), bias(1, columns);
    a.normals(1);
    b.normals(2);
    bias.normals(3);
    const auto doubles = [](GuardedMatrix& from, bool absolute) {
      std::vector<double> out;
      for (const float value : from.values()) out.push_back(absolute ? std::fabs(value) : value);
      return out;
    };
    const auto product = [&](bool absolute) {
      const std::vector<double> left = doubles(a, absolute), right = doubles(b, absolute),
                                add = doubles(bias, absolute);
      std::vector<double> out(rows * columns);
      gemm(matrix(left.data(), rows, depth), matrix(right.data(), depth, columns), matrix(out.data(), rows, columns),
           {.bias = add.data()});
      return out;
    };
    const std::vector<double> expected = product(false), terms = product(true);
    for (const std::string& name : targets()) {
      const TargetScope scope(name);
      GuardedMatrix c(rows, columns);
      gemm(a.view(), b.view(), c.view(), {.bias = bias.view().data});
      const std::vector<float> got = c.values();
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_LE(std::fabs(got[i] - expected[i]), 2e-6 * (1 + terms[i])) << name << ", element " << i;
    }
  }
}

TEST(Gemm, WithoutDepthIsTheBiasAndTheOldValue) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (const std::size_t columns : {1u, 16u, 65u}) {
      GuardedMatrix a(7, 0), b(0, columns), bias(1, columns), c(7, columns);
      bias.fill([](std::size_t, std::size_t j) { return static_cast<double>(j) - 3; });
      c.fill([](std::size_t i, std::size_t) { return static_cast<double>(i); });
      const GuardedMatrix before = c;
      gemm(a.view(), b.view(), c.view(), {.accumulate = true});
      EXPECT_TRUE(c == before);
      gemm(a.view(), b.view(), c.view(), {.bias = bias.view().data, .accumulate = true});
      for (std::size_t i = 0; i < 7; ++i) {
        for (std::size_t j = 0; j < columns; ++j)
          EXPECT_EQ(c.view().at(i, j), static_cast<float>(i) + static_cast<float>(j) - 3.0f);
      }
      gemm(a.view(), b.view(), c.view());
      for (const float value : c.values()) EXPECT_EQ(std::bit_cast<std::uint32_t>(value), 0u);
      EXPECT_TRUE(c.guards_stand());
    }
  }
}

TEST(Gemm, ReluKeepsNaNAndCutsWhatIsNegative) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    const float values[] = {-1.0f, 2.0f, -kInfinity, kInfinity, nan, -nan, 0.0f};
    const float one = 1.0f;
    float c[7];
    gemm(matrix(&one, 1, 1), matrix(values, 1, 7), matrix(c, 1, 7), {.activation = Activation::kRelu});
    EXPECT_EQ(c[0], 0.0f);
    EXPECT_EQ(c[1], 2.0f);
    EXPECT_EQ(c[2], 0.0f);
    EXPECT_EQ(c[3], kInfinity);
    EXPECT_TRUE(std::isnan(c[4]));
    EXPECT_TRUE(std::isnan(c[5]));
    EXPECT_EQ(c[6], 0.0f);
  }
}

TEST(Gemm, AppliesTheActivationToTheFinishedSum) {
  for (const Activation activation : {Activation::kNone, Activation::kRelu, Activation::kTanh, Activation::kSigmoid,
                                      Activation::kGelu, Activation::kSilu}) {
    for (const auto& [rows, columns, depth] : {Shape{1, 1, 1}, {7, 33, 5}, {13, 200, 40}, {2, 70, 2500}}) {
      GuardedMatrix a(rows, depth), b(depth, columns), bias(1, columns), sums(rows, columns);
      a.normals(1);
      b.normals(2);
      bias.normals(3);
      std::vector<std::uint32_t> fused;
      for (const std::string& name : targets()) {
        const TargetScope scope(name);
        GuardedMatrix c(rows, columns);
        gemm(a.view(), b.view(), sums.view(), {.bias = bias.view().data});
        gemm(a.view(), b.view(), c.view(), {.bias = bias.view().data, .activation = activation});
        EXPECT_TRUE(c.guards_stand());
        const std::vector<float> before = sums.values(), got = c.values();
        for (std::size_t i = 0; i < got.size(); ++i) {
          const double expected = reference::activate<double>(activation, before[i]);
          ASSERT_NEAR(got[i], expected, 1e-6 * (std::fabs(expected) + 1e-3)) << name << ", x = " << before[i];
        }
        if (!fuses(name)) continue;
        if (fused.empty()) fused = bits(got);
        EXPECT_EQ(bits(got), fused) << name;
      }
    }
  }
}

TEST(Gemm, NaNAndInfinityReachTheirRowOrColumnAndNoOther) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (const auto& [rows, columns, depth] : kBitShapes) {
      GuardedMatrix a(rows, depth), b(depth, columns), clean(rows, columns), c(rows, columns);
      a.fill([](std::size_t i, std::size_t k) { return 1.0 + static_cast<double>((i + k) % 3); });
      b.fill([](std::size_t k, std::size_t j) { return 1.0 + static_cast<double>((k + j) % 5); });
      gemm(a.view(), b.view(), clean.view());
      const std::size_t row = rows / 2, column = columns - 1;
      a.view().at(row, depth - 1) = std::numeric_limits<float>::quiet_NaN();
      b.view().at(depth / 2, column) = kInfinity;
      gemm(a.view(), b.view(), c.view());
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j) {
          const float value = c.view().at(i, j);
          if (i == row) {
            ASSERT_TRUE(std::isnan(value)) << name;
          } else if (j == column) {
            ASSERT_EQ(value, kInfinity) << name;
          } else {
            ASSERT_EQ(value, clean.view().at(i, j)) << name;
          }
        }
      }
    }
  }
}

TEST(GemmBatch, IsTheProductsOneByOne) {
  struct Case {
    std::size_t count;
    Shape shape;
  };
  for (const auto& [count, shape] : {Case{0, {3, 4, 5}}, Case{1, {7, 70, 9}}, Case{2, {130, 200, 70}},
                                     Case{5, {20, 33, 64}}, Case{17, {3, 16, 100}}, Case{3, {64, 64, 64}}}) {
    const auto [rows, columns, depth] = shape;
    for (const Order a_order : {Order::kRowMajor, Order::kColumnMajor}) {
      for (const Order b_order : {Order::kRowMajor, Order::kColumnMajor}) {
        for (const int shared : {0, 1, 2}) {  // neither, A, B
          const std::size_t a_step = shared == 1 ? 0 : rows * depth + 3, b_step = shared == 2 ? 0 : depth * columns + 5;
          const std::size_t c_step = rows * columns + 2;
          GuardedMatrix a(1, count * (rows * depth + 3)), b(1, count * (depth * columns + 5)), c(1, count * c_step);
          a.normals(1);
          b.normals(2);
          c.normals(3);
          const auto shaped = [](float* data, std::size_t height, std::size_t width, Order order) {
            return order == Order::kRowMajor ? MatrixOf<float>{data, height, width, width, 1}
                                             : MatrixOf<float>{data, height, width, 1, height};
          };
          const MatrixOf<float> first_a = shaped(a.view().data, rows, depth, a_order);
          const MatrixOf<float> first_b = shaped(b.view().data, depth, columns, b_order);
          const MatrixOf<float> first_c = shaped(c.view().data, rows, columns, Order::kRowMajor);
          for (const std::string& name : targets()) {
            const TargetScope scope(name);
            GuardedMatrix expected = c, got = c;
            for (std::size_t i = 0; i < count; ++i) {
              MatrixOf<float> left = first_a, right = first_b, out = first_c;
              left.data += i * a_step;
              right.data += i * b_step;
              out.data = expected.view().data + i * c_step;
              gemm(left, right, out, {.accumulate = true});
            }
            for (const int limit : {1, 2, 3}) {
              const ThreadLimit threads(limit);
              got = c;
              MatrixOf<float> out = first_c;
              out.data = got.view().data;
              gemm_batch(count, first_a, a_step, first_b, b_step, out, c_step, {.accumulate = true});
              ASSERT_TRUE(got == expected) << name << ", " << count << " times " << to_text(shape);
            }
          }
        }
      }
    }
  }
}

TEST(Pack, MakesPanelsOfSixteenColumnsWithZerosBehindTheLast) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (const std::size_t depth : {0u, 1u, 3u, 4u, 5u, 64u, 301u}) {
      for (const std::size_t columns : {0u, 1u, 4u, 15u, 16u, 17u, 63u, 64u, 100u, 500u}) {
        for (const Order order : {Order::kRowMajor, Order::kColumnMajor}) {
          for (const std::size_t gap : {0u, 3u}) {
            GuardedMatrix b(depth, columns, order, gap), panels(1, packed_size(depth, columns));
            b.normals(4);
            const PackedMatrix packed = pack(b.view(), panels.view().data);
            EXPECT_EQ(packed.k, depth);
            EXPECT_EQ(packed.n, columns);
            ASSERT_TRUE(panels.guards_stand());
            const std::vector<float> values = panels.values();
            ASSERT_EQ(values.size(), (columns + 15) / 16 * 16 * depth);
            for (std::size_t j = 0; j < (columns + 15) / 16 * 16; ++j) {
              for (std::size_t k = 0; k < depth; ++k)
                ASSERT_EQ(values[(j / 16 * depth + k) * 16 + j % 16], j < columns ? b.view().at(k, j) : 0.0f);
            }
          }
        }
      }
    }
  }
}

TEST(GemmReference, MultipliesByTheBook) {
  const double a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, -1, 2, 1, 1}, bias[] = {10, -10};
  double c[] = {1, 1, 1, 1};
  gemm(matrix(a, 2, 3), matrix(b, 3, 2), matrix(c, 2, 2));
  EXPECT_EQ(std::vector<double>(c, c + 4), (std::vector<double>{2, 7, 5, 16}));
  gemm(matrix(a, 2, 3), matrix(b, 3, 2), matrix(c, 2, 2), {.bias = bias, .accumulate = true});
  EXPECT_EQ(std::vector<double>(c, c + 4), (std::vector<double>{14, 4, 20, 22}));
  gemm(matrix(a, 2, 3), matrix(b, 3, 2), matrix(c, 2, 2), {.bias = bias, .activation = Activation::kRelu});
  EXPECT_EQ(std::vector<double>(c, c + 4), (std::vector<double>{12, 0, 15, 6}));
}

}  // namespace
}  // namespace regard
