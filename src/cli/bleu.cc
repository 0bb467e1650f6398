// `regard bleu`: how much translations have in common with those that are right.
#include "decode/bleu.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "cli/command.h"
#include "data/lines.h"

namespace regard::cli {
namespace {

struct Options {
  std::vector<std::string> references;
  std::string hypotheses = "-", tokenizer = "13a";
  bool lowercase = false, score_only = false;
};

int run(const Options& options, const Context& context) {
  Bleu bleu({.tokenizer = bleu_tokenizer(options.tokenizer), .lowercase = options.lowercase});
  std::vector<LineReader> readers;
  readers.emplace_back(options.hypotheses);
  for (const std::string& reference : options.references) readers.emplace_back(reference);
  std::vector<LineReader::Line> lines(readers.size());
  for (std::uint64_t number = 0;; ++number) {
    if (context.cancel.stop_requested()) fail(ErrorKind::kCancelled, "bleu: stopped after ", number, " lines");
    std::size_t ended = 0;
    for (std::size_t i = 0; i < readers.size(); ++i) {
      ended += !readers[i].next(lines[i]);
      check(!lines[i].too_long, "bleu: ", readers[i].name(), ":", number + 1, ": a line of ", lines[i].bytes,
            " bytes, expected at most ", kLongestLine);
    }
    if (ended == readers.size()) break;
    check(ended == 0, "bleu: ", readers[0].name(), " and the references differ in length: ", number,
          " lines, then some have more");
    bleu.add(lines[0].text, std::vector<std::string_view>([&] {
               std::vector<std::string_view> texts;
               for (std::size_t i = 1; i < lines.size(); ++i) texts.push_back(lines[i].text);
               return texts;
             }()));
  }
  const BleuScore score = bleu.score();
  if (options.score_only) {
    fmt::print("{:.2f}\n", score.score);
  } else {
    fmt::print("{}\n", score.text(bleu.signature()));
  }
  return 0;
}

const AddCommand bleu({
    .name = "bleu",
    .summary = "score translations as sacreBLEU does",
    .example = "regard bleu reference.en < translation.en\n"
               "regard bleu --tokenizer zh --lowercase reference.zh --input translation.zh",
    .build = [](App& app) -> Run {
      auto options = std::make_shared<Options>();
      app.add_option("references", options->references, "what is right, a line a sentence; several files if there are")
          ->required()
          ->option_text("REFERENCE");
      app.add_option("--input", options->hypotheses, "what was written (the standard input)")->option_text("FILE");
      app.add_option("--tokenizer", options->tokenizer, "13a, zh, char, intl or none (13a)")->option_text("NAME");
      app.add_flag("--lowercase", options->lowercase, "capitals do not matter");
      app.add_flag("--score-only", options->score_only, "print nothing but the score");
      return [options](const Context& context) { return run(*options, context); };
    },
});

}  // namespace
}  // namespace regard::cli
