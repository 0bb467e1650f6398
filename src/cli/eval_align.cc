// `regard eval align GOLD [FOUND]`: precision, recall and error rate of alignments.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/check.h"
#include "cli/eval.h"
#include "data/lines.h"
#include "io/json.h"
#include "tasks/links.h"
#include "tasks/text_units.h"

namespace regard::cli {
namespace {

struct Options {
  std::string gold, found = "-";
  std::vector<std::string> texts;
  bool gold_from_one = false, found_from_one = false, json = false;
};

std::string where(const LineReader& reader, const LineReader::Line& line) {
  check(!line.too_long, reader.name(), ":", line.number, ": a line of ", line.bytes, " bytes, expected at most ",
        kLongestLine);
  return text(reader.name(), ":", line.number);
}

// No link points behind the end of a sentence.
void check_inside(const Links& links, std::string_view at, std::size_t sources, std::size_t targets,
                  std::int32_t first) {
  for (const Link& link : links) {
    check(static_cast<std::size_t>(link.source) < sources && static_cast<std::size_t>(link.target) < targets, at,
          ": link ", link.source + first, "-", link.target + first, ", the sentences have ", sources, " and ", targets,
          " words");
  }
}

int run(const Options& options, const Context& context) {
  check(options.gold != "-" || options.found != "-", "eval align: gold and found are both the standard input");
  LineReader gold(options.gold), found(options.found);
  std::vector<LineReader> texts;
  for (const std::string& each : options.texts) texts.emplace_back(each);
  const std::int32_t gold_first = options.gold_from_one ? 1 : 0, found_first = options.found_from_one ? 1 : 0;
  AlignmentScore score;
  for (LineReader::Line right, said, line;;) {
    stop_if_asked(context);
    const bool more = gold.next(right);
    check(found.next(said) == more, "eval align: ", gold.name(), " and ", found.name(),
          " differ in length: ", score.lines, " lines, then one has more");
    std::vector<std::size_t> words;
    for (LineReader& each : texts) {
      check(each.next(line) == more, "eval align: ", gold.name(), " and ", each.name(),
            " differ in length: ", score.lines, " lines, then one has more");
      if (more) words.push_back(words_of(line.text, WordCut::kBlanks).size());
    }
    if (!more) break;
    const std::string gold_at = where(gold, right), found_at = where(found, said);
    const GoldLinks expected = parse_gold(right.text, gold_at, gold_first);
    const Links links = parse_links(said.text, found_at, found_first);
    if (!words.empty()) {
      check_inside(expected.possible, gold_at, words[0], words[1], gold_first);
      check_inside(links, found_at, words[0], words[1], found_first);
    }
    score.add(links, expected);
  }
  if (options.json) {
    JsonWriter out;
    out.begin_object().key("lines").value(score.lines).key("found").value(score.found).key("sure").value(score.sure);
    out.key("precision").value(score.precision()).key("recall").value(score.recall());
    fmt::print("{}\n", out.key("aer").value(score.error_rate()).end_object().text());
  } else {
    fmt::print("precision {:.4f}  recall {:.4f}  AER {:.4f}  ({} lines, {} links found, {} sure)\n", score.precision(),
               score.recall(), score.error_rate(), score.lines, score.found, score.sure);
  }
  return 0;
}

}  // namespace

Evaluation eval_align() {
  return {
      .name = "align",
      .summary = "precision, recall and error rate of alignments (AER)",
      .build = [](App& app) -> Run {
        auto options = std::make_shared<Options>();
        app.add_option("gold", options->gold, "what is right: links i-j are sure, ipj possible")
            ->required()
            ->option_text("GOLD");
        app.add_option("found", options->found, "what was found, i-j; - is the standard input (-)")
            ->option_text("FOUND");
        app.add_flag("--one-based", options->gold_from_one, "the first word of the gold alignment is 1, not 0");
        app.add_flag("--found-one-based", options->found_from_one, "the same for what was found");
        app.add_option("--texts", options->texts,
                       "the sentences, cut with blanks: links behind their ends are an error")
            ->expected(2)
            ->option_text("SOURCE TARGET");
        app.add_flag("--json", options->json, "one line of JSON");
        app.footer("Example:\n  regard align -m zh-en.model a.zh a.en | regard eval align a.gold");
        return [options](const Context& context) { return run(*options, context); };
      },
  };
}

}  // namespace regard::cli
