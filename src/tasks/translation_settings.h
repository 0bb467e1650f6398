// What a training run of translation can be told, apart from the model (models/presets.h) and the data.
#pragma once

#include <cstdint>
#include <string>

#include "base/settings.h"

namespace regard {

struct TranslationSettings {
  // Text
  std::string tokenizer = "pieces";
  std::int64_t vocabulary = 8000;
  bool joint = false;
  bool lower = false;
  std::int64_t least_count = 1;
  double piece_dropout = 0;
  std::int64_t longest_text = 100;

  // Batches
  std::int64_t batch_tokens = 4096;
  std::int64_t batch_sentences = 0;
  std::int64_t accumulate = 1;

  // Learning
  std::string optimizer = "adam";
  double rate = 0;
  std::string schedule = "";
  std::int64_t warmup = 1000;
  double beta2 = 0.98;
  double decay = 0;
  double clip = 1;
  double label_smoothing = 0.1;
  double guide = 0;
  std::int64_t guide_shift = 1;
  double moving_average = 0;
  std::int64_t average = 0;
  bool average_best = false;

  // The run
  std::string stop_after = "10e";
  std::string valid_every = "1e";
  std::string save_every = "10m";
  std::string report_every = "100u";
  std::int64_t patience = 0;
  std::string best_by = "bleu";
  std::int64_t beam = 1;
  double length_penalty = 1;
  std::string bleu = "";
  std::uint64_t seed = 1;

  bool operator==(const TranslationSettings&) const = default;
};

const SettingsTable<TranslationSettings>& translation_table();

// True for settings that may be others when a run goes on: how long it goes, when it tells.
bool may_change(const TranslationSettings& settings, std::string_view key);

}  // namespace regard
