// The training loop: updates, validation, early stopping, averages, and files from which nothing is lost. It knows
// neither text nor models; what it needs of them is handed in as functions.
//
//     const LoopResult result = train({.path = "zh-en.model", .stop_after = epochs(10), .valid_every = epochs(1)},
//                                     {.parameters = parameters, .optimizer = adam, .loss = …, .epochs = …, …},
//                                     context);
//
// Beside the model M it keeps M.ckpt, from which a run goes on, and M.metrics.jsonl, its diary. A run that was killed
// and resumed, as often as you like, ends with the same files bit for bit as one that was not (but for times in the
// diary).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "io/model_file.h"
#include "regard/context.h"
#include "regard/random.h"
#include "regard/train/schedule.h"
#include "regard/train/trainer.h"
#include "train/counts.h"

namespace regard {

enum class BestBy : std::uint8_t { kLoss, kScore };

struct LoopSettings {
  std::string path;     // of the model
  bool resume = false;  // go on from the checkpoint; without, a model that exists is refused
  std::uint64_t seed = 1;

  Count stop_after = {};
  Count save_every = seconds(600);
  Count valid_every = epochs(1);
  Count report_every = updates(100);

  std::int64_t accumulate = 1;  // parts of a batch before the weights change
  double clip = 0;              // the largest norm of all gradients together; 0: no limit
  std::variant<Schedule, PlateauSettings> rate = constant_rate(1e-3);  // a plateau is told the loss of every validation
  BestBy best_by = BestBy::kLoss;
  std::int64_t patience = 0;  // stop after so many validations without a better one; 0: never
  double moving_average = 0;  // decay of a moving average of the weights, which is then what is validated; 0: none
  // At the end, take the mean of so many weights: those of the last or of the best validations (of saves if there are
  // no validations). It becomes the model if it is better than the best.
  std::int64_t average = 0;
  bool average_best = false;

  std::string config = "{}";                    // goes into the model: a JSON object
  std::vector<TokenizerBytes> tokenizers = {};  // into the model too
  std::string identity = "{}";                  // what must be the same when the run goes on: a JSON object

  Files* files = nullptr;                   // the disk
  std::function<double()> clock = nullptr;  // seconds since any moment; the steady one
};

struct PartInfo {
  std::int64_t update = 0;  // done before this one
  std::int64_t part = 0;    // of it
  RandomKey key{0};         // of this update: what is random about it
};

struct Validation {
  double loss = 0;
  std::optional<double> score = {};  // more is better
  std::string sample = {};           // something to look at
};

struct UpdateReport {  // over the updates since the last report
  Reached reached = {};
  double loss = 0;  // mean per token
  double rate = 0;  // the last
  double norm = 0;  // mean, before clipping
  double tokens = 0;
  double tokens_per_second = 0;
  std::optional<double> seconds_left = {};
  std::map<std::string, double> health = {};  // not in those that come after every update
};

struct ValidationReport {
  Reached reached = {};
  Validation result = {};
  bool best = false;      // the best so far: now it is the model
  bool averaged = false;  // of the mean of several weights, at the end
};

struct TrainingTask {
  Parameters& parameters;
  Optimizer& optimizer;

  // The data is a stream with a position. `loss` puts the next part of a batch on the tape and counts its tokens.
  std::function<LossPart(Tape&, const PartInfo&)> loss;
  std::function<double()> epochs;              // gone through so far; a whole number right after the last part of one
  std::function<std::string()> position;       // any bytes
  std::function<void(std::string_view)> seek;  // to what `position` said

  std::function<Validation()> validate = {};
  std::function<std::map<std::string, double>()> health = {};  // numbers for a report: entropies, dead heads
  std::function<void(Gradients&, StepTotals&)> reduce = {};    // between backward and optimiser

  std::function<void(const UpdateReport&)> on_update = {};  // after every update; must be quick
  std::function<void(const UpdateReport&)> on_report = {};
  std::function<void(const ValidationReport&)> on_validation = {};
};

struct LoopResult {
  enum class Reason : std::uint8_t { kDone, kPatience };
  Reason reason = Reason::kDone;
  Reached reached = {};
  std::optional<double> best = {};  // score, or loss
  std::int64_t best_update = 0;
};

std::string checkpoint_of(const std::string& path);  // M.ckpt
std::string metrics_of(const std::string& path);     // M.metrics.jsonl

// Asked to stop (Context::cancel), it saves and throws an Error of kind kCancelled that says how to go on. A loss or a
// gradient that is not finite throws and leaves weights and checkpoint as they were.
LoopResult train(const LoopSettings& settings, const TrainingTask& task, const Context& context);

}  // namespace regard
