// Where an element stands in its sequence. Attention alone is blind to order; these tell it.
//
//     Position position(builder.under("position"), {.kind = PositionKind::kSinusoidal, .width = 64, .longest = 512});
//     Var x = position(embed(tape, ids));                        // [batch, time, 64]
//
// Rotary positions are an operation (rotary in regard/autograd/ops.h); distances that cost are the scope alibi.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "regard/autograd/ops.h"
#include "regard/export.h"
#include "regard/nn/builder.h"

namespace regard {

enum class PositionKind {
  kNone,        // x as it is
  kSinusoidal,  // x + PE: PE(p, 2i) = sin(p/10000^(2i/width)), PE(p, 2i+1) = cos of the same.   Vaswani et al. 2017
  kLearned,     // x + a learned row for every position.                                          Gehring et al. 2017
};

struct PositionSettings {
  PositionKind kind = PositionKind::kSinusoidal;
  std::int64_t width = 0;
  std::int64_t longest = 0;  // positions from here on are an error; none has no limit
};

class REGARD_API Position {
 public:
  Position(const Builder& builder, const PositionSettings& settings);

  // x [..., time, width]; the first row stands at position `first`.
  Var operator()(Var x, std::int64_t first = 0) const;
  // x [rows, width], each row at a place of its own.
  Var operator()(Var x, std::span<const std::int32_t> places) const;

  const PositionSettings& settings() const { return settings_; }

 private:
  class Sinusoids;
  static std::shared_ptr<Sinusoids> shared_sinusoids(std::int64_t width);

  PositionSettings settings_;
  std::shared_ptr<Sinusoids> sinusoids_;  // made when they are asked for
  const Parameter* table_ = nullptr;      // if learned, [longest, width]
};

// The rows that kSinusoidal adds: [count, width], f64.
REGARD_API Tensor sinusoids(std::int64_t count, std::int64_t width);

}  // namespace regard
