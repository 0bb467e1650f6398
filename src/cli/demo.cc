// `regard demo`: trains a small model in a few seconds and shows where it looks.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "base/check.h"
#include "base/pool.h"
#include "cli/command.h"
#include "kernels/target.h"
#include "tasks/letters_run.h"
#include "train/fingerprint.h"
#include "view/terminal.h"

namespace regard::cli {
namespace {

struct Options {
  LettersRunSettings run;
  std::string task = "reverse";
  std::string color = "auto";
  bool no_color = false;
  std::string input;
};

constexpr std::int64_t kTests = 500;

// How far the training is: on a terminal one line that is written over again, else one line a quarter.
class ProgressLine {
 public:
  explicit ProgressLine(std::int64_t steps) : steps_(steps), terminal_(isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() {
    if (open_) fmt::print(stderr, "\n");
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const LettersRun::Moment& moment) {
    const bool last = moment.step == steps_;
    const std::int64_t quarter = moment.step * 4 / steps_;
    if (terminal_ ? !last && moment.seconds - shown_ < 0.1 : quarter == quarter_) return;
    shown_ = moment.seconds;
    quarter_ = quarter;
    const std::string line = fmt::format("training  step {:>{}} of {}   loss {:.4f}   {:.1f} s", moment.step,
                                         fmt::formatted_size("{}", steps_), steps_, moment.loss, moment.seconds);
    if (terminal_) {
      fmt::print(stderr, "\r{}\033[K", line);
    } else {
      fmt::print(stderr, "{}\n", line);
    }
    std::fflush(stderr);
    open_ = terminal_;
  }

 private:
  std::int64_t steps_;
  bool terminal_;
  bool open_ = false;
  double shown_ = -1;
  std::int64_t quarter_ = 0;
};

void print_answer(const LettersAnswer& answer, const MapSettings& settings) {
  const auto source = Letters::labels(answer.source), written = Letters::labels(answer.written);
  fmt::print("\n  input   {}\n  output  {}\n\n", fmt::join(source, " "), fmt::join(written, " "));
  fmt::print("{}", heat_map(answer.weights, {.rows = written, .columns = source}, settings));
}

int run(const Options& options, const Context& context) {
  check(options.run.steps > 0, "demo: --steps is ", options.run.steps, ", expected 1 or more");
  LettersRunSettings settings = options.run;
  settings.task.reverse = options.task == "reverse";
  const WhenColors when = options.no_color || options.color == "never" ? WhenColors::kNever
                          : options.color == "always"                  ? WhenColors::kAlways
                                                                       : WhenColors::kAuto;
  const MapSettings view = {.colors = colors_of(STDOUT_FILENO, when), .width = width_of(STDOUT_FILENO)};
  const std::vector<std::int32_t> input = Letters::words(options.input);

  LettersRun letters(settings);
  fmt::print("Task   read letters with noise between them, write the letters {}\n",
             settings.task.reverse ? "in reverse order" : "in the same order");
  fmt::print("Model  GRU encoder and decoder, additive attention, {} weights ({}, {} thread{})\n",
             letters.parameters().count(), target(), threads(), threads() == 1 ? "" : "s");
  std::fflush(stdout);
  {
    ProgressLine progress(settings.steps);
    letters.train(context, [&](const LettersRun::Moment& moment) { progress.show(moment); });
  }
  const LettersScore score = letters.test(kTests, context);
  fmt::print("Test   {} of {} unseen examples exactly right ({:.1f} %)\n", score.exact, score.examples,
             100.0 * static_cast<double>(score.exact) / static_cast<double>(score.examples));
  fmt::print(
      "       {:.1f} % of the letters written looked most at the letter they come from\n",
      100.0 * static_cast<double>(score.pointed) / static_cast<double>(std::max<std::int64_t>(score.letters, 1)));
  if (settings.seconds == 0) {
    const bool promised = target() == "avx512" || target() == "avx2";
    fmt::print("Bits   {:016x}: these weights come out on any number of threads, {}\n",
               fingerprint(letters.parameters()), promised ? "with AVX2 or AVX-512" : "on processors of this kind");
  }

  if (!input.empty()) {
    print_answer(letters.answer(input), view);
  } else {
    // Two unseen examples that show something: not the shortest ones, with noise to pass over.
    int shown = 0;
    for (std::uint64_t number = 0; shown < 2; ++number) {
      const LettersExample example = letters.task().test(number);
      const std::size_t letters_in = example.places.size(), noise = example.pair.source.size() - letters_in;
      if (letters_in < 6 || noise < 2) continue;
      print_answer(letters.answer(example.pair.source), view);
      ++shown;
    }
  }
  fmt::print("\n  {}   a row: the letter written; a column: the letter read; a cell: the weight\n",
             heat_scale(view.colors));
  return 0;
}

const AddCommand demo({
    .name = "demo",
    .summary = "train a small model in seconds and show where it looks",
    .example = "regard demo\nregard demo --task copy --input k#ta.c",
    .build = [](CLI::App& app) -> Run {
      auto options = std::make_shared<Options>();
      app.add_option("--task", options->task, "reverse or copy")
          ->check(CLI::IsMember({"reverse", "copy"}))
          ->option_text("NAME");
      app.add_option("--input", options->input, "letters of your own to look at, such as k#ta.c (a … z and . # - ~)")
          ->option_text("TEXT");
      app.add_option("--steps", options->run.steps, fmt::format("steps of training ({})", options->run.steps))
          ->check(CLI::Range(1, 1'000'000))
          ->option_text("N");
      app.add_option("--seconds", options->run.seconds,
                     "stop after so many seconds (the result then depends on the machine)")
          ->check(CLI::Range(0.0, 1e6))
          ->option_text("S");
      app.add_option("--seed", options->run.task.seed, "another seed, other examples and first weights (1)")
          ->option_text("N");
      app.add_option("--color", options->color, "auto, always or never")
          ->check(CLI::IsMember({"auto", "always", "never"}))
          ->option_text("WHEN");
      app.add_flag("--no-color", options->no_color, "shades instead of colours");
      return [options](const Context& context) { return run(*options, context); };
    },
});

}  // namespace
}  // namespace regard::cli
