// Hard attention that learns by reinforce has to be told how well it went (regard/attention/mechanism.h): what a word
// cost, or an example, less the mean of the batch. Nothing of it lasts from one update to the next.
//
//     const HardCosts costs(loss.log_probabilities, batch);
//     for (const AttendTrace& trace : traces) costs.fill_steps(trace);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/batch.h"
#include "regard/nn/multi_head.h"

namespace regard {

class HardCosts {
 public:
  HardCosts(const Tensor& log_probabilities, const Batch& batch);  // [steps · batch]

  // Queries that do not draw, or do not learn so, have nothing to fill.
  void fill_steps(const AttendTrace& trace) const;     // item b, query t: what the word of row b at step t cost
  void fill_examples(const AttendTrace& trace) const;  // item b, any query: what all words of row b cost
  void fill_places(const AttendTrace& trace, std::span<const std::int32_t> places) const;  // item i, one query

 private:
  template <class Cost>
  static void fill(const AttendTrace& trace, Cost cost);

  std::int64_t size_;
  std::vector<double> words_, examples_;  // less the mean; 0 for padding
};

bool learns_by_reinforce(const Mechanism& mechanism);

}  // namespace regard
