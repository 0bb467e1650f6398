#include "models/seq2seq.h"

#include "regard/nn/stack.h"

namespace regard {

Seq2seq::Seq2seq(const Builder& builder, const Seq2seqSettings& settings)
    : settings_(settings),
      source_words_(builder.under("source"), settings.source_words, settings.embedding),
      target_words_(builder.under("target"), settings.target_words, settings.embedding),
      forward_(builder.under("encoder.forward"), Cell::kGru, settings.embedding, settings.hidden),
      backward_(builder.under("encoder.backward"), Cell::kGru, settings.embedding, settings.hidden),
      first_state_(builder.under("decoder.first"), settings.hidden, settings.hidden),
      attention_(builder.under("attention"), "additive | lengths",
                 {.values = 2 * settings.hidden,
                  .query_token = settings.hidden,
                  .key_token = 2 * settings.hidden,
                  .hidden = settings.attention}),
      decoder_(builder.under("decoder"), Cell::kGru, settings.embedding, settings.hidden),
      context_(builder.under("decoder.context"), 2 * settings.hidden, 3 * settings.hidden, false),
      readout_(builder.under("readout"), 3 * settings.hidden + settings.embedding, settings.readout),
      output_(builder.under("output"), settings.readout, settings.target_words) {}

Seq2seq::Encoded Seq2seq::encode(Tape& tape, const Batch& batch) const {
  const Var words = source_words_(tape, batch.source);
  const Recurrence ahead = forward_(words, batch.lengths, Direction::kForward);
  const Recurrence back = backward_(words, batch.lengths, Direction::kBackward);
  const Var states = transpose(concat({ahead.states, back.states}, 2), 0, 1);
  const Var annotations = reshape(states, {states[0], 1, states[1], states[2]});
  return {annotations, attention_.prepare_keys(annotations), tanh(first_state_(back.last)), batch.lengths};
}

Seq2seq::Advance Seq2seq::advance(const Encoded& encoded, Var state, Var input) const {
  const std::int64_t batch = state[0], hidden = settings_.hidden;
  auto [context, trace] = attention_(reshape(state, {batch, 1, 1, hidden}), {}, encoded.annotations,
                                     {.lengths = encoded.lengths, .prepared_keys = encoded.keys});
  const Var flat = reshape(context, {batch, 2 * hidden});
  return {decoder_.step(input + context_(flat), {state, {}}).state, flat, std::move(trace)};
}

Var Seq2seq::readout(Var states, Var contexts, Var words) const {
  return tanh(readout_(concat({states, contexts, words}, -1)));
}

Seq2seq::Loss Seq2seq::loss(Tape& tape, const Batch& batch) const {
  const Encoded encoded = encode(tape, batch);
  const std::int64_t steps = batch.targets[0], rows = steps * batch.size(), hidden = settings_.hidden;
  const Var words = target_words_(tape, batch.previous);
  const Var inputs = decoder_.project(words);
  const std::span<Var> states = make_vars(tape, steps), contexts = make_vars(tape, steps);
  Var state = encoded.first_state;
  for (std::int64_t t = 0; t < steps; ++t) {
    const Var input = reshape(slice(inputs, 0, t, t + 1), {batch.size(), 3 * hidden});
    const Advance made = advance(encoded, state, input);
    const auto at = static_cast<std::size_t>(t);
    states[at] = state = made.state;
    contexts[at] = made.context;
  }
  const Var read = reshape(readout(stack(states), stack(contexts), words), {rows, settings_.readout});
  Tensor weights = batch.target_weights.reshape({rows});
  if (weights.dtype() != read.dtype()) weights = weights.to(read.dtype());  // only where gradients are checked in f64
  CrossEntropy entropy = linear_cross_entropy(read, tape.use(output_.weight()), tape.use(*output_.bias()),
                                              batch.targets.reshape({rows}), {.token_weights = weights});
  const double share = batch.target_count == 0 ? 0 : 1 / static_cast<double>(batch.target_count);
  return {entropy.loss * number(tape, share, entropy.loss.dtype()), std::move(entropy.log_probabilities)};
}

Seq2seq::Step Seq2seq::step(const Encoded& encoded, Var state, const Tensor& previous) const {
  const Var words = target_words_(state.tape(), previous);
  Advance made = advance(encoded, state, decoder_.project(words));
  return {made.state, output_(readout(made.state, made.context, words)), std::move(made.trace)};
}

}  // namespace regard
