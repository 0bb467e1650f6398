#include "models/transformer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attention/kept.h"
#include "base/check.h"
#include "base/pool.h"
#include "models/attention_maps.h"
#include "models/decoding_rows.h"
#include "models/guide.h"
#include "models/hard_costs.h"
#include "models/kept_looks.h"
#include "models/lines.h"
#include "models/presets.h"
#include "models/tape_pool.h"

namespace regard {
namespace {

// Where numbers are drawn: words first, then so many places a layer, the encoder's layers at even numbers.
enum Site : std::uint64_t { kSourceWords, kTargetWords, kLayers };
enum Part : std::uint64_t { kSelf, kSelfWeights, kCross, kCrossWeights, kOuter, kInner, kParts };
std::uint64_t encoder_site(std::size_t layer) { return kLayers + 2 * layer * kParts; }
std::uint64_t decoder_site(std::size_t layer) { return kLayers + (2 * layer + 1) * kParts; }

TransformerSettings checked(const TransformerSettings& s) {
  check(s.source_words >= 1 && s.target_words >= 1, "transformer: vocabularies of ", s.source_words, " and ",
        s.target_words, " words, expected 1 or more");
  check(s.width >= 1 && s.ffn >= 1 && s.heads >= 1, "transformer: width ", s.width, ", ffn ", s.ffn, ", ", s.heads,
        " heads, expected 1 or more");
  check(s.width % s.heads == 0, "transformer: a width of ", s.width, " does not divide into ", s.heads, " heads");
  check(s.encoder_layers >= 0 && s.decoder_layers >= 1, "transformer: ", s.encoder_layers, " and ", s.decoder_layers,
        " layers, expected 0 or more and 1 or more");
  for (const float p : {s.dropout, s.attention_dropout, s.activation_dropout}) {
    check(p >= 0 && p < 1, "transformer: dropout ", p, ", expected 0 to below 1");
  }
  check(!s.share || s.source_words == s.target_words, "transformer: ", s.source_words, " and ", s.target_words,
        " words do not share a table");
  return s;
}

}  // namespace

Transformer::Transformer(const Builder& builder, const TransformerSettings& given)
    : settings_(checked(given)),
      target_(builder.under(settings_.share ? "words" : "target"), settings_.target_words, settings_.width),
      source_(settings_.share ? target_ : Embedding(builder.under("source"), settings_.source_words, settings_.width)),
      source_position_(builder.under("encoder.position"),
                       {.kind = settings_.positions, .width = settings_.width, .longest = settings_.longest}),
      target_position_(builder.under("decoder.position"),
                       {.kind = settings_.positions, .width = settings_.width, .longest = settings_.longest}),
      output_(builder.under("output"), settings_.width, settings_.target_words,
              settings_.tie ? &target_.table() : nullptr) {
  const TransformerSettings& s = settings_;
  const auto heads = [&](const Builder& at, const std::string& line) {
    return MultiHead(at, {.heads = s.heads, .query = s.width, .lines = {line}});
  };
  const auto norm = [&](const Builder& at) { return LayerNorm(at, s.width); };
  const std::vector<std::string> encoder_lines = lines_of("encoder attention", s.encoder_line, s.encoder_layers),
                                 decoder_lines = lines_of("decoder attention", s.decoder_line, s.decoder_layers),
                                 cross_lines = lines_of("cross attention", s.cross_line, s.decoder_layers);
  for (std::size_t i = 0; i < encoder_lines.size(); ++i) {
    const Builder at = builder.under(text("encoder.layer", i));
    encoder_.push_back({.self_norm = norm(at.under("self.norm")),
                        .ffn_norm = norm(at.under("ffn.norm")),
                        .self = heads(at.under("self"), encoder_lines[i]),
                        .inner = Linear(at.under("ffn.inner"), s.width, s.ffn),
                        .outer = Linear(at.under("ffn.outer"), s.ffn, s.width)});
  }
  for (std::size_t i = 0; i < decoder_lines.size(); ++i) {
    const Builder at = builder.under(text("decoder.layer", i));
    decoder_.push_back({.self_norm = norm(at.under("self.norm")),
                        .cross_norm = norm(at.under("cross.norm")),
                        .ffn_norm = norm(at.under("ffn.norm")),
                        .self = heads(at.under("self"), causal_line(decoder_lines[i])),
                        .cross = heads(at.under("cross"), cross_lines[i]),
                        .inner = Linear(at.under("ffn.inner"), s.width, s.ffn),
                        .outer = Linear(at.under("ffn.outer"), s.ffn, s.width)});
  }
  if (s.positions != PositionKind::kNone) room_ = {s.longest, s.longest};
  const auto look_at = [&](const std::vector<std::string>& lines, void (Room::*narrow)(const Longest&)) {
    for (const std::string& line : lines) {
      const Mechanism mechanism(line);
      reinforces_ |= learns_by_reinforce(mechanism);
      (room_.*narrow)(mechanism.longest());
    }
  };
  look_at(encoder_lines, &Room::narrow_source);
  look_at(decoder_lines, &Room::narrow_target);
  look_at(cross_lines, &Room::narrow_both);
  if (s.norm == NormPlace::kPre) {
    encoder_norm_ = norm(builder.under("encoder.norm"));
    decoder_norm_ = norm(builder.under("decoder.norm"));
  }
}

// The sequences of a batch one after another: what works row by row is spared the padding.
struct Transformer::Packed {
  // ids [time, batch]; of sequence i the first lengths[i]
  Packed(Tape& tape, const Tensor& ids, ArenaVector<std::int32_t> of_sequences, std::span<const std::uint64_t> examples)
      : lengths(std::move(of_sequences)),
        longest(ids[0]),
        positions(arena_vector<std::int32_t>(tape.arena(), ids.size())),
        places(arena_vector<std::int32_t>(tape.arena(), ids.size())),
        spots(arena_vector<std::uint64_t>(tape.arena(), ids.size())) {
    const auto size = static_cast<std::int32_t>(lengths.size());
    for (std::int32_t item = 0; item < size; ++item) {
      const auto at = static_cast<std::size_t>(item);
      for (std::int32_t t = 0; t < lengths[at]; ++t) {
        positions.push_back(t);
        places.push_back(t * size + item);
        spots.push_back(RandomKey(examples[at]).at(static_cast<std::uint64_t>(t)).value());
      }
    }
    words = tape.make({static_cast<std::int64_t>(places.size())}, DType::kI32);
    for (std::size_t i = 0; i < places.size(); ++i) {
      words.data<std::int32_t>()[i] = ids.data<std::int32_t>()[places[i]];
    }
  }

