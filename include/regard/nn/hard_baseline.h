// What hard attention needs to learn by reinforce: how much worse than usual a choice turned out. Usual is a moving
// average of the losses, b ← 0.9·b + 0.1·loss (Xu et al. 2015): it does not look at this step's choices, so the
// estimate keeps its mean, and loses most of its spread.
//
//     HardBaseline baseline({.entropy = -0.01f});
//     AttendOptions options;
//     baseline.prepare(options);                                   // the entropy
//     const Attention read = attend(Mechanism("scaled_dot | hard"), q, k, v, options);
//     const Var losses = …;                                        // [batch] or [batch, queries]
//     baseline.fill(read, losses.value());                         // before backward
//     tape.backward(mean(losses));
#pragma once

#include <optional>

#include "regard/attention/mechanism.h"
#include "regard/export.h"

namespace regard {

struct HardBaselineSettings {
  double keep = 0.9;  // of what was usual so far
  float entropy = 0;  // AttendOptions::entropy: below 0 it keeps choices wide
  double weight = 1;  // of an item's loss in the loss that is minimised: 1/batch if that is their mean
};

class REGARD_API HardBaseline {
 public:
  explicit HardBaseline(const HardBaselineSettings& settings = {});

  void prepare(AttendOptions& options) const { options.entropy = settings_.entropy; }
  // advantage = weight·(loss − usual), then the mean of the losses counts for what is usual. losses [batch, queries]:
  // what followed from a query; [batch]: what followed from all queries of an item. Several attentions of one step are
  // filled by one call.
  void fill(std::span<const Attention> attentions, const Tensor& losses);
  void fill(const Attention& attention, const Tensor& losses) { fill({&attention, 1}, losses); }

  double usual() const { return usual_.value_or(0); }
  void resume(double usual) { usual_ = usual; }  // as it was when a run was interrupted

 private:
  HardBaselineSettings settings_;
  std::optional<double> usual_;  // none yet: 0, and the first losses set it
};

}  // namespace regard
