#include "models/recurrent.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "attention/mechanism.h"
#include "base/check.h"
#include "models/attention_maps.h"
#include "models/decoding_rows.h"
#include "models/guide.h"
#include "models/hard_costs.h"
#include "models/kept_looks.h"
#include "models/presets.h"
#include "models/tape_pool.h"
#include "regard/nn/dropout.h"
#include "regard/nn/stack.h"
#include "tensor/arena.h"

namespace regard {
namespace {

// Where numbers are drawn; layers are counted on from the last.
enum Site : std::uint64_t { kSourceWords, kTargetWords, kReadOut, kWeights, kEncoder, kDecoder };

std::int64_t gates(Cell cell) { return static_cast<std::int64_t>(gates_of(cell)); }

// The first layer has the name of the whole, the others are numbered below it.
Builder layer(const Builder& builder, std::string_view name, std::int64_t number) {
  const Builder inner = builder.under(name);
  return number == 0 ? inner : inner.under(text("layer", number));
}

RecurrentModelSettings checked(const RecurrentModelSettings& s) {
  check(s.source_words >= 1 && s.target_words >= 1, "recurrent model: vocabularies of ", s.source_words, " and ",
        s.target_words, " words, expected 1 or more");
  check(s.layers >= 1 && s.layers <= 64, "recurrent model: ", s.layers, " layers, expected 1 to 64");
  for (const std::int64_t width : {s.embedding, s.hidden, s.attention, s.readout}) {
    check(width >= 1, "recurrent model: a width of ", width, ", expected 1 or more");
  }
  check(s.dropout >= 0 && s.dropout < 1 && s.attention_dropout >= 0 && s.attention_dropout < 1,
        "recurrent model: dropout ", s.dropout, " and ", s.attention_dropout, ", expected 0 to below 1");
  check(!s.share || s.source_words == s.target_words, "recurrent model: ", s.source_words, " and ", s.target_words,
        " words do not share a table");
  check(s.style != RecurrentStyle::kLuong || s.line != "none", "recurrent model: luong without attention");
  return s;
}

// Whether keys of another width than the queries fit the score as they are.
bool fits(const Mechanism& mechanism, const SourceAttention::Widths& widths) {
  return widths.query == widths.key || mechanism.stages().line.score.name == "general";
}

}  // namespace

SourceAttention::SourceAttention(const Builder& builder, const std::string& line, const Widths& widths)
    : attention_([&] {
        const Mechanism mechanism(line);
        const Needs needs = mechanism.needs();
        AttendSizes sizes{.values = widths.key, .hidden = widths.hidden};
        if (needs.rows && !fits(mechanism, widths)) {
          query_.emplace(builder.under("maps.query"), widths.query, widths.hidden, false);
          key_.emplace(builder.under("maps.key"), widths.key, widths.hidden, false);
          sizes.width = widths.hidden;
        } else if (needs.rows) {
          sizes.width = widths.query;
          sizes.key_width = widths.key;
        }
        if (needs.query_tokens) sizes.query_token = widths.query;
        if (needs.key_tokens) sizes.key_token = widths.key;
        return AttentionLayer(builder, line, sizes);
      }()) {
  check(!attention_.mechanism().stages().read->is_pointer(), "recurrent model: \"", line,
        "\" reads nothing, expected a mechanism that does");
}

SourceAttention::Memory SourceAttention::prepare(Var annotations) const {
  const Var flat = reshape(annotations, {annotations[0], annotations[2], annotations[3]});
  if (!key_) return {annotations, attention_.prepare_keys(annotations)};
  return {annotations, attention_.prepare_keys((*key_)(annotations), {.key_tokens = flat})};
}

Attention SourceAttention::operator()(Var query, const Memory& memory, AttendOptions options) const {
  const std::int64_t batch = query[0];
  options.prepared_keys = memory.keys;
  Var rows = query;
  if (query_) {
    rows = (*query_)(query);
    options.query_tokens = reshape(query, {batch, 1, query[1]});
  }
  return attention_(reshape(rows, {batch, 1, 1, rows[1]}), {}, memory.values, options);
}

Room RecurrentModel::room() const {
  Room made;
  if (attends()) made.narrow_both(attention_->mechanism().longest());
  return made;
}

std::int64_t RecurrentModel::context_width() const {
  return settings_.hidden * (settings_.style == RecurrentStyle::kBahdanau ? 2 : 1);
}

RecurrentModel::RecurrentModel(const Builder& builder, const RecurrentModelSettings& given)
    : settings_(checked(given)),
      target_(builder.under(settings_.share ? "words" : "target"), settings_.target_words, settings_.embedding),
      source_(settings_.share ? target_
                              : Embedding(builder.under("source"), settings_.source_words, settings_.embedding)),
      encoder_settings_{.cell = settings_.cell,
                        .inputs = settings_.embedding,
                        .width = settings_.hidden,
                        .layers = settings_.layers,
                        .both_directions = settings_.style == RecurrentStyle::kBahdanau,
                        .dropout = settings_.dropout},
      context_(builder.under(feeds() ? "decoder.fed" : "decoder.context"),
               feeds() ? settings_.readout : context_width(), gates(settings_.cell) * settings_.hidden, false),
      readout_(builder.under("readout"), context_width() + settings_.hidden + (feeds() ? 0 : settings_.embedding),
               settings_.readout),
      output_(builder.under("output"), settings_.readout, settings_.target_words,
              settings_.tie ? &target_.table() : nullptr) {
  const RecurrentModelSettings& s = settings_;
  const bool both = encoder_settings_.both_directions;
  for (std::int64_t i = 0; i < s.layers; ++i) {
    const std::int64_t inputs = i == 0 ? s.embedding : s.hidden;
    const Builder encoder = layer(builder, "encoder", i);
    encoder_.emplace_back(encoder.under("forward"), s.cell, i > 0 && both ? 2 * s.hidden : inputs, s.hidden);
    if (both) encoder_.emplace_back(encoder.under("backward"), s.cell, i > 0 ? 2 * s.hidden : inputs, s.hidden);
    const Builder decoder = layer(builder, "decoder", i);
    decoder_.emplace_back(decoder, s.cell, inputs, s.hidden);
    if (!both) continue;
    first_state_.emplace_back(decoder.under("first"), s.hidden, s.hidden);
    if (has_memory(s.cell)) first_memory_.emplace_back(decoder.under("memory"), s.hidden, s.hidden);
  }
  if (s.style != RecurrentStyle::kPlain && s.line != "none") {
    attention_.emplace(builder.under("attention"), s.line,
                       SourceAttention::Widths{.query = s.hidden, .key = context_width(), .hidden = s.attention});
  }
}

// How the targets of a batch are gone through: those with most steps first, so that the rows that are still under way
// are the first ones; a step has `rows` of them. They become fewer only when that spares a quarter: keys and values are
// cut each time, and their gradients put together again. All steps one after another are the rows of what is read.
struct RecurrentModel::Plan {
  template <class T>
  using List = ArenaVector<T>;

