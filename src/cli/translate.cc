// `regard translate`: a line in, a line out.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "base/check.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/look.h"
#include "cli/note.h"
#include "cli/seed.h"
#include "cli/trace_options.h"
#include "data/lines.h"
#include "tasks/alignment.h"
#include "tasks/box.h"
#include "tasks/translator.h"
#include "view/terminal.h"

namespace regard::cli {
namespace {

constexpr std::size_t kTogether = 512;  // lines that are sorted by length and translated together
constexpr int kWait = 100;              // milliseconds between two looks at whether one should stop

struct Options {
  std::vector<std::string> models, words;
  std::string input = "-", force, alignment_kind, level = "word";
  Translator::Settings search;
  bool map = false, scores = false, int8 = false;
  std::optional<AlignmentSettings> alignment;
  LookOptions look;
  TraceOptions trace;
};

TraceSettings trace_settings(const Options& options) {
  TraceSettings settings = options.trace.settings();
  settings.batch_tokens = std::min(settings.batch_tokens, options.search.batch_tokens);
  settings.erasing.seed = options.search.seed;
  options.look.put_into(settings.alignment);
  return settings;
}

// The models that were named, or for each line the one in the box that is for its language.
class Models {
 public:
  Models(const std::vector<std::string>& paths, bool int8) : int8_(int8) {
    if (!paths.empty()) named_.emplace(paths, int8);
  }
  const Translator& of(std::string_view line) {
    if (named_) return *named_;
    const std::string_view direction = direction_of(line);
    const auto found = boxed_.find(direction);
    if (found != boxed_.end()) return found->second;
    return boxed_.emplace(direction, Translator(boxed_model(direction), int8_)).first->second;
  }

 private:
  std::optional<Translator> named_;
  std::map<std::string, Translator, std::less<>> boxed_;
  bool int8_;
};

// Bytes that are no UTF-8 become U+FFFD, a NUL a blank. The number of both.
std::size_t repair(std::string& text) {
  if (utf8::valid(text) && text.find('\0') == std::string::npos) return 0;
  std::string good;
  std::size_t wrong = 0;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Letter letter = utf8::read(text, at);
    const bool right = letter.valid && letter.code != 0;
    wrong += right ? 0 : 1;
    utf8::append(good, right || !letter.valid ? letter.code : U' ');
    at += letter.length;
  }
  text = std::move(good);
  return wrong;
}

class Job {
 public:
  Job(const Options& options, const Context& context)
      : options_(options),
        context_(context),
        models_(options.models, options.int8),
        collector_(trace_settings(options)) {
    if (!options.force.empty()) forced_.emplace(options.force);
  }

  // What cannot be read at all is an empty line, so that the others keep their places.
  void add(const std::string& name, LineReader::Line& line) {
    if (line.too_long) {
      complain(name, line.number,
               text("a line of ", line.bytes, " bytes, expected at most ", kLongestLine, ": left empty"));
      failed_ = true;
    } else if (const std::size_t wrong = repair(line.text); wrong > 0) {
      complain(name, line.number,
               text(wrong, wrong == 1 ? " byte is" : " bytes are", " no UTF-8 or NUL: read as U+FFFD or a blank"));
    }
    lines_.push_back(std::move(line.text));
    if (forced_) {
      LineReader::Line target;
      check(forced_->next(target), "translate: ", forced_->name(), " has ", first_ + lines_.size() - 1,
            " lines, the input more");
      repair(target.text);
      targets_.push_back(std::move(target.text));
    }
  }
  std::size_t size() const { return lines_.size(); }

  void run() {
    std::map<const Translator*, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < lines_.size(); ++i) groups[&models_.of(lines_[i])].push_back(i);
    std::vector<Translator::Translation> found(lines_.size());
    std::vector<std::vector<std::string>> alignments(lines_.size());  // of every result
    for (const auto& [translator, places] : groups) {
      std::vector<Translator::Translation> some = translate(*translator, places);
      for (std::size_t i = 0; i < places.size(); ++i) found[places[i]] = std::move(some[i]);
      if (options_.alignment) align(*translator, places, found, alignments);
    }
    for (std::size_t i = 0; i < lines_.size(); ++i) print(i, found[i].best, alignments[i]);
    std::fflush(stdout);
    if (options_.trace.asked()) trace(found);
    first_ += lines_.size();
    lines_.clear();
    targets_.clear();
  }

  int end() {
    LineReader::Line more;
    check(!forced_ || !forced_->next(more), "translate: ", options_.force, " has more lines than the input, which has ",
          first_);
    if (options_.trace.asked()) options_.trace.write(collector_);
    return failed_ ? 1 : 0;
  }

