// `regard translate MODEL`: lines from the standard input, translations to the standard output.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "base/check.h"
#include "cli/command.h"
#include "data/lines.h"
#include "io/json.h"
#include "models/attention_maps.h"
#include "tasks/translator.h"
#include "view/terminal.h"

namespace regard::cli {
namespace {

struct Options {
  std::string model, input = "-";
  Translator::Settings search;
  bool map = false, scores = false;
  AskedAttention asked;
};

constexpr std::size_t kTogether = 512;  // lines that are sorted by length and translated together

void print(const Options& options, const Translator& translator, const std::vector<std::string>& lines,
           const std::vector<Translator::Translation>& found) {
  const MapSettings view = {.colors = colors_of(STDOUT_FILENO), .width = width_of(STDOUT_FILENO)};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const Translator::Result& each : found[i].best) {
      if (options.scores) {
        fmt::print("{:.4f}\t{}\n", each.score, each.text);
      } else {
        fmt::print("{}\n", each.text);
      }
    }
    if (!options.map || found[i].best.empty()) continue;
    const Translator::Looked looked = translator.look(lines[i], found[i].best[0]);
    check(looked.weights[0] > 0, "translate: a model without attention has no map (",
          translator.model_settings().family, ")");
    fmt::print("\n{}\n", heat_map(map_of(looked.weights, options.asked),
                                  {.rows = labels_of(translator.target(), looked.target),
                                   .columns = labels_of(translator.source(), looked.source)},
                                  view));
  }
  std::fflush(stdout);
}

int run(const Options& options, const Context& context) {
  const Translator translator(options.model);
  LineReader reader(options.input);
  std::vector<std::string> lines;
  const std::size_t together = options.map || isatty(STDIN_FILENO) == 1 ? 1 : kTogether;
  const auto flush = [&] {
    print(options, translator, lines, translator.translate(lines, options.search, context));
    lines.clear();
  };
  for (LineReader::Line line; reader.next(line);) {
    check(!line.too_long, reader.name(), ":", line.number, ": a line of ", line.bytes, " bytes, expected at most ",
          kLongestLine);
    check(is_utf8(line.text), reader.name(), ":", line.number, ": not UTF-8");
    lines.push_back(line.text);
    if (lines.size() == together) flush();
  }
  flush();
  return 0;
}

const AddCommand translate({
    .name = "translate",
    .summary = "translate lines with a trained model, and show where it looked",
    .example = "regard translate m.model --map <<< '他们在看。'",
    .build = [](CLI::App& app) -> Run {
      auto options = std::make_shared<Options>();
      app.add_option("model", options->model, "a model that regard train translate wrote")
          ->required()
          ->option_text("MODEL");
      app.add_option("--input", options->input, "a file of lines; - is the standard input")->option_text("FILE");
      app.add_option("--beam", options->search.beam, "how many beginnings are kept (5); 1: greedy")
          ->check(CLI::Range(1, 256))
          ->option_text("N");
      app.add_option("--best", options->search.best, "how many translations of a line (1)")
          ->check(CLI::Range(1, 256))
          ->option_text("N");
      app.add_option("--length-penalty", options->search.length_penalty, "0 prefers short ones (1)")
          ->check(CLI::Range(0.0, 10.0))
          ->option_text("X");
      app.add_flag("--scores", options->scores, "the score before every translation");
      app.add_flag("--map", options->map, "where it looked, below every translation");
      app.add_option("--layer", options->asked.layer, "whose attention (the last)")
          ->check(CLI::Range(0, 1000))
          ->option_text("N");
      app.add_option("--head", options->asked.head, "which head (the mean of all)")
          ->check(CLI::Range(0, 1000))
          ->option_text("N");
      return [options](const Context& context) { return run(*options, context); };
    },
});

}  // namespace
}  // namespace regard::cli