  Plan(Arena& arena, const Batch& batch)
      : order(arena_vector<std::int32_t>(arena, batch.size())),
        rows(arena_vector<std::int64_t>(arena, batch.targets[0] + 1)),
        begins(arena_vector<std::int64_t>(arena, batch.targets[0] + 1)),
        places(arena_vector<std::int32_t>(arena, batch.targets.size())),
        spots(arena_vector<std::uint64_t>(arena, batch.targets.size())),
        lengths(arena_vector<std::int32_t>(arena, batch.size())),
        ids(arena_vector<std::uint64_t>(arena, batch.size())) {
    const auto size = static_cast<std::int32_t>(batch.size());
    List<std::int64_t> steps = arena_vector<std::int64_t>(arena, size);
    for (std::int32_t row = 0; row < size; ++row) {
      steps.push_back(target_steps(batch, row));
      order.push_back(row);
    }
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      const std::int64_t of_a = steps[static_cast<std::size_t>(a)], of_b = steps[static_cast<std::size_t>(b)];
      return of_a != of_b ? of_a > of_b : a < b;
    });
    const std::int64_t most = size == 0 ? 1 : std::max<std::int64_t>(1, steps[static_cast<std::size_t>(order[0])]);
    std::int64_t now = size, active = size;
    for (std::int64_t t = 0; t < most; ++t) {
      while (active > 0 && steps[static_cast<std::size_t>(order[static_cast<std::size_t>(active - 1)])] <= t) --active;
      if (4 * active <= 3 * now) now = active;
      begins.push_back(static_cast<std::int64_t>(places.size()));
      rows.push_back(now);
      for (std::int64_t i = 0; i < now; ++i) {
        const std::int32_t row = order[static_cast<std::size_t>(i)];
        places.push_back(static_cast<std::int32_t>(t) * size + row);
        spots.push_back(RandomKey(batch.ids[static_cast<std::size_t>(row)]).at(static_cast<std::uint64_t>(t)).value());
      }
    }
    for (const std::int32_t row : order) {
      lengths.push_back(batch.lengths[static_cast<std::size_t>(row)]);
      ids.push_back(batch.ids[static_cast<std::size_t>(row)]);
    }
  }

  List<std::int32_t> order;         // a row's number in the batch
  List<std::int64_t> rows, begins;  // of every step, and where its rows begin among all
  List<std::int32_t> places;        // of all rows, in [steps · batch]
  List<std::uint64_t> spots;        // of all rows, for what is dropped there: of the example and the step
  List<std::int32_t> lengths;       // of the sources, in this order
  List<std::uint64_t> ids;
};

