// Schedules: the learning rate as a function of how many steps have been done.
//
//     const Schedule rate = inverse_square_root({.rate = 5e-3, .warm_up = 2000});
//     trainer.step(rate(trainer.steps()), …);
//
// A schedule has no memory: a run that is continued asks it the same as one that was never stopped. Warm-up rises in a
// straight line and reaches the full rate with its last step.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "regard/export.h"

namespace regard {

using Schedule = std::function<double(std::int64_t steps_done)>;

REGARD_API Schedule constant_rate(double rate);

// rate · √(warm_up/step) after warming up.      Vaswani et al. 2017
struct InverseSquareRoot {
  double rate = 1e-3;        // the highest
  std::int64_t warm_up = 1;  // steps
};
REGARD_API Schedule inverse_square_root(const InverseSquareRoot& settings);

// Half a wave of the cosine, from the highest rate after warming up to the lowest.      Loshchilov and Hutter 2017
struct Cosine {
  double rate = 1e-3;
  double lowest = 0;       // reached after all steps, and kept
  std::int64_t steps = 0;  // in all, with warm-up
  std::int64_t warm_up = 0;
};
REGARD_API Schedule cosine(const Cosine& settings);

// The rate falls when the loss no longer does. The one that has to remember: its state is in plain sight, so that it
// can be kept beside a checkpoint.
//
//     Plateau plateau({.rate = 1e-3, .patience = 3});
//     plateau.report(validation_loss);                              // once an epoch
//     trainer.step(plateau.rate(), …);
struct PlateauSettings {
  double rate = 1e-3;
  double factor = 0.5;        // what the rate is multiplied with
  std::int64_t patience = 5;  // how many reports without a better loss are borne
  double threshold = 1e-4;    // better: below best · (1 − threshold), for a loss that is not negative
  std::int64_t rest = 0;      // reports after a fall that do not count
  double lowest = 0;
};

class REGARD_API Plateau {
 public:
  struct State {
    double rate = 0;
    double best = std::numeric_limits<double>::infinity();  // the lowest loss so far
    std::int64_t bad = 0;                                   // reports without a better loss, one after another
    std::int64_t resting = 0;                               // reports that will not count
  };

  explicit Plateau(const PlateauSettings& settings);
  double rate() const { return state_.rate; }
  bool report(double loss);  // true if the rate fell; a loss that is not a number is never better
  const State& state() const { return state_; }
  void resume(const State& state) { state_ = state; }

 private:
  PlateauSettings settings_;
  State state_;
};

}  // namespace regard
