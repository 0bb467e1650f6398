// From pairs of lines to a model that translates.
//
//     train_translation({.train = PairFiles{.source = "a.zh", .target = "a.en"}}, model, settings, run, context);
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "data/lines.h"
#include "models/presets.h"
#include "regard/context.h"
#include "tasks/translation_settings.h"
#include "train/loop.h"

namespace regard {

struct TranslationData {
  std::optional<PairFiles> train = {};
  std::optional<PairFiles> valid = {};
  std::string builtin = {};  // "zh-en": the built-in corpus instead, with a validation set of its own
  std::int64_t builtin_lines = 20000;
  std::int64_t builtin_tests = 500;
  std::string dictionary = {};  // a file: words that Chinese text may be cut into
};

struct TranslationRun {
  std::string path;  // of the model
  bool resume = false;
  std::function<void(std::string_view)> say = {};  // what happens before the first update, a line at a time
  std::function<void(const UpdateReport&)> on_update = {};
  std::function<void(const UpdateReport&)> on_report = {};
  std::function<void(const ValidationReport&)> on_validation = {};
};

LoopResult train_translation(const TranslationData& data, const ModelSettings& model,
                             const TranslationSettings& settings, const TranslationRun& run, const Context& context);

}  // namespace regard