RecurrentModel::Encoded RecurrentModel::encode(Tape& tape, const Batch& batch, const LossOptions& options,
                                               std::span<const std::int32_t> order) const {
  const bool drops = options.training && settings_.dropout > 0;
  Var words = source_(tape, batch.source);
  if (drops) words = dropout_over_time(words, settings_.dropout, options.key.at(kSourceWords), batch.ids);
  static_assert(std::is_trivially_destructible_v<RecurrentWeights>);
  auto* weights = static_cast<RecurrentWeights*>(tape.arena().allocate(encoder_.size() * sizeof(RecurrentWeights)));
  for (std::size_t i = 0; i < encoder_.size(); ++i) new (weights + i) RecurrentWeights(encoder_[i].weights(tape));
  const RandomKey key = options.key.at(kEncoder);
  const Recurrence read = recurrent_stack(encoder_settings_, words, {weights, encoder_.size()}, batch.lengths,
                                          {.key = drops ? &key : nullptr, .ids = batch.ids});
  const std::int64_t directions = encoder_settings_.both_directions ? 2 : 1;
  const std::int64_t size = batch.size(), time = batch.source[0];
  const Tensor picked = tape.make({size}, DType::kI32);
  std::copy(order.begin(), order.end(), picked.data<std::int32_t>());
  const auto last = [&](Var all, std::int64_t at, std::int64_t direction) {
    const std::int64_t which = at * directions + direction;
    return embedding(reshape(slice(all, 0, which, which + 1), {size, settings_.hidden}), picked);
  };
  Encoded made{.first = arena_vector<RecurrentState>(tape.arena(), settings_.layers)};
  for (std::int64_t i = 0; i < settings_.layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (directions == 1) {
      made.first.push_back({last(read.last, i, 0), has_memory(settings_.cell) ? last(read.memory, i, 0) : Var()});
      continue;
    }
    const Var back = last(read.last, i, 1);
    made.first.push_back({tanh(first_state_[at](back)), {}});
    if (has_memory(settings_.cell)) made.first.back().memory = tanh(first_memory_[at](back));
  }
  const std::int64_t top = settings_.layers - 1;
  if (attends()) {
    // [time, batch] becomes [batch, 1, time], in the order that is asked for.
    const Tensor from = tape.make({size, 1, time}, DType::kI32);
    for (std::int64_t i = 0; i < size * time; ++i) {
      from.data<std::int32_t>()[i] =
          static_cast<std::int32_t>(i % time * size) + order[static_cast<std::size_t>(i / time)];
    }
    const Var annotations = embedding(reshape(read.states, {time * size, context_width()}), from);
    tape.release(read.states);
    made.memory = attention_->prepare(annotations);
  } else {
    made.summary =
        directions == 1 ? last(read.last, top, 0) : concat({last(read.last, top, 0), last(read.last, top, 1)}, 1);
  }
  return made;
}

