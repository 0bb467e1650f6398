// `regard score`: how likely a model finds translations that are given.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/note.h"
#include "cli/pairs.h"
#include "tasks/scoring.h"

namespace regard::cli {
namespace {

struct Options {
  std::string model;
  std::vector<std::string> files;
  PairOptions pairs;
  ScoringSettings settings;
};

int run(const Options& options, const Context& context) {
  const Translator translator(options.model);
  PairReader pairs(options.pairs.files(options.files, "score", "the options"));
  const ScoringReport report = score_pairs(
      translator, pairs, options.settings, [](std::string_view line) { fmt::print("{}\n", line); }, context);
  if (!report.left_out.empty()) {
    std::fflush(stdout);
    note("{}", report.left_out);
  }
  return 0;
}

const AddCommand score({
    .name = "score",
    .summary = "log-probabilities of given translations, a line a pair",
    .example = "regard score -m zh-en.model test.zh test.en > scores\n"
               "regard score -m zh-en.model pairs.tsv --normalize --per-token",
    .build = [](App& app) -> Run {
      auto options = std::make_shared<Options>();
      app.add_option("-m,--model", options->model, "a model that regard train translate wrote")
          ->required()
          ->option_text("MODEL");
      app.add_option("files", options->files, "two files, line by line, or one: .tsv or .jsonl; each may be .gz")
          ->required()
          ->expected(1, 2)
          ->option_text("FILE [FILE]");
      options->pairs.add(app);
      app.add_flag("--normalize", options->settings.normalize, "the mean of the tokens and the end, not their sum");
      app.add_flag("--per-token", options->settings.per_token, "behind |||: every token and its own");
      app.add_option("--max-length", options->settings.longest,
                     "tokens of a side (1024); a pair with more has the line nan")
          ->check(Range(1, 1 << 20))
          ->option_text("N");
      return [options](const Context& context) { return run(*options, context); };
    },
});

}  // namespace
}  // namespace regard::cli
