// `regard demo`: translates with the models in the box, trains a small one with and without attention, and shows what
// attention changed.
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/pool.h"
#include "cli/command.h"
#include "cli/look.h"
#include "cli/seed.h"
#include "cli/teller.h"
#include "io/file.h"
#include "io/model_file.h"
#include "kernels/target.h"
#include "tasks/box.h"
#include "tasks/demonstration.h"
#include "view/terminal.h"

namespace regard::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array kSentences = {"他每天早上六点起床。", "我不知道她为什么这么生气。",
                                   "如果明天下雨，我就待在家里。"};

struct Options {
  DemonstrationSettings training;
  std::string keep, color = "auto";
};

// Where the models of the demonstration are written: a folder that somebody wants to keep, or one that goes away.
class Place {
 public:
  explicit Place(const std::string& keep) : kept_(!keep.empty()), path_(keep) {
    if (kept_) {
      std::error_code error;
      fs::create_directories(path_, error);
      check(!error, "demo: --keep '", keep, "': ", error.message());
      return;
    }
    path_ = (fs::temp_directory_path() / "regard-demo-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) fail(ErrorKind::kFile, "demo: no folder for the models at '", path_, "'");
  }
  ~Place() {
    std::error_code ignored;
    if (!kept_) fs::remove_all(path_, ignored);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  std::string file(const char* name) const { return (fs::path(path_) / name).string(); }

 private:
  bool kept_;
  std::string path_;
};

Translator::Result best_of(const Translator& translator, const std::string& line, std::int64_t beam) {
  return translator.translate(std::array{line}, {.beam = beam, .longest_line = 1000})[0].best[0];
}

void translate_with_the_box(const MapSettings& settings) {
  fmt::print("1  The model in the box translates, and shows where it looked\n\n");
  const Translator translator(boxed_model(direction_of(kSentences[0])));
  for (const std::string line : kSentences) {
    const Translator::Result result = best_of(translator, line, 5);
    fmt::print("  {}\n  {}\n", line, result.text);
    print_look(translator, translator.look(line, result), choice_of(translator), settings);
  }
  fmt::print("  {}   a row: what was written; a column: what was read; a cell: the weight\n\n",
             heat_scale(settings.colors));
  std::fflush(stdout);
}

struct Rival {
  const char *name, *attention, *file;
  std::unique_ptr<Translator> translator = {};
  TranslationScores scores = {};
};

void train_rivals(std::span<Rival> rivals, const Demonstration& demonstration, const Place& place,
                  const Options& options, const Context& context) {
  fmt::print("2  The same small model learns with attention and without: {} updates on made-up sentences\n\n",
             options.training.updates);
  std::fflush(stdout);
  for (Rival& rival : rivals) {
    Teller teller(rival.name);
    const std::string path = demonstration.train(
        rival.attention, place.file(rival.file), [&](const UpdateReport& report) { teller.update(report); }, context);
    rival.translator = std::make_unique<Translator>(path);
    rival.scores = demonstration.test(*rival.translator, context);
    teller.say(fmt::format("  {:<18} BLEU {:4.1f} on {} sentences that it has not seen", rival.name,
                           rival.scores.bleu.score, rival.scores.sentences));
  }
  const bool promised = target() == "avx512" || target() == "avx2";
  fmt::print("  bits {}: this model comes out on any number of threads, {}\n\n",
             load_model(disk(), place.file(rivals[0].file)).digest().substr(0, 16),
             promised ? "with AVX2 or AVX-512" : "on processors of this kind");
}

void print_lengths(std::span<const Rival> rivals) {
  fmt::print("  {:<18}", "words of a source");
  for (const LengthClass& each : rivals[0].scores.classes) fmt::print(" {:>6}", to_text(each));
  for (const Rival& rival : rivals) {
    fmt::print("\n  {:<18}", rival.name);
    for (const LengthClass& each : rival.scores.classes) fmt::print(" {:6.1f}", each.bleu);
  }
  fmt::print("   BLEU\n\n");
}

void compare_rivals(std::span<const Rival> rivals, const Demonstration& demonstration, const MapSettings& settings) {
  fmt::print("3  What attention changed\n\n");
  print_lengths(rivals);
  const TextPair sentence = demonstration.long_sentence();
  fmt::print("  {:<18} {}\n  {:<18} {}\n", "a long sentence", sentence.source, "right", sentence.target);
  Translator::Result seen;
  for (const Rival& rival : rivals) {
    Translator::Result result = best_of(*rival.translator, sentence.source, 1);
    fmt::print("  {:<18} {}\n", rival.name, result.text);
    if (&rival == &rivals[0]) seen = std::move(result);
  }
  const Translator& translator = *rivals[0].translator;
  print_look(translator, translator.look(sentence.source, seen), choice_of(translator), settings);
}

void print_next(const Options& options) {
  const std::string model = options.keep.empty() ? "" : "-m " + options.keep + "/with.model ";
  fmt::print(
      "Next\n"
      "  regard translate {}--map 'I do not know why she is so angry.'\n"
      "      a sentence of your own; without -m the models in the box, for Chinese and for English\n"
      "  regard view 'I do not know why she is so angry.' -o map.html\n"
      "      the same as a page on which one can point at words; .svg, .png, .pdf and more, too\n"
      "  regard compare translate --builtin zh-en --mechanisms 'none; dot; additive' --budget 60s\n"
      "      which mechanism learns best in a minute\n"
      "  regard probe gradient\n"
      "      why long sentences fall apart without attention\n"
      "  regard list\n"
      "      every mechanism, its formula and its paper\n",
      model);
}

int run(const Options& options, const Context& context) {
  const MapSettings settings = {.colors = colors_of(STDOUT_FILENO, when_colors(options.color)),
                                .width = width_of(STDOUT_FILENO)};
  const Demonstration demonstration(options.training);
  const Place place(options.keep);
  translate_with_the_box(settings);
  std::array rivals = {Rival{"with attention", "additive", "with.model"}, Rival{"without", "none", "without.model"}};
  train_rivals(rivals, demonstration, place, options, context);
  compare_rivals(rivals, demonstration, settings);
  print_next(options);
  return 0;
}

const AddCommand demo({
    .name = "demo",
    .summary = "translate, train a small model with and without attention, see what changed",
    .example = "regard demo\nregard demo --updates 2000 --keep models-of-the-demo",
    .build = [](App& app) -> Run {
      auto options = std::make_shared<Options>();
      DemonstrationSettings& training = options->training;
      app.add_option("--updates", training.updates, fmt::format("of each training ({})", training.updates))
          ->check(Range(1, 1'000'000))
          ->option_text("N");
      app.add_option("--lines", training.pairs, fmt::format("pairs to learn from ({})", training.pairs))
          ->check(Range(100, 1'000'000))
          ->option_text("N");
      app.add_option("--tests", training.tests, fmt::format("sentences of the test ({})", training.tests))
          ->check(Range(1, 100'000))
          ->option_text("N");
      app.add_option("--seed", training.seed, "another seed, other first weights (1)")->check(a_seed)->option_text("N");
      app.add_option("--keep", options->keep, "a folder in which the two trained models stay")->option_text("FOLDER");
      app.add_option("--color", options->color, "auto, always or never")
          ->check(IsMember({"auto", "always", "never"}))
          ->option_text("WHEN");
      return [options](const Context& context) { return run(*options, context); };
    },
});

}  // namespace
}  // namespace regard::cli
