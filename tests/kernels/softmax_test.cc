#include "kernels/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/guarded.h"
#include "kernels/target.h"

namespace regard {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Size {
  std::size_t count, width;
};
constexpr Size kSizes[] = {{0, 5},  {5, 0},  {1, 1},  {3, 2},    {7, 15},   {4, 16},
                           {5, 17}, {3, 63}, {3, 65}, {2, 1000}, {61, 511}, {9, 4097}};

template <class Kernel>
std::vector<float> run(Kernel kernel, const std::vector<float>& x, std::size_t count, std::size_t width) {
  const Guarded from(x);
  Guarded to(x.size());
  kernel(rows(from.data(), count, width), rows(to.data(), count, width));
  return to.values();
}

template <class Kernel>
std::vector<float> run_backward(Kernel kernel, const std::vector<float>& y, const std::vector<float>& dy,
                                const std::vector<float>& before, Size size, bool add) {
  const Guarded out(y), gradient(dy);
  Guarded dx(before);
  kernel(rows(out.data(), size.count, size.width), rows(gradient.data(), size.count, size.width),
         rows(dx.data(), size.count, size.width), add);
  return dx.values();
}

const auto kSoftmax = [](Rows x, Tile y) { softmax(x, y); };
const auto kLogSoftmax = [](Rows x, Tile y) { log_softmax(x, y); };
const auto kSoftmaxBackward = [](Rows y, Rows dy, Tile dx, bool add) { softmax_backward(y, dy, dx, add); };
const auto kLogSoftmaxBackward = [](Rows y, Rows dy, Tile dx, bool add) { log_softmax_backward(y, dy, dx, add); };

TEST(Softmax, MatchesTheReference) {
  for (auto [count, width] : kSizes) {
    SCOPED_TRACE(testing::Message() << count << " × " << width);
    const std::vector<float> x = random_floats(count * width, 1, -8, 8);
    const std::vector<double> wide = doubles(x);
    std::vector<double> p(x.size()), log_p(x.size());
    reference::softmax(rows(wide.data(), count, width), rows(p.data(), count, width));
    reference::log_softmax(rows(wide.data(), count, width), rows(log_p.data(), count, width));
    on_every_target([&, n = count, w = width] { return run(kSoftmax, x, n, w); },
                    [&](const auto& y) { expect_close(y, p, {}); });
    on_every_target([&, n = count, w = width] { return run(kLogSoftmax, x, n, w); },
                    [&](const auto& y) { expect_close(y, log_p, {}); });
  }
}

TEST(Softmax, GradientMatchesTheReference) {
  for (const Size& size : kSizes) {
    const auto [count, width] = size;
    const std::size_t n = count * width;
    const std::vector<float> x = random_floats(n, 1, -4, 4), dy = random_floats(n, 2), before = random_floats(n, 3);
    const std::vector<float> p = run(kSoftmax, x, count, width), log_p = run(kLogSoftmax, x, count, width);
    const std::vector<double> wide_p = doubles(p), wide_log = doubles(log_p), wide_dy = doubles(dy);
    for (bool add : {false, true}) {
      SCOPED_TRACE(testing::Message() << count << " × " << width << ", add " << add);
      std::vector<double> dp = doubles(before), dlog = dp, terms(n);
      reference::softmax_backward(rows(wide_p.data(), count, width), rows(wide_dy.data(), count, width),
                                  rows(dp.data(), count, width), add);
      reference::log_softmax_backward(rows(wide_log.data(), count, width), rows(wide_dy.data(), count, width),
                                      rows(dlog.data(), count, width), add);
      for (std::size_t i = 0; i < n; ++i) {  // Σ|dy| of the row, times the weight
        for (std::size_t j = 0; j < width; ++j)
          terms[i] += std::fabs(static_cast<double>(dy[i / width * width + j] * p[i]));
        terms[i] += 6;
      }
      on_every_target([&] { return run_backward(kSoftmaxBackward, p, dy, before, size, add); },
                      [&](const auto& dx) { expect_close(dx, dp, {}); });
      on_every_target([&] { return run_backward(kLogSoftmaxBackward, log_p, dy, before, size, add); },
                      [&](const auto& dx) { expect_close(dx, dlog, terms); });
      if (n > 5000) break;  // long enough once
    }
  }
}

TEST(Softmax, ReferenceGradientMatchesFiniteDifferences) {
  const std::vector<double> x = {0.3, -1.2, 2.0, 0.7, 0.1}, dy = {1.0, -0.5, 0.25, 2.0, -1.5};
  const auto loss = [&](const std::vector<double>& at, bool log) {
    std::vector<double> y(5);
    log ? reference::log_softmax(rows(at.data(), 1, 5), rows(y.data(), 1, 5))
        : reference::softmax(rows(at.data(), 1, 5), rows(y.data(), 1, 5));
    double sum = 0;
    for (std::size_t j = 0; j < 5; ++j) sum += y[j] * dy[j];
    return sum;
  };
  for (bool log : {false, true}) {
    std::vector<double> y(5), dx(5);
    if (log) {
      log_softmax(rows(x.data(), 1, 5), rows(y.data(), 1, 5));
      log_softmax_backward(rows<const double>(y.data(), 1, 5), rows(dy.data(), 1, 5), rows(dx.data(), 1, 5), false);
    } else {
      softmax(rows(x.data(), 1, 5), rows(y.data(), 1, 5));
      softmax_backward(rows<const double>(y.data(), 1, 5), rows(dy.data(), 1, 5), rows(dx.data(), 1, 5), false);
    }
    for (std::size_t j = 0; j < 5; ++j) {
      std::vector<double> up = x, down = x;
      up[j] += 1e-6;
      down[j] -= 1e-6;
      EXPECT_NEAR(dx[j], (loss(up, log) - loss(down, log)) / 2e-6, 1e-8);
    }
  }
}

TEST(Softmax, ARowWithoutFiniteElementsHasNoWeights) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (std::size_t width : {1u, 16u, 19u}) {
      const std::vector<float> x(width, -kInfinity), dy = random_floats(width, 4);
      const Size size{1, width};
      EXPECT_EQ(run(kSoftmax, x, 1, width), std::vector<float>(width, 0.0f));
      EXPECT_EQ(run(kLogSoftmax, x, 1, width), x);
      const std::vector<float> zeros(width, 0.0f), before(width, 7.0f);
      EXPECT_EQ(run_backward(kSoftmaxBackward, zeros, dy, before, size, false), zeros);
      EXPECT_EQ(run_backward(kSoftmaxBackward, zeros, dy, before, size, true), before);
      EXPECT_EQ(run_backward(kLogSoftmaxBackward, x, dy, before, size, false), zeros);
      EXPECT_EQ(run_backward(kLogSoftmaxBackward, x, dy, before, size, true), before);
    }
  }
}

