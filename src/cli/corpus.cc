// `regard corpus`: prints the built-in corpus.
#include "data/corpus.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "base/check.h"
#include "cli/command.h"
#include "cli/seed.h"

namespace regard::cli {
namespace {

struct Options {
  std::string pair;
  std::uint64_t lines = 20'000, seed = 1;
  std::string split = "train", alignments;
  bool segmented = false;
};

struct Close {
  void operator()(FILE* file) const { std::fclose(file); }
};

int run(const Options& options, const Context& context) {
  const Corpus corpus(options.pair, options.seed,
                      options.split == "test" ? Corpus::Split::kTest : Corpus::Split::kTrain);
  std::unique_ptr<FILE, Close> alignments;
  if (!options.alignments.empty()) {
    alignments.reset(std::fopen(options.alignments.c_str(), "wb"));
    if (!alignments) fail(ErrorKind::kFile, "corpus: cannot write '", options.alignments, "': ", std::strerror(errno));
  }
  for (std::uint64_t line = 0; line < options.lines; ++line) {
    if (context.cancel.stop_requested()) fail(ErrorKind::kCancelled, "corpus: stopped after ", line, " lines");
    const Corpus::Example example = corpus.at(line);
    if (options.segmented) {
      fmt::print("{}\t{}\n", example.source.segmented(), example.target.segmented());
    } else {
      fmt::print("{}\t{}\n", example.source.text, example.target.text);
    }
    if (alignments) fmt::print(alignments.get(), "{}\n", example.pharaoh());
  }
  if (alignments) {
    FILE* file = alignments.release();
    const bool failed = std::ferror(file) != 0;
    if ((std::fclose(file) != 0) || failed)
      fail(ErrorKind::kFile, "corpus: cannot write '", options.alignments, "': ", std::strerror(errno));
  }
  return 0;
}

const AddCommand corpus({
    .name = "corpus",
    .summary = "print pairs of sentences from the built-in grammar",
    .example = "regard corpus zh-en --lines 20000 --seed 1 > train.tsv\n"
               "regard corpus en-fr --lines 500 --split test --segmented --alignments test.align > test.tsv",
    .build = [](App& app) -> Run {
      auto options = std::make_shared<Options>();
      app.add_option("pair", options->pair, "zh-en, en-zh, en-fr, fr-en, zh-fr or fr-zh")
          ->required()
          ->option_text("PAIR");
      app.add_option("--lines", options->lines, "how many pairs (20000)")
          ->check(Range(std::uint64_t{0}, std::uint64_t{1'000'000'000'000}))
          ->option_text("N");
      app.add_option("--seed", options->seed, "another seed, other sentences (1)")->check(a_seed)->option_text("N");
      app.add_option("--split", options->split, "train or test: no sentence of one occurs in the other, whatever seeds")
          ->check(IsMember({"train", "test"}))
          ->option_text("NAME");
      app.add_option("--alignments", options->alignments,
                     "also writes which words translate which: 0-0 1p2 …, counted as --segmented shows them")
          ->option_text("FILE");
      app.add_flag("--segmented", options->segmented, "a blank between all words, also of Chinese, and before marks");
      return [options](const Context& context) { return run(*options, context); };
    },
});

}  // namespace
}  // namespace regard::cli
