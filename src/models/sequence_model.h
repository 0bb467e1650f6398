// A model that reads one sequence and writes another, whatever it is made of; and one batch of sources being decoded.
//
//     const std::unique_ptr<SequenceModel> model = make_model(Builder(parameters, RandomKey(seed)), settings);
//     trainer.step(rate, [&](Tape& tape) { return model->loss(tape, batch, {.training = true, .key = key}).sum; });
//
//     const std::unique_ptr<Decoding> decoding = model->decode(batch);
//     Tensor logits = decoding->step(sources, origins, previous);                  // [rows, words]
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/batch.h"
#include "models/what_if.h"
#include "regard/attention/mechanism.h"
#include "regard/autograd/tape.h"
#include "regard/random.h"

namespace regard {

struct LossOptions {
  double label_smoothing = 0;
  bool training = false;         // something may be dropped
  RandomKey key = RandomKey(0);  // of this update; what is dropped follows from it, the layer and the example's id
  double guide = 0;              // how much it counts that the last look at the source goes where the batch says
};

struct AskedAttention {
  std::int64_t layer = -1;  // −1: the last
  std::int64_t head = -1;   // −1: the mean of all heads
  friend bool operator==(const AskedAttention&, const AskedAttention&) = default;
};

// The longest source and target that a model was made for, in tokens with their ends.
struct Room {
  std::int64_t source = kEndless, target = kEndless;
  void narrow(const Room& other) {
    source = std::min(source, other.source);
    target = std::min(target, other.target);
  }
  // What lies within a source and within a target, and between them.
  void narrow_source(const Longest& self) { narrow({.source = std::min(self.queries, self.keys)}); }
  void narrow_target(const Longest& self) { narrow({.target = std::min(self.queries, self.keys)}); }
  void narrow_both(const Longest& cross) { narrow({.source = cross.keys, .target = cross.queries}); }
};

std::string to_text(const Room& room);  // without ends: "99 tokens of a source and 127 of a target"

struct AttentionShape {
  std::int64_t layers = 0, heads = 0;  // 0: there is none
};

// Where one attention of a model looked, for one row of a batch.
struct HeadMaps {
  Tensor weights = {};  // f32 [layers, heads, queries, keys]; not defined: the model has no such attention
  Tensor norms = {};    // f32 [layers, heads, keys]: lengths of the values that were read; not defined: not known
};
struct EveryMap {
  HeadMaps cross = {};                  // the look at the source, as all_attention gives it
  HeadMaps encoder = {}, decoder = {};  // of models that look at themselves: [source, source] and [steps, steps]
};

// What a decoding keeps of where it looked, each with what comes before it: weights of the look at the source, of looks
// at itself, norms.
enum class Keeps { kNothing, kSource, kMaps, kEverything };

struct DecodeOptions {
  Keeps keeps = Keeps::kNothing;
  const WhatIf* what_if = nullptr;  // of a batch of one source; has to outlive the decoding
};

// One batch being decoded. It belongs to one thread at a time; the model has to outlive it.
class Decoding {
 public:
  virtual ~Decoding() = default;
  // One step more for every row. Rows come in groups: `sources` are the sources (rows of the batch, in ascending order)
  // still running; each has the same number of rows, so there are sources.size()·width of them, those of a source
  // together. origins[r]: which row of the step before row r goes on from, one of the same source (ignored at the first
  // step); previous[r]: the word it wrote last (the begin token at first). Gives logits [rows, target words], valid
  // until the next call, with the bits that `logits` of the model gives. A source that is left out never comes back.
  virtual Tensor step(std::span<const std::int32_t> sources, std::span<const std::int32_t> origins,
                      std::span<const std::int32_t> previous) = 0;
  // Of one that keeps: where a source (a row of the batch) looked on the way through these rows, one a step; the bits
  // that every_attention gives, if there is no what-if. Several threads may ask between two steps.
  virtual EveryMap looked(std::int64_t /*source*/, std::span<const std::int32_t> /*path*/) const { return {}; }
};

class SequenceModel {
 public:
  using Asked = AskedAttention;
  virtual ~SequenceModel() = default;

  struct Loss {
    Var sum;                   // [], over the targets that are not padding, with smoothing and what the guide adds
    Tensor log_probabilities;  // [steps · batch], of the targets, without smoothing; valid until the step ends
  };
  // Teacher forcing: the decoder is told the right words before each step.
  virtual Loss loss(Tape& tape, const Batch& batch, const LossOptions& options = {}) const = 0;

  // The same up to the words: [steps · batch, target words].
  virtual Var logits(Tape& tape, const Batch& batch) const = 0;

  // Encodes; forward only.
  virtual std::unique_ptr<Decoding> decode(const Batch& sources, const DecodeOptions& options = {}) const = 0;

  virtual std::int64_t target_words() const = 0;
  virtual Room room() const { return {}; }

  // Where it looked when told the targets of the batch: for a row of the batch f32 [layers, heads, target steps of the
  // row, length of its source], the step that writes the end included. Empty for models without attention.
  virtual AttentionShape attention_shape() const = 0;
  virtual AttentionShape shape_of(LookKind kind) const;  // the same, and of looks at themselves
  virtual std::vector<Tensor> all_attention(const Batch& batch) const = 0;
  // The same and all others, of every row.
  virtual std::vector<EveryMap> every_attention(const Batch& batch) const;
  // Of models whose look at the source says beforehand where to look (local_p): that place, counted in tokens of the
  // source, f32 [layers, heads, target steps] of every row. Empty for others.
  virtual std::vector<Tensor> places(const Batch& batch) const;
  // One layer and head of it, [target steps, length of the source]; throws if there is none such.
  std::vector<Tensor> attention(const Batch& batch, const Asked& asked = {}) const;
};

}  // namespace regard