  static Packed sources(Tape& tape, const Batch& batch) {
    ArenaVector<std::int32_t> lengths = arena_vector<std::int32_t>(tape.arena(), batch.size());
    lengths.assign(batch.lengths.begin(), batch.lengths.end());
    return {tape, batch.source, std::move(lengths), batch.ids};
  }
  static Packed targets(Tape& tape, const Batch& batch) {
    ArenaVector<std::int32_t> steps = arena_vector<std::int32_t>(tape.arena(), batch.size());
    for (std::int64_t row = 0; row < batch.size(); ++row) {
      steps.push_back(static_cast<std::int32_t>(target_steps(batch, row)));
    }
    return {tape, batch.previous, std::move(steps), batch.ids};
  }

  Sequences sequences() const { return {.lengths = lengths, .longest = longest}; }

  ArenaVector<std::int32_t> lengths;
  std::int64_t longest;
  // Of every row:
  Tensor words;                         // i32
  ArenaVector<std::int32_t> positions;  // in its sequence
  ArenaVector<std::int32_t> places;     // in [time · batch]
  ArenaVector<std::uint64_t> spots;     // for what is dropped there: of the example and the position
};

template <class At>
Var Transformer::embed(Tape& tape, const Embedding& table, const Position& position, const Tensor& ids, At at) const {
  const Var words = table(tape, ids);
  const Var scaled = words * number(tape, std::sqrt(static_cast<double>(settings_.width)), words.dtype());
  tape.release(words);
  const Var placed = position(scaled, at);
  if (settings_.positions != PositionKind::kNone) tape.release(scaled);
  return placed;
}

// x [rows, …]: what is dropped depends on the example and the row's position in it alone. Takes x over.
Var Transformer::drop(Var x, float p, const Pass& pass, std::uint64_t site) const {
  if (!pass.options.training || p == 0) return x;
  const Var dropped = dropout(x, p, pass.options.key.at(site), pass.spots);
  x.tape().release(x);
  return dropped;
}

AttendOptions Transformer::looking(const Pass& pass, std::uint64_t site) const {
  AttendOptions made{.first_query = 0, .ids = pass.ids, .draws = pass.options.training};
  made.dropout = pass.options.training ? settings_.attention_dropout : 0;
  made.key = pass.options.key.at(site);
  return made;
}

Var Transformer::before(const LayerNorm& norm, Var x) const { return settings_.norm == NormPlace::kPre ? norm(x) : x; }

Var Transformer::after(const LayerNorm& norm, Var x, Var part) const {
  const Var both = x + part;
  x.tape().release(part);
  return settings_.norm == NormPlace::kPre ? both : norm(both);
}

Var Transformer::feed_forward(const Linear& inner, const Linear& outer, Var x, const Pass& pass,
                              std::uint64_t site) const {
  const Var projected = inner(x), hidden = activate(settings_.activation, projected);
  if (settings_.activation == Activation::kRelu) x.tape().release(projected);  // it goes back by its result
  return drop(outer(drop(hidden, settings_.activation_dropout, pass, site + kInner)), settings_.dropout, pass,
              site + kOuter);
}

Var Transformer::encode(Tape& tape, const Batch& batch, const LossOptions& loss_options, Traces* traces,
                        const WhatIf* what_if) const {
  const Packed rows = Packed::sources(tape, batch);
  const Sequences sequences = rows.sequences();
  const Pass pass{loss_options, batch.ids, rows.spots};
  Var x = drop(embed(tape, source_, source_position_, rows.words, std::span<const std::int32_t>(rows.positions)),
               settings_.dropout, pass, kSourceWords);
  for (std::size_t i = 0; i < encoder_.size(); ++i) {
    const EncoderLayer& layer = encoder_[i];
    const std::uint64_t site = encoder_site(i);
    AttendOptions options = looking(pass, site + kSelfWeights);
    options.lengths = batch.lengths;
    const std::optional<Edits> edits = edits_of(what_if, {.kind = LookKind::kEncoder,
                                                          .layer = static_cast<std::int64_t>(i),
                                                          .heads = settings_.heads,
                                                          .queries = rows.longest,
                                                          .keys = rows.longest});
    if (edits) options.edits = &*edits;
    options.weights = traces != nullptr && traces->weights;
    const Var seen = before(layer.self_norm, x);
    MultiHeadMemory memory = layer.self.remember(seen, seen, &sequences);
    MultiHeadResult self = layer.self.read(seen, memory, options, &sequences);
    if (traces != nullptr) {
      traces->encoder.push_back(std::move(self.trace));
      traces->encoder_read.push_back(std::move(memory));
    }
    x = after(layer.self_norm, x, drop(self.output, settings_.dropout, pass, site + kSelf));
    x = after(layer.ffn_norm, x, feed_forward(layer.inner, layer.outer, before(layer.ffn_norm, x), pass, site));
  }
  return encoder_norm_ ? (*encoder_norm_)(x) : x;
}

Var Transformer::read(Tape& tape, const Batch& batch, const Packed& rows, const LossOptions& loss_options,
                      Traces* traces, Var* weights) const {
  const Var encoded = encode(tape, batch, loss_options, traces);
  const Sequences sources{.lengths = batch.lengths, .longest = batch.source[0]}, sequences = rows.sequences();
  const Pass pass{loss_options, batch.ids, rows.spots};
  Var x = drop(embed(tape, target_, target_position_, rows.words, std::span<const std::int32_t>(rows.positions)),
               settings_.dropout, pass, kTargetWords);
  for (std::size_t i = 0; i < decoder_.size(); ++i) {
    const DecoderLayer& layer = decoder_[i];
    const std::uint64_t site = decoder_site(i);
    const Var seen = before(layer.self_norm, x);
    MultiHeadMemory own = layer.self.remember(seen, seen, &sequences);
    AttendOptions own_options = looking(pass, site + kSelfWeights);
    own_options.weights = traces != nullptr && traces->weights;
    MultiHeadResult self = layer.self.read(seen, own, own_options, &sequences);
    x = after(layer.self_norm, x, drop(self.output, settings_.dropout, pass, site + kSelf));
    AttendOptions options = looking(pass, site + kCrossWeights);
    options.lengths = batch.lengths;
    options.weights = own_options.weights;
    const Var asking = before(layer.cross_norm, x);
    MultiHeadMemory memory = layer.cross.remember(encoded, encoded, &sources);
    const bool watched = weights != nullptr && i + 1 == decoder_.size();
    MultiHeadResult crossed = watched ? layer.cross.watch(asking, memory, options, &sequences)
                                      : layer.cross.read(asking, memory, options, &sequences);
    if (watched) *weights = crossed.weights;
    if (traces != nullptr) {
      traces->decoder.push_back(std::move(self.trace));
      traces->decoder_read.push_back(std::move(own));
      traces->cross.push_back(std::move(crossed.trace));
      traces->cross_read.push_back(std::move(memory));
    }
    x = after(layer.cross_norm, x, drop(crossed.output, settings_.dropout, pass, site + kCross));
    x = after(layer.ffn_norm, x, feed_forward(layer.inner, layer.outer, before(layer.ffn_norm, x), pass, site));
  }
  return decoder_norm_ ? (*decoder_norm_)(x) : x;
}

SequenceModel::Loss Transformer::loss(Tape& tape, const Batch& batch, const LossOptions& options) const {
  Traces traces;
  const bool tells = options.training && reinforces_;
  const Packed rows = Packed::targets(tape, batch);
  const bool guides = guided(batch, options);
  Var weights;
  Loss made = output_.loss(read(tape, batch, rows, options, tells ? &traces : nullptr, guides ? &weights : nullptr),
                           rows.places, batch, options);
  if (guides) {
    const Var looks = reshape(mean(weights, 1), {weights[0] * weights[2], weights[3]});
    made.sum = made.sum + guide_loss(looks, places_by_item(tape, batch), batch, options);
  }
  if (tells) {
    const HardCosts costs(made.log_probabilities, batch);
    const auto each = [](const std::vector<MultiHeadTrace>& layers, const auto& fill) {
      for (const MultiHeadTrace& layer : layers) {
        for (const MultiHeadTrace::Part& part : layer.parts) fill(part.trace);
      }
    };
    each(traces.encoder, [&](const AttendTrace& trace) { costs.fill_examples(trace); });
    each(traces.decoder, [&](const AttendTrace& trace) { costs.fill_steps(trace); });
    each(traces.cross, [&](const AttendTrace& trace) { costs.fill_steps(trace); });
  }
  return made;
}

Var Transformer::logits(Tape& tape, const Batch& batch) const {
  const Packed rows = Packed::targets(tape, batch);
  return output_.logits(read(tape, batch, rows, {}, nullptr), rows.places, batch);
}

namespace {

std::vector<Tensor> all_weights(const std::vector<MultiHeadTrace>& layers) {
  std::vector<Tensor> made;
  made.reserve(layers.size());
  for (const MultiHeadTrace& layer : layers) made.push_back(layer.all_weights());
  return made;
}

}  // namespace

std::vector<Tensor> Transformer::all_attention(const Batch& batch) const {
  const PooledTape pooled(this);
  Traces traces;
  read(*pooled, batch, Packed::targets(*pooled, batch), {}, &traces);
  const std::vector<Tensor> layers = all_weights(traces.cross);
  std::vector<Tensor> made;
  for (std::int64_t row = 0; row < batch.size(); ++row) {
    made.push_back(item_of(layers, row, target_steps(batch, row), batch.lengths[static_cast<std::size_t>(row)]));
  }
  return made;
}

std::vector<Tensor> Transformer::places(const Batch& batch) const {
  const PooledTape pooled(this);
  Traces traces;
  read(*pooled, batch, Packed::targets(*pooled, batch), {}, &traces);
  std::vector<Tensor> layers;
  for (const MultiHeadTrace& layer : traces.cross) layers.push_back(layer.places());
  return places_of(layers, batch);
}

std::vector<EveryMap> Transformer::every_attention(const Batch& batch) const {
  const PooledTape pooled(this);
  Traces traces{.weights = true};
  read(*pooled, batch, Packed::targets(*pooled, batch), {}, &traces);
  const std::vector<Tensor> cross = all_weights(traces.cross), encoder = all_weights(traces.encoder),
                            decoder = all_weights(traces.decoder);
  std::vector<Tensor> cross_norms, encoder_norms, decoder_norms;
  for (std::size_t i = 0; i < encoder_.size(); ++i) {
    encoder_norms.push_back(encoder_[i].self.value_lengths(traces.encoder_read[i]));
  }
  for (std::size_t i = 0; i < decoder_.size(); ++i) {
    cross_norms.push_back(decoder_[i].cross.value_lengths(traces.cross_read[i]));
    decoder_norms.push_back(decoder_[i].self.value_lengths(traces.decoder_read[i]));
  }
  std::vector<EveryMap> made(static_cast<std::size_t>(batch.size()));
  for (std::int64_t row = 0; row < batch.size(); ++row) {
    const std::int64_t steps = target_steps(batch, row), source = batch.lengths[static_cast<std::size_t>(row)];
    EveryMap& all = made[static_cast<std::size_t>(row)];
    all.cross = {item_of(cross, row, steps, source), item_of(cross_norms, row, source)};
    if (!encoder.empty()) all.encoder = {item_of(encoder, row, source, source), item_of(encoder_norms, row, source)};
    all.decoder = {item_of(decoder, row, steps, steps), item_of(decoder_norms, row, steps)};
  }
  return made;
}

// One batch step by step. Keys and values of the source are there once for all rows of a source, those of the target as
// each step made them, found by the rows' past: where the products want them (KeptKeys), if the mechanism is plain;
// else as they came, and put together anew for every step.
class Transformer::Steps : public Decoding {
 public:
  Steps(const Transformer& model, const Batch& batch, const DecodeOptions& options)
      : model_(model),
        options_(options),
        pooled_(&model),
        looks_pooled_(&model.decoder_),
        lengths_(batch.lengths),
        longest_(batch.source[0]),
        rows_(batch.lengths),
        layers_(model.decoder_.size()),
        cross_looks_(model.shape_of(LookKind::kCross)),
        own_looks_(model.shape_of(LookKind::kDecoder)) {
    const LossOptions no_options;
    Traces traces{.weights = true};
    const Sequences sources{.lengths = lengths_, .longest = longest_};
    const Var encoded = model.encode(tape_, batch, no_options, keeps_maps() ? &traces : nullptr, options.what_if);
    if (keeps_norms()) {
      length_maps_ =
          pooled<LengthMaps>(&model.encoder_, LengthMaps::version(model), [&] { return LengthMaps(model, tape_); });
      const AttentionShape shape = model.shape_of(LookKind::kCross);
      for (const std::int32_t length : lengths_) {
        cross_norms_.push_back(Tensor::empty({shape.layers, shape.heads, length}));
      }
    }
    if (keeps_maps()) keep_encoder(traces);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const MultiHead &cross = model.decoder_[i].cross, &self = model.decoder_[i].self;
      const auto layer = static_cast<std::int64_t>(i);
      layers_[i].keeps_self = keeps(self);
      layers_[i].keeps_cross = keeps(cross);
      if (layers_[i].keeps_self) {
        layers_[i].own.assign(lengths_.size(), new_keys(self));
        own_looks_.scored_by(layer, self.maps()->mechanism);
      }
      if (layers_[i].keeps_cross) {
        keep_source(encoded, i);
        cross_looks_.scored_by(layer, cross.maps()->mechanism);
        continue;
      }
      const MultiHeadMemory memory = cross.remember(encoded, encoded, &sources);
      if (keeps_norms()) {
        const Tensor norms = cross.value_lengths(values_of(memory), length_maps_->cross[i]);
        for (std::size_t source = 0; source < lengths_.size(); ++source) {
          const Tensor own = item_of(std::span(&norms, 1), static_cast<std::int64_t>(source), lengths_[source]);
          std::copy_n(own.data<float>(), own.size(), cross_norms_[source].data<float>() + layer * own.size());
        }
      }
      for (const MultiHeadMemory::Part& part : cross.prepare(memory).parts) {
        layers_[i].cross.push_back({kept(part.prepared), kept(part.values)});
      }
      layers_[i].by_place = looks_by_place(cross.settings().lines[0]);
    }
  }

