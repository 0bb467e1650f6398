// `regard eval translate`: translations of a model, or of somebody else, against those that are right.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "cli/eval.h"
#include "cli/note.h"
#include "cli/pairs.h"
#include "cli/trace_options.h"
#include "io/file.h"
#include "tasks/evaluation.h"

namespace regard::cli {
namespace {

struct Options {
  std::string model, builtin, hypotheses, json, svg, out;
  std::vector<std::string> test;
  PairOptions pairs;
  std::int64_t sentences = 500;
  EvaluationSettings settings;
  TraceOptions trace;
};

int run(Options& options, const Context& context) {
  check(options.test.empty() != options.builtin.empty(),
        "eval translate: expected either --test with one or two files, or --builtin");
  check(!options.model.empty() || !options.hypotheses.empty(),
        "eval translate: expected a model (-m) or translations to score (--hypotheses)");
  options.trace.check_asked("eval translate");
  check(!options.trace.asked() || options.hypotheses.empty(),
        "eval translate: --trace is of what the model translates, not of --hypotheses");
  options.settings.search.beams = options.trace.beam;
  if (options.trace.asked()) options.settings.search.keeps = options.trace.keeps();
  if (!options.settings.bleu.empty()) bleu_tokenizer(options.settings.bleu);  // known, before the work begins
  if (options.test.empty()) options.pairs.check_unused("eval translate");
  const TestSet set = options.builtin.empty()
                          ? read_test_set(options.pairs.files(options.test, "eval translate", "--test"), context)
                          : builtin_test_set(options.builtin, options.sentences, 1, context);
  if (!set.left_out.empty()) note("{}", set.left_out);
  std::vector<std::string> written;
  TranslationScores result;
  if (options.hypotheses.empty()) {
    const Translator translator(options.model);
    std::vector<Translator::Translation> found;
    result = evaluate(translator, set, options.settings, context, &written, options.trace.asked() ? &found : nullptr);
    if (options.trace.asked()) {
      TraceCollector collector(options.trace.settings());
      collector.add(translator, set.sources, found, set.lines, context);
      options.trace.write(collector);
    }
  } else {
    written = read_hypotheses(options.hypotheses, set);
    std::vector<Translator::Result> forced;
    if (!options.model.empty()) forced = force_references(Translator(options.model), set, context);
    result = evaluate(set, written, options.settings, forced);
  }
  const auto save = [](const std::string& path, const std::string& bytes) {
    if (!path.empty()) replace_file(disk(), path, [&](FileWriter& out) { out.write(bytes); });
  };
  save(options.json, to_json(result) + "\n");
  save(options.svg, to_svg(result, "Quality by length" + (options.model.empty() ? "" : ": " + options.model)));
  std::string lines;
  for (const std::string& each : written) lines += each + "\n";
  save(options.out, lines);
  fmt::print("{}", to_text(result));
  return 0;
}

}  // namespace

Evaluation eval_translate() {
  return {
      .name = "translate",
      .summary = "BLEU and chrF as sacreBLEU, loss, perplexity, exact matches, quality by length",
      .build = [](App& app) -> Run {
        auto options = std::make_shared<Options>();
        app.footer(
            "Example:\n"
            "  regard eval translate -m zh-en.model --test test.zh test.en --svg lengths.svg\n"
            "  regard eval translate -m zh-en.model --builtin zh-en --json result.json\n"
            "  regard eval translate --hypotheses mine.en --test test.zh test.en");
        app.add_option("-m,--model", options->model, "a model that regard train translate wrote")->option_text("MODEL");
        app.add_option("--test", options->test, "two files, line by line, or one: .tsv or .jsonl; each may be .gz")
            ->expected(1, 2)
            ->option_text("FILE [FILE]");
        options->pairs.add(app);
        app.add_option(
               "--builtin", options->builtin,
               "sentences of the built-in corpus that no training sees: zh-en, en-zh, en-fr, fr-en, zh-fr, fr-zh")
            ->option_text("PAIR");
        app.add_option("--sentences", options->sentences, "of the built-in corpus (500)")
            ->check(Range(std::int64_t{1}, std::int64_t{1'000'000}))
            ->option_text("N");
        app.add_option("--hypotheses", options->hypotheses,
                       "translations to score, a line each, instead of the model's own")
            ->option_text("FILE");
        app.add_option("--bleu", options->settings.bleu,
                       "how BLEU cuts words: 13a, zh, char, intl, none (zh if the references are Chinese, else 13a)")
            ->option_text("NAME");
        app.add_flag("--lowercase", options->settings.lowercase, "capitals do not matter to BLEU and chrF");
        app.add_option("--beam", options->settings.search.beam, "how many beginnings are kept (5); 1: greedy")
            ->check(Range(1, 256))
            ->option_text("N");
        app.add_option("--length-penalty", options->settings.search.length_penalty, "0 prefers short ones (1)")
            ->check(Range(0.0, 10.0))
            ->option_text("X");
        app.add_option("--out", options->out, "write the translations, a line each")->option_text("FILE");
        app.add_option("--json", options->json, "write the numbers as JSON")->option_text("FILE");
        options->trace.add(app, true);
        app.add_option("--svg", options->svg, "draw quality by length")->option_text("FILE");
        return [options](const Context& context) { return run(*options, context); };
      }};
}

}  // namespace regard::cli
