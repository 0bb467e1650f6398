// `regard train translate`: from pairs of lines to a model.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "cli/command.h"
#include "cli/pairs.h"
#include "cli/settings.h"
#include "cli/teller.h"
#include "tasks/train_translation.h"

namespace regard::cli {
namespace {

struct Options {
  std::string task, preset = "transformer-tiny", out;
  std::vector<std::string> train, valid;
  PairOptions pairs;
  TranslationData data;
  std::vector<Setting> model, training;
  bool resume = false;
};

int run(Options& options, const Context& context) {
  check(options.task == "translate", "train: there is no task '", options.task, "', expected translate");
  check(options.train.empty() != options.data.builtin.empty(),
        "train: expected either --train with one or two files, or --builtin");
  if (options.train.empty() && options.valid.empty()) options.pairs.check_unused("train");
  if (!options.train.empty()) options.data.train = options.pairs.files(options.train, "train", "--train");
  if (!options.valid.empty()) options.data.valid = options.pairs.files(options.valid, "train", "--valid");
  check(!std::filesystem::is_directory(options.out), "train: --out '", options.out, "' is a folder, expected a file");
  ModelSettings model = preset(options.preset);
  for (const auto& [key, value] : options.model) set(model, key, value);
  for (const auto& [key, value] : options.model) {  // a line that nobody reads would be a surprise
    const bool within = key == "encoder_attention" || key == "decoder_attention";
    check(!within || model.family == "transformer", "train: ", option_of(key),
          " is for transformers, the model is of the family ", model.family);
  }
  TranslationSettings settings;
  for (const auto& [key, value] : options.training) translation_table().set(settings, key, value);

  Teller teller;
  Context mine = context;
  mine.log = [&](std::string_view line) { teller.say(line); };
  TranslationRun run{.path = options.out, .resume = options.resume};
  run.say = [&](std::string_view line) { teller.say(line); };
  run.on_update = [&](const UpdateReport& report) { teller.update(report); };
  run.on_report = [&](const UpdateReport& report) { teller.report(report); };
  run.on_validation = [&](const ValidationReport& report) { teller.validation(report); };
  try {
    const LoopResult result = train_translation(options.data, model, settings, run, mine);
    std::string line = fmt::format("{} after {} updates ({:.2f} epochs, {})",
                                   result.reason == LoopResult::Reason::kPatience ? "No better any more" : "Done",
                                   result.reached.updates, result.reached.epochs, time_text(result.reached.seconds));
    if (result.best) {
      line += fmt::format("; best {} {:.4g} at update {}", settings.best_by == "loss" ? "loss" : "BLEU", *result.best,
                          result.best_update);
    }
    teller.say(line);
    teller.say(fmt::format("Model  {}   (regard translate -m {} reads lines; regard plot {} draws the run)",
                           options.out, options.out, metrics_of(options.out)));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kCancelled) teller.say(error.what());
    throw;
  }
  return 0;
}

const AddCommand train({
    .name = "train",
    .summary = "train a model: translation from pairs of lines",
    .example = "regard train translate --builtin zh-en --model gru-attention --stop-after 2m --out m.model\n"
               "regard train translate --train a.zh a.en --valid b.zh b.en --model transformer-tiny --out zh-en.model\n"
               "regard train translate --train pairs.tsv --tokenizer words --attention \"additive | sparsemax\" "
               "--model luong --out m.model",
    .build = [](App& app) -> Run {
      auto options = std::make_shared<Options>();
      app.add_option("task", options->task, "translate")->required()->option_text("TASK");
      app.add_option("--train", options->train, "two files, line by line, or one: .tsv or .jsonl; each may be .gz")
          ->expected(1, 2)
          ->option_text("FILE [FILE]");
      app.add_option("--valid", options->valid, "the same for validation")->expected(1, 2)->option_text("FILE [FILE]");
      options->pairs.add(app);
      app.add_option("--builtin", options->data.builtin,
                     "the built-in corpus: zh-en, en-zh, en-fr, fr-en, zh-fr, fr-zh")
          ->option_text("PAIR");
      app.add_option("--lines", options->data.builtin_lines, "of the built-in corpus (20000)")
          ->check(Range(std::int64_t{1}, std::int64_t{1'000'000'000}))
          ->option_text("N");
      app.add_option("--dictionary", options->data.dictionary,
                     "a file of words that Chinese is cut into, `word [count]` a line")
          ->option_text("FILE");
      app.add_option("--out", options->out, "the model to write")->required()->option_text("MODEL");
      app.add_flag("--resume", options->resume, "go on from where the run stopped");
      std::string help = "what to start from (transformer-tiny):";
      for (const Preset& each : presets()) help += fmt::format("\n{}: {}", each.name, each.about);
      app.add_option("--model", options->preset, help)->option_text("NAME");
      add_settings(app, translation_table(), TranslationSettings(), "Training", options->training);
      add_settings(app, model_table(), ModelSettings(), "Model (over what --model says)", options->model,
                   {"source_words", "target_words"});
      app.set_config("--config", "a file with lines such as batch-tokens=2048; options win")->option_text("FILE");
      return [options](const Context& context) { return run(*options, context); };
    },
});

}  // namespace
}  // namespace regard::cli
