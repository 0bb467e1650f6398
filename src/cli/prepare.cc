// `regard prepare`: builds vocabularies and tells what is in the data.
#include "data/prepare.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cli/command.h"
#include "io/file.h"
#include "view/chart.h"
#include "view/terminal.h"

namespace regard::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string format = "auto", columns = "1,2", fields = "source,target", out;
  TokenizerSettings tokens;
  std::int64_t longest = 256;
};

// "2,1" as two texts.
std::pair<std::string, std::string> two(const std::string& text, const char* option) {
  const std::size_t comma = text.find(',');
  check(comma != std::string::npos && comma > 0 && comma + 1 < text.size() &&
            text.find(',', comma + 1) == std::string::npos,
        "prepare: ", option, " takes two, separated by a comma, got '", text, "'");
  return {text.substr(0, comma), text.substr(comma + 1)};
}

std::int64_t column(const std::string& text) {
  const bool digits = !text.empty() && text.size() <= 4 && text.find_first_not_of("0123456789") == std::string::npos;
  check(digits && std::stoi(text) > 0, "prepare: --columns takes numbers from 1 on, got '", text, "'");
  return std::stoi(text);
}

PairFiles files_of(const Options& options) {
  PairFiles files = {.source = options.files[0], .target = options.files.size() > 1 ? options.files[1] : ""};
  files.format = options.format == "lines"   ? PairFormat::kLines
                 : options.format == "tsv"   ? PairFormat::kTable
                 : options.format == "jsonl" ? PairFormat::kJson
                                             : PairFormat::kByName;
  const auto [first, second] = two(options.columns, "--columns");
  files.source_column = column(first);
  files.target_column = column(second);
  std::tie(files.source_field, files.target_field) = two(options.fields, "--fields");
  return files;
}

void print_side(const char* name, const SideSurvey& side, const Tokenizer& tokenizer) {
  const double known = side.tokens == 0 ? 1 : 1 - static_cast<double>(side.unknown) / static_cast<double>(side.tokens);
  fmt::print("{}  {} tokens, {:.1f} a sentence, half of them up to {}, 99 % up to {}, longest {} (line {})\n", name,
             side.tokens, side.mean(), side.quantile(0.5), side.quantile(0.99), side.longest, side.longest_line);
  fmt::print("        vocabulary {} of which {} occur; {:.2f} % of the tokens are known\n", tokenizer.size(), side.used,
             100 * known);
  if (side.missed.empty()) return;
  std::string list;
  for (const auto& [text, count] : side.missed) {
    const std::string shown = text.size() <= 40 ? printable(text) : fmt::format("one of {} bytes", text.size());
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", shown, count);
  }
  fmt::print("        unknown most often: {}\n", list);
}

std::vector<std::uint64_t> cut(const std::vector<std::uint64_t>& counts, std::size_t most) {
  std::vector<std::uint64_t> out(counts.begin(),
                                 counts.begin() + static_cast<std::ptrdiff_t>(std::min(most + 1, counts.size())));
  for (std::size_t i = out.size(); i < counts.size(); ++i) out.back() += counts[i];
  return out;
}

void write(const std::filesystem::path& path, std::string_view bytes) {
  replace_file(disk(), path.string(), [&](FileWriter& out) { out.write(bytes); });
  fmt::print("        {} ({} bytes)\n", path.string(), bytes.size());
}