  Tensor step(std::span<const std::int32_t> sources, std::span<const std::int32_t> origins,
              std::span<const std::int32_t> previous) override {
    rows_.advance(sources, origins, previous);
    slots_.advance(rows_);
    tape_.reset();
    if (rows_.sources_left()) leave();
    const std::int64_t count = rows_.count();
    if (options_.keeps != Keeps::kNothing) cross_looks_.begin(count, longest_, rows_.width(), &*looks_pooled_);
    if (keeps_maps()) own_looks_.begin(count, rows_.step() + 1, rows_.width(), &*looks_pooled_);
    const LossOptions no_options;
    const Pass pass{no_options};
    Var x = model_.embed(tape_, model_.target_, model_.target_position_, rows_.words(tape_, {count, 1}), rows_.step());
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const DecoderLayer& layer = model_.decoder_[i];
      x = model_.after(layer.self_norm, x, self(i, model_.before(layer.self_norm, x)));
      x = model_.after(layer.cross_norm, x, cross(i, model_.before(layer.cross_norm, x)));
      x = model_.after(layer.ffn_norm, x,
                       model_.feed_forward(layer.inner, layer.outer, model_.before(layer.ffn_norm, x), pass, 0));
    }
    if (model_.decoder_norm_) x = (*model_.decoder_norm_)(x);
    return model_.output_(reshape(x, {count, model_.settings_.width})).value();
  }

  EveryMap looked(std::int64_t source, std::span<const std::int32_t> path) const override {
    const auto steps = static_cast<std::int64_t>(path.size());
    const std::int64_t length = lengths_[static_cast<std::size_t>(source)];
    EveryMap made{.cross = {.weights = cross_looks_.along(path, length)}};
    if (!keeps_maps()) return made;
    made.encoder = encoder_maps_[static_cast<std::size_t>(source)];
    made.decoder.weights = own_looks_.along(path, steps);
    if (!keeps_norms()) return made;
    made.cross.norms = cross_norms_[static_cast<std::size_t>(source)];
    std::vector<Tensor> norms;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      std::vector<Tensor> values;
      for (const Cached& part : layers_[i].self) values.push_back(part.values.along(path, part.groups));
      norms.push_back(model_.decoder_[i].self.value_lengths(values, length_maps_->self[i]));
    }
    made.decoder.norms = item_of(norms, 0, steps);
    return made;
  }

 private:
  struct Cached {  // of a part of the heads
    StepCache keys, values, tokens;
    std::int64_t groups = 1;  // of values
  };
  struct Crossed {
    Tensor prepared, values;
  };
  struct Layer {
    std::vector<Cached> self;
    std::vector<Crossed> cross;
    bool by_place = true;
    bool keeps_self = false, keeps_cross = false;  // as KeptKeys, one a source of the batch
    std::vector<KeptKeys> own, source;
  };

  struct LengthMaps {  // what makes norms of values, of each layer
    LengthMaps(const Transformer& model, Tape& tape) {
      for (const EncoderLayer& layer : model.encoder_) encoder.push_back(layer.self.length_maps(tape));
      for (const DecoderLayer& layer : model.decoder_) {
        cross.push_back(layer.cross.length_maps(tape));
        self.push_back(layer.self.length_maps(tape));
      }
    }
    static std::uint64_t version(const Transformer& model) {  // greater after every change
      std::uint64_t sum = 0;
      for (const EncoderLayer& layer : model.encoder_) sum += layer.self.output().weight().version;
      for (const DecoderLayer& layer : model.decoder_) {
        sum += layer.cross.output().weight().version + layer.self.output().weight().version;
      }
      return sum;
    }
    std::vector<Tensor> encoder, cross, self;
  };

  bool keeps_maps() const { return options_.keeps >= Keeps::kMaps; }  // its looks at itself
  bool keeps_norms() const { return options_.keeps >= Keeps::kEverything; }

  static std::vector<Tensor> values_of(const MultiHeadMemory& memory) {
    std::vector<Tensor> values;
    for (const MultiHeadMemory::Part& part : memory.parts) values.push_back(part.values.value());
    return values;
  }

  bool keeps(const MultiHead& heads) const {
    const std::optional<MultiHead::Maps> maps = heads.maps();
    return maps && can_keep(maps->mechanism) && maps->key.weight().value.dtype() == DType::kF32 &&
           options_.what_if == nullptr;
  }

  void keep_encoder(const Traces& traces) {
    encoder_maps_.resize(lengths_.size());
    if (traces.encoder.empty()) return;
    const std::vector<Tensor> weights = all_weights(traces.encoder);
    std::vector<Tensor> norms;
    for (std::size_t i = 0; i < traces.encoder.size() && keeps_norms(); ++i) {
      norms.push_back(
          model_.encoder_[i].self.value_lengths(values_of(traces.encoder_read[i]), length_maps_->encoder[i]));
    }
    parallel(lengths_.size(), [&](std::size_t source) {
      const std::int64_t length = lengths_[source];
      const auto item = static_cast<std::int64_t>(source);
      encoder_maps_[source] = {item_of(weights, item, length, length),
                               keeps_norms() ? item_of(norms, item, length) : Tensor()};
    });
  }

  static KeptKeys new_keys(const MultiHead& heads) {
    return {heads.settings().heads, heads.settings().width, heads.settings().value_width};
  }
  void keep_source(Var encoded, std::size_t layer) {
    const MultiHead& heads = model_.decoder_[layer].cross;
    std::vector<KeptKeys>& to = layers_[layer].source;
    const Var keys = heads.maps()->key(encoded), values = heads.maps()->value(encoded);
    to.assign(lengths_.size(), new_keys(heads));
    std::vector<std::int64_t> begins(lengths_.size());
    std::exclusive_scan(lengths_.begin(), lengths_.end(), begins.begin(), std::int64_t{0});
    parallel(to.size(), [&](std::size_t source) {
      for (std::int64_t t = 0; t < lengths_[source]; ++t) {
        const std::int64_t row = begins[source] + t;
        to[source].put(t, keys.value().data<float>() + row * keys[1], values.value().data<float>() + row * values[1]);
      }
      if (!keeps_norms()) return;
      const Tensor& norms = cross_norms_[source];
      for (std::int64_t head = 0; head < norms[1]; ++head) {
        const Rows own = to[source].values(head, 0, lengths_[source]);
        heads.value_lengths(own.data, lengths_[source], static_cast<std::int64_t>(own.stride),
                            length_maps_->cross[layer], head,
                            norms.data<float>() + (static_cast<std::int64_t>(layer) * norms[1] + head) * norms[2]);
      }
    });
    tape_.release(keys);
    tape_.release(values);
  }

  // Looks of all rows at what their sources keep.
  template <class Look>
  Var look(const MultiHead& heads, Var x, const std::vector<KeptKeys>& kept, Look look) {
    const MultiHead::Maps maps = *heads.maps();
    const Var queries = maps.query(x);
    const auto in = static_cast<std::size_t>(queries[2]),
               out = static_cast<std::size_t>(heads.settings().heads * heads.settings().value_width);
    const Tensor context = tape_.make({x[0], 1, static_cast<std::int64_t>(out)});
    const auto width = static_cast<std::size_t>(rows_.width());
    parallel(static_cast<std::size_t>(rows_.sources()), [&](std::size_t place) {
      const std::size_t first = place * width;
      attend_kept(maps.mechanism, kept[static_cast<std::size_t>(rows_.source(static_cast<std::int64_t>(place)))],
                  Rows{queries.value().data<float>() + first * in, width, in, in},
                  look(static_cast<std::int64_t>(place)), Tile{context.data<float>() + first * out, width, out, out});
    });
    tape_.release(queries);
    return maps.output(tape_.constant(context));
  }

  Var kept_self(std::size_t at, Var x) {
    const MultiHead& heads = model_.decoder_[at].self;
    const Var keys = heads.maps()->key(x), values = heads.maps()->value(x);
    std::vector<KeptKeys>& own = layers_[at].own;
    for (std::int64_t row = 0; row < rows_.count(); ++row) {
      own[static_cast<std::size_t>(rows_.source(row / rows_.width()))].put(
          slots_.own(row), keys.value().data<float>() + row * keys[2], values.value().data<float>() + row * values[2]);
    }
    if (keeps_norms()) {  // of those that led to a result the lengths will be asked, when their slots may have others
      layers_[at].self.resize(1);
      layers_[at].self[0].groups = heads.settings().heads;
      layers_[at].self[0].values.add(values.value(), &*looks_pooled_);
    }
    tape_.release(keys);
    tape_.release(values);
    return look(heads, x, own, [&](std::int64_t place) {
      const std::int64_t row = place * rows_.width();
      KeptLook asked{.keys = rows_.step() + 1, .slots = slots_.in_order() ? nullptr : slots_.of(row)};
      if (keeps_maps()) asked.kept = own_looks_.place(static_cast<std::int64_t>(at), row, asked.keys);
      return asked;
    });
  }

  Var kept_cross(std::size_t at, Var x) {
    return look(model_.decoder_[at].cross, x, layers_[at].source, [&](std::int64_t place) {
      KeptLook asked{.keys = rows_.lengths()[static_cast<std::size_t>(place)]};
      if (options_.keeps != Keeps::kNothing) {
        asked.kept = cross_looks_.place(static_cast<std::int64_t>(at), place * rows_.width(), asked.keys);
      }
      return asked;
    });
  }

  static Tensor kept(Var x) { return x.defined() ? x.value().clone() : Tensor(); }

  void leave() {
    for (Layer& layer : layers_) {
      for (Crossed& part : layer.cross) {
        // A table that a score learned is the same for all.
        if (part.prepared.defined() && part.prepared[0] == part.values[0]) {
          part.prepared = take_rows(part.prepared, rows_.stayed());
        }
        part.values = take_rows(part.values, rows_.stayed());
      }
    }
  }

  Var self(std::size_t at, Var x) {
    if (layers_[at].keeps_self) return kept_self(at, x);
    const MultiHead& heads = model_.decoder_[at].self;
    MultiHeadMemory memory = heads.remember(x, x);
    std::vector<Cached>& cached = layers_[at].self;
    cached.resize(memory.parts.size());
    const auto extend = [&](StepCache& cache, Var& now) {
      if (!now.defined()) return;
      cache.add(now.value());
      const bool by_head = now.shape().rank() == 4;
      const Var all = tape_.constant(cache.gather(tape_, rows_, by_head ? now[1] : 1));
      now = by_head ? all : reshape(all, {all[0], all[2], all[3]});
    };
    for (std::size_t i = 0; i < cached.size(); ++i) {
      cached[i].groups = memory.parts[i].values[1];
      extend(cached[i].keys, memory.parts[i].keys);
      extend(cached[i].values, memory.parts[i].values);
      extend(cached[i].tokens, memory.parts[i].tokens);
    }
    AttendOptions asked{.first_query = rows_.step(), .draws = false};
    asked.weights = keeps_maps();
    const std::optional<Edits> edits = edits_of(options_.what_if, place(LookKind::kDecoder, at, 1, rows_.step() + 1));
    if (edits) asked.edits = &*edits;
    const MultiHeadResult read = heads.read(x, memory, asked);
    if (keeps_maps()) {
      own_looks_.add(static_cast<std::int64_t>(at), read.trace.all_weights(), 1);
    }
    for (const MultiHeadMemory::Part& part : memory.parts) {  // the next layer's go where these are in the cache
      for (const Var each : {part.keys, part.values, part.tokens}) {
        if (each.defined()) tape_.release(each);
      }
    }
    return read.output;
  }

  LookPlace place(LookKind kind, std::size_t layer, std::int64_t queries, std::int64_t keys) const {
    return {.kind = kind,
            .layer = static_cast<std::int64_t>(layer),
            .heads = model_.settings_.heads,
            .queries = queries,
            .keys = keys,
            .step = rows_.step()};
  }

  // All rows of a source look at the same keys, which are not copied for them: side by side, or if the mechanism minds
  // where a query stands, one after another.
  Var cross(std::size_t at, Var x) {
    const Layer& layer = layers_[at];
    if (layer.keeps_cross) return kept_cross(at, x);
    const MultiHead& heads = model_.decoder_[at].cross;
    MultiHeadMemory memory;
    for (const Crossed& part : layer.cross) {
      memory.parts.push_back({.values = tape_.constant(part.values)});
      if (part.prepared.defined()) memory.parts.back().prepared = tape_.constant(part.prepared);
    }
    const std::int64_t count = rows_.sources(), width = rows_.width(), wide = x[2];
    const auto look = [&](Var queries, std::int64_t first) {
      AttendOptions asked{.lengths = rows_.lengths(), .first_query = rows_.step(), .draws = false};
      asked.weights = options_.keeps != Keeps::kNothing;
      const std::optional<Edits> edits =
          edits_of(options_.what_if, place(LookKind::kCross, at, queries[1], layer.cross[0].values[2]));
      if (edits) asked.edits = &*edits;
      const MultiHeadResult read = heads.read(queries, memory, asked);
      if (options_.keeps != Keeps::kNothing) {
        cross_looks_.add(static_cast<std::int64_t>(at), read.trace.all_weights(), width, first);
      }
      return read.output;
    };
    const Var groups = reshape(x, {count, width, wide});
    if (width <= 1 || !layer.by_place) return reshape(look(groups, 0), x.shape());
    std::vector<Var> all;
    for (std::int64_t i = 0; i < width; ++i) all.push_back(look(slice(groups, 1, i, i + 1), i));
    return reshape(concat(all, 1), x.shape());
  }

  const Transformer& model_;
  const DecodeOptions options_;
  PooledTape pooled_;
  Tape& tape_ = *pooled_;
  PooledTape looks_pooled_;                  // memory alone, of what is kept until the end
  const std::vector<std::int32_t> lengths_;  // of all sources of the batch
  const std::int64_t longest_;               // with its padding
  DecodingRows rows_;
  PastSlots slots_;
  std::vector<Layer> layers_;
  // What it keeps; of each source what no step changes.
  KeptLooks cross_looks_, own_looks_;
  std::vector<HeadMaps> encoder_maps_;
  std::vector<Tensor> cross_norms_;  // [layers, heads, keys]
  std::shared_ptr<const LengthMaps> length_maps_;
};