AttendOptions RecurrentModel::looking(const LossOptions& options, std::span<const std::int32_t> lengths,
                                      std::span<const std::uint64_t> ids, std::int64_t step) const {
  AttendOptions made{.lengths = lengths, .first_query = step, .ids = ids, .draws = options.training};
  made.dropout = options.training ? settings_.attention_dropout : 0;
  made.key = options.key.at(kWeights);
  return made;
}

Var RecurrentModel::read_out(Var states, Var contexts, Var words) const {
  const Var projected = readout_(feeds() ? concat({contexts, states}, -1) : concat({states, contexts, words}, -1));
  const Var made = tanh(projected);
  made.tape().release(projected);
  return made;
}

Var RecurrentModel::first_fed(Tape& tape, std::int64_t rows, DType type) const {
  const Tensor zeros = tape.make({rows, settings_.readout}, type);
  std::memset(zeros.raw(), 0, zeros.bytes());
  return tape.constant(zeros);
}

Var RecurrentModel::read(Tape& tape, const Batch& batch, const Plan& plan, const LossOptions& options,
                         std::vector<AttendTrace>* traces, Var* weights) const {
  Encoded encoded = encode(tape, batch, options, plan.order);
  if (weights != nullptr) encoded.memory.values = with_weights(encoded.memory.values);
  const auto steps = static_cast<std::int64_t>(plan.rows.size()), all = static_cast<std::int64_t>(plan.places.size());
  const float p = options.training ? settings_.dropout : 0;
  // x [rows, width], the first of them row `begin` of all.
  const auto drop = [&](Var x, RandomKey key, std::int64_t begin = 0) {
    const std::span<const std::uint64_t> spots(plan.spots);
    return p == 0 ? x
                  : dropout(x, p, key, spots.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(x[0])));
  };
  const Tensor ids = tape.make({all}, DType::kI32);
  for (std::int64_t i = 0; i < all; ++i) {
    ids.data<std::int32_t>()[i] = batch.previous.data<std::int32_t>()[plan.places[static_cast<std::size_t>(i)]];
  }
  const Var words = drop(target_(tape, ids), options.key.at(kTargetWords)), inputs = decoder_[0].project(words);
  const std::span<Var> states = make_vars(tape, steps), contexts = make_vars(tape, steps),
                       looks = make_vars(tape, weights == nullptr ? 0 : steps);
  ArenaVector<RecurrentState> now = std::move(encoded.first);
  Var fed = feeds() ? first_fed(tape, batch.size(), words.dtype()) : Var();
  Var added = attends() ? Var() : context_(encoded.summary);
  std::int64_t rows = batch.size();
  const auto look = [&](Var state, std::int64_t t) {
    const auto count = static_cast<std::size_t>(rows);
    const std::span<const std::int32_t> lengths(plan.lengths.data(), count);
    Attention looked = (*attention_)(state, encoded.memory, looking(options, lengths, {plan.ids.data(), count}, t));
    if (traces != nullptr) traces->push_back(std::move(looked.trace));
    const Var read = reshape(looked.context, {rows, looked.context[3]});
    if (weights == nullptr) return read;
    looks[static_cast<std::size_t>(t)] = slice(read, 1, context_width(), read[1]);
    return slice(read, 1, 0, context_width());
  };
  for (std::int64_t t = 0; t < steps; ++t) {
    const auto at = static_cast<std::size_t>(t);
    const std::int64_t begin = plan.begins[at];
    if (plan.rows[at] < rows) {
      const auto cut = [&](Var& x) {
        if (x.defined() && x[0] == rows) x = slice(x, 0, 0, plan.rows[at]);
      };
      for (RecurrentState& each : now) {
        cut(each.state);
        cut(each.memory);
      }
      for (Var* each : {&fed, &added, &encoded.summary, &encoded.memory.values, &encoded.memory.keys}) cut(*each);
      rows = plan.rows[at];
    }
    Var input = slice(inputs, 0, begin, begin + rows), context = encoded.summary;
    const auto add = [&](Var product) {
      input = input + product;
      tape.release(product);
    };
    if (feeds()) {
      add(context_(fed));
    } else if (attends()) {
      context = look(now[0].state, t);
      add(context_(context));
    } else {
      input = input + added;
    }
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (i > 0) input = decoder_[i].project(drop(now[i - 1].state, options.key.at(kDecoder).at(i), begin));
      now[i] = decoder_[i].step(input, now[i]);
      tape.release(input);  // cells go back by their gates
    }
    states[at] = now.back().state;
    contexts[at] = context;
    if (feeds()) states[at] = fed = read_out(now.back().state, look(now.back().state, t), {});
  }
  tape.release(inputs);
  if (weights != nullptr) *weights = concat(looks, 0);
  Var top = concat(states, 0);
  if (!feeds()) {
    const Var below = top, looked = concat(contexts, 0);
    top = read_out(below, looked, words);
    for (const Var each : {below, looked}) tape.release(each);
  }
  return drop(top, options.key.at(kReadOut));
}

