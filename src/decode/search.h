// Looking for the likeliest sequences that a model can write: greedy search, or a beam of several at once.
//
//     const std::vector<Hypotheses> found = search(model, batch, {.beam = 5});         // one a row, best first
//
// At every step each source goes on with the `beam` likeliest beginnings. What ends among the best is set aside, scored
// by log p/length^penalty; a source that has `beam` of these, better than what goes on, leaves the batch. What is found
// for a source depends neither on its neighbours nor on the number of threads. A beam of 1 is greedy search.
#pragma once

#include <cstdint>
#include <vector>

#include "models/sequence_model.h"
#include "regard/context.h"

namespace regard {

struct LengthLimit {  // no result is longer
  double factor = 2;  // than factor · source + more
  std::int64_t more = 10;
  std::int64_t words = 0;  // nor than this; 0: no such limit
  std::int64_t of(std::int64_t source) const;
  std::int64_t of(std::int64_t source, const Room& room) const;  // nor than the model has room for, the end included
};

struct SearchSettings {
  std::int32_t begin = 0;  // the token that stands before the first word
  std::int32_t end = 1;    // and the one that is written last
  std::int64_t beam = 1;   // how many beginnings are kept
  std::int64_t best = 1;   // how many results are wanted, at most `beam`
  double penalty = 1;      // of the length: 0 prefers short ones
  LengthLimit limit = {};
  std::vector<std::int32_t> prefix = {};  // words that every result begins with
  Keeps keeps = Keeps::kNothing;          // Hypothesis::looked is wanted
  const WhatIf* what_if = nullptr;        // of a batch of one source
};

struct Hypothesis {
  std::vector<std::int32_t> words;  // without the end
  double log_probability = 0;       // of the words and the end
  double score = 0;                 // log_probability/(words + 1)^penalty
  EveryMap looked = {};             // where, of what was found by a search that keeps it
};
using Hypotheses = std::vector<Hypothesis>;  // best first

// What a search wrote, step after step: the beginnings that go on, in their order, then those that ended.
struct SearchRow {
  std::int32_t word = 0;    // the end: it ended
  std::int32_t parent = 0;  // which beginning of the step before it went on from; −1 at the first
  double log_probability = 0;
};
using SearchSteps = std::vector<std::vector<SearchRow>>;

void check_limit(const LengthLimit& limit);  // throws

// `steps`, if it is not null, gets those of each row; what is found is the same.
std::vector<Hypotheses> search(const SequenceModel& model, const Batch& batch, const SearchSettings& settings = {},
                               const Context& context = {}, std::vector<SearchSteps>* steps = nullptr);

}  // namespace regard