 private:
  static void complain(const std::string& name, std::uint64_t number, const std::string& what) {
    note("regard: {}:{}: {}\n", name, number, what);
  }

  std::vector<Translator::Translation> translate(const Translator& translator, const std::vector<std::size_t>& places) {
    std::vector<Translator::Translation> found;
    if (!forced_) {
      std::vector<std::string> some;
      some.reserve(places.size());
      for (const std::size_t i : places) some.push_back(lines_[i]);
      return translator.translate(some, options_.search, context_);
    }
    std::vector<TextPair> pairs;
    pairs.reserve(places.size());
    for (const std::size_t i : places) pairs.push_back({lines_[i], targets_[i]});
    for (Translator::Result& each : translator.force(pairs, options_.search, context_)) {
      found.push_back({{std::move(each)}});
    }
    return found;
  }

  void align(const Translator& translator, const std::vector<std::size_t>& places,
             const std::vector<Translator::Translation>& found, std::vector<std::vector<std::string>>& alignments) {
    std::vector<std::string> lines;
    std::vector<Translator::Result> results;
    for (const std::size_t i : places) {
      for (const Translator::Result& each : found[i].best) {
        lines.push_back(lines_[i]);
        results.push_back(each);
      }
    }
    const std::vector<std::string> texts =
        alignment_texts(translator, lines, results, *options_.alignment, options_.search.batch_tokens, context_);
    auto next = texts.begin();
    for (const std::size_t i : places) {
      for (std::size_t k = 0; k < found[i].best.size(); ++k) alignments[i].push_back(*next++);
    }
  }

  // In the order of the lines, also if they are of several models.
  void trace(const std::vector<Translator::Translation>& found) {
    std::vector<std::uint64_t> numbers;
    for (std::size_t i = 0; i < lines_.size(); ++i) numbers.push_back(first_ + i + 1);
    for (std::size_t begin = 0, end = 0; begin < lines_.size(); begin = end) {
      const Translator& translator = models_.of(lines_[begin]);
      while (end < lines_.size() && &models_.of(lines_[end]) == &translator) ++end;
      const std::size_t count = end - begin;
      collector_.add(translator, std::span(lines_).subspan(begin, count), std::span(found).subspan(begin, count),
                     std::span(numbers).subspan(begin, count), context_);
    }
  }

  void print(std::size_t i, const std::vector<Translator::Result>& best, const std::vector<std::string>& alignments) {
    const bool many = options_.search.best > 1;
    for (std::size_t k = 0; k < best.size(); ++k) {
      std::string out = many ? fmt::format("{} ||| ", first_ + i) : "";
      out += best[k].text;
      if (!alignments.empty()) out += " ||| " + alignments[k];
      if (options_.scores || many) out += fmt::format(" ||| {:.4f}", best[k].score);
      fmt::print("{}\n", out);
    }
    if (options_.map && !best.empty() && !best[0].tokens.empty()) print_map(i, best[0]);
  }

  void print_map(std::size_t i, const Translator::Result& result) {
    const Translator& translator = models_.of(lines_[i]);
    AlignmentSettings asked;
    options_.look.put_into(asked);
    print_look(translator, translator.look(lines_[i], result), choice_of(translator, asked),
               {.colors = colors_of(STDOUT_FILENO), .width = width_of(STDOUT_FILENO)});
  }

  const Options& options_;
  const Context& context_;
  Models models_;
  std::optional<LineReader> forced_;
  std::vector<std::string> lines_, targets_;
  TraceCollector collector_;
  std::size_t first_ = 0;  // how many lines came before these
  bool failed_ = false;
};

int run(const Options& options, const Context& context) {
  Job job(options, context);
  if (!options.words.empty()) {
    LineReader::Line line;
    line.number = 1;
    for (const std::string& word : options.words) line.text += (line.text.empty() ? "" : " ") + word;
    job.add("the words", line);
    job.run();
    return job.end();
  }
  LineReader reader(options.input);
  for (LineReader::Line line;;) {
    // Whoever waits for an answer gets it: lines are held back only while more are there already.
    while (!reader.is_ready(job.size() > 0 ? 0 : kWait)) {
      if (job.size() > 0) job.run();
      stop_if_asked(context);
    }
    if (!reader.next(line)) break;
    job.add(reader.name(), line);
    if (job.size() == kTogether) job.run();
  }
  job.run();
  return job.end();
}

