#include "kernels/glu.h"

#include <gtest/gtest.h>

#include "kernels/guarded.h"

namespace regard {
namespace {

struct Size {
  std::size_t count, width;
};
constexpr Size kSizes[] = {{0, 5}, {5, 0}, {1, 1}, {3, 2}, {7, 15}, {4, 16}, {5, 17}, {3, 65}, {61, 511}};

TEST(Glu, MatchesTheReferenceOnEveryTarget) {
  for (const auto& [count, width] : kSizes) {
    SCOPED_TRACE(testing::Message() << count << " × " << width);
    const std::vector<float> x = random_floats(count * 2 * width, 1, -8, 8);
    std::vector<double> exact(count * width);
    const std::vector<double> wide = doubles(x);
    reference::glu(rows(wide.data(), count, 2 * width), rows(exact.data(), count, width));
    on_every_target(
        [&, n = count, w = width] {
          const Guarded from(x);
          Guarded to(n * w);
          glu(rows(from.data(), n, 2 * w), rows(to.data(), n, w));
          return to.values();
        },
        [&](const auto& y) { expect_close(y, exact, {}); });
  }
}

TEST(Glu, GradientMatchesTheReferenceAndAdds) {
  for (const auto& [count, width] : kSizes) {
    for (const bool add : {false, true}) {
      SCOPED_TRACE(testing::Message() << count << " × " << width << (add ? ", added" : ""));
      const std::vector<float> x = random_floats(count * 2 * width, 1, -8, 8), dy = random_floats(count * width, 2);
      const std::vector<float> before = random_floats(x.size(), 3);
      std::vector<double> exact = doubles(before);
      const std::vector<double> wide = doubles(x), up = doubles(dy);
      reference::glu_backward(rows(wide.data(), count, 2 * width), rows(up.data(), count, width),
                              rows(exact.data(), count, 2 * width), add);
      std::vector<double> terms(exact.size());  // 1 − s is made from the rounded s
      for (std::size_t i = 0; i < terms.size(); ++i) {
        const std::size_t row = i / (2 * width), c = i % width;
        terms[i] = std::abs(exact[i]) + std::abs(up[row * width + c] * wide[row * 2 * width + c]);
      }
      on_every_target(
          [&, n = count, w = width] {
            const Guarded from(x), gradient(dy);
            Guarded to(before);
            glu_backward(rows(from.data(), n, 2 * w), rows(gradient.data(), n, w), rows(to.data(), n, 2 * w), add);
            return to.values();
          },
          [&](const auto& dx) { expect_close(dx, exact, terms); });
    }
  }
}

}  // namespace
}  // namespace regard
