#include "regard/train/schedule.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace regard {
namespace {

void check_rate(const char* who, const char* what, double rate) {
  check(rate >= 0 && std::isfinite(rate), who, ": ", what, " is ", rate, ", expected a number from 0 on");
}

// (1 + cos πx)/2 for x in 0 … 1, as the square of cos πx/2, by its series. In plain IEEE steps: the same bits
// everywhere, which a library's cos does not promise.
double falling_wave(double x) {
  const double angle = x * 1.5707963267948966, square = angle * angle;
  double term = 1, sum = 1;
  for (int i = 1; i <= 24; i += 2) {
    term *= -square / (i * (i + 1));
    sum += term;
  }
  return sum * sum;
}

}  // namespace

Schedule constant_rate(double rate) {
  check_rate("constant_rate", "rate", rate);
  return [rate](std::int64_t) { return rate; };
}

Schedule inverse_square_root(const InverseSquareRoot& settings) {
  check_rate("inverse_square_root", "rate", settings.rate);
  check(settings.warm_up >= 1, "inverse_square_root: warm_up is ", settings.warm_up, " steps, expected 1 or more");
  return [settings](std::int64_t steps_done) {
    const double now = static_cast<double>(steps_done) + 1, rise = static_cast<double>(settings.warm_up);
    return settings.rate * (now < rise ? now / rise : std::sqrt(rise / now));
  };
}

Schedule cosine(const Cosine& settings) {
  check_rate("cosine", "rate", settings.rate);
  check_rate("cosine", "lowest", settings.lowest);
  check(settings.warm_up >= 0 && settings.warm_up <= settings.steps, "cosine: ", settings.steps, " steps, ",
        settings.warm_up, " of them to warm up");
  return [settings](std::int64_t steps_done) {
    const double rise = static_cast<double>(settings.warm_up), done = static_cast<double>(steps_done);
    if (steps_done < settings.warm_up) return settings.rate * ((done + 1) / rise);
    if (steps_done >= settings.steps) return settings.lowest;
    const double wave = falling_wave((done - rise) / (static_cast<double>(settings.steps) - rise));
    return settings.lowest + (settings.rate - settings.lowest) * wave;
  };
}

Plateau::Plateau(const PlateauSettings& settings) : settings_(settings), state_{.rate = settings.rate} {
  check_rate("plateau", "rate", settings.rate);
  check_rate("plateau", "lowest", settings.lowest);
  check(settings.factor > 0 && settings.factor < 1, "plateau: factor is ", settings.factor, ", expected 0 … 1");
  check(settings.threshold >= 0 && settings.threshold < 1, "plateau: threshold is ", settings.threshold,
        ", expected 0 … 1");
  check(settings.patience >= 0 && settings.rest >= 0, "plateau: patience ", settings.patience, ", rest ", settings.rest,
        ": expected 0 or more");
}

bool Plateau::report(double loss) {
  const bool better = loss < state_.best * (1 - settings_.threshold);
  if (better) state_.best = loss;
  state_.bad = better ? 0 : state_.bad + 1;
  if (state_.resting > 0) {
    --state_.resting;
    state_.bad = 0;
  }
  if (state_.bad <= settings_.patience) return false;
  const double before = state_.rate;
  state_.rate = std::max(state_.rate * settings_.factor, settings_.lowest);
  state_.resting = settings_.rest;
  state_.bad = 0;
  return state_.rate < before;
}

}  // namespace regard
