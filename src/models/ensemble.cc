#include "models/ensemble.h"

#include <algorithm>

#include "base/check.h"
#include "regard/autograd/ops.h"

namespace regard {
namespace {

Var mean_of(Tape& tape, const std::vector<Var>& log_probabilities) {
  Var sum = log_probabilities[0];
  for (std::size_t i = 1; i < log_probabilities.size(); ++i) sum = add(sum, log_probabilities[i]);
  const Tensor share = tape.make({1}, sum.dtype());
  share.data<float>()[0] = 1 / static_cast<float>(log_probabilities.size());
  return multiply(sum, tape.constant(share));
}

// each[model][row] is [layers, heads, …]: put together, layers one after another, zeros for missing heads.
std::vector<Tensor> by_layer(const std::vector<std::vector<Tensor>>& each, const AttentionShape& shape) {
  std::vector<Tensor> all;
  std::int64_t first = 0;
  for (const std::vector<Tensor>& maps : each) {
    for (std::size_t row = 0; row < maps.size(); ++row) {
      const Tensor& map = maps[row];
      if (row == all.size()) {
        Shape whole{shape.layers, shape.heads};
        for (int i = 2; i < map.rank(); ++i) whole = whole.plus(map[i]);
        all.push_back(Tensor::zeros(whole));
      }
      all[row].slice(0, first, first + map[0]).slice(1, 0, map[1]).copy_from(map);
    }
    if (!maps.empty()) first += maps[0][0];
  }
  return all;
}

}  // namespace

Ensemble::Ensemble(std::vector<const SequenceModel*> models) : models_(std::move(models)) {
  check(!models_.empty(), "an ensemble of no models");
  const std::int64_t words = models_[0]->target_words();
  for (const SequenceModel* each : models_) {
    check(each->target_words() == words, "an ensemble of models that write ", words, " and ", each->target_words(),
          " words, expected the same");
  }
}

Var Ensemble::logits(Tape& tape, const Batch& batch) const {
  std::vector<Var> each;
  for (const SequenceModel* model : models_) each.push_back(log_softmax(model->logits(tape, batch)));
  return mean_of(tape, each);
}

SequenceModel::Loss Ensemble::loss(Tape& tape, const Batch& batch, const LossOptions& options) const {
  check(!options.training && options.label_smoothing == 0, "an ensemble cannot be trained");
  const Tensor all = log_softmax(logits(tape, batch)).value();
  const std::int64_t words = target_words();
  const Tensor found = tape.make({batch.targets.size()}, DType::kF32), sum = tape.make({}, DType::kF32);
  double loss = 0;
  for (std::int64_t i = 0; i < found.size(); ++i) {
    const bool counts = batch.target_weights.data<float>()[i] > 0;
    const std::int32_t word = batch.targets.data<std::int32_t>()[i];
    found.data<float>()[i] = counts ? all.data<float>()[i * words + word] : 0;
    loss -= static_cast<double>(found.data<float>()[i]);
  }
  sum.data<float>()[0] = static_cast<float>(loss);
  return {tape.constant(sum), found};
}

class Ensemble::Steps : public Decoding {
 public:
  Steps(const Ensemble& model, const Batch& batch, const DecodeOptions& options) : model_(model) {
    std::int64_t first = 0;
    for (const SequenceModel* each : model.models_) {
      DecodeOptions own = options;
      const std::int64_t layers = each->attention_shape().layers;
      if (options.what_if != nullptr) {
        what_ifs_.push_back(std::make_unique<const WhatIf>(part_of(*options.what_if, first, layers)));
        own.what_if = what_ifs_.back().get();
      }
      first += layers;
      members_.push_back(each->decode(batch, own));
    }
  }
  Tensor step(std::span<const std::int32_t> sources, std::span<const std::int32_t> origins,
              std::span<const std::int32_t> previous) override {
    tape_.reset();
    std::vector<Var> each;
    for (const std::unique_ptr<Decoding>& member : members_) {
      each.push_back(log_softmax(tape_.constant(member->step(sources, origins, previous))));
    }
    return mean_of(tape_, each).value();
  }
  EveryMap looked(std::int64_t source, std::span<const std::int32_t> path) const override {
    std::vector<std::vector<EveryMap>> each;
    for (const std::unique_ptr<Decoding>& member : members_) each.push_back({member->looked(source, path)});
    return std::move(model_.together(std::move(each))[0]);
  }

 private:
  const Ensemble& model_;
  std::vector<std::unique_ptr<const WhatIf>> what_ifs_;
  std::vector<std::unique_ptr<Decoding>> members_;
  Tape tape_;
};

std::unique_ptr<Decoding> Ensemble::decode(const Batch& sources, const DecodeOptions& options) const {
  return std::make_unique<Steps>(*this, sources, options);
}

Room Ensemble::room() const {
  Room all;
  for (const SequenceModel* each : models_) all.narrow(each->room());
  return all;
}

AttentionShape Ensemble::attention_shape() const {
  AttentionShape all;
  for (const SequenceModel* each : models_) {
    const AttentionShape shape = each->attention_shape();
    all.layers += shape.layers;
    all.heads = std::max(all.heads, shape.heads);
  }
  return all;
}

std::vector<Tensor> Ensemble::all_attention(const Batch& batch) const {
  std::vector<std::vector<Tensor>> each;
  for (const SequenceModel* model : models_) each.push_back(model->all_attention(batch));
  return by_layer(each, attention_shape());
}

AttentionShape Ensemble::shape_of(LookKind kind) const {
  return kind == LookKind::kCross ? attention_shape() : models_[0]->shape_of(kind);
}

std::vector<EveryMap> Ensemble::every_attention(const Batch& batch) const {
  std::vector<std::vector<EveryMap>> each;
  for (const SequenceModel* model : models_) each.push_back(model->every_attention(batch));
  return together(std::move(each));
}

std::vector<EveryMap> Ensemble::together(std::vector<std::vector<EveryMap>> of_models) const {
  std::vector<std::vector<Tensor>> weights, norms;
  std::vector<EveryMap> made;
  bool known = true;  // the norms of all
  for (std::size_t i = 0; i < models_.size(); ++i) {
    std::vector<EveryMap>& maps = of_models[i];
    weights.emplace_back();
    norms.emplace_back();
    if (models_[i]->attention_shape().layers > 0) {
      for (const EveryMap& each : maps) {
        weights.back().push_back(each.cross.weights);
        norms.back().push_back(each.cross.norms);
        known &= each.cross.norms.defined();
      }
    }
    if (made.empty()) made = std::move(maps);
  }
  const std::vector<Tensor> all = by_layer(weights, attention_shape());
  const std::vector<Tensor> lengths = known ? by_layer(norms, attention_shape()) : std::vector<Tensor>();
  for (std::size_t row = 0; row < made.size(); ++row) {
    made[row].cross = {.weights = row < all.size() ? all[row] : Tensor(),
                       .norms = row < lengths.size() ? lengths[row] : Tensor()};
  }
  return made;
}

}  // namespace regard