std::unique_ptr<Decoding> Transformer::decode(const Batch& sources, const DecodeOptions& options) const {
  check(options.what_if == nullptr || sources.size() == 1, "what if: a batch of ", sources.size(),
        " sources, expected 1");
  return std::make_unique<Steps>(*this, sources, options);
}

namespace {

std::unique_ptr<SequenceModel> make(const Builder& builder, const ModelSettings& s) {
  check(s.attention != "none", "model: a transformer cannot do without attention");
  const auto line = [](const std::string& given) { return given.empty() ? std::string("scaled_dot") : given; };
  return std::make_unique<Transformer>(
      builder, TransformerSettings{.source_words = s.source_words,
                                   .target_words = s.target_words,
                                   .width = s.hidden,
                                   .ffn = s.ffn,
                                   .heads = s.heads,
                                   .encoder_layers = s.encoder_layers,
                                   .decoder_layers = s.decoder_layers,
                                   .encoder_line = line(s.encoder_attention),
                                   .decoder_line = line(s.decoder_attention),
                                   .cross_line = line(s.attention),
                                   .norm = s.norm == "pre" ? NormPlace::kPre : NormPlace::kPost,
                                   .activation = s.activation == "relu" ? Activation::kRelu : Activation::kGelu,
                                   .positions = position_kind(s.positions, PositionKind::kSinusoidal),
                                   .longest = s.longest,
                                   .dropout = static_cast<float>(s.dropout),
                                   .attention_dropout = static_cast<float>(s.attention_dropout),
                                   .activation_dropout = static_cast<float>(s.activation_dropout),
                                   .tie = s.tie,
                                   .share = s.share});
}

const AddModelFamily family({"transformer", "attention and position-wise maps alone", make});

}  // namespace
}  // namespace regard