TEST(Softmax, MaskedElementsHaveExactlyNoWeight) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    std::vector<float> x = random_floats(37, 5);
    x[3] = x[20] = x[36] = -kInfinity;
    const std::vector<float> y = run(kSoftmax, x, 1, 37);
    double sum = 0;
    for (float p : y) sum += static_cast<double>(p);
    EXPECT_NEAR(sum, 1, 1e-6);
    EXPECT_EQ(y[3], 0.0f);
    EXPECT_EQ(y[20], 0.0f);
    EXPECT_EQ(y[36], 0.0f);
  }
}

TEST(Softmax, NotANumberFillsItsRowAndNoOther) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (std::size_t width : {1u, 16u, 19u}) {
      for (float others : {1.0f, -kInfinity}) {
        std::vector<float> x(3 * width, others);
        for (std::size_t j = 0; j < width; ++j) x[j] = x[2 * width + j] = 0.5f;
        x[2 * width - 1] = kNan;
        for (const auto& y : {run(kSoftmax, x, 3, width), run(kLogSoftmax, x, 3, width)}) {
          for (std::size_t i = 0; i < 3 * width; ++i)
            EXPECT_EQ(std::isnan(y[i]), i / width == 1) << "element " << i << " of rows of " << width;
        }
      }
    }
  }
}

