// Where a training run is, in one file beside its model: a run that goes on from it ends with the same bits as one that
// was never stopped. Nothing in it depends on clock, machine or number of threads.
//
//     save_checkpoint(disk(), "zh-en.model.ckpt", state, {.parameters = parameters, .optimizer = adam});
//     const TrainingState state = load_checkpoint(disk(), "zh-en.model.ckpt", {.parameters = parameters, …});
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/sealed.h"
#include "regard/train/average.h"
#include "regard/train/optimizer.h"
#include "regard/train/schedule.h"

namespace regard {

inline constexpr Format kCheckpointFormat = {.name = "regard-checkpoint", .major = 1, .minor = 0};

struct Snapshot {  // weights that will be averaged
  std::int64_t update = 0;
  double value = 0;  // how good they were; more is better
  std::map<std::string, Tensor> weights = {};
};

struct TrainingState {
  std::string identity = {};  // what must be the same when a run goes on: a JSON object
  std::uint64_t seed = 0;
  std::int64_t update = 0;
  double epochs = 0;
  std::string position = {};        // of the data: whatever it says of itself
  bool settled = true;              // what follows an update (validation, …) has been done for this one
  bool finished = false;            // what follows the last update too
  std::int64_t validated = 0;       // the last update that was validated; 0: none
  std::optional<double> best = {};  // the best value so far; more is better
  std::int64_t best_update = 0;
  std::int64_t bad = 0;  // validations without a better value, one after another
  std::optional<Plateau::State> plateau = {};
  struct SinceReport {
    double loss = 0, count = 0, norm = 0;
    std::int64_t updates = 0;
  };
  SinceReport report = {};
  std::int64_t metrics_length = 0;
  std::vector<Snapshot> snapshots = {};
};

struct TrainingParts {
  Parameters& parameters;
  Optimizer& optimizer;
  Average* average = nullptr;
};

// `position` and `identity` and all numbers come from the state, weights and what the optimiser remembers from the
// parts.
void save_checkpoint(Files& files, const std::string& path, const TrainingState& state, const TrainingParts& parts);

// Fills the parts. A checkpoint that is damaged or does not fit throws and changes nothing. `identity`: what the run
// says of itself now; the error names the first setting that differs.
TrainingState load_checkpoint(Files& files, const std::string& path, const std::string& identity,
                              const TrainingParts& parts);

}  // namespace regard
