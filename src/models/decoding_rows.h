// Which rows a decoding has, and where each came from: what all families need to keep beams apart without copying what
// they have computed. A row's past is a list of rows, one a step; whoever keeps something of every step looks it up
// there (StepCache).
//
//     rows.advance(sources, origins, previous);
//     state = take_rows(state, rows.from());                       // of the step before
//     cache.add(keys); Tensor all = cache.gather(tape, rows, heads);        // [rows, heads, steps, width]
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regard/autograd/tape.h"
#include "regard/tensor/tensor.h"

namespace regard {

class DecodingRows {
 public:
  explicit DecodingRows(std::vector<std::int32_t> lengths);  // of the sources of the batch

  // The arguments of Decoding::step, checked.
  void advance(std::span<const std::int32_t> sources, std::span<const std::int32_t> origins,
               std::span<const std::int32_t> previous);

  std::int64_t step() const { return step_; }  // the number of this one, from 0
  std::int64_t count() const { return static_cast<std::int64_t>(from_.size()); }
  std::int64_t width() const { return width_; }  // rows of a source
  std::int64_t sources() const { return static_cast<std::int64_t>(sources_.size()); }
  std::int32_t source(std::int64_t place) const { return sources_[static_cast<std::size_t>(place)]; }  // of the batch

  std::span<const std::int32_t> lengths() const { return lengths_; }  // of the sources that are running
  Tensor words(Tape& tape, const Shape& shape) const;                 // what each row wrote last, i32

  // What each row goes on from: a row of the step before, at first a source of the batch.
  std::span<const std::int32_t> from() const { return from_; }
  // Some sources were left out this time: the places of those that stay in the list of the step before.
  bool sources_left() const { return left_; }
  std::span<const std::int32_t> stayed() const { return stayed_; }

  // The row of step `before` that row `row` of this step comes from.
  std::int32_t ancestor(std::int64_t row, std::int64_t before) const {
    return before == step_ ? static_cast<std::int32_t>(row) : past_[static_cast<std::size_t>(row * step_ + before)];
  }

 private:
  std::int64_t step_ = -1, width_ = 0, batch_;
  std::vector<std::int32_t> sources_, lengths_, words_, from_, stayed_;
  std::vector<std::int32_t> past_;  // [rows, step]
  bool left_ = false;
};

// Where each row's past is kept, one place ("slot") a step within the source of the row. A slot that no row's past
// leads to any more is used again, so a source needs few more than it has steps.
class PastSlots {
 public:
  void advance(const DecodingRows& rows);  // once a step, after them

  // [rows, steps so far], this step's own included, from the row on.
  const std::int32_t* of(std::int64_t row) const { return slots_.data() + row * steps_; }
  std::int32_t own(std::int64_t row) const { return of(row)[steps_ - 1]; }
  bool in_order() const { return in_order_; }  // every row's slots are 0, 1, 2, …

 private:
  std::int64_t steps_ = 0;
  bool in_order_ = true;
  std::vector<std::int32_t> slots_;
  std::vector<std::uint8_t> used_;
};

// Rows of dimension 0 by number, on the heap.
Tensor take_rows(const Tensor& from, std::span<const std::int32_t> rows);

// What every step left, [rows, width] each. Nothing of it ever moves.
class StepCache {
 public:
  // Of this step; any shape [rows, …] that is dense; copied to the heap, or if there is a tape, into its memory.
  void add(const Tensor& rows, Tape* memory = nullptr);
  // For each row what its past left from step `begin` on, this step included, by head: [rows, heads, steps, width of a
  // head]; steps below 0 left zeros.
  Tensor gather(Tape& tape, const DecodingRows& rows, std::int64_t heads = 1, std::int64_t begin = 0) const;
  // What these rows left, one a step from the first on, on the heap: [1, heads, steps, width of a head].
  Tensor along(std::span<const std::int32_t> path, std::int64_t heads) const;

 private:
  std::vector<Tensor> steps_;
};

}  // namespace regard
