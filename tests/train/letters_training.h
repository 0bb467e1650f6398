// A tiny model that learns letters through the training loop, with everything that has a state: a moving average, a
// mean of the best weights, a plateau, parts of batches, random numbers.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "decode/search.h"
#include "models/presets.h"
#include "regard/autograd/ops.h"
#include "train/loop.h"

namespace regard {

constexpr std::int32_t kFirstLetter = 2, kLetters = 26;  // 0 and 1 are the begin and the end

// Three letters or more, to be written in reverse order.
inline SequencePair letters_pair(std::uint64_t number, std::uint32_t most_letters) {
  const RandomKey key = RandomKey(1).at(number);
  SequencePair pair{.id = number};
  const std::uint64_t letters = 3 + random_below(key, 0, most_letters - 2);
  for (std::uint64_t i = 1; i <= letters; ++i) {
    pair.source.push_back(kFirstLetter + static_cast<std::int32_t>(random_below(key, i, kLetters)));
  }
  pair.target.assign(pair.source.rbegin(), pair.source.rend());
  return pair;
}

inline ModelSettings letters_model(std::string_view name, std::int64_t embedding, std::int64_t hidden) {
  ModelSettings model = preset(name);
  model.source_words = model.target_words = kFirstLetter + kLetters;
  model.embedding = embedding;
  model.hidden = hidden;
  return model;
}

class LettersTraining {
 public:
  static constexpr std::int64_t kPairs = 8, kPartsAnEpoch = 30;

  LettersTraining()
      : model_(make_model(Builder(parameters_, RandomKey(3)), letters_model("gru-attention", 8, 16))),
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
  static Batch batch(std::int64_t number) {
    std::vector<SequencePair> pairs;
    for (std::int64_t i = 0; i < kPairs; ++i) {
      pairs.push_back(letters_pair(static_cast<std::uint64_t>(number * kPairs + i), 5));
    }
    return make_batch(pairs, {.begin = 0, .end = 1});
  }

  LossPart loss(Tape& tape, const PartInfo& info) {
    const Batch some = batch(next_++);
    const auto count = static_cast<double>(some.target_count);
    // As random as dropout would be.
    const double factor =
        count * (1 + 0.2 * static_cast<double>(uniform(info.key, static_cast<std::uint64_t>(info.part))));
    return {model_->loss(tape, some).sum * number(tape, factor / count), count};
  }

  Validation validate() const {
    const Batch some = batch(1'000'000);  // which training does not reach
    Tape tape;
    Validation out;
    out.loss = model_->loss(tape, some).sum.value().item() / static_cast<double>(some.target_count);
    const std::vector<Hypotheses> found = search(*model_, some);
    for (const std::int32_t word : found[0][0].words) {
      out.sample += word < kFirstLetter ? '?' : static_cast<char>('a' + word - kFirstLetter);
    }
    return out;
  }

  Parameters parameters_;
  std::unique_ptr<SequenceModel> model_;
  Adam adam_;
  std::int64_t next_ = 0;
};

}  // namespace regard
