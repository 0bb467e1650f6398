// Translation: from pairs of lines to a model, and from a model to translations and where they looked.
//
//     train_translation({.files = PairFiles{.source = "a.zh", .target = "a.en"}}, model, settings, run, context);
//
//     const Translator translator("zh-en.model");
//     const auto found = translator.translate(lines, {.beam = 5});              // one a line, in their order
//     const Translator::Map map = translator.map(lines[0], found[0].best[0]);    // which words it looked at
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/lines.h"
#include "data/tokenizer.h"
#include "decode/search.h"
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

struct TranslateSettings {
  std::int64_t beam = 5;
  std::int64_t best = 1;  // so many of each line
  double length_penalty = 1;
  std::int64_t batch_tokens = 4096;
};

// A model that was read from a file.
class Translator {
 public:
  explicit Translator(const std::string& path);
  ~Translator();
  Translator(Translator&&) noexcept;
  Translator& operator=(Translator&&) noexcept;

  struct Result {
    std::string text;
    std::vector<std::int32_t> words;  // of the target's tokenizer
    double score = 0;
  };
  struct Translation {
    std::vector<Result> best;  // best first
  };
  using Settings = TranslateSettings;
  std::vector<Translation> translate(std::span<const std::string> lines, const Settings& settings = {},
                                     const Context& context = {}) const;

  struct Map {
    Tensor weights;                                    // [target tokens and the end, source tokens and the end]
    std::vector<std::string> rows = {}, columns = {};  // as one would show them
  };
  // How it came to this result: nothing for models without attention.
  std::optional<Map> map(std::string_view line, const Result& result, const AskedAttention& asked = {}) const;

  const ModelSettings& model_settings() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regard