TEST(Softmax, HugeLogitsAreFine) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    const std::vector<float> x = {1e38f, -1e38f, 3e38f, -3e38f};
    EXPECT_EQ(run(kSoftmax, x, 1, 4), (std::vector<float>{0, 0, 1, 0}));
    const std::vector<float> log_p = run(kLogSoftmax, x, 1, 4);
    EXPECT_EQ(log_p[2], 0.0f);
    for (float p : log_p) EXPECT_FALSE(std::isnan(p));
  }
}

TEST(Softmax, TheLikeliestAreThoseOfAllWithTheSameBits) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (auto [count, width] : kSizes) {
      if (width == 0) continue;
      SCOPED_TRACE(testing::Message() << name << ", " << count << " × " << width);
      for (const bool coarse : {false, true}) {  // many equal ones: the first counts
        std::vector<float> x = random_floats(count * width, 3, -8, 8);
        if (coarse) std::for_each(x.begin(), x.end(), [](float& each) { each = std::round(each); });
        if (count > 2) std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(width), width, -kInfinity);
        const std::vector<float> all = run(kLogSoftmax, x, count, width);
        for (const std::size_t some : {std::size_t{1}, std::size_t{10}, width}) {
          const std::size_t k = std::min(some, width), also = width / 2;
          std::vector<std::int32_t> columns(count * k);
          std::vector<float> values(count * k), also_values(count);
          const Guarded from(x);
          likeliest(rows(from.data(), count, width), {k, columns.data(), values.data(), also, also_values.data()});
          for (std::size_t i = 0; i < count; ++i) {
            std::vector<std::int32_t> order(width);
            std::iota(order.begin(), order.end(), 0);
            const float* const row = all.data() + i * width;
            std::stable_sort(order.begin(), order.end(),
                             [&](std::int32_t a, std::int32_t b) { return row[a] > row[b]; });
            for (std::size_t j = 0; j < k; ++j) {
              ASSERT_EQ(columns[i * k + j], order[j]) << "row " << i << ", the " << j << "th";
              ASSERT_EQ(values[i * k + j], row[order[j]]);
            }
            ASSERT_EQ(also_values[i], row[also]);
          }
        }
      }
    }
  }
}

TEST(Softmax, OutputMayBeTheInput) {
  const std::vector<float> x = random_floats(5 * 77, 6), dy = random_floats(5 * 77, 7);
  std::vector<float> same = x;
  softmax(rows<const float>(same.data(), 5, 77), rows(same.data(), 5, 77));
  EXPECT_TRUE(same_bits(same, run(kSoftmax, x, 5, 77)));
  const std::vector<float> apart = run_backward(kSoftmaxBackward, same, dy, x, {5, 77}, false);
  std::vector<float> dx = dy;
  softmax_backward(rows<const float>(same.data(), 5, 77), rows<const float>(dx.data(), 5, 77), rows(dx.data(), 5, 77),
                   false);
  EXPECT_TRUE(same_bits(dx, apart));
  same = x;
  log_softmax(rows<const float>(same.data(), 5, 77), rows(same.data(), 5, 77));
  EXPECT_TRUE(same_bits(same, run(kLogSoftmax, x, 5, 77)));
}

TEST(Softmax, ARowDoesNotDependOnItsNeighboursOrStride) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    const std::vector<float> x = random_floats(200 * 150, 8);
    const std::vector<float> all = run(kSoftmax, x, 200, 150);
    for (std::size_t i : {0u, 1u, 77u, 199u}) {
      const std::vector<float> alone =
          run(kSoftmax, {x.begin() + 150 * static_cast<long>(i), x.begin() + 150 * static_cast<long>(i + 1)}, 1, 150);
      EXPECT_EQ(std::memcmp(alone.data(), all.data() + 150 * i, 150 * sizeof(float)), 0);
    }
    Guarded y(200 * 150, -1.0f);
    softmax(Rows{x.data(), 200, 100, 150}, Tile{y.data(), 200, 100, 150});
    const std::vector<float> first = run(kSoftmax, {x.begin(), x.begin() + 100}, 1, 100);
    EXPECT_EQ(std::memcmp(first.data(), y.data(), 100 * sizeof(float)), 0);
    for (std::size_t i = 0; i < 200; ++i) {
      for (std::size_t j = 100; j < 150; ++j) ASSERT_EQ(y[i * 150 + j], -1.0f) << "written between rows";
    }
  }
}

}  // namespace
}  // namespace regard
