#include "models/guide.h"

#include "attention/mechanism.h"
#include "autograd/by_type.h"
#include "base/check.h"

namespace regard {

bool guided(const Batch& batch, const LossOptions& options) { return options.guide > 0 && batch.guide.defined(); }

void check_guided(std::string_view line, float attention_dropout) {
  const Mechanism mechanism(line);
  const Line& parts = mechanism.stages().line;
  check(parts.align.name == "softmax" && parts.read.name == "sum", "guide: attention \"", line,
        "\", expected softmax and a weighted sum: only weights that are nowhere 0 can be told where to go");
  check(attention_dropout == 0, "guide: together with an attention dropout of ", attention_dropout,
        ": weights that are dropped cannot be told");
}

Var guide_loss(Var weights, std::span<const std::int32_t> places, const Batch& batch, const LossOptions& options) {
  constexpr double kLeast = 1e-6;  // of a weight: no row costs more than 14
  Tape& tape = weights.tape();
  const std::int64_t rows = weights[0], time = weights[1];
  check(static_cast<std::int64_t>(places.size()) == rows && batch.guide[2] == time, "guide: weights ", weights.shape(),
        " at ", places.size(), " places for a guide ", batch.guide.shape());
  const Tensor said = tape.make(weights.shape(), weights.dtype());
  by_type(said.dtype(), [&]<class T>() {
    for (std::int64_t i = 0; i < rows; ++i) {
      const float* const from = batch.guide.data<float>() + places[static_cast<std::size_t>(i)] * time;
      for (std::int64_t j = 0; j < time; ++j) {
        said.data<T>()[i * time + j] = static_cast<T>(-options.guide) * static_cast<T>(from[j]);
      }
    }
  });
  return sum(log(weights + number(tape, kLeast, weights.dtype())) * tape.constant(said));
}

}  // namespace regard
