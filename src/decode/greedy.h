// Greedy decoding: at every step each row writes its most likely word, until it writes the end.
//
//     Tape tape;                                                   // forward only
//     const Decoded decoded = greedy(model, tape, batch, {.end = 1, .longest = 40});
//     Tensor map = decoded.weights(0);                             // [words written, source words], when asked for
//     tape.reset();                                                // from here on, asking throws
#pragma once

#include <cstdint>
#include <vector>

#include "models/seq2seq.h"

namespace regard {

struct GreedySettings {
  std::int32_t begin = 0;
  std::int32_t end = 1;
  std::int64_t longest = 100;  // words at most, the end not counted
};

class Decoded {
 public:
  std::int64_t size() const { return static_cast<std::int64_t>(words_.size()); }
  // What row `row` of the batch wrote, without the end.
  const std::vector<std::int32_t>& words(std::int64_t row) const;
  // Where it looked before each of these words: [words, length of the source]. Made again from what the steps kept.
  Tensor weights(std::int64_t row) const;

 private:
  friend Decoded greedy(const Seq2seq&, Tape&, const Batch&, const GreedySettings&);
  std::vector<std::vector<std::int32_t>> words_;
  std::vector<std::int32_t> lengths_;  // of the sources
  std::vector<AttendTrace> traces_;    // one a step
};

Decoded greedy(const Seq2seq& model, Tape& tape, const Batch& batch, const GreedySettings& settings);

}  // namespace regard
