// `regard plot`: draws the metrics of training runs.
#include "view/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "cli/command.h"
#include "cli/note.h"
#include "io/file.h"

namespace regard::cli {
namespace {

struct Options {
  std::vector<std::string> metrics, names;
  std::string out;
  PlotSettings plot;
};

// "runs/zh-en.model.metrics.jsonl" is called zh-en.
std::string name_of(const std::string& path) {
  std::string name = std::filesystem::path(path).filename();
  for (const char* end : {".jsonl", ".metrics", ".model"})
    if (name.ends_with(end) && name.size() > std::strlen(end)) name.resize(name.size() - std::strlen(end));
  return name;
}

int run(const Options& options, const Context&) {
  check(options.names.empty() || options.names.size() == options.metrics.size(), "plot: ", options.names.size(),
        " names for ", options.metrics.size(), " files, expected as many");
  std::vector<PlotRun> runs;
  for (std::size_t i = 0; i < options.metrics.size(); ++i) {
    const std::string text = read_file(disk(), options.metrics[i]);
    runs.push_back(parse_metrics(text, options.metrics[i]));
    runs.back().name = options.names.empty() ? name_of(options.metrics[i]) : options.names[i];
    for (const std::string& each : runs.back().notes) note("plot: {}\n", each);
  }
  const std::string svg = plot_svg(runs, options.plot);
  replace_file(disk(), options.out, [&](FileWriter& out) { out.write(svg); });
  return 0;
}

const AddCommand plot({
    .name = "plot",
    .summary = "draw loss, BLEU and speed of training runs",
    .example = "regard plot zh-en.model.metrics.jsonl --out zh-en.svg\n"
               "regard plot a.metrics.jsonl b.metrics.jsonl --name GRU Transformer --log --out both.svg",
    .build = [](App& app) -> Run {
      auto options = std::make_shared<Options>();
      app.add_option("metrics", options->metrics, "what `regard train` writes beside its model, M.metrics.jsonl")
          ->required()
          ->option_text("FILE");
      app.add_option("--out", options->out, "the picture, SVG")->required()->option_text("FILE");
      app.add_option("--name", options->names, "what to call the runs, in the order of the files")->option_text("NAME");
      app.add_option("--columns", options->plot.columns, "pictures beside each other (2)")
          ->check(Range(1, 5))
          ->option_text("N");
      app.add_flag("--log", options->plot.log, "loss, learning rate and norm on a logarithmic scale");
      return [options](const Context& context) { return run(*options, context); };
    },
});

}  // namespace
}  // namespace regard::cli
