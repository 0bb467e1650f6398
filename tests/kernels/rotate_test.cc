#include "kernels/rotate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/guarded.h"

namespace regard {
namespace {

struct Size {
  std::size_t count, width, period;
};
constexpr Size kSizes[] = {{0, 6, 1},  {5, 0, 5},   {1, 2, 1},  {3, 6, 3},    {7, 14, 7},
                           {6, 16, 3}, {10, 18, 5}, {4, 34, 2}, {61, 510, 61}};

// What a turn of every position holds.
std::vector<float> turns_of(std::size_t period, std::size_t width) {
  std::vector<float> all(period * 2 * width);
  for (std::size_t p = 0; p < period; ++p) {
    for (std::size_t c = 0; c < width; c += 2) {
      const double angle = 0.7 * static_cast<double>(p) + 0.3 * static_cast<double>(c) - 1;
      float* turn = all.data() + p * 2 * width;
      turn[c] = turn[c + 1] = static_cast<float>(std::cos(angle));
      turn[width + c + 1] = static_cast<float>(std::sin(angle));
      turn[width + c] = -turn[width + c + 1];
    }
  }
  return all;
}

template <class T>
std::vector<const T*> pointers(const std::vector<T>& all, std::size_t period, std::size_t width) {
  std::vector<const T*> to;
  for (std::size_t p = 0; p < period; ++p) to.push_back(all.data() + p * 2 * width);
  return to;
}

TEST(Rotate, MatchesTheReferenceOnEveryTargetAheadAndBack) {
  for (const auto& [count, width, period] : kSizes) {
    for (const bool back : {false, true}) {
      for (const bool add : {false, true}) {
        SCOPED_TRACE(testing::Message() << count << " × " << width << (back ? ", back" : "") << (add ? ", added" : ""));
        const std::vector<float> x = random_floats(count * width, 1, -8, 8), before = random_floats(x.size(), 2);
        const std::vector<float> turns = turns_of(period, width);
        const std::vector<double> wide = doubles(x), wide_turns = doubles(turns);
        std::vector<double> exact = doubles(before), terms(x.size());
        reference::rotate<double>(rows(wide.data(), count, width), pointers(wide_turns, period, width).data(), period,
                                  rows(exact.data(), count, width), back, add);
        for (std::size_t i = 0; i < x.size(); ++i) {
          terms[i] = std::abs(wide[i]) + std::abs(wide[i ^ 1]) + (add ? std::abs(before[i]) : 0);
        }
        on_every_target(
            [&, n = count, w = width, p = period] {
              const Guarded from(x);
              Guarded to(before);
              rotate(rows(from.data(), n, w), pointers(turns, p, w).data(), p, rows(to.data(), n, w), back, add);
              return to.values();
            },
            [&](const auto& y) { expect_close(y, exact, terms); });
      }
    }
  }
}

}  // namespace
}  // namespace regard
