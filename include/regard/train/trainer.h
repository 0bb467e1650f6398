// One step of training, in the order in which it has to happen.
//
//     Trainer trainer(parameters, optimizer, {.clip = 1});
//     const StepResult result = trainer.step(rate, [&](Tape& tape) { return model.loss(tape, batch).loss; });
//
// Gradients of several parts of a batch are added up before the weights change:
//
//     trainer.begin();
//     for (const Batch& part : parts) trainer.add([&](Tape& tape) { return LossPart{sum_of_losses, words}; });
//     trainer.finish(rate);                                       // as if by the mean over the words of all parts
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
  double loss = 0;   // the mean
  double norm = 0;   // of its gradients all together, before clipping
  double count = 0;  // what it is the mean of
};

struct LossPart {
  Var sum;           // over what is counted
  double count = 1;  // words, examples
};

struct StepTotals {  // over the parts
  double loss = 0;
  double count = 0;
};

struct TrainerSettings {
  double clip = 0;  // the largest norm of all gradients together; 0: no limit
  // Called between backward and the optimiser, with every gradient in place (those of the sum of all losses): where
  // processes that train together add theirs up, and the totals.
  std::function<void(Gradients&, StepTotals&)> reduce = {};
};

class REGARD_API Trainer {
 public:
  Trainer(Parameters& parameters, Optimizer& optimizer, TrainerSettings settings = {})
      : parameters_(parameters),
        optimizer_(optimizer),
        settings_(std::move(settings)),
        gradients_(parameters, Gradients::Place::kTape),
        tape_(gradients_) {}

  // `forward(tape)` computes the loss, a single number.
  template <class Forward>
  StepResult step(double rate, Forward&& forward) {
    begin();
    add([&](Tape& tape) { return LossPart{forward(tape)}; });
    return finish(rate);
  }

  void begin();
  template <class Forward>
  void add(Forward&& forward) {  // `forward(tape)` gives a LossPart
    begin_part();
    const EndOfPart end{tape_};
    add_part(forward(tape_));
  }
  StepResult finish(double rate);

  const Gradients& gradients() const { return gradients_; }  // of the last step, until begin
  std::int64_t steps() const { return optimizer_.steps(); }

 private:
  struct EndOfPart {  // also when something throws
    Tape& tape;
    ~EndOfPart() { tape.end(); }
  };
  void begin_part();
  void add_part(const LossPart& part);

  Parameters& parameters_;
  Optimizer& optimizer_;
  TrainerSettings settings_;
  Gradients gradients_;
  Tape tape_;
  bool later_part_ = false;
  StepTotals totals_;
};

}  // namespace regard
