// `regard probe`: small experiments that show what is said of attention.
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "cli/command.h"
#include "cli/seed.h"
#include "io/file.h"
#include "tasks/probes.h"

namespace regard::cli {
namespace {

struct ErrorOptions {
  std::vector<std::string> models;
  std::string builtin = "zh-en";
  std::int64_t sentences = 200;
  ErrorProbe settings;
};

Probe errors_of(const ErrorOptions& options, const Context& context) {
  std::vector<Translator> translators;
  std::vector<ProbedModel> models;
  for (const std::string& path : options.models) translators.emplace_back(path);
  for (std::size_t i = 0; i < translators.size(); ++i) {
    models.push_back({std::filesystem::path(options.models[i]).stem().string(), &translators[i]});
  }
  return probe_errors(models, builtin_test_set(options.builtin, options.sentences, 1, context).sources,
                      options.settings, context);
}

const AddCommand probe({
    .name = "probe",
    .summary = "experiments: gradients, wrong words, saturated softmax, order-blindness",
    .example = "regard probe gradient --svg gradient.svg\n"
               "regard probe saturation --svg saturation.svg\n"
               "regard probe order --svg order.svg\n"
               "regard probe errors -m zh-en.model --builtin zh-en --svg errors.svg",
    .build = [](App& app) -> Run {
      using Work = std::function<Probe(const Context&)>;
      auto all = std::make_shared<std::vector<std::pair<App*, Work>>>();
      auto svg = std::make_shared<std::string>();
      const auto add = [&](const char* name, const char* summary, const Work& work) {
        App& part = *app.add_subcommand(name, summary);
        part.add_option("--svg", *svg, "draw it")->option_text("FILE");
        all->emplace_back(&part, work);
        return &part;
      };
      const auto number = [](App* part, const char* name, std::int64_t& value, std::int64_t least, std::int64_t most,
                             const std::string& help) {
        part->add_option(name, value, fmt::format("{} ({})", help, value))->check(Range(least, most))->option_text("N");
      };
      auto gradient = std::make_shared<GradientProbe>();
      App* part = add("gradient", "how far back gradients reach: recurrent networks and attention",
                      [gradient](const Context&) { return probe_gradients(*gradient); });
      number(part, "--length", gradient->length, 2, 1000, "steps");
      number(part, "--width", gradient->width, 2, 512, "of inputs and states");
      part->add_option("--seed", gradient->seed, "other numbers (1)")->check(a_seed)->option_text("N");

      auto saturation = std::make_shared<SaturationProbe>();
      part = add("saturation", "softmax by width and scale: why scores are divided by √d",
                 [saturation](const Context&) { return probe_saturation(*saturation); });
      number(part, "--keys", saturation->keys, 2, 4096, "random keys");
      number(part, "--widest", saturation->widest, 4, 8192, "d, from 4 on");
      part->add_option("--seed", saturation->seed, "other numbers (1)")->check(a_seed)->option_text("N");

      auto order = std::make_shared<OrderProbe>();
      part = add("order", "shuffled words, with and without positions",
                 [order](const Context&) { return probe_order(*order); });
      number(part, "--words", order->words, 2, 1024, "words");
      part->add_option("--seed", order->seed, "other numbers (1)")->check(a_seed)->option_text("N");

      auto errors = std::make_shared<ErrorOptions>();
      part = add("errors", "what follows one forced wrong word",
                 [errors](const Context& context) { return errors_of(*errors, context); });
      part->add_option("-m,--model", errors->models, "models that regard train translate wrote, one or more")
          ->required()
          ->option_text("MODEL…");
      part->add_option("--builtin", errors->builtin,
                       "sentences of the built-in corpus: zh-en, en-zh, en-fr, fr-en, zh-fr, fr-zh (zh-en)")
          ->option_text("PAIR");
      number(part, "--sentences", errors->sentences, 1, 100000, "how many");
      number(part, "--at", errors->settings.at, 0, 500, "which word is wrong, from 0");
      number(part, "--distance", errors->settings.distance, 1, 500, "words behind it");
      return [all, svg](const Context& context) {
        std::string names;
        for (const auto& [each, work] : *all) {
          names += (names.empty() ? "" : ", ") + each->get_name();
          if (!each->parsed()) continue;
          const Probe found = work(context);
          if (!svg->empty()) replace_file(disk(), *svg, [&](FileWriter& out) { out.write(to_svg(found)); });
          fmt::print("{}", to_text(found));
          return 0;
        }
        fail(ErrorKind::kInput, "probe: which one? expected one of ", names);
      };
    },
});

}  // namespace
}  // namespace regard::cli
