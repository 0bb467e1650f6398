#include "models/convs2s.h"

#include <algorithm>
#include <cmath>

#include "autograd/by_type.h"
#include "base/check.h"
#include "models/attention_maps.h"
#include "models/decoding_rows.h"
#include "models/hard_costs.h"
#include "models/kept_looks.h"
#include "models/lines.h"
#include "models/presets.h"
#include "models/tape_pool.h"
#include "regard/autograd/ops.h"

namespace regard {
namespace {

// Where numbers are drawn; layers are counted on from the last, the encoder's at even numbers.
enum Site : std::uint64_t { kSourceWords, kTargetWords, kOut, kWeights, kLayers = 64 };

ConvS2sSettings checked(const ConvS2sSettings& s) {
  check(s.source_words >= 1 && s.target_words >= 1, "convs2s: vocabularies of ", s.source_words, " and ",
        s.target_words, " words, expected 1 or more");
  check(s.embedding >= 1 && s.hidden >= 1 && s.kernel >= 1, "convs2s: embedding ", s.embedding, ", hidden ", s.hidden,
        ", kernel ", s.kernel, ", expected 1 or more");
  check(s.encoder_layers >= 0 && s.decoder_layers >= 1, "convs2s: ", s.encoder_layers, " and ", s.decoder_layers,
        " layers, expected 0 or more and 1 or more");
  check(s.dropout >= 0 && s.dropout < 1 && s.attention_dropout >= 0 && s.attention_dropout < 1, "convs2s: dropout ",
        s.dropout, " and ", s.attention_dropout, ", expected 0 to below 1");
  check(!s.share || s.source_words == s.target_words, "convs2s: ", s.source_words, " and ", s.target_words,
        " words do not share a table");
  return s;
}

Var convolve(const Linear& weights, Var x, const Convolution& how) {
  return conv1d(x, x.tape().use(weights.weight()), x.tape().use(*weights.bias()), how);
}

Var roots(Tape& tape, std::span<const std::int32_t> lengths, DType type) {
  const Tensor made = tape.make({static_cast<std::int64_t>(lengths.size()), 1, 1}, type);
  by_type(type, [&]<class T>() {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      made.data<T>()[i] = static_cast<T>(std::sqrt(static_cast<double>(lengths[i])));
    }
  });
  return tape.constant(made);
}

}  // namespace

ConvS2s::ConvS2s(const Builder& builder, const ConvS2sSettings& given)
    : settings_(checked(given)),
      target_(builder.under(settings_.share ? "words" : "target"), settings_.target_words, settings_.embedding),
      source_(settings_.share ? target_
                              : Embedding(builder.under("source"), settings_.source_words, settings_.embedding)),
      source_position_(builder.under("encoder.position"),
                       {.kind = settings_.positions, .width = settings_.embedding, .longest = settings_.longest}),
      target_position_(builder.under("decoder.position"),
                       {.kind = settings_.positions, .width = settings_.embedding, .longest = settings_.longest}),
      encoder_in_(builder.under("encoder.in"), settings_.embedding, settings_.hidden),
      encoder_out_(builder.under("encoder.out"), settings_.hidden, settings_.embedding),
      decoder_in_(builder.under("decoder.in"), settings_.embedding, settings_.hidden),
      decoder_out_(builder.under("decoder.out"), settings_.hidden, settings_.embedding),
      output_(builder.under("output"), settings_.embedding, settings_.target_words,
              settings_.tie ? &target_.table() : nullptr) {
  const ConvS2sSettings& s = settings_;
  for (std::int64_t i = 0; i < s.encoder_layers; ++i) {
    encoder_.emplace_back(builder.under(text("encoder.layer", i, ".convolution")), s.kernel * s.hidden, 2 * s.hidden);
  }
  const std::vector<std::string> lines = lines_of("cross attention", s.line, s.decoder_layers);
  if (s.positions != PositionKind::kNone) room_ = {s.longest, s.longest};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Mechanism mechanism(lines[i]);
    reinforces_ |= learns_by_reinforce(mechanism);
    room_.narrow_both(mechanism.longest());
    const Builder at = builder.under(text("decoder.layer", i));
    decoder_.push_back(
        {.convolution = Linear(at.under("convolution"), s.kernel * s.hidden, 2 * s.hidden),
         .attention = MultiStepAttention(at, {.state = s.hidden, .embedding = s.embedding, .line = lines[i]}),
         .context = Linear(at.under("context"), s.embedding, s.hidden)});
  }
}

// x [batch, time, …]: an element's number in its example does not depend on how far the batch is padded.
Var ConvS2s::drop(Var x, const Pass& pass, std::uint64_t site) const {
  const float p = settings_.dropout;
  return pass.options.training && p > 0 ? dropout(x, p, pass.options.key.at(site), pass.ids) : x;
}

Var ConvS2s::half(Var x) const { return x * number(x.tape(), std::sqrt(0.5), x.dtype()); }

