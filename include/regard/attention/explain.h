// What a call will do before it is made: which kernels run, why not faster ones, and what it costs.
//
//     const Explanation told = explain(Mechanism("scaled_dot | causal | sparsemax"), {.batch = 8, .queries = 1024});
//     for (const std::string& each : told.slower) …          // "sparsemax needs whole rows: …"
//
// The memory is counted by the code that allocates it, for as many threads as would run now.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "regard/attention/mechanism.h"
#include "regard/export.h"

namespace regard {

struct ExplainShape {
  std::int64_t batch = 1, heads = 8;
  std::int64_t groups = 0;  // heads of the keys; 0: as many
  std::int64_t queries = 512;
  std::int64_t keys = 0;  // 0: as many
  std::int64_t width = 64;
  std::int64_t values = 0;                       // width of the values; 0: the same
  std::int64_t query_token = 0, key_token = 0;   // what rows are made from; 0: heads·width
  std::int64_t hidden = 0;                       // AttendSizes
  std::optional<std::int64_t> first_query = {};  // none: the last query stands at the last key
  DType dtype = DType::kF32;
};

struct Explanation {
  std::string line;
  ExplainShape shape;                // with what was left out
  std::string score, align, target;  // "product tiles", "whole rows", "avx512"
  bool whole_rows = false;           // a thread holds whole rows of scores; else tile after tile
  int threads = 1;
  std::vector<std::string> slower;  // why not a faster kernel, a sentence each; none: this is the fastest there is
  // Bytes beyond inputs and outputs, and beyond their gradients. `maps` of it, what is made of the inputs before
  // scores are computed, in either pass; backward it is an estimate.
  std::size_t forward_bytes = 0, backward_bytes = 0, maps = 0;
  double pairs = 0;                          // query and key, of all heads and items
  std::optional<double> visible_pairs = {};  // none: it depends on what the call gives, and costs are those of all
  // Of scores and reading; a tanh counts as one. Backward makes the scores again.
  double forward_flops = 0, backward_flops = 0;
};

REGARD_API Explanation explain(const Mechanism& mechanism, const ExplainShape& shape = {});

}  // namespace regard
