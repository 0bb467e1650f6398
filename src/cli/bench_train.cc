// bench train: whole updates of translation models on one batch: forward, backward, clipping, Adam. Sentences are as
// long as those of a batch sorted by length.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "cli/bench.h"
#include "models/presets.h"
#include "regard/train/optimizer.h"
#include "regard/train/trainer.h"

namespace regard::cli {
namespace {

constexpr std::int32_t kVocabulary = 8000;

struct Size {
  const char* name;
  const char* preset;
  std::int64_t layers = 0, hidden = 0, ffn = 0, heads = 0;  // 0: as the preset has it
  std::int64_t sentences = 0, least = 12, most = 16;        // words of a sentence
  double dropout = 0;
};

constexpr Size kSizes[] = {
    {.name = "gru", .preset = "gru-attention", .sentences = 128},
    {.name = "transformer_tiny", .preset = "transformer-tiny", .sentences = 256, .dropout = 0.3},
    {.name = "transformer_512", .preset = "transformer-base", .layers = 3, .sentences = 256, .dropout = 0.3},
};

ModelSettings settings_of(const Size& size) {
  ModelSettings settings = preset(size.preset);
  settings.source_words = settings.target_words = kVocabulary;
  if (size.layers > 0) settings.encoder_layers = settings.decoder_layers = size.layers;
  settings.dropout = size.dropout;
  return settings;
}

std::vector<SequencePair> pairs_of(const Size& size) {
  std::vector<SequencePair> pairs;
  const RandomKey key(3);
  for (std::int64_t i = 0; i < size.sentences; ++i) {
    SequencePair pair{.id = static_cast<std::uint64_t>(i)};
    const auto number = static_cast<std::uint64_t>(i);
    for (std::vector<std::int32_t>* side : {&pair.source, &pair.target}) {
      const RandomKey own = key.at(side == &pair.source ? 1 : 2);
      const auto more = random_below(own, number, static_cast<std::uint32_t>(size.most - size.least + 1));
      const auto length = static_cast<std::uint64_t>(size.least) + more;
      for (std::uint64_t t = 0; t < length; ++t) {
        side->push_back(4 + static_cast<std::int32_t>(random_below(own.at(number), t, kVocabulary - 4)));
      }
    }
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

struct Training {
  explicit Training(const Size& size)
      : batch(make_batch(pairs_of(size), {.begin = 1, .end = 2})),
        model(make_model(Builder(parameters, RandomKey(7)), settings_of(size))),
        optimizer(parameters, {.beta2 = 0.98}) {
    const auto numbers = [](const Tensor& ids) {
      return std::vector<float>(ids.data<std::int32_t>(), ids.data<std::int32_t>() + ids.size());
    };
    source = numbers(batch.source);
    previous = numbers(batch.previous);
    targets = numbers(batch.targets);
    lengths.assign(batch.lengths.begin(), batch.lengths.end());
    const Tensor& weights = batch.target_weights;
    counted.assign(weights.data<float>(), weights.data<float>() + weights.size());
  }

  void step() {
    if (!trainer) trainer.emplace(parameters, optimizer, TrainerSettings{.clip = 1});
    trainer->begin();
    trainer->add([&](Tape& tape) -> LossPart {
      const auto key = RandomKey(9).at(static_cast<std::uint64_t>(trainer->steps()));
      return {model->loss(tape, batch, {.label_smoothing = 0.1, .training = true, .key = key}).sum,
              static_cast<double>(batch.target_count)};
    });
    const StepResult result = trainer->finish(1e-4);
    if (trainer->steps() == 1) loss = static_cast<float>(result.loss);  // later ones know the batch by heart
  }

  Parameters parameters;
  Batch batch;
  std::unique_ptr<SequenceModel> model;
  Adam optimizer;
  std::optional<Trainer> trainer;  // with the first step, as PyTorch does: gradients and moments count as its memory
  std::vector<float> source, previous, targets, lengths, counted;
  float loss = 0;
};

Job job(const Size& size) {
  const auto training = std::make_shared<Training>(size);
  Job made;
  made.run = [=] { training->step(); };
  // First weights know nothing: every word is about as likely.
  made.gap = [=] { return std::abs(static_cast<double>(training->loss) - std::log(double{kVocabulary})) / 2; };
  made.inputs = {{"source", training->source},
                 {"previous", training->previous},
                 {"targets", training->targets},
                 {"lengths", training->lengths},
                 {"counted", training->counted}};
  made.output = [=] { return std::span<const float>(&training->loss, 1); };
  made.memory = {training};
  return made;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Size& size : kSizes) {
    const ModelSettings settings = settings_of(size);
    const Batch batch = make_batch(pairs_of(size), {.begin = 1, .end = 2});
    Parameters parameters;
    const auto model = make_model(Builder(parameters, RandomKey(7)), settings);
    double multiplied = 0;  // weights in products beside the output's; all meet about as many words
    for (const Parameter& each : parameters) {
      const bool words = each.value.rank() == 2 && (each.value[0] == kVocabulary || each.value[1] == kVocabulary);
      if (each.value.rank() == 2 && !words) multiplied += static_cast<double>(each.value.size());
    }
    const auto words = static_cast<double>(batch.target_count);
    all.push_back({.name = size.name,
                   .operation = std::string("train_") + settings.family,
                   .parameters = {{"batch", batch.size()},
                                  {"time", batch.source[0]},
                                  {"steps", batch.targets[0]},
                                  {"words", kVocabulary},
                                  {"layers", settings.encoder_layers},
                                  {"embedding", settings.embedding},
                                  {"hidden", settings.hidden},
                                  {"ffn", settings.ffn},
                                  {"heads", settings.heads},
                                  {"dropout", static_cast<std::int64_t>(100 * settings.dropout)},
                                  {"tokens", batch.target_count}},
                   .flops = 6 * words * (multiplied + double{kVocabulary} * static_cast<double>(settings.hidden)),
                   .limit = "limits/fma",
                   .peers = {"torch"},
                   .tolerance = 1,  // of the first loss: each side drew its own first weights
                   .memory = true,
                   .prepare = [size] { return job(size); }});
  }
  return all;
}

const AddBench add({.name = "train",
                    .summary = "an update of a translation model: forward, backward, Adam",
                    .cases = cases});

}  // namespace
}  // namespace regard::cli