ConvS2s::Encoded ConvS2s::encode(Tape& tape, const Batch& batch, const Pass& pass) const {
  const Var inputs = drop(source_position_(source_(tape, by_item(tape, batch.source))), pass, kSourceWords);
  Var x = encoder_in_(inputs);
  for (std::size_t i = 0; i < encoder_.size(); ++i) {
    const Var made = convolve(encoder_[i], drop(x, pass, kLayers + 2 * i),
                              {.kernel = settings_.kernel, .padding = Padding::kSame, .lengths = batch.lengths});
    x = half(glu(made) + x);
  }
  return {encoder_out_(x), inputs, roots(tape, batch.lengths, x.dtype())};
}

Attention ConvS2s::look(const DecoderLayer& layer, Var states, Var words, const Encoded& encoded,
                        const AttendOptions& options) const {
  Attention looked = layer.attention(states, words, encoded.keys, encoded.inputs, options);
  looked.context = looked.context * encoded.scale;
  return looked;
}

Var ConvS2s::join(const DecoderLayer& layer, Var states, Var context, Var x) const {
  return half(half(states + layer.context(context)) + x);
}

Var ConvS2s::read(Tape& tape, const Batch& batch, const LossOptions& options, std::vector<AttendTrace>* traces) const {
  const Pass pass{options, batch.ids};
  const Encoded encoded = encode(tape, batch, pass);
  const Var words = drop(target_position_(target_(tape, by_item(tape, batch.previous))), pass, kTargetWords);
  Var x = decoder_in_(words);
  for (std::size_t i = 0; i < decoder_.size(); ++i) {
    const DecoderLayer& layer = decoder_[i];
    const Var states = glu(convolve(layer.convolution, drop(x, pass, kLayers + 2 * i + 1),
                                    {.kernel = settings_.kernel, .padding = Padding::kCausal}));
    AttendOptions asked{.lengths = batch.lengths, .first_query = 0, .ids = batch.ids, .draws = options.training};
    asked.dropout = options.training ? settings_.attention_dropout : 0;
    asked.key = options.key.at(kWeights).at(i);
    Attention looked = look(layer, states, words, encoded, asked);
    if (traces != nullptr) traces->push_back(std::move(looked.trace));
    x = join(layer, states, looked.context, x);
  }
  x = drop(decoder_out_(x), pass, kOut);
  return reshape(x, {batch.size() * batch.targets[0], settings_.embedding});
}

SequenceModel::Loss ConvS2s::loss(Tape& tape, const Batch& batch, const LossOptions& options) const {
  std::vector<AttendTrace> traces;
  const bool tells = options.training && reinforces_;
  Loss made =
      output_.loss(read(tape, batch, options, tells ? &traces : nullptr), places_by_item(tape, batch), batch, options);
  if (tells) {
    const HardCosts costs(made.log_probabilities, batch);
    for (const AttendTrace& trace : traces) costs.fill_steps(trace);
  }
  return made;
}

Var ConvS2s::logits(Tape& tape, const Batch& batch) const {
  return output_.logits(read(tape, batch, {}, nullptr), places_by_item(tape, batch), batch);
}

std::vector<Tensor> ConvS2s::all_attention(const Batch& batch) const {
  const PooledTape pooled(this);
  std::vector<AttendTrace> traces;
  read(*pooled, batch, {}, &traces);
  std::vector<Tensor> layers, made;
  for (const AttendTrace& each : traces) layers.push_back(each.all_weights());
  for (std::int64_t row = 0; row < batch.size(); ++row) {
    made.push_back(item_of(layers, row, target_steps(batch, row), batch.lengths[static_cast<std::size_t>(row)]));
  }
  return made;
}

std::vector<Tensor> ConvS2s::places(const Batch& batch) const {
  const PooledTape pooled(this);
  std::vector<AttendTrace> traces;
  read(*pooled, batch, {}, &traces);
  std::vector<Tensor> layers(traces.size());
  std::transform(traces.begin(), traces.end(), layers.begin(), [](const AttendTrace& each) { return each.places(); });
  return places_of(layers, batch);
}

// One batch step by step. A convolution sees the last inputs of its layer, which are kept as each step made them.
class ConvS2s::Steps : public Decoding {
 public:
  Steps(const ConvS2s& model, const Batch& batch, const DecodeOptions& options)
      : model_(model),
        options_(options),
        pooled_(&model),
        lengths_(batch.lengths),
        rows_(batch.lengths),
        inputs_(model.decoder_.size()),
        looks_(model.attention_shape()) {
    const LossOptions no_options;
    const Encoded encoded = model.encode(tape_, batch, Pass{no_options, batch.ids});
    keys_ = encoded.keys.value().clone();
    source_ = encoded.inputs.value().clone();
    const std::vector<std::string> lines =
        lines_of("cross attention", model.settings_.line, model.settings_.decoder_layers);
    for (const std::string& line : lines) by_place_.push_back(looks_by_place(line));
  }

