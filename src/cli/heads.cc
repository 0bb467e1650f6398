// `regard heads -m MODEL [-m REVERSE] SOURCE TARGET`: which layer and head aligns best, written into the model.
#include <fmt/format.h>

#include "cli/align_options.h"
#include "cli/command.h"

namespace regard::cli {
namespace {

struct Options : AlignOptions {
  std::int64_t pairs = 2000, show = 5;
  bool dry = false;
};

void print(const std::string& path, const std::vector<ScoredChoice>& all, const AlignmentChoice& before,
           std::int64_t most) {
  fmt::print("{}\n", path);
  fmt::print("  layer  head  shift  agreement\n");
  const auto line = [&](const ScoredChoice& each, const char* remark) {
    fmt::print("  {:5}  {:>4}  {:5}  {:9.4f}{}\n", each.choice.layer,
               each.choice.head < 0 ? "mean" : std::to_string(each.choice.head), each.choice.shift, each.agreement,
               remark);
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool current = all[i].choice == before;
    if (static_cast<std::int64_t>(i) >= most && !current) continue;
    line(all[i], i == 0 ? (current ? "  chosen, as before" : "  chosen") : current ? "  until now" : "");
  }
}

int run(Options& options, const Context& context) {
  PairReader reader = open_pairs(options);
  const Models models = load_models(options, "heads");
  std::vector<TextPair> pairs;
  for (LinePair pair; static_cast<std::int64_t>(pairs.size()) < options.pairs && reader.next(pair);) {
    pairs.push_back({std::move(pair.source), std::move(pair.target)});
  }
  check(!pairs.empty(), "heads: ", no_pair_text(reader));
  const HeadChoice chosen = choose_heads(*models.forward, models.backward.get(), pairs, options.settings, context);
  fmt::print("{} pairs; agreement with {}\n", pairs.size(),
             models.backward ? "the other direction" : "a model of words learned from the pairs");
  print(options.models[0], chosen.forward, choice_of(*models.forward), options.show);
  if (models.backward) print(options.models[1], chosen.backward, choice_of(*models.backward), options.show);
  if (options.dry) return 0;
  store_choice(options.models[0], chosen.forward.front().choice);
  if (models.backward) store_choice(options.models[1], chosen.backward.front().choice);
  return 0;
}

const AddCommand heads({
    .name = "heads",
    .summary = "find the layer and head that aligns best, and write it into the model",
    .example = "regard heads -m zh-en.model -m en-zh.model a.zh a.en\n"
               "regard heads -m zh-en.model --dry-run pairs.tsv",
    .build = [](App& app) -> Run {
      auto options = std::make_shared<Options>();
      add_align_options(app, *options);
      app.add_option("--pairs", options->pairs, "how many pairs to look at, from the first (2000)")
          ->check(Range(1, 1 << 20))
          ->option_text("N");
      app.add_option("--show", options->show, "how many candidates to print (5)")
          ->check(Range(1, 1 << 20))
          ->option_text("N");
      app.add_flag("--dry-run", options->dry, "print only, the models stay as they are");
      return [options](const Context& context) { return run(*options, context); };
    },
});

}  // namespace
}  // namespace regard::cli
