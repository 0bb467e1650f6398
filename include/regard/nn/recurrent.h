// Recurrent layers over sequences: tanh (Elman 1990), gated recurrent units (Cho et al. 2014), long short-term memories
// (Gers et al. 2000); one layer, or a stack of them in one or both directions.
//
//     RecurrentLayer forward(builder.under("forward"), Cell::kGru, 64, 128);
//     Var states = forward(x, lengths).states;                       // x [time, batch, 64] -> [time, batch, 128]
//
//     Recurrent encoder(builder.under("encoder"), {.cell = Cell::kLstm, .inputs = 64, .width = 128, .layers = 2,
//                                                  .both_directions = true, .dropout = 0.2f});
//     Var states = encoder(x, lengths, {.key = &key, .ids = batch.ids}).states;                // [time, batch, 256]
//
// Rows are sorted by length, longest first; a step computes those that are still under way. No row depends on the
// others, nor on how far the batch is padded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regard/autograd/ops.h"
#include "regard/export.h"
#include "regard/nn/builder.h"

namespace regard {

class REGARD_API RecurrentLayer {
 public:
  RecurrentLayer(const Builder& builder, Cell cell, std::int64_t inputs, std::int64_t width);

  // x [time, batch, inputs]; lengths: one a row, longest first, time at most.
  Recurrence operator()(Var x, std::span<const std::int32_t> lengths, Direction direction = Direction::kForward,
                        const RecurrentState& initial = {}) const;

  // For those who take the steps themselves. The input's share x·W + b of all gates: [..., inputs] -> [...,
  // gates·width];
  Var project(Var x) const;
  // and a step from it: input [batch, gates·width].
  RecurrentState step(Var input, const RecurrentState& before, std::int64_t active = -1) const;

  RecurrentWeights weights(Tape& tape) const;
  Cell cell() const { return cell_; }
  std::int64_t width() const { return width_; }

 private:
  Cell cell_;
  std::int64_t width_;
  const Parameter* input_weight_;      // [inputs, gates·width]
  const Parameter* input_bias_;        // [gates·width]
  const Parameter* recurrent_weight_;  // [width, gates·width]
  const Parameter* recurrent_bias_;    // [gates·width]
};

struct RecurrentSettings {
  Cell cell = Cell::kGru;
  std::int64_t inputs = 0;
  std::int64_t width = 0;  // of one direction
  std::int64_t layers = 1;
  bool both_directions = false;  // a layer's states are then those of both side by side, forward first
  float dropout = 0;             // between layers
};

struct RecurrentOptions {
  RecurrentState initial = {};              // [layers · directions, batch, width] each, forward before backward
  const RandomKey* key = nullptr;           // of the dropout; none: nothing is dropped
  std::span<const std::uint64_t> ids = {};  // of the examples: what is dropped depends on them. None: their numbers
};

class REGARD_API Recurrent {
 public:
  Recurrent(const Builder& builder, const RecurrentSettings& settings);

  // states [time, batch, directions·width] of the last layer; last and memory [layers · directions, batch, width].
  Recurrence operator()(Var x, std::span<const std::int32_t> lengths, const RecurrentOptions& options = {}) const;

  const RecurrentSettings& settings() const { return settings_; }

 private:
  RecurrentSettings settings_;
  std::vector<RecurrentLayer> layers_;  // layer by layer, forward before backward
};

// What Recurrent does, for weights that come from elsewhere: as many as layers · directions, in that order.
REGARD_API Recurrence recurrent_stack(const RecurrentSettings& settings, Var x,
                                      std::span<const RecurrentWeights> weights, std::span<const std::int32_t> lengths,
                                      const RecurrentOptions& options = {});

}  // namespace regard
