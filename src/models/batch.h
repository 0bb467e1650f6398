// Pairs of sequences, made into one batch: time first, longest source first, padded.
//
//     Batch batch = make_batch(pairs, {.begin = 0, .end = 1});
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regard/autograd/tape.h"
#include "regard/tensor/tensor.h"

namespace regard {

struct SequencePair {
  std::uint64_t id = 0;  // of the example: what is random about it depends on this, not on its place
  std::vector<std::int32_t> source = {};
  std::vector<std::int32_t> target = {};  // empty when it is to be found out
  std::vector<float> guide = {};  // [target, source]: where each token of the target comes from; empty: nobody says
};

struct Batch {
  Tensor source;                      // i32 [time, batch]
  std::vector<std::int32_t> lengths;  // of the sources, longest first
  Tensor previous;                    // i32 [steps, batch]: what the decoder has written before each step
  Tensor targets;                     // i32 [steps, batch]: what it should write: the target, then the end
  Tensor target_weights;              // f32 [steps, batch]: 1 for those, 0 for padding
  std::int64_t target_count = 0;      // how many are not padding
  Tensor guide = {};                  // f32 [steps, batch, time]: where each step should look; not defined: nobody says
  std::vector<std::uint64_t> ids;
  std::vector<std::size_t> order;  // row i is pair order[i] of those given

  std::int64_t size() const { return static_cast<std::int64_t>(lengths.size()); }
};

struct BatchSettings {
  std::int32_t begin = 0;       // the token that stands before every target
  std::int32_t end = 1;         // and the one after it
  std::int64_t least_time = 0;  // pad sources and targets to at least so many steps
  std::int64_t least_steps = 0;
  std::int64_t guide_shift = 0;  // so many steps after the one that writes it a token's guide is followed: 0 or 1
};

// How many steps of a row are not padding: until the last that has a weight.
std::int64_t target_steps(const Batch& batch, std::int64_t row);

// The ids [time, batch] of a batch as [batch, time], for models that keep a sequence together.
Tensor by_item(Tape& tape, const Tensor& ids);

// Every `step`-th row from `first` on, of the sources alone: what is decoded.
Batch some_sources(const Batch& batch, std::int64_t first, std::int64_t step);

Batch make_batch(std::span<const SequencePair> pairs, const BatchSettings& settings);

}  // namespace regard
