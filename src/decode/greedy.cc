#include "decode/greedy.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "regard/autograd/ops.h"

namespace regard {

const std::vector<std::int32_t>& Decoded::words(std::int64_t row) const {
  check(row >= 0 && row < size(), "decoded: row ", row, " of ", size());
  return words_[static_cast<std::size_t>(row)];
}

Tensor Decoded::weights(std::int64_t row) const {
  const auto written = static_cast<std::int64_t>(words(row).size());
  const std::int64_t length = lengths_[static_cast<std::size_t>(row)];
  const Tensor result = Tensor::empty({written, length});
  for (std::int64_t i = 0; i < written; ++i) {
    const Tensor weights = traces_[static_cast<std::size_t>(i)].weights({.item = row});
    result.slice(0, i, i + 1).copy_from(weights.slice(1, 0, length));
  }
  return result;
}

Decoded greedy(const Seq2seq& model, Tape& tape, const Batch& batch, const GreedySettings& settings) {
  const auto rows = static_cast<std::size_t>(batch.size());
  Decoded decoded;
  decoded.words_.resize(rows);
  decoded.lengths_ = batch.lengths;
  if (rows == 0) return decoded;
  const Seq2seq::Encoded encoded = model.encode(tape, batch);
  std::vector<std::int32_t> previous(rows, settings.begin);
  std::vector<bool> ended(rows, false);
  std::size_t running = rows;
  Var state = encoded.first_state;
  for (std::int64_t step = 0; step < settings.longest && running > 0; ++step) {
    Tensor ids = tape.make({batch.size()}, DType::kI32);
    std::copy(previous.begin(), previous.end(), ids.data<std::int32_t>());
    Seq2seq::Step made = model.step(encoded, state, ids);
    state = made.state;
    decoded.traces_.push_back(std::move(made.trace));
    const Tensor& logits = made.logits.value();
    const Tensor best = arg_max(made.logits);
    for (std::size_t row = 0; row < rows; ++row) {
      if (ended[row]) continue;
      const std::int32_t word = best.data<std::int32_t>()[row];
      check(!std::isnan(logits.data<float>()[static_cast<std::int64_t>(row) * logits[1] + word]),
            "decoding: the score of word ", word, " is not a number; the model is damaged");
      previous[row] = word;
      if (word == settings.end) {
        ended[row] = true;
        --running;
      } else {
        decoded.words_[row].push_back(word);
      }
    }
  }
  return decoded;
}

}  // namespace regard
