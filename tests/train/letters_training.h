// A tiny model that learns letters through the training loop, with everything that has a state: a moving average, a
// mean of the best weights, a plateau, parts of batches, random numbers.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "decode/greedy.h"
#include "models/seq2seq.h"
#include "regard/autograd/ops.h"
#include "tasks/letters.h"
#include "train/loop.h"

namespace regard {

class LettersTraining {
 public:
  static constexpr std::int64_t kPairs = 8, kPartsAnEpoch = 30;

  LettersTraining()
      : letters_({.most_letters = 5, .most_noise = 2}),
        model_(Builder(parameters_, RandomKey(3)), {.source_words = Letters::kWords,
                                                    .target_words = Letters::kWords,
                                                    .embedding = 8,
                                                    .hidden = 16,
                                                    .attention = 16,
                                                    .readout = 16}),
        adam_(parameters_) {}

  static LoopSettings settings(const std::string& path) {
    LoopSettings out;
    out.path = path;
    out.stop_after = updates(60);
    out.save_every = updates(5);
    out.valid_every = updates(8);
    out.report_every = updates(3);
    out.accumulate = 2;
    out.clip = 1;
    out.rate = PlateauSettings{.rate = 0.02, .factor = 0.7, .patience = 1};
    out.moving_average = 0.8;
    out.average = 3;
    out.average_best = true;
    out.config = R"({"model":"letters"})";
    out.tokenizers = {{"source", "letters", "a … z"}};
    out.identity = R"({"model":"letters"})";
    return out;
  }

  TrainingTask task() {
    return {.parameters = parameters_,
            .optimizer = adam_,
            .loss = [this](Tape& tape, const PartInfo& info) { return loss(tape, info); },
            .epochs = [this] { return static_cast<double>(next_) / kPartsAnEpoch; },
            .position = [this] { return std::to_string(next_); },
            .seek = [this](std::string_view position) { next_ = std::stoll(std::string(position)); },
            .validate = [this] { return validate(); },
            .health =
                [this] {
                  return std::map<std::string, double>{{"parts", static_cast<double>(next_)}};
                }};
  }

  Parameters& parameters() { return parameters_; }
  Adam& adam() { return adam_; }

 private:
  Batch batch(std::int64_t number, bool test) const {
    std::vector<SequencePair> pairs;
    for (std::int64_t i = 0; i < kPairs; ++i) {
      const auto at = static_cast<std::uint64_t>(number * kPairs + i);
      pairs.push_back((test ? letters_.test(at) : letters_.training(at)).pair);
    }
    return make_batch(pairs, {.begin = Letters::kBegin, .end = Letters::kEnd});
  }

  LossPart loss(Tape& tape, const PartInfo& info) {
    const Batch some = batch(next_++, false);
    const auto count = static_cast<double>(some.target_count);
    // As random as dropout would be.
    const double factor =
        count * (1 + 0.2 * static_cast<double>(uniform(info.key, static_cast<std::uint64_t>(info.part))));
    return {model_.loss(tape, some).loss * number(tape, factor), count};
  }

  Validation validate() const {
    const Batch some = batch(0, true);
    Tape tape;
    Validation out;
    out.loss = model_.loss(tape, some).loss.value().item();
    const Decoded decoded = greedy(model_, tape, some, {.longest = 8});
    for (const std::int32_t word : decoded.words(0)) out.sample += Letters::text(word);
    return out;
  }

  Letters letters_;
  Parameters parameters_;
  Seq2seq model_;
  Adam adam_;
  std::int64_t next_ = 0;
};

}  // namespace regard
