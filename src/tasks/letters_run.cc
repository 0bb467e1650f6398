#include "tasks/letters_run.h"

#include <algorithm>
#include <chrono>

#include "regard/context.h"

namespace regard {
namespace {

constexpr std::uint64_t kWeights = 100;  // where in the seed's numbers the first weights are

Seq2seqSettings with_words(Seq2seqSettings settings) {
  settings.source_words = settings.target_words = Letters::kWords;
  return settings;
}

std::int64_t largest(const float* row, std::int64_t count) { return std::max_element(row, row + count) - row; }

}  // namespace

LettersRun::LettersRun(const LettersRunSettings& settings)
    : settings_(settings),
      task_(settings.task),
      model_(Builder(parameters_, RandomKey(settings.task.seed).at(kWeights)), with_words(settings.model)),
      optimizer_(parameters_),
      trainer_(parameters_, optimizer_, {.clip = settings.clip}) {}

// Up in a straight line over the first twentieth, then down in one to zero.
double LettersRun::rate(std::int64_t step) const {
  const auto all = static_cast<double>(settings_.steps), now = static_cast<double>(step + 1);
  const double rise = std::max(1.0, all / 20);
  return settings_.rate * std::min(now / rise, (all - now + 1) / std::max(1.0, all - rise + 1));
}

Batch LettersRun::training_batch(std::int64_t step) const {
  std::vector<SequencePair> pairs;
  for (std::int64_t i = 0; i < settings_.batch; ++i) {
    pairs.push_back(task_.training(static_cast<std::uint64_t>(step * settings_.batch + i)).pair);
  }
  return make_batch(pairs, {.begin = Letters::kBegin, .end = Letters::kEnd});
}

void LettersRun::train(const Context& context, const std::function<void(const Moment&)>& report) {
  const ContextScope scope(context);
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t step = trainer_.steps(); step < settings_.steps; ++step) {
    stop_if_asked(context);
    const Batch batch = training_batch(step);
    const StepResult result = trainer_.step(rate(step), [&](Tape& tape) { return model_.loss(tape, batch).loss; });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (context.progress) context.progress({.what = "training", .done = step + 1, .total = settings_.steps});
    if (report) report({.step = step + 1, .loss = result.loss, .seconds = seconds});
    if (settings_.seconds > 0 && seconds >= settings_.seconds) return;
  }
}

LettersScore LettersRun::test(std::int64_t examples, const Context& context) const {
  const ContextScope scope(context);
  LettersScore score;
  Tape tape;
  for (std::int64_t first = 0; first < examples; first += settings_.batch) {
    stop_if_asked(context);
    std::vector<LettersExample> some;
    std::vector<SequencePair> pairs;
    for (std::int64_t i = first; i < std::min(first + settings_.batch, examples); ++i) {
      some.push_back(task_.test(static_cast<std::uint64_t>(i)));
      pairs.push_back(some.back().pair);
    }
    const Batch batch = make_batch(pairs, {.begin = Letters::kBegin, .end = Letters::kEnd});
    const Decoded decoded = greedy(model_, tape, batch, {.longest = task_.longest_source() + 1});
    for (std::int64_t row = 0; row < batch.size(); ++row) {
      const LettersExample& example = some[batch.order[static_cast<std::size_t>(row)]];
      const Tensor weights = decoded.weights(row);
      ++score.examples;
      score.exact += decoded.words(row) == example.pair.target ? 1 : 0;
      const std::size_t common = std::min(decoded.words(row).size(), example.places.size());
      for (std::size_t i = 0; i < common; ++i) {
        const auto at = static_cast<std::int64_t>(i);
        ++score.letters;
        score.pointed += largest(weights.data<float>() + at * weights[1], weights[1]) == example.places[i] ? 1 : 0;
      }
    }
    tape.reset();
  }
  return score;
}

LettersAnswer LettersRun::answer(const std::vector<std::int32_t>& source) const {
  Tape tape;
  const SequencePair pair = {.source = source};
  const Batch batch = make_batch({&pair, 1}, {.begin = Letters::kBegin, .end = Letters::kEnd});
  const Decoded decoded = greedy(model_, tape, batch, {.longest = static_cast<std::int64_t>(source.size()) + 1});
  return {source, decoded.words(0), decoded.weights(0)};
}

}  // namespace regard