SequenceModel::Loss RecurrentModel::loss(Tape& tape, const Batch& batch, const LossOptions& options) const {
  const Plan plan(tape.arena(), batch);
  std::vector<AttendTrace> traces;
  const bool tells = options.training && attends() && learns_by_reinforce(attention_->mechanism());
  const bool guides = attends() && guided(batch, options);
  Var weights;
  Loss made = output_.loss(read(tape, batch, plan, options, tells ? &traces : nullptr, guides ? &weights : nullptr),
                           plan.places, batch, options);
  if (guides) made.sum = made.sum + guide_loss(weights, plan.places, batch, options);
  if (tells) {
    const HardCosts costs(made.log_probabilities, batch);
    const std::span<const std::int32_t> places(plan.places);
    for (std::size_t t = 0; t < traces.size(); ++t) {
      costs.fill_places(traces[t], places.subspan(static_cast<std::size_t>(plan.begins[t])));
    }
  }
  return made;
}

Var RecurrentModel::logits(Tape& tape, const Batch& batch) const {
  const Plan plan(tape.arena(), batch);
  return output_.logits(read(tape, batch, plan, {}, nullptr), plan.places, batch);
}

std::vector<Tensor> RecurrentModel::all_attention(const Batch& batch) const {
  if (!attends()) return {};
  const PooledTape pooled(this);
  std::vector<AttendTrace> traces;
  const Plan plan((*pooled).arena(), batch);
  read(*pooled, batch, plan, {}, &traces);
  KeptLooks looks(attention_shape());
  for (const AttendTrace& each : traces) {
    const Tensor weights = each.all_weights();
    looks.begin(weights[0], weights[3]);
    looks.add(0, weights, 1);
  }
  std::vector<Tensor> made;
  for (std::int64_t row = 0; row < batch.size(); ++row) {
    const auto item =
        static_cast<std::int32_t>(std::find(plan.order.begin(), plan.order.end(), row) - plan.order.begin());
    const std::vector<std::int32_t> path(static_cast<std::size_t>(target_steps(batch, row)), item);
    made.push_back(looks.along(path, batch.lengths[static_cast<std::size_t>(row)]));
  }
  return made;
}

std::vector<Tensor> RecurrentModel::places(const Batch& batch) const {
  if (!attends()) return {};
  const PooledTape pooled(this);
  std::vector<AttendTrace> traces;
  const Plan plan((*pooled).arena(), batch);
  read(*pooled, batch, plan, {}, &traces);
  if (traces.empty() || !traces[0].places().defined()) return {};
  // A step has the rows that still run, the first of the order.
  const Tensor all = Tensor::zeros({batch.size(), 1, static_cast<std::int64_t>(traces.size())});
  for (std::size_t step = 0; step < traces.size(); ++step) {
    const Tensor own = traces[step].places();
    for (std::int64_t i = 0; i < own[0]; ++i) {
      all.data<float>()[plan.order[static_cast<std::size_t>(i)] * all[2] + static_cast<std::int64_t>(step)] =
          own.data<float>()[i];
    }
  }
  return places_of(std::span(&all, 1), batch);
}

