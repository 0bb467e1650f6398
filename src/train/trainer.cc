#include "regard/train/trainer.h"

#include <cmath>

#include "base/check.h"
#include "regard/train/clip.h"

namespace regard {

void Trainer::begin() {
  gradients_.zero();
  tape_.reset();
  later_part_ = false;
  totals_ = {};
}

void Trainer::begin_part() {
  if (!std::exchange(later_part_, true)) return;
  gradients_.keep();  // whoever has several parts once has them always
  tape_.reset();
}

void Trainer::add_part(const LossPart& part) {
  const double loss = part.sum.value().item();
  const std::int64_t number = optimizer_.steps() + 1;
  check(std::isfinite(loss), "step ", number, ": the loss is ", loss, "; the weights are those of step ", number - 1,
        " (a lower learning rate or clipping may help)");
  check(part.count >= 0, "step ", number, ": a loss over ", part.count, " words");
  tape_.backward_last(part.sum);
  totals_.loss += loss;
  totals_.count += part.count;
}

StepResult Trainer::finish(double rate) {
  const std::int64_t number = optimizer_.steps() + 1;
  gradients_.settle();
  if (settings_.reduce) {
    gradients_.forget_rows();  // others may have looked up other rows
    settings_.reduce(gradients_, totals_);
  }
  check(totals_.count > 0, "step ", number, ": nothing to learn from");
  const double share = 1 / totals_.count;
  const GradientNorm gradient = global_norm(parameters_, gradients_);
  const StepResult result = {.loss = totals_.loss * share, .norm = gradient.norm * share, .count = totals_.count};
  check(std::isfinite(gradient.norm), "step ", number, ": the gradient of '",
        gradient.not_finite == nullptr ? "?" : gradient.not_finite->name, "' is not finite, the loss was ", result.loss,
        "; the weights are those of step ", number - 1, " (a lower learning rate or clipping may help)");
  optimizer_.step(gradients_, rate, share * clip_scale(result.norm, settings_.clip));
  return result;
}

}  // namespace regard
