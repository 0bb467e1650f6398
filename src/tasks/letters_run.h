// Trains a small encoder and decoder with attention on the letters task and looks at how well it does.
//
//     LettersRun run({.steps = 400});
//     run.train(context);
//     const LettersScore score = run.test(256, context);
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "decode/greedy.h"
#include "models/seq2seq.h"
#include "regard/context.h"
#include "regard/train/trainer.h"
#include "tasks/letters.h"

namespace regard {

struct LettersRunSettings {
  LettersSettings task = {};
  std::int64_t steps = 400;
  std::int64_t batch = 64;
  double seconds = 0;  // stop after so many, whatever step that is; 0: no limit, so that a run is the same everywhere
  double rate = 4e-3;  // the highest: it rises over the first steps and falls to nothing over the rest
  double clip = 1;
  Seq2seqSettings model = {.embedding = 32, .hidden = 64, .attention = 64, .readout = 64};  // words are the task's
};

struct LettersScore {
  std::int64_t examples = 0;
  std::int64_t exact = 0;    // every letter right, none missing, none too many
  std::int64_t letters = 0;  // written at places where there should be one
  std::int64_t pointed = 0;  // of these, the ones whose largest weight is on the letter they come from
};

struct LettersAnswer {
  std::vector<std::int32_t> source, written;
  Tensor weights;  // [written, source]
};

class LettersRun {
 public:
  explicit LettersRun(const LettersRunSettings& settings);

  struct Moment {
    std::int64_t step;
    double loss;
    double seconds;
  };
  // `report` is called after every step. May be stopped by context.cancel: then it throws kCancelled.
  void train(const Context& context, const std::function<void(const Moment&)>& report = {});
  LettersScore test(std::int64_t examples, const Context& context) const;
  // What the model makes of a source, alone in its batch.
  LettersAnswer answer(const std::vector<std::int32_t>& source) const;

  const Letters& task() const { return task_; }
  const Parameters& parameters() const { return parameters_; }
  const Seq2seq& model() const { return model_; }
  std::int64_t steps() const { return trainer_.steps(); }

 private:
  double rate(std::int64_t step) const;
  Batch training_batch(std::int64_t step) const;

  LettersRunSettings settings_;
  Letters task_;
  Parameters parameters_;
  Seq2seq model_;
  Adam optimizer_;
  Trainer trainer_;
};

}  // namespace regard