// One batch step by step. What lasts from one step to the next is on the heap.
class RecurrentModel::Steps : public Decoding {
 public:
  Steps(const RecurrentModel& model, const Batch& batch, const DecodeOptions& options)
      : model_(model),
        options_(options),
        pooled_(&model),
        lengths_(batch.lengths),
        rows_(batch.lengths),
        looks_(model.attention_shape()) {
    std::vector<std::int32_t> order(static_cast<std::size_t>(batch.size()));
    std::iota(order.begin(), order.end(), 0);
    const Encoded encoded = model.encode(tape_, batch, {}, order);
    const auto kept = [](Var x) { return x.defined() ? x.value().clone() : Tensor(); };
    values_ = kept(encoded.memory.values);
    keys_ = kept(encoded.memory.keys);
    same_keys_ = keys_.defined() && keys_[0] != batch.size();
    added_ = encoded.summary.defined() ? kept(model.context_(encoded.summary)) : Tensor();
    summary_ = kept(encoded.summary);
    for (const RecurrentState& each : encoded.first) {
      state_.push_back(kept(each.state));
      memory_.push_back(kept(each.memory));
    }
    if (model.feeds()) fed_ = kept(model.first_fed(tape_, batch.size(), state_[0].dtype()));
  }

  Tensor step(std::span<const std::int32_t> sources, std::span<const std::int32_t> origins,
              std::span<const std::int32_t> previous) override {
    rows_.advance(sources, origins, previous);
    tape_.reset();
    if (rows_.sources_left()) {
      if (values_.defined()) values_ = take_rows(values_, rows_.stayed());
      if (keys_.defined() && !same_keys_) keys_ = take_rows(keys_, rows_.stayed());
    }
    const auto now = [&](Tensor& x) {
      if (!x.defined()) return Var();
      x = take_rows(x, rows_.from());
      return tape_.constant(x);
    };
    std::vector<RecurrentState> states;
    for (std::size_t i = 0; i < state_.size(); ++i) states.push_back({now(state_[i]), now(memory_[i])});
    const Var fed = now(fed_), added = now(added_), summary = now(summary_);

    const std::int64_t count = rows_.count();
    if (keeps()) looks_.begin(count, values_[2]);
    const Var words = model_.target_(tape_, rows_.words(tape_, {count}));
    Var input = model_.decoder_[0].project(words), context = summary;
    const bool feeds = model_.feeds();
    if (feeds) {
      input = input + model_.context_(fed);
    } else if (model_.attends()) {
      context = look(states[0].state);
      input = input + model_.context_(context);
    } else {
      input = input + added;
    }
    for (std::size_t i = 0; i < states.size(); ++i) {
      const RecurrentLayer& cell = model_.decoder_[i];
      states[i] = cell.step(i == 0 ? input : cell.project(states[i - 1].state), states[i]);
    }
    const Var top = states.back().state;
    if (feeds) context = look(top);
    const Var read = model_.read_out(top, context, words);
    if (feeds) fed_ = read.value().clone();
    for (std::size_t i = 0; i < states.size(); ++i) {
      state_[i] = states[i].state.value().clone();
      if (states[i].memory.defined()) memory_[i] = states[i].memory.value().clone();
    }
    return model_.output_(read).value();
  }

  EveryMap looked(std::int64_t source, std::span<const std::int32_t> path) const override {
    if (!model_.attends()) return {};
    return {.cross = {.weights = looks_.along(path, lengths_[static_cast<std::size_t>(source)])}};
  }

 private:
  bool keeps() const { return model_.attends() && options_.keeps != Keeps::kNothing; }

