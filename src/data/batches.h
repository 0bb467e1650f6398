// Pairs of lines as batches of numbers, in an order that is a function of (seed, epoch) alone.
//
//     PairBatches batches(std::make_unique<PairReader>(files), source, target, {.tokens = 4096, .seed = 7});
//     for (std::vector<SequencePair> pairs; batches.next(pairs);) { … make_batch(pairs, …) … }      // one epoch
//
// Pairs of like length come together: a window of a hundred batches or so is shuffled, sorted by length and cut into
// batches. Data that fits into `memory` is held: windows are then made of the shuffled whole, and the batches of the
// whole epoch are shuffled. Data that does not is streamed: a window is what stands together in the file, and its
// batches are shuffled among themselves; so a file that is sorted by subject or length should be shuffled beforehand.
// Which of the two happens depends on the data and on `memory`, never on the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/lines.h"
#include "data/tokenizer.h"
#include "models/batch.h"

namespace regard {

struct BatchingSettings {
  std::int64_t tokens = 4096;  // at most so many of the source, and so many of the target with its end, with padding
  std::int64_t sentences = 0;  // above 0: so many pairs a batch instead
  std::int64_t longest = 256;  // tokens; a pair with a longer side is left out and counted
  std::int64_t window = 100;   // batches that are sorted together
  std::uint64_t memory = std::uint64_t{128} << 20;  // bytes of numbers that may be held
  std::uint64_t seed = 1;
  bool shuffle = true;      // false: windows in the order of the data, shortest first
  bool source_end = false;  // the source ends with its tokenizer's end, too
};

// Where one is. Saved and sought, it gives exactly the batches that would have come.
struct BatchPosition {
  std::uint64_t epoch = 0;
  std::uint64_t window = 0;  // of a stream
  std::uint64_t batch = 0;   // of the window, or of the epoch if all is held: how many were given
  PairPosition start = {};   // where the window starts in the data
  friend bool operator==(const BatchPosition&, const BatchPosition&) = default;
};

struct BatchReport {
  std::uint64_t too_long = 0, empty = 0;  // pairs left out: too long, nothing left after splitting; of what was read
  std::uint64_t first_too_long = 0;       // the line of the first of them
  std::uint64_t batches = 0, pairs = 0;   // given
  std::uint64_t tokens = 0, places = 0;   // in them: tokens of both sides, and those with padding
  double waste() const { return places == 0 ? 0 : 1 - static_cast<double>(tokens) / static_cast<double>(places); }
};

class PairBatches {
 public:
  PairBatches(std::unique_ptr<PairStream> stream, std::shared_ptr<const Tokenizer> source,
              std::shared_ptr<const Tokenizer> target, const BatchingSettings& settings);
  ~PairBatches();
  PairBatches(PairBatches&&) noexcept;
  PairBatches& operator=(PairBatches&&) noexcept;

  // The pairs of the next batch; their ids are the lines they come from. False, and no pairs: the epoch is over, the
  // next call starts the next one. An Error if an epoch has no pair at all.
  bool next(std::vector<SequencePair>& pairs);

  BatchPosition position() const;
  void seek(const BatchPosition& position);

  bool whole() const;        // all the data is held (known after the first call of next or seek)
  std::size_t held() const;  // bytes of memory, of the numbers and of the stream
  const BatchReport& report() const;
  const PairStream& stream() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regard
