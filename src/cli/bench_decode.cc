// bench decode: translating a batch with a transformer, encoder included. The weights are random, and the end is
// unlikely, so that every sentence gets as many words as it may; a peer computes with the same weights.
#include <algorithm>
#include <cmath>

#include "autograd/int8_weights.h"
#include "base/check.h"
#include "cli/bench.h"
#include "decode/search.h"
#include "models/presets.h"
#include "models/tape_pool.h"
#include "regard/nn/position.h"

namespace regard::cli {
namespace {

constexpr std::int32_t kVocabulary = 8000;
constexpr std::int32_t kBegin = 1, kEnd = 2;
constexpr std::int64_t kWritten = 20;  // words of a translation

struct Size {
  const char* name;
  const char* preset;
  std::int64_t layers = 0;  // 0: as the preset has it
};
constexpr Size kSizes[] = {{"tiny", "transformer-tiny"}, {"512", "transformer-base", 3}};

ModelSettings settings_of(const Size& size) {
  ModelSettings settings = preset(size.preset);
  settings.source_words = settings.target_words = kVocabulary;
  settings.longest = 64;
  settings.tie = true;
  if (size.layers > 0) settings.encoder_layers = settings.decoder_layers = size.layers;
  return settings;
}

struct Decoder {
  Decoder(const Size& size, std::int64_t sentences, std::int64_t beam, bool int8)
      : model(make_model(Builder(parameters, RandomKey(7)), settings_of(size))) {
    for (Parameter& each : parameters) {
      // Nothing is the same as nothing: biases are not zero in trained models, and the end must not come by chance.
      if (each.value.rank() == 1 && each.name.ends_with("bias")) {
        for (std::int64_t i = 0; i < each.value.size(); ++i) {
          each.value.data<float>()[i] =
              0.1f * static_cast<float>(normal(RandomKey(5).at(each.index), static_cast<std::uint64_t>(i)));
        }
      }
      if (each.name == "output.bias") each.value.data<float>()[kEnd] = -100;
    }
    if (int8) use_int8(parameters);
    std::vector<SequencePair> pairs;
    for (std::int64_t i = 0; i < sentences; ++i) {
      SequencePair pair{.id = static_cast<std::uint64_t>(i)};
      const RandomKey own = RandomKey(3).at(pair.id);
      const auto length = 12 + random_below(own, 0, 5);
      for (std::uint64_t t = 1; t <= length; ++t) {
        pair.source.push_back(4 + static_cast<std::int32_t>(random_below(own, t, kVocabulary - 4)));
      }
      pair.source.push_back(kEnd);
      pairs.push_back(std::move(pair));
    }
    batch = make_batch(pairs, {.begin = kBegin, .end = kEnd});
    search_settings = {.begin = kBegin, .end = kEnd, .beam = beam, .limit = {.factor = 0, .more = kWritten}};
    source.assign(batch.source.data<std::int32_t>(), batch.source.data<std::int32_t>() + batch.source.size());
    lengths.assign(batch.lengths.begin(), batch.lengths.end());
    const Tensor rows = sinusoids(64, settings_of(size).hidden);
    positions.assign(rows.data<double>(), rows.data<double>() + rows.size());
  }

  void run() {
    const TapePoolScope scope(pool);
    found = search(*model, batch, search_settings);
  }

  // The best of what was found. The peer does not count the end, which does not come, so here it does not count either.
  std::span<const float> output() {
    SearchSettings all = search_settings;
    all.best = all.beam;
    words.clear();
    const std::vector<Hypotheses> every = search(*model, batch, all);
    Tape tape;
    for (std::int64_t row = 0; row < batch.size(); ++row) {
      const Hypotheses& some = every[static_cast<std::size_t>(row)];
      double best = -1e30;
      const Hypothesis* likeliest = &some.at(0);
      for (const Hypothesis& each : some) {
        tape.reset();
        const Tensor steps = forced(tape, row, each).log_probabilities;
        double sum = 0;
        for (std::int64_t t = 0; t < kWritten; ++t) sum += static_cast<double>(steps.data<float>()[t]);
        if (sum > best) best = sum, likeliest = &each;
      }
      for (const std::int32_t word : likeliest->words) words.push_back(static_cast<float>(word));
    }
    return words;
  }

