// `regard align -m MODEL [-m REVERSE] SOURCE TARGET`: which words of given pairs belong together.
#include <fmt/format.h>

#include "cli/align_options.h"
#include "cli/command.h"
#include "cli/look.h"
#include "cli/note.h"
#include "cli/trace_options.h"

namespace regard::cli {
namespace {

constexpr std::size_t kTogether = 512;  // pairs that are sorted by length and looked at together

struct Options : AlignOptions {
  std::string alignment = "hard", symmetry = "grow-diag-final-and";
  LookOptions look;
  std::int64_t shift = -1;  // none said
  TraceOptions trace;
};

int run(Options& options, const Context& context) {
  AlignmentSettings& alignment = options.settings.alignment = alignment_settings(options.alignment);
  options.look.put_into(alignment);
  if (options.shift >= 0) alignment.shift = options.shift;
  options.settings.symmetry = symmetry(options.symmetry);
  options.trace.check_asked("align");
  PairReader reader = open_pairs(options);
  const Models models = load_models(options, "align");
  const PairAligner aligner(*models.forward, models.backward.get(), options.settings);

  TraceSettings trace = options.trace.settings();
  trace.alignment = options.settings.alignment;
  TraceCollector collector(trace);

  std::uint64_t written = 0, too_long = 0, first_long = 0;
  std::vector<TextPair> pairs;
  std::vector<std::uint64_t> numbers;
  const auto empty_until = [&](std::uint64_t line) {  // pairs that were left out
    for (; written + 1 < line; ++written) fmt::print("\n");
  };
  const auto flush = [&] {
    const std::vector<PairAligner::Aligned> aligned = aligner.align(pairs, context);
    for (std::size_t i = 0; i < aligned.size(); ++i) {
      empty_until(numbers[i]);
      fmt::print("{}\n", aligned[i].text);
      ++written;
      if (aligned[i].too_long && too_long++ == 0) first_long = numbers[i];
    }
    std::fflush(stdout);
    if (options.trace.asked()) {
      collector.add(*models.forward, pairs, numbers, options.settings.join, options.settings.longest, context);
    }
    pairs.clear();
    numbers.clear();
  };
  for (LinePair pair; reader.next(pair);) {
    pairs.push_back({std::move(pair.source), std::move(pair.target)});
    numbers.push_back(pair.line);
    if (pairs.size() == kTogether) flush();
  }
  flush();
  empty_until(reader.report().read + 1);
  if (options.trace.asked()) options.trace.write(collector);
  if (reader.report().dropped() > 0) note("{}", reader.report().text());
  if (too_long > 0) {
    note("{} pairs left out: more than {} tokens on a side: {}:{}{}\n", too_long, options.settings.longest,
         reader.name(), first_long, too_long > 1 ? ", …" : "");
  }
  return 0;
}

const AddCommand align({
    .name = "align",
    .summary = "say which words of given pairs belong together",
    .example = "regard align -m zh-en.model -m en-zh.model a.zh a.en > a.align\n"
               "regard align -m zh-en.model --alignment soft --level piece pairs.tsv",
    .build = [](App& app) -> Run {
      auto options = std::make_shared<Options>();
      add_align_options(app, *options);
      app.add_option("--alignment", options->alignment,
                     "hard: i-j, each target word to one source word; spans: a:b-c:d, the same as characters; 0.3: all "
                     "links of so much weight; soft: the weights (hard)")
          ->option_text("KIND");
      app.add_option("--symmetrize", options->symmetry,
                     "of two models: intersection, union, grow-diag, grow-diag-final-and (the last)")
          ->option_text("NAME");
      app.add_flag("--separate", options->settings.separate,
                   "of two models: each draws links from its own weights, not from those on which both agree");
      options->look.add(app);
      app.add_option("--shift", options->shift,
                     "0: the step that writes a word; 1: the one after (what the model says)")
          ->check(Range(0, 1))
          ->option_text("N");
      options->trace.add(app, false);
      return [options](const Context& context) { return run(*options, context); };
    },
});

}  // namespace
}  // namespace regard::cli
