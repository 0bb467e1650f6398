// One step of training, in the order in which it has to happen.
//
//     Trainer trainer(parameters, optimizer, {.clip = 1});
//     const StepResult result = trainer.step(rate, [&](Tape& tape) { return model.loss(tape, batch).loss; });
//
// A loss or a gradient that is not finite throws, and leaves weights and optimiser as they were. After the first steps
// nothing is taken from the heap, as long as `forward` takes nothing and the batches are no larger than before.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "regard/autograd/tape.h"
#include "regard/export.h"
#include "regard/train/optimizer.h"

namespace regard {

struct StepResult {
  double loss = 0;
  double norm = 0;  // of all gradients, before clipping
};

struct TrainerSettings {
  double clip = 0;  // the largest norm of all gradients together; 0: no limit
  // Called between backward and the optimiser, with every gradient in place: where processes that train together add
  // theirs up.
  std::function<void(Gradients&)> reduce = {};
};

class REGARD_API Trainer {
 public:
  Trainer(Parameters& parameters, Optimizer& optimizer, TrainerSettings settings = {})
      : parameters_(parameters),
        optimizer_(optimizer),
        settings_(std::move(settings)),
        gradients_(parameters),
        tape_(gradients_) {}

  // `forward(tape)` computes the loss, a single number.
  template <class Forward>
  StepResult step(double rate, Forward&& forward) {
    const EndOfStep end{tape_};
    gradients_.zero();
    return finish(rate, forward(tape_));
  }

  const Gradients& gradients() const { return gradients_; }
  std::int64_t steps() const { return optimizer_.steps(); }

 private:
  struct EndOfStep {  // also when something throws: the next step starts on an empty tape
    Tape& tape;
    ~EndOfStep() { tape.reset(); }
  };
  StepResult finish(double rate, Var loss);

  Parameters& parameters_;
  Optimizer& optimizer_;
  TrainerSettings settings_;
  Gradients gradients_;
  Tape tape_;
};

}  // namespace regard
