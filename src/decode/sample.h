// Sequences drawn from a model, word by word, instead of the likeliest ones.
//
//     const std::vector<Hypotheses> drawn = sample(model, batch, keys, {.samples = 3, .top_p = 0.9});
//
// The probabilities are those of logits/temperature; of these only the top_k likeliest words stay, then only as many as
// are needed to have top_p of all in one. What is drawn is a function of the source's key, the number of the sample and
// the step: of neither neighbours, threads nor time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/search.h"
#include "regard/random.h"

namespace regard {

struct SampleSettings {
  std::int32_t begin = 0, end = 1;
  std::int64_t samples = 1;  // of each source
  std::int64_t top_k = 0;    // 0: all words
  double top_p = 1;
  double temperature = 1;
  double penalty = 1;  // of the length, in the scores
  LengthLimit limit = {};
};

// keys: one a row of the batch. What is found is in the order of the samples; log-probabilities are the model's own.
std::vector<Hypotheses> sample(const SequenceModel& model, const Batch& batch, std::span<const RandomKey> keys,
                               const SampleSettings& settings, const Context& context = {});

}  // namespace regard
