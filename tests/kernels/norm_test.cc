#include "kernels/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/guarded.h"

namespace regard {
namespace {

struct Case {
  std::size_t count, width;
};
constexpr Case kCases[] = {{0, 5}, {3, 0}, {1, 1}, {2, 3}, {5, 15}, {15, 16}, {16, 17}, {17, 63}, {33, 65}, {70, 301}};

struct Numbers {
  std::vector<float> x, weight, bias, dy, dx, dweight, dbias;

  explicit Numbers(Case c)
      : x(random_floats(c.count * c.width, 1, -2, 4)),
        weight(random_floats(c.width, 2, 0.5f, 2)),
        bias(random_floats(c.width, 3)),
        dy(random_floats(c.count * c.width, 4)),
        dx(random_floats(c.count * c.width, 5)),
        dweight(random_floats(c.width, 6)),
        dbias(random_floats(c.width, 7)) {}
};

// Everything a forward and a backward pass give, one after another.
template <class T>
struct Passes {
  std::vector<T> y, dx, dweight, dbias;
};

enum class Kind { kLayer, kRms };

template <class T>
Passes<T> reference_passes(Kind kind, Case c, const Numbers& numbers, bool affine, bool add) {
  const auto cast = [](const std::vector<float>& v) { return std::vector<T>(v.begin(), v.end()); };
  const std::vector<T> x = cast(numbers.x), w = cast(numbers.weight), b = cast(numbers.bias), dy = cast(numbers.dy);
  Passes<T> out{std::vector<T>(x.size()), cast(numbers.dx), cast(numbers.dweight), cast(numbers.dbias)};
  std::vector<T> mean(c.count), inverse(c.count);
  const NormGradients<T> to{.dx = rows(out.dx.data(), c.count, c.width),
                            .add_dx = add,
                            .dweight = out.dweight.data(),
                            .dbias = out.dbias.data(),
                            .add_parameters = add};
  const T* weight = affine ? w.data() : nullptr;
  const auto view = [&](const std::vector<T>& v) { return rows(v.data(), c.count, c.width); };
  if (kind == Kind::kLayer) {
    layer_norm(view(x), weight, affine ? b.data() : nullptr, T(1e-5), rows(out.y.data(), c.count, c.width), mean.data(),
               inverse.data());
    layer_norm_backward(view(x), weight, mean.data(), inverse.data(), view(dy), to);
  } else {
    rms_norm(view(x), weight, T(1e-5), rows(out.y.data(), c.count, c.width), inverse.data());
    rms_norm_backward(view(x), weight, inverse.data(), view(dy), to);
  }
  return out;
}

std::vector<float> kernel_passes(Kind kind, Case c, const Numbers& numbers, bool affine, bool add) {
  const Guarded x(numbers.x), w(numbers.weight), b(numbers.bias), dy(numbers.dy);
  Guarded y(x.size()), dx(numbers.dx), dweight(numbers.dweight), dbias(numbers.dbias), mean(c.count), inverse(c.count);
  const NormGradients<float> to{.dx = rows(dx.data(), c.count, c.width),
                                .add_dx = add,
                                .dweight = dweight.data(),
                                .dbias = dbias.data(),
                                .add_parameters = add};
  const float* weight = affine ? w.data() : nullptr;
  const auto view = [&](const Guarded& v) { return rows(v.data(), c.count, c.width); };
  if (kind == Kind::kLayer) {
    layer_norm(view(x), weight, affine ? b.data() : nullptr, 1e-5f, rows(y.data(), c.count, c.width), mean.data(),
               inverse.data());
    layer_norm_backward(view(x), weight, mean.data(), inverse.data(), view(dy), to);
  } else {
    rms_norm(view(x), weight, 1e-5f, rows(y.data(), c.count, c.width), inverse.data());
    rms_norm_backward(view(x), weight, inverse.data(), view(dy), to);
  }
  std::vector<float> all;
  for (const Guarded* part : {&y, &dx, &dweight, &dbias}) {
    const std::vector<float> values = part->values();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

class Norm : public testing::TestWithParam<Kind> {};

TEST_P(Norm, MatchesTheReferenceForwardAndBackward) {
  for (const Case& c : kCases) {
    const Numbers numbers(c);
    for (bool affine : {false, true}) {
      for (bool add : {false, true}) {
        SCOPED_TRACE(testing::Message() << c.count << " × " << c.width << ", weights " << affine << ", add " << add);
        const Passes<double> exact = reference_passes<double>(GetParam(), c, numbers, affine, add);
        std::vector<double> all, terms;
        for (const auto* part : {&exact.y, &exact.dx, &exact.dweight, &exact.dbias}) {
          all.insert(all.end(), part->begin(), part->end());
          // Sums over rows have `count` terms of up to about 10; a gradient is built from terms of that size, too, and
          // from 1/σ, which is large only where a row has one or two elements.
          const double size = part == &exact.y ? 5.0 : part == &exact.dx ? 40.0 : 10.0 * static_cast<double>(c.count);
          for (double v : *part) terms.push_back(std::fabs(v) + size);
        }
        on_every_target([&] { return kernel_passes(GetParam(), c, numbers, affine, add); },
                        [&](const auto& computed) {
                          if (c.width == 1) return;  // x − mean is 0 and 1/σ is 316: nothing but rounding is left
                          expect_close(computed, all, terms);
                        });
      }
    }
  }
}

TEST_P(Norm, ReferenceGradientMatchesFiniteDifferences) {
  const Case c{2, 7};
  const Numbers numbers(c);
  const auto loss = [&](const Numbers& at) {
    const Passes<double> passes = reference_passes<double>(GetParam(), c, at, true, false);
    double sum = 0;
    for (std::size_t i = 0; i < passes.y.size(); ++i) sum += passes.y[i] * static_cast<double>(at.dy[i]);
    return sum;
  };
  const Passes<double> exact = reference_passes<double>(GetParam(), c, numbers, true, false);
  constexpr float kStep = 0x1p-10f;
  const auto check = [&](std::vector<float> Numbers::*field, const std::vector<double>& gradient) {
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      Numbers up = numbers, down = numbers;
      (up.*field)[i] += kStep;
      (down.*field)[i] -= kStep;
      const double step = static_cast<double>((up.*field)[i]) - static_cast<double>((down.*field)[i]);
      EXPECT_NEAR(gradient[i], (loss(up) - loss(down)) / step, 1e-5) << "element " << i;
    }
  };
  check(&Numbers::x, exact.dx);
  check(&Numbers::weight, exact.dweight);
  if (GetParam() == Kind::kLayer) check(&Numbers::bias, exact.dbias);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Norm, testing::Values(Kind::kLayer, Kind::kRms),
                         [](const auto& which) { return which.param == Kind::kLayer ? "Layer" : "Rms"; });

TEST(LayerNorm, ALargeMeanDoesNotDrownTheVariance) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    std::vector<float> x(64), y(64);
    for (std::size_t c = 0; c < 64; ++c) x[c] = 1e6f + static_cast<float>(c % 4);
    layer_norm(rows<const float>(x.data(), 1, 64), nullptr, nullptr, 0.0f, rows(y.data(), 1, 64), nullptr, nullptr);
    for (std::size_t c = 0; c < 64; ++c) EXPECT_NEAR(y[c], (static_cast<double>(c % 4) - 1.5) / std::sqrt(1.25), 1e-6);
  }
}

TEST(LayerNorm, ANotANumberStaysInItsRow) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    std::vector<float> x = random_floats(3 * 20, 1), y(60);
    x[25] = std::numeric_limits<float>::quiet_NaN();
    layer_norm(rows<const float>(x.data(), 3, 20), nullptr, nullptr, 1e-5f, rows(y.data(), 3, 20), nullptr, nullptr);
    for (std::size_t i = 0; i < 60; ++i) EXPECT_EQ(std::isnan(y[i]), i / 20 == 1);
  }
}

