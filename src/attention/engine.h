// What the schedules tell those who want to know about a call without making it (attention/explain.cc). The numbers
// come from the code that allocates.
#pragma once

#include <functional>
#include <vector>

#include "attention/mechanism.h"

namespace regard {

// Of one pair of a query and a key so wide; a tanh counts as one.
inline double score_flops(const Stages& stages, std::int64_t width) {
  return (stages.score->tiles().is_product() ? 2.0 : 4.0) * static_cast<double>(width);
}

// The call as the tiles see it.
struct Lowered {
  Var q, k, theta, table, centres, bias;
};
struct LoweredCall {
  Inputs in;
  Lowered made;
};
// Only this part of a call. `learned` makes what the mechanism learns at these sizes.
LoweredCall lower_call(const Mechanism& mechanism, Var q, Var k, Var v, AttendOptions options,
                       const std::function<std::vector<Var>(const AttendSizes&)>& learned);

struct EngineRoom {
  std::size_t forward = 0, backward = 0;  // bytes beside inputs, results and their gradients
  bool whole_rows = false;
  std::size_t row_bytes = 0;   // scores that a thread holds
  bool holds_scores = false;   // for the backward pass
  std::int64_t pieces = 0;     // of a backward pass, at most so many threads
  std::int64_t unit_rows = 0;  // queries that use one packing of keys
};
// Of a call of which only shapes are looked at.
EngineRoom engine_room(AttendCall call, const Tensor& values, bool bias_learns);

// The call of what is lowered.
Attention attend_lowered(const Mechanism& mechanism, const Inputs& in, const Lowered& made, Var v,
                         const AttendOptions& options);

}  // namespace regard
