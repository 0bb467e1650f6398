#include "regard/train/trainer.h"

#include <cmath>

#include "base/check.h"
#include "regard/train/clip.h"

namespace regard {

StepResult Trainer::finish(double rate, Var loss) {
  StepResult result;
  result.loss = loss.value().item();
  const std::int64_t number = optimizer_.steps() + 1;
  check(std::isfinite(result.loss), "step ", number, ": the loss is ", result.loss, "; the weights are those of step ",
        number - 1, " (a lower learning rate or clipping may help)");
  tape_.backward(loss);
  gradients_.settle();
  if (settings_.reduce) {
    gradients_.forget_rows();  // others may have looked up other rows
    settings_.reduce(gradients_);
  }
  const GradientNorm gradient = global_norm(parameters_, gradients_);
  result.norm = gradient.norm;
  check(std::isfinite(gradient.norm), "step ", number, ": the gradient of '",
        gradient.not_finite == nullptr ? "?" : gradient.not_finite->name, "' is not finite, the loss was ", result.loss,
        "; the weights are those of step ", number - 1, " (a lower learning rate or clipping may help)");
  optimizer_.step(gradients_, rate, clip_scale(gradient.norm, settings_.clip));
  return result;
}

}  // namespace regard