TEST(LayerNorm, OutputsMayBeInputsAndGradientsMayBeLeftOut) {
  const Case c{19, 33};
  const Numbers numbers(c);
  std::vector<float> y(numbers.x.size()), same = numbers.x, mean(c.count), inverse(c.count);
  const auto view = [&](const std::vector<float>& v) { return rows(v.data(), c.count, c.width); };
  const float *w = numbers.weight.data(), *b = numbers.bias.data();
  layer_norm(view(numbers.x), w, b, 1e-5f, rows(y.data(), c.count, c.width), mean.data(), inverse.data());
  layer_norm(view(same), w, b, 1e-5f, rows(same.data(), c.count, c.width), nullptr, nullptr);
  EXPECT_TRUE(same_bits(y, same));

  std::vector<float> dx(y.size()), dweight(c.width), dbias(c.width), only_dweight(c.width), only_dbias(c.width);
  layer_norm_backward(view(numbers.x), w, mean.data(), inverse.data(), view(numbers.dy),
                      {.dx = rows(dx.data(), c.count, c.width), .dweight = dweight.data(), .dbias = dbias.data()});
  std::vector<float> gradient = numbers.dy;
  layer_norm_backward(view(numbers.x), w, mean.data(), inverse.data(), view(gradient),
                      {.dx = rows(gradient.data(), c.count, c.width)});
  EXPECT_TRUE(same_bits(dx, gradient));
  layer_norm_backward(view(numbers.x), w, mean.data(), inverse.data(), view(numbers.dy),
                      {.dx = {}, .dweight = only_dweight.data()});
  layer_norm_backward(view(numbers.x), w, mean.data(), inverse.data(), view(numbers.dy),
                      {.dx = {}, .dbias = only_dbias.data()});
  EXPECT_TRUE(same_bits(dweight, only_dweight));
  EXPECT_TRUE(same_bits(dbias, only_dbias));
}

}  // namespace
}  // namespace regard
