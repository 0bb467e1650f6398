// Gradients of a model, on any number of threads and every target that has a fused multiply-add.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "base/pool.h"
#include "kernels/target.h"
#include "regard/autograd/tape.h"

namespace regard {

inline void expect_same_gradients_everywhere(const Parameters& parameters, const std::function<Var(Tape&)>& loss) {
  const auto run = [&] {
    Gradients gradients(parameters);
    Tape tape(gradients);
    tape.backward(loss(tape));
    gradients.settle();
    std::vector<float> all;
    for (const Parameter& parameter : parameters) {
      const float* data = gradients.of(parameter).data<float>();
      all.insert(all.end(), data, data + parameter.value.size());
    }
    return all;
  };
  const ThreadLimit single(1);
  const std::vector<float> expected = run();
  for (const std::string& name : targets()) {
    if (name == "sse4") continue;
    const TargetScope target(name);
    for (const int limit : {1, 3}) {
      const ThreadLimit scope(limit);
      EXPECT_EQ(run(), expected) << name << ", " << limit << " threads";
    }
  }
}

}  // namespace regard
