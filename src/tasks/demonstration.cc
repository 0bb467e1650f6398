#include "tasks/demonstration.h"

#include <algorithm>

#include "base/check.h"
#include "data/corpus.h"
#include "tasks/text_units.h"

namespace regard {

namespace {

constexpr std::string_view kPair = "zh-en";
constexpr std::uint64_t kTestSeed = 9;  // sentences that the validation does not have

}  // namespace

Demonstration::Demonstration(const DemonstrationSettings& settings)
    : settings_(settings), set_(builtin_test_set(std::string(kPair), settings.tests, kTestSeed)) {
  check(settings.updates > 0, "demo: ", settings.updates, " updates, expected 1 or more");
}

std::string Demonstration::train(std::string_view attention, const std::string& path,
                                 const std::function<void(const UpdateReport&)>& on_update,
                                 const Context& context) const {
  ModelSettings model = preset("gru-attention");
  model.attention = attention;
  model.embedding = model.hidden = 128;
  model.dropout = 0;  // there are always more sentences where these come from
  TranslationSettings run;
  run.vocabulary = 1000;
  run.batch_tokens = 1024;
  run.rate = 0.005;
  run.warmup = std::max<std::int64_t>(1, std::min<std::int64_t>(100, settings_.updates / 4));
  run.schedule = "cosine";
  run.seed = settings_.seed;
  run.stop_after = run.valid_every = text(settings_.updates, "u");
  run.best_by = "loss";
  train_translation({.builtin = std::string(kPair), .builtin_lines = settings_.pairs, .builtin_tests = 50}, model, run,
                    {.path = path, .on_update = on_update}, context);
  return path;
}

TranslationScores Demonstration::test(const Translator& translator, const Context& context) const {
  return evaluate(translator, set_, {.search = {.beam = 1, .longest_line = 1000}, .most_classes = 6}, context);
}

TextPair Demonstration::long_sentence() const {
  // Long enough to be hard, short enough for its map to fit a terminal of 80 columns.
  constexpr std::int64_t kLeastWords = 24;
  constexpr std::size_t kMostCharacters = 36;
  const Corpus corpus(kPair, kTestSeed, Corpus::Split::kTest);
  for (std::uint64_t line = 0;; ++line) {
    Corpus::Example example = corpus.at(line);
    const std::string& words = example.target.text;
    if (std::count(words.begin(), words.end(), ' ') + 1 < kLeastWords) continue;
    if (characters_of(example.source.text).size() > kMostCharacters) continue;
    return {std::move(example.source.text), std::move(example.target.text)};
  }
}

}  // namespace regard