int run(const Options& options, const Context& context) {
  check(options.files.size() <= 2, "prepare: --train takes one file with pairs or two line-aligned ones, got ",
        options.files.size());
  const ContextScope scope(context);
  const OpenPairs open = open_pairs(files_of(options), context);
  {
    const std::unique_ptr<PairStream> stream = open();
    LinePair first;
    check(stream->next(first), "prepare: ", no_pair_text(*stream));
  }
  const std::filesystem::path folder = options.out;
  if (!options.out.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) fail(ErrorKind::kFile, "prepare: cannot make the folder '", options.out, "': ", error.message());
  }
  const TokenizerPair made = build_tokenizers(open, options.tokens, context);
  const std::unique_ptr<PairStream> stream = open();
  const Survey survey =
      survey_pairs(*stream, *made.source, *made.target, static_cast<std::size_t>(options.longest), context);

  fmt::print("pairs   {} of {}\n", survey.pairs, stream->name());
  const std::string report = stream->report().text();
  for (std::size_t at = 0; at < report.size();) {
    const std::size_t end = report.find('\n', at);
    fmt::print("        {}\n", report.substr(at, end - at));
    at = end + 1;
  }
  if (survey.too_long > 0) {
    fmt::print(
        "        {} have a side of more than {} tokens (--longest), the first in line {}; training has its own "
        "--longest-text\n",
        survey.too_long, options.longest, survey.first_too_long);
  }
  if (survey.uneven > 0) {
    fmt::print("        {} have one side three times as long as the other, the first in line {}\n", survey.uneven,
               survey.first_uneven);
  }
  print_side("source", survey.source, *made.source);
  print_side("target", survey.target, *made.target);

  const int width = width_of(STDOUT_FILENO);
  const std::size_t most = std::max(survey.source.quantile(0.999), survey.target.quantile(0.999));
  fmt::print("\n{}",
             bars(cut(survey.source.lengths, most + 1), {.title = "Tokens of a source sentence", .width = width}));
  fmt::print("\n{}",
             bars(cut(survey.target.lengths, most + 1), {.title = "Tokens of a target sentence", .width = width}));
  const Cloud both = {.side = Survey::kSide, .cells = survey.both};
  fmt::print("\n{}", cloud(both, width));

  if (options.out.empty()) return 0;
  fmt::print("\nwritten\n");
  if (options.tokens.joint) {
    write(folder / "joint.vocabulary", made.source->bytes());
  } else {
    write(folder / "source.vocabulary", made.source->bytes());
    write(folder / "target.vocabulary", made.target->bytes());
  }
  write(folder / "lengths.svg",
        bars_svg({{"source", cut(survey.source.lengths, most + 1)}, {"target", cut(survey.target.lengths, most + 1)}},
                 "Tokens of a sentence"));
  write(folder / "scatter.svg", cloud_svg(both, "Tokens of source and target"));
  return 0;
}

const AddCommand prepare({
    .name = "prepare",
    .summary = "build vocabularies and tell what is in the data",
    .example = "regard prepare --train train.zh train.en --tokenizer pieces --vocabulary 8000 --out data\n"
               "regard prepare --train pairs.tsv.gz --columns 2,1 --tokenizer words --dictionary names.txt --lower\n"
               "regard corpus zh-en --lines 5000 | regard prepare --train - --tokenizer words",
    .build = [](App& app) -> Run {
      auto options = std::make_shared<Options>();
      app.add_option(
             "--train", options->files,
             "two line-aligned files, or one with pairs (TSV or JSON lines); each may be gzip; - is the standard input")
          ->required()
          ->expected(1, 2)
          ->option_text("FILE [FILE]");
      app.add_option("--format", options->format, "lines, tsv or jsonl; auto: by number and name of the files")
          ->check(IsMember({"auto", "lines", "tsv", "jsonl"}))
          ->option_text("NAME");
      app.add_option("--columns", options->columns, "of a table: source and target (1,2)")->option_text("N,N");
      app.add_option("--fields", options->fields, "of JSON lines (source,target)")->option_text("A,B");
      app.add_option("--tokenizer", options->tokens.kind,
                     "pieces (byte pairs), unigram (pieces too), words or characters")
          ->check(IsMember({"pieces", "unigram", "words", "characters"}))
          ->option_text("KIND");
      app.add_option("--vocabulary", options->tokens.size, "ids of each vocabulary, at most (8000)")->option_text("N");
      app.add_flag("--joint", options->tokens.joint, "one vocabulary for both sides");
      app.add_flag("--lower", options->tokens.lower, "lower case");
      app.add_flag("--byte-fallback", options->tokens.byte_fallback, "pieces: spell what is unknown in bytes");
      app.add_option("--least-count", options->tokens.least_count, "words seen less often are unknown (1)")
          ->check(Range(1, 1'000'000'000))
          ->option_text("N");
      app.add_option("--dictionary", options->tokens.dictionary,
                     "words: a file of words that Chinese is cut into, `word [count]` a line")
          ->option_text("FILE");
      app.add_option("--longest", options->longest, "count pairs with a longer side (256)")
          ->check(Range(1, 1'000'000'000))
          ->option_text("N");
      app.add_option("--out", options->out, "a folder for the vocabularies, lengths.svg and scatter.svg")
          ->option_text("FOLDER");
      return [options](const Context& context) { return run(*options, context); };
    },
});

}  // namespace
}  // namespace regard::cli
