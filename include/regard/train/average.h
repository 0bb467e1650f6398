// A moving average of the weights, which often does better than the weights themselves (Polyak and Juditsky 1992):
//
//     a ← a + (1 − decay)·(w − a)      after every step; the first one copies
//
//     Average average(parameters, 0.999);
//     trainer.step(…);
//     average.update();
//     {
//       const AverageInUse use(average);      // the model computes with the averages until the end of the block
//       …
//     }
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "regard/autograd/parameter.h"
#include "regard/export.h"

namespace regard {

class REGARD_API Average {
 public:
  Average(Parameters& parameters, double decay);
  Average(const Average&) = delete;
  Average& operator=(const Average&) = delete;

  void update();  // frozen parameters have no average: they do not change
  // Not defined before the first update, and for parameters that were always frozen.
  const Tensor& of(const Parameter& parameter) const;
  std::int64_t updates() const { return updates_; }
  // Goes on from these averages, after so many updates; a parameter that is not among them was always frozen. What does
  // not fit throws and changes nothing.
  void resume(const std::map<std::string, Tensor>& averages, std::int64_t updates);
  void check_state(const std::map<std::string, Tensor>& averages,
                   std::int64_t updates) const;  // throws if resume would

 private:
  friend class AverageInUse;
  void swap();

  Parameters& parameters_;
  double decay_;
  std::vector<Tensor> averages_;  // by Parameter::index
  std::int64_t updates_ = 0;
  bool in_use_ = false;
};

// Within its life, weights and averages have changed places.
class REGARD_API AverageInUse {
 public:
  explicit AverageInUse(Average& average);
  ~AverageInUse();
  AverageInUse(const AverageInUse&) = delete;
  AverageInUse& operator=(const AverageInUse&) = delete;

 private:
  Average& average_;
};

}  // namespace regard
