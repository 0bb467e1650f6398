#include "view/sound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace regard {
namespace {

TraceAxis clicks() {  // four frames of half a second, eight samples a second; a click in the second frame
  TraceAxis axis{.name = "frames", .kind = TraceAxis::Kind::kFrames, .frames = 4, .first = 0, .step = 0.5};
  axis.rate = 8;
  axis.sound = Tensor::zeros({16});
  axis.sound.data<float>()[5] = 0.5f;
  axis.sound.data<float>()[6] = -3.0f;
  return axis;
}

TEST(Wave, ShowsWhatWasLoudHoweverShort) {
  const std::vector<Extent> wave = wave_of(clicks(), 4);
  ASSERT_EQ(wave.size(), 4u);
  EXPECT_EQ(wave[0].high, 0);
  EXPECT_EQ(wave[1].high, 0.5);
  EXPECT_EQ(wave[1].low, -1);  // held
  EXPECT_EQ(wave[2].low, 0);
}

TEST(Wave, FollowsTheTimeOfTheFrames) {
  TraceAxis axis = clicks();
  axis.first = 0.5;  // the sound began before the first frame
  EXPECT_EQ(wave_of(axis, 4)[0].high, 0.5);
  axis.first = 0;
  axis.rate = 0;  // not known: the sound is as long as the frames
  EXPECT_EQ(wave_of(axis, 4)[1].high, 0.5);
}

TEST(Wave, OfTimesThatAreNoNumbersIsStillAWave) {
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan(""), -1.0, 1e308}) {
    TraceAxis axis = clicks();
    axis.step = bad;
    EXPECT_EQ(wave_of(axis, 7).size(), 7u);
    axis.first = axis.rate = bad;
    EXPECT_EQ(wave_of(axis, 7).size(), 7u);
  }
  TraceAxis axis = clicks();
  axis.frames = 0;
  EXPECT_TRUE(wave_of(axis, 7).empty());
  axis.frames = 4, axis.sound = {};
  EXPECT_TRUE(wave_of(axis, 7).empty());
}

TEST(Spectrum, GoesFromZeroToOneWithHighBandsFirst) {
  TraceAxis axis = clicks();
  EXPECT_FALSE(spectrum_of(axis).defined());
  axis.spectrum = Tensor::empty({2, 3});
  for (int i = 0; i < 6; ++i) axis.spectrum.data<float>()[i] = static_cast<float>(10 + i);
  axis.spectrum.data<float>()[4] = std::nanf("");
  const Tensor spectrum = spectrum_of(axis);
  ASSERT_EQ(spectrum.shape(), Shape({3, 2}));
  EXPECT_EQ(spectrum.data<float>()[0 * 2 + 1], 1.0f);  // the last band of the last time
  EXPECT_EQ(spectrum.data<float>()[2 * 2 + 0], 0.0f);
  EXPECT_TRUE(std::isnan(spectrum.data<float>()[1 * 2 + 1]));
}

}  // namespace
}  // namespace regard
