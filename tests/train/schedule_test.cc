#include "regard/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "regard/error.h"

namespace regard {
namespace {

TEST(Schedule, WarmUpRisesInAStraightLineToTheFullRate) {
  const Schedule root = inverse_square_root({.rate = 2, .warm_up = 8});
  const Schedule wave = cosine({.rate = 2, .steps = 100, .warm_up = 8});
  for (std::int64_t done = 0; done < 8; ++done) {
    EXPECT_EQ(root(done), 2.0 * static_cast<double>(done + 1) / 8) << done;
    EXPECT_EQ(wave(done), 2.0 * static_cast<double>(done + 1) / 8) << done;
  }
  EXPECT_LT(root(8), 2);
  EXPECT_EQ(wave(8), 2);
}

TEST(Schedule, InverseSquareRootHalvesWithFourTimesTheSteps) {
  const Schedule rate = inverse_square_root({.rate = 1, .warm_up = 16});
  EXPECT_EQ(rate(63), 0.5);
  EXPECT_EQ(rate(255), 0.25);
}

TEST(Schedule, CosineIsTheCosine) {
  const Schedule rate = cosine({.rate = 3, .lowest = 1, .steps = 1000});
  for (std::int64_t done = 0; done < 1000; ++done) {
    const double exact = 2 + std::cos(3.14159265358979323846 * static_cast<double>(done) / 1000);
    ASSERT_NEAR(rate(done), exact, 1e-14) << done;
  }
}

TEST(Schedule, CosineStaysAtTheLowestRateAfterItsEnd) {
  for (const Cosine& settings : {Cosine{.rate = 3, .lowest = 0.5, .steps = 10}, Cosine{.lowest = 0.5, .steps = 0},
                                 Cosine{.lowest = 0.5, .steps = 4, .warm_up = 4}}) {
    const Schedule rate = cosine(settings);
    for (const std::int64_t done : {settings.steps, settings.steps + 1, std::int64_t{1} << 60}) {
      EXPECT_EQ(rate(done), 0.5) << done;
    }
  }
}

TEST(Schedule, SettingsThatMakeNoSenseAreErrors) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(constant_rate(-1), Error);
  EXPECT_THROW(constant_rate(kNan), Error);
  EXPECT_THROW(inverse_square_root({.rate = 1, .warm_up = 0}), Error);
  EXPECT_THROW(cosine({.rate = 1, .steps = 10, .warm_up = 11}), Error);
  EXPECT_THROW(cosine({.rate = 1, .steps = 10, .warm_up = -1}), Error);
  EXPECT_THROW(Plateau({.factor = 1}), Error);
  EXPECT_THROW(Plateau({.patience = -1}), Error);
  EXPECT_THROW(Plateau({.threshold = kNan}), Error);
}

TEST(Plateau, FallsOnceItsPatienceIsAtAnEnd) {
  Plateau plateau({.rate = 1, .factor = 0.5, .patience = 2});
  EXPECT_FALSE(plateau.report(3));
  EXPECT_FALSE(plateau.report(3));
  EXPECT_FALSE(plateau.report(4));
  EXPECT_TRUE(plateau.report(3));
  EXPECT_EQ(plateau.rate(), 0.5);
  EXPECT_FALSE(plateau.report(2));
  EXPECT_EQ(plateau.state().best, 2);
}

TEST(Plateau, ALossThatIsNotANumberIsNeverBetter) {
  Plateau plateau({.rate = 1, .patience = 0});
  EXPECT_TRUE(plateau.report(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(plateau.report(5));
  EXPECT_EQ(plateau.state().best, 5);
}

TEST(Plateau, AtTheLowestRateNothingFalls) {
  Plateau plateau({.rate = 1, .factor = 0.5, .patience = 0, .lowest = 0.5});
  plateau.report(1);
  EXPECT_TRUE(plateau.report(1));
  EXPECT_FALSE(plateau.report(1));
  EXPECT_EQ(plateau.rate(), 0.5);
}

TEST(Plateau, GoesOnFromItsState) {
  const PlateauSettings settings = {.rate = 1, .patience = 1, .rest = 2};
  Plateau one(settings);
  for (const double loss : {5.0, 5.0, 5.0, 4.0, 4.0}) one.report(loss);
  Plateau other(settings);
  other.resume(one.state());
  for (const double loss : {4.0, 4.0, 4.0, 3.0, 3.0, 3.0}) {
    EXPECT_EQ(one.report(loss), other.report(loss));
    EXPECT_EQ(one.rate(), other.rate());
  }
}

}  // namespace
}  // namespace regard
