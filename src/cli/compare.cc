// `regard compare translate`: mechanisms trained on the same data under the same budget, in one table.
#include "tasks/compare.h"

#include <fmt/format.h>

#include "base/check.h"
#include "cli/command.h"
#include "cli/settings.h"
#include "cli/teller.h"

namespace regard::cli {
namespace {

struct Options {
  std::string task, preset = "gru-attention", where = "all";
  std::string mechanisms =
      "none; uniform; dot; general; concat; additive; dot | local_m:5; general | local_p:5; scaled_dot; dot | "
      "sparsemax; dot | hard";
  std::vector<Setting> model, training;
  CompareSettings settings;
};

int run(Options& options, const Context& context) {
  check(options.task == "translate", "compare: there is no task '", options.task, "', expected translate");
  CompareSettings& settings = options.settings;
  settings.mechanisms = compared_mechanisms(options.mechanisms);
  settings.where = compare_where(options.where);
  settings.model = CompareSettings::compared_model(options.preset);
  for (const auto& [key, value] : options.model) set(settings.model, key, value);
  for (const auto& [key, value] : options.training) translation_table().set(settings.training, key, value);
  if (settings.folder.empty()) settings.folder = "compare-" + settings.builtin + "-" + options.preset;
  Comparison found{.settings = settings, .all = {}};
  {
    Teller teller;
    found = compare_translation(settings,
                                {.say = [&](std::string_view line) { teller.say(line); },
                                 .on_update = [&](const UpdateReport& report) { teller.update(report); }},
                                context);
  }
  fmt::print("\n{}\nWritten to {}: compare.md, compare.json, lengths.svg, time.svg\n", to_text(found), settings.folder);
  return 0;
}

const AddCommand compare({
    .name = "compare",
    .summary = "train several mechanisms on the same data and budget: one table and plots",
    .example =
        "regard compare translate --builtin zh-en --mechanisms \"none; dot; additive; dot | sparsemax\" --budget "
        "60s\n"
        "regard compare translate --model transformer-tiny --mechanisms \"scaled_dot; relative:8; "
        "dense_synth:128; scaled_dot | window:3; scaled_dot | sparsemax\" --budget 200u",
    .build = [](App& app) -> Run {
      auto options = std::make_shared<Options>();
      app.add_option("task", options->task, "translate")->required()->option_text("TASK");
      app.add_option(
             "--mechanisms", options->mechanisms,
             "lines of docs/mechanisms.md separated by semicolons; none: the recurrent model without attention; "
             "uniform: the mean of all states (" +
                 options->mechanisms + ")")
          ->option_text("LIST");
      app.add_option("--budget", options->settings.budget, "of training each: a time or updates, 60s or 200u (60s)")
          ->option_text("COUNT");
      app.add_option("--model", options->preset,
                     "what the mechanisms are put into, a small one of its kind: gru-attention, luong, "
                     "transformer-tiny, convs2s (gru-attention)")
          ->option_text("NAME");
      app.add_option("--where", options->where,
                     "of a transformer, whose attention: cross (at the source), self, or all of them where it makes "
                     "sense: what compares places stays out of cross (all)")
          ->option_text("NAME");
      app.add_option("--builtin", options->settings.builtin,
                     "the built-in corpus: zh-en, en-zh, en-fr, fr-en, zh-fr, fr-zh (zh-en)")
          ->option_text("PAIR");
      app.add_option("--lines", options->settings.lines, "of the built-in corpus (20000)")
          ->check(Range(std::int64_t{1}, std::int64_t{1'000'000'000}))
          ->option_text("N");
      app.add_option("--tests", options->settings.tests, "held-out sentences (300)")
          ->check(Range(std::int64_t{1}, std::int64_t{1'000'000}))
          ->option_text("N");
      app.add_option("--out", options->settings.folder,
                     "the folder of models and results; the same command goes on there (compare-PAIR-MODEL)")
          ->option_text("FOLDER");
      add_settings(app, translation_table(), options->settings.training, "Training", options->training,
                   {"stop_after", "valid_every", "save_every", "report_every", "patience", "best_by"});
      add_settings(app, model_table(), CompareSettings::compared_model(options->preset),
                   "Model (over what --model says)", options->model,
                   {"source_words", "target_words", "family", "attention", "encoder_attention", "decoder_attention"});
      return [options](const Context& context) { return run(*options, context); };
    },
});

}  // namespace
}  // namespace regard::cli
