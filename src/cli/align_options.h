// What `regard align` and `regard heads` have in common: models, pairs of lines, how words are cut.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "cli/app.h"
#include "data/lines.h"
#include "tasks/align_pairs.h"

namespace regard::cli {

struct AlignOptions {
  std::vector<std::string> models, files;
  std::string level = "word", words = "auto";
  AlignPairsSettings settings;
};

inline void add_align_options(App& app, AlignOptions& options) {
  app.add_option("-m,--model", options.models, "a model; a second one, of the other direction, helps")
      ->required()
      ->allow_extra_args(false)  // one a flag: what follows are the pairs
      ->option_text("MODEL");
  app.add_option("pairs", options.files, "two files, line by line, or one: .tsv or .jsonl; each may be .gz, - is stdin")
      ->required()
      ->expected(1, 2)
      ->option_text("SOURCE [TARGET]");
  app.add_option("--level", options.level, "word, character or piece (word)")->option_text("NAME");
  app.add_option("--words", options.words,
                 "blanks: words stand between blanks; auto: and Chinese without blanks is cut (auto)")
      ->option_text("NAME");
  app.add_flag(
      "--join", options.settings.join,
      "the texts were cut with blanks: the models read them without those before marks and between Chinese words");
  app.add_option("--batch-tokens", options.settings.batch_tokens, "tokens that are looked at together (4096)")
      ->check(Range(1, 1 << 24))
      ->option_text("N");
  app.add_option("--longest", options.settings.longest, "pairs with more tokens on a side are left out (1000)")
      ->check(Range(1, 1 << 20))
      ->option_text("N");
}

struct Models {
  std::unique_ptr<Translator> forward, backward;  // the second may be none
};

// Checks what was said, then loads.
inline Models load_models(AlignOptions& options, const char* command) {
  check(options.models.size() <= 2, command, ": ", options.models.size(),
        " models, expected one, or one of each direction");
  options.settings.alignment.level = alignment_level(options.level);
  options.settings.alignment.words = word_cut(options.words);
  Models models{.forward = std::make_unique<Translator>(options.models[0]), .backward = nullptr};
  if (options.models.size() == 2) models.backward = std::make_unique<Translator>(options.models[1]);
  return models;
}

inline PairReader open_pairs(const AlignOptions& options) {
  PairFiles files{.source = options.files[0]};
  if (options.files.size() == 2) files.target = options.files[1];
  return PairReader(files);
}

}  // namespace regard::cli