  Tensor step(std::span<const std::int32_t> sources, std::span<const std::int32_t> origins,
              std::span<const std::int32_t> previous) override {
    rows_.advance(sources, origins, previous);
    tape_.reset();
    if (rows_.sources_left()) {
      keys_ = take_rows(keys_, rows_.stayed());
      source_ = take_rows(source_, rows_.stayed());
    }
    const std::int64_t count = rows_.count(), hidden = model_.settings_.hidden, kernel = model_.settings_.kernel;
    if (options_.keeps != Keeps::kNothing) looks_.begin(count, keys_[1]);
    const Var words = model_.target_position_(model_.target_(tape_, rows_.words(tape_, {count, 1})), rows_.step());
    const Var key_rows = tape_.constant(keys_), source = tape_.constant(source_);
    const Encoded encoded{key_rows, source, roots(tape_, rows_.lengths(), key_rows.dtype())};
    Var x = model_.decoder_in_(words);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const DecoderLayer& layer = model_.decoder_[i];
      inputs_[i].add(x.value());
      const Var window = tape_.constant(inputs_[i].gather(tape_, rows_, 1, rows_.step() + 1 - kernel));
      const Var states = glu(layer.convolution(reshape(window, {count, 1, kernel * hidden})));
      x = model_.join(layer, states, look(i, states, words, encoded), x);
    }
    return model_.output_(reshape(model_.decoder_out_(x), {count, model_.settings_.embedding})).value();
  }

  EveryMap looked(std::int64_t source, std::span<const std::int32_t> path) const override {
    return {.cross = {.weights = looks_.along(path, lengths_[static_cast<std::size_t>(source)])}};
  }

 private:
  // All rows of a source look at the same keys: side by side, or if the mechanism minds where a query stands, one after
  // another.
  Var look(std::size_t at, Var states, Var words, const Encoded& encoded) {
    const DecoderLayer& layer = model_.decoder_[at];
    const std::int64_t count = rows_.sources(), width = rows_.width();
    const auto look_with = [&](Var queries, Var beside, std::int64_t first) {
      AttendOptions asked{.lengths = rows_.lengths(), .first_query = rows_.step(), .draws = false};
      asked.weights = options_.keeps != Keeps::kNothing;
      const std::optional<Edits> edits = edits_of(
          options_.what_if,
          {.layer = static_cast<std::int64_t>(at), .queries = queries[1], .keys = keys_[1], .step = rows_.step()});
      if (edits) asked.edits = &*edits;
      const Attention looked = model_.look(layer, queries, beside, encoded, asked);
      if (options_.keeps != Keeps::kNothing) {
        looks_.add(static_cast<std::int64_t>(at), looked.trace.all_weights(), width, first);
      }
      return looked.context;
    };
    const Var groups = reshape(states, {count, width, states[2]}), beside = reshape(words, {count, width, words[2]});
    const Shape shape = {count * width, 1, words[2]};
    if (width <= 1 || !by_place_[at]) return reshape(look_with(groups, beside, 0), shape);
    std::vector<Var> all;
    for (std::int64_t i = 0; i < width; ++i) {
      all.push_back(look_with(slice(groups, 1, i, i + 1), slice(beside, 1, i, i + 1), i));
    }
    return reshape(concat(all, 1), shape);
  }

  const ConvS2s& model_;
  const DecodeOptions options_;
  PooledTape pooled_;
  Tape& tape_ = *pooled_;
  const std::vector<std::int32_t> lengths_;  // of all sources of the batch
  DecodingRows rows_;
  Tensor keys_, source_;           // z and e
  std::vector<StepCache> inputs_;  // of each layer
  KeptLooks looks_;
  std::vector<bool> by_place_;
};

std::unique_ptr<Decoding> ConvS2s::decode(const Batch& sources, const DecodeOptions& options) const {
  check(options.what_if == nullptr || sources.size() == 1, "what if: a batch of ", sources.size(),
        " sources, expected 1");
  return std::make_unique<Steps>(*this, sources, options);
}

namespace {

std::unique_ptr<SequenceModel> make(const Builder& builder, const ModelSettings& s) {
  check(s.attention != "none", "model: convs2s cannot do without attention");
  return std::make_unique<ConvS2s>(builder,
                                   ConvS2sSettings{.source_words = s.source_words,
                                                   .target_words = s.target_words,
                                                   .embedding = s.embedding,
                                                   .hidden = s.hidden,
                                                   .encoder_layers = s.encoder_layers,
                                                   .decoder_layers = s.decoder_layers,
                                                   .kernel = s.kernel,
                                                   .line = s.attention.empty() ? "dot" : s.attention,
                                                   .positions = position_kind(s.positions, PositionKind::kLearned),
                                                   .longest = s.longest,
                                                   .dropout = static_cast<float>(s.dropout),
                                                   .attention_dropout = static_cast<float>(s.attention_dropout),
                                                   .tie = s.tie,
                                                   .share = s.share});
}

const AddModelFamily family({"convs2s", "convolutions; every layer of the decoder looks at the source", make});

}  // namespace
}  // namespace regard
