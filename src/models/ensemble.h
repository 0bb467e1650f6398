// Several models that write together: at every step the mean of their log-probabilities (a log-linear ensemble), made
// to sum to one again. They may be of different families; they must write the same words.
//
//     const Ensemble both({&first, &second});
//     search(both, batch, {.beam = 5});
//
// Their maps are put together by layer: [layers of all, the most heads, steps, source], zeros where a model has fewer
// heads. Where models look at themselves is a matter of each alone: of these maps one sees the first model's. An
// ensemble decodes and scores; it is not trained.
#pragma once

#include <memory>
#include <vector>

#include "models/sequence_model.h"

namespace regard {

class Ensemble : public SequenceModel {
 public:
  explicit Ensemble(std::vector<const SequenceModel*> models);  // which outlive it

  Loss loss(Tape& tape, const Batch& batch, const LossOptions& options = {}) const override;
  Var logits(Tape& tape, const Batch& batch) const override;
  std::unique_ptr<Decoding> decode(const Batch& sources, const DecodeOptions& options = {}) const override;
  std::int64_t target_words() const override { return models_[0]->target_words(); }
  Room room() const override;
  AttentionShape attention_shape() const override;
  std::vector<Tensor> all_attention(const Batch& batch) const override;
  std::vector<EveryMap> every_attention(const Batch& batch) const override;
  AttentionShape shape_of(LookKind kind) const override;

 private:
  class Steps;
  std::vector<EveryMap> together(std::vector<std::vector<EveryMap>> of_models) const;  // each has one a row
  std::vector<const SequenceModel*> models_;
};

}  // namespace regard
