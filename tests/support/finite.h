// The gradients of all parameters of a module against central finite differences, in f64.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "regard/autograd/parameter.h"
#include "regard/autograd/tape.h"

namespace regard {

// `loss` is a number; `live`: so many gradients must not be 0.
inline void expect_gradients_match(Parameters& parameters, const std::function<Var(Tape&)>& loss, int live) {
  Gradients gradients(parameters);
  Tape tape(gradients);
  tape.backward(loss(tape));
  gradients.settle();
  constexpr double kStep = 1e-5;
  int found = 0;
  for (Parameter& each : parameters) {
    for (std::int64_t i = 0; i < each.value.size() && !each.frozen; ++i) {
      double& x = each.value.data<double>()[i];
      const double old = x;
      const auto at = [&](double value) {
        x = value;
        ++each.version;
        Tape forward;
        return loss(forward).value().item();
      };
      const double slope = (at(old + kStep) - at(old - kStep)) / (2 * kStep);
      const double got = gradients.of(each).data<double>()[i];
      at(old);
      EXPECT_NEAR(got, slope, 1e-7 * std::max(1.0, std::abs(slope))) << each.name << '[' << i << ']';
      found += got != 0 ? 1 : 0;
    }
  }
  EXPECT_GE(found, live);
}

}  // namespace regard
