// local_p by brute force: every length from 1 to 20, every distance from 0 to 5, looking at both borders and between.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/check.h"
#include "kernels/target.h"
#include "regard/attention/mechanism.h"

namespace regard {
namespace {

TEST(LocalPredictive, IsLuongsFormulaAtEveryLengthDistanceAndBorder) {
  // tanh(x)·40: from the first place to the last, and some between. The queries see the item's own length, not the
  // padding.
  const std::vector<float> guesses = {-9, -0.2f, -0.05f, 0, 0.03f, 0.1f, 9};
  const auto queries = static_cast<std::int64_t>(guesses.size());
  constexpr std::int64_t kPadded = 24;
  for (const std::string& name : targets()) {
    const TargetScope target(name);
    int seen = 0, nothing = 0;
    for (std::int32_t length = 1; length <= 20; ++length) {
      for (int distance = 0; distance <= 5; ++distance) {
        Tensor q = Tensor::empty({1, 1, queries, 1}), k = Tensor::empty({1, 1, kPadded, 1}),
               v = Tensor::empty({1, 1, kPadded, 1});
        std::copy(guesses.begin(), guesses.end(), q.data<float>());
        for (std::int64_t j = 0; j < kPadded; ++j) {
          k.data<float>()[j] = 0.3f * std::sin(static_cast<float>(3 * j));
          v.data<float>()[j] = j < length ? std::cos(static_cast<float>(2 * j)) : NAN;
        }
        Tape tape;
        const std::vector<Var> learned = {tape.constant(Tensor::of<float>({1, 1}, {1})),
                                          tape.constant(Tensor::of<float>({1, 1}, {40}))};
        const Attention made =
            attend(Mechanism(text("dot | lengths & local_p:", distance)), tape.constant(q), tape.constant(k),
                   tape.constant(v), {.lengths = std::vector<std::int32_t>{length}, .learned = learned, .hidden = 1});
        const Tensor weights = made.trace.weights();
        for (std::int64_t i = 0; i < queries; ++i) {
          const double x = static_cast<double>(guesses[static_cast<std::size_t>(i)]);
          const double centre = length / (1 + std::exp(-40 * std::tanh(x)));
          double mass = 0, read = 0;
          std::vector<double> p(static_cast<std::size_t>(length), 0.0);
          for (std::int64_t j = 0; j < length; ++j) {
            if (std::abs(static_cast<double>(j) - centre) > distance) continue;
            mass += p[static_cast<std::size_t>(j)] = std::exp(x * static_cast<double>(k.data<float>()[j]));
          }
          for (std::int64_t j = 0; j < length; ++j) {
            double& weight = p[static_cast<std::size_t>(j)];
            if (weight == 0) continue;
            const double apart = static_cast<double>(j) - centre;
            weight *= (distance == 0 ? 1 : std::exp(-2 * apart * apart / (distance * distance))) / mass;
            read += weight * static_cast<double>(v.data<float>()[j]);
          }
          for (std::int64_t j = 0; j < kPadded; ++j) {
            const double want = j < length ? p[static_cast<std::size_t>(j)] : 0;
            ASSERT_NEAR(weights.data<float>()[i * kPadded + j], want, 2e-5)
                << name << ", length " << length << ", distance " << distance << ", query " << i << ", key " << j;
          }
          ASSERT_NEAR(made.context.value().data<float>()[i], read, 2e-5)
              << name << ", length " << length << ", distance " << distance << ", query " << i;
          (mass > 0 ? seen : nothing) += 1;
        }
      }
    }
    EXPECT_GT(seen, 500) << name;
    EXPECT_GT(nothing, 50) << name;
  }
}

}  // namespace
}  // namespace regard