  SequenceModel::Loss forced(Tape& tape, std::int64_t row, const Hypothesis& given) const {
    SequencePair pair{.id = 0, .source = {}, .target = given.words};
    for (std::int32_t t = 0; t < batch.lengths[static_cast<std::size_t>(row)]; ++t) {
      pair.source.push_back(batch.source.data<std::int32_t>()[t * batch.size() + row]);
    }
    return model->loss(tape, make_batch({&pair, 1}, {.begin = kBegin, .end = kEnd}));
  }

  // How far the log-probability of what was found is from that of a forced pass.
  double gap() const {
    double worst = 0;
    const std::vector<Hypotheses> now = search(*model, batch, search_settings);
    for (std::int64_t row = 0; row < std::min<std::int64_t>(batch.size(), 4); ++row) {
      const Hypothesis& best = now[static_cast<std::size_t>(row)].at(0);
      Tape tape;
      worst = std::max(worst, std::abs(forced(tape, row, best).sum.value().item() + best.log_probability));
    }
    return worst / 1e-3;  // of some 100
  }

  Parameters parameters;
  std::unique_ptr<SequenceModel> model;
  Batch batch;
  SearchSettings search_settings;
  std::vector<float> source, lengths, positions, words;
  std::vector<Hypotheses> found;
  TapePool pool;  // as a translator has one
};

Job job(const Size& size, std::int64_t sentences, std::int64_t beam, bool int8) {
  const auto decoder = std::make_shared<Decoder>(size, sentences, beam, int8);
  Job made;
  made.run = [=] { decoder->run(); };
  made.gap = [=] { return decoder->gap(); };
  made.inputs = {{"source", decoder->source}, {"lengths", decoder->lengths}, {"positions", decoder->positions}};
  for (const Parameter& each : decoder->parameters) {
    made.inputs.push_back({each.name, {each.value.data<float>(), static_cast<std::size_t>(each.value.size())}});
  }
  made.output = [=] { return decoder->output(); };
  made.memory = {decoder};
  return made;
}

Case case_of(const Size& size, std::int64_t sentences, std::int64_t beam, bool int8) {
  const ModelSettings settings = settings_of(size);
  const double width = static_cast<double>(settings.hidden), ffn = static_cast<double>(settings.ffn);
  const double layers = static_cast<double>(settings.decoder_layers);
  const double step = layers * (6 * width * width + 2 * width * ffn) + width * kVocabulary;
  const double read = 15 * layers * (6 * width * width + 2 * width * ffn);
  return {
      .name = text(size.name, "_batch", sentences, beam == 1 ? "_greedy" : "_beam5", int8 ? "_int8" : ""),
      .operation = "decode_transformer",
      .parameters = {{"batch", sentences},
                     {"beam", beam},
                     {"steps", kWritten},
                     {"words", kVocabulary},
                     {"layers", settings.encoder_layers},
                     {"width", settings.hidden},
                     {"ffn", settings.ffn},
                     {"heads", settings.heads},
                     {"positions", 64},
                     {"begin", kBegin},
                     {"end", kEnd},
                     {"int8", int8 ? 1 : 0}},
      .flops = 2 * static_cast<double>(sentences) * (read + static_cast<double>(kWritten * beam) * step),
      .limit = "limits/fma",
      .peers = {"ctranslate2"},
      .tolerance = 1,
      // 8 bits round in ways of their own, and random weights have no favourite words: only that both wrote as much.
      .compare = int8 ? "sizes" : "words",
      .prepare = [=] { return job(size, sentences, beam, int8); }};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Size& size : kSizes) {
    for (const bool int8 : {false, true}) {
      for (const std::int64_t sentences : {1, 64}) {
        for (const std::int64_t beam : {1, 5}) all.push_back(case_of(size, sentences, beam, int8));
      }
    }
  }
  return all;
}

const AddBench add({.name = "decode",
                    .summary = "translating with a transformer: greedy and beam search",
                    .cases = cases});

}  // namespace
}  // namespace regard::cli