void check_options(const Options& options) {
  const Translator::Settings& search = options.search;
  check(search.sample || search.best <= search.beam, "translate: --n-best ", search.best, " of --beam ", search.beam,
        ", expected at most as many");
  check(options.force.empty() || search.best == 1, "translate: --force has one translation a line, not --n-best ",
        search.best);
  check(options.force.empty() || !search.sample,
        "translate: --force has its translations, --sample draws them: expected one");
  check(options.force.empty() || options.words.empty(), "translate: --force takes lines, not words");
  check(options.words.empty() || options.input == "-", "translate: words and --input ", options.input,
        ", expected one of them");
  options.trace.check_asked("translate");
  check(!options.trace.beam || (!search.sample && options.force.empty()),
        "translate: --trace-beam is of a search: not with --sample or --force");
}

const AddCommand translate({
    .name = "translate",
    .summary = "translate lines with a trained model, and show where it looked",
    .example = "regard translate -m m.model --map '他们在看。'\n"
               "regard translate -m a.model -m b.model --beam 8 --n-best 3 < lines.zh > lines.en\n"
               "regard translate -m m.model --trace a.trace --trace-maps all --erasure '他们在看。'",
    .build = [](App& app) -> Run {
      auto options = std::make_shared<Options>();
      Translator::Settings& search = options->search;
      app.add_option("words", options->words, "what to translate; without them, lines of the standard input")
          ->option_text("WORDS");
      app.add_option("-m,--model", options->models,
                     "a model that regard train translate wrote; several translate together. None: the models\n"
                     "in the box, Chinese to English and English to Chinese")
          ->allow_extra_args(false)
          ->option_text("MODEL");
      app.add_option("--input", options->input, "a file of lines; - is the standard input")->option_text("FILE");
      app.add_option("--force", options->force, "translations that are given, line by line: their scores and maps")
          ->option_text("FILE");
      app.add_option("--beam", search.beam, "how many beginnings are kept (5); 1: greedy")
          ->check(Range(1, 256))
          ->option_text("N");
      app.add_option("--n-best", search.best, "so many of each line: number ||| translation ||| score (1)")
          ->check(Range(1, 256))
          ->option_text("N");
      app.add_option("--length-penalty", search.length_penalty, "0 prefers short ones (1)")
          ->check(Range(0.0, 10.0))
          ->option_text("X");
      app.add_option("--max-length", search.longest, "tokens of a translation at most (twice the line and 10)")
          ->check(Range(1, 1'000'000))
          ->option_text("N");
      app.add_option("--max-line", search.longest_line,
                     "tokens of a line; longer ones are cut at the ends of sentences (as in training)")
          ->check(Range(1, 1'000'000))
          ->option_text("N");
      app.add_option("--batch-tokens", search.batch_tokens, "translated together (4096)")
          ->check(Range(1, 1 << 24))
          ->option_text("N");
      app.add_flag("--int8", options->int8, "compute with weights of 8 bits: faster, nearly the same translations");
      app.add_flag("--sample", search.sample, "draw translations instead of searching for the likeliest");
      const auto samples = [options](Option* option) {
        option->each([options](const std::string&) { options->search.sample = true; });
      };
      samples(app.add_option("--top-k", search.top_k, "draw from the N likeliest words only")
                  ->check(Range(1, 1 << 24))
                  ->option_text("N"));
      samples(app.add_option("--top-p", search.top_p, "draw from the likeliest words that have X of the probability")
                  ->check(Range(0.000001, 1.0))
                  ->option_text("X"));
      samples(app.add_option("--temperature", search.temperature, "below 1 the likely become likelier (1)")
                  ->check(Range(0.001, 1000.0))
                  ->option_text("X"));
      app.add_option("--seed", search.seed, "another seed, other samples (1)")->check(a_seed)->option_text("N");
      app.add_flag("--scores", options->scores, "the score behind every translation: translation ||| score");
      app.add_option("--alignment", options->alignment_kind,
                     "translation ||| which words come from which: hard, soft, spans, or the least weight, as 0.3")
          ->option_text("KIND");
      app.add_option("--level", options->level, "what is aligned: word, character or piece (word)")
          ->option_text("NAME");
      app.add_flag("--map", options->map, "where it looked, below every translation");
      options->look.add(app);
      options->trace.add(app, true);
      return [options](const Context& context) {
        check_options(*options);
        options->search.beams = options->trace.beam;
        if (options->trace.asked()) {
          options->search.keeps = options->trace.keeps();
        } else if (options->map || !options->alignment_kind.empty()) {
          options->search.keeps = Keeps::kSource;
        }
        if (!options->alignment_kind.empty()) {
          AlignmentSettings& alignment = options->alignment.emplace(alignment_settings(options->alignment_kind));
          alignment.level = alignment_level(options->level);
          options->look.put_into(alignment);
        }
        return run(*options, context);
      };
    },
});

}  // namespace
}  // namespace regard::cli