  // All rows of a source look at the same keys, which are not copied for them: as many looks as a source has rows.
  Var look(Var query) {
    const SourceAttention::Memory memory{tape_.constant(values_), tape_.constant(keys_)};
    const std::int64_t width = rows_.width(), count = rows_.sources(), wide = model_.context_width();
    const std::optional<Edits> edits =
        edits_of(options_.what_if, {.queries = 1, .keys = values_[2], .step = rows_.step()});
    const auto one = [&](Var each, std::int64_t row) {
      AttendOptions asked = model_.looking({}, rows_.lengths(), {}, rows_.step());
      if (edits) asked.edits = &*edits;
      asked.weights = keeps();
      const Attention looked = (*model_.attention_)(each, memory, asked);
      if (keeps()) looks_.add(0, looked.trace.all_weights(), width, row);
      return looked.context;
    };
    if (width <= 1) return reshape(one(query, 0), {count, wide});
    const Var groups = reshape(query, {count, width, query[1]});
    std::vector<Var> contexts;
    for (std::int64_t i = 0; i < width; ++i) {
      contexts.push_back(reshape(one(reshape(slice(groups, 1, i, i + 1), {count, query[1]}), i), {count, 1, wide}));
    }
    return reshape(concat(contexts, 1), {count * width, wide});
  }

  const RecurrentModel& model_;
  const DecodeOptions options_;
  PooledTape pooled_;
  Tape& tape_ = *pooled_;
  const std::vector<std::int32_t> lengths_;  // of all sources of the batch
  DecodingRows rows_;
  KeptLooks looks_;
  Tensor values_, keys_, summary_, added_, fed_;
  bool same_keys_ = false;              // all sources have the same: a table that a score learned
  std::vector<Tensor> state_, memory_;  // one a layer
};

std::unique_ptr<Decoding> RecurrentModel::decode(const Batch& sources, const DecodeOptions& options) const {
  check(options.what_if == nullptr || sources.size() == 1, "what if: a batch of ", sources.size(),
        " sources, expected 1");
  return std::make_unique<Steps>(*this, sources, options);
}

namespace {

template <RecurrentStyle style>
std::unique_ptr<SequenceModel> make(const Builder& builder, const ModelSettings& s) {
  check(s.encoder_layers == s.decoder_layers, "model: ", s.encoder_layers, " layers of the encoder and ",
        s.decoder_layers, " of the decoder: a recurrent family has as many of each");
  check(style != RecurrentStyle::kPlain || s.attention.empty() || s.attention == "none", "model: attention is '",
        s.attention, "', but the family ", s.family, " has none: bahdanau and luong have");
  RecurrentModelSettings made{.style = style,
                              .cell = s.cell == "tanh"  ? Cell::kTanh
                                      : s.cell == "gru" ? Cell::kGru
                                                        : Cell::kLstm,
                              .source_words = s.source_words,
                              .target_words = s.target_words,
                              .embedding = s.embedding,
                              .hidden = s.hidden,
                              .layers = s.decoder_layers,
                              .attention = s.attention_width != 0 ? s.attention_width : s.hidden,
                              .readout = s.readout != 0 ? s.readout
                                         : s.tie        ? s.embedding
                                                        : s.hidden,
                              .line = s.attention,
                              .dropout = static_cast<float>(s.dropout),
                              .attention_dropout = static_cast<float>(s.attention_dropout),
                              .tie = s.tie,
                              .share = s.share};
  if (made.line.empty()) made.line = style == RecurrentStyle::kLuong ? "general" : "additive";
  return std::make_unique<RecurrentModel>(builder, made);
}

const AddModelFamily plain({"seq2seq", "one recurrent network reads, another writes: no attention",
                            make<RecurrentStyle::kPlain>});
const AddModelFamily bahdanau({"bahdanau", "reads in both directions, looks back before each word",
                               make<RecurrentStyle::kBahdanau>});
const AddModelFamily luong({"luong",
                            "layers of states, looks back after them and feeds what it made into the next step",
                            make<RecurrentStyle::kLuong>});

}  // namespace
}  // namespace regard
