#include "train/checkpoint.h"

#include <cmath>
#include <limits>

#include "base/check.h"
#include "io/json.h"
#include "io/model_file.h"

namespace regard {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const std::string kWeights = "weights/", kOptimizer = "optimizer/", kAverage = "average/", kSnapshot = "snapshot/";

std::string numbers_of(const TrainingState& state, const OptimizerState& optimizer, const Average* average) {
  JsonWriter out;
  out.begin_object().key("seed").value(state.seed).key("update").value(state.update).key("epochs").value(state.epochs);
  out.key("settled").value(state.settled).key("finished").value(state.finished);
  out.key("validated").value(state.validated);
  if (state.best) out.key("best").value(*state.best);
  out.key("best_update").value(state.best_update).key("bad").value(state.bad);
  if (state.plateau) {
    out.key("plateau").begin_object().key("rate").value(state.plateau->rate);
    out.key("best").value(state.plateau->best);  // null while it is infinite
    out.key("bad").value(state.plateau->bad).key("resting").value(state.plateau->resting).end_object();
  }
  out.key("report").begin_object().key("loss").value(state.report.loss).key("count").value(state.report.count);
  out.key("norm").value(state.report.norm).key("updates").value(state.report.updates).end_object();
  out.key("metrics_length").value(state.metrics_length);
  out.key("optimizer").begin_object().key("kind").value(optimizer.kind).key("steps").value(optimizer.steps);
  out.key("counts").begin_object();
  for (const auto& [name, count] : optimizer.counts) out.key(name).value(count);
  out.end_object().end_object();
  if (average != nullptr) out.key("average_updates").value(average->updates());
  out.key("snapshots").begin_array();
  for (const Snapshot& each : state.snapshots) {
    out.begin_object().key("update").value(each.update).key("value").value(each.value).end_object();
  }
  return out.end_array().end_object().text();
}

std::string snapshot_prefix(std::size_t index) { return fmt::format("{}{}/", kSnapshot, index); }

// All tensors whose name begins so, without that beginning.
std::map<std::string, Tensor> tensors_under(const Safetensors& content, const std::string& prefix, std::size_t& used) {
  std::map<std::string, Tensor> out;
  for (const FileTensor& each : content.tensors()) {
    if (!each.name.starts_with(prefix)) continue;
    out.emplace(each.name.substr(prefix.size()), tensor_of(each));
    ++used;
  }
  return out;
}

const std::string& metadata(const Safetensors& content, const char* key) {
  const auto found = content.metadata().find(key);
  if (found == content.metadata().end()) fail(ErrorKind::kFile, content.what(), ": there is no ", key);
  return found->second;
}

constexpr std::int64_t kMost = std::int64_t{1} << 62;

// Throws for the first setting of two objects that differs, or of objects within them.
void check_same(const std::string& what, const std::string& place, const Json& before, const Json& here) {
  const auto text_of = [](const std::optional<Json>& value) { return value ? value->to_json() : "nothing"; };
  const auto compare = [&](std::string_view key) {
    const std::optional<Json> old_value = before.find(key), new_value = here.find(key);
    const std::string old_text = text_of(old_value), new_text = text_of(new_value), name = place + std::string(key);
    if (old_text == new_text) return;
    const auto is_object = [](const std::optional<Json>& value) {
      return value && value->kind() == Json::Kind::kObject;
    };
    if (is_object(old_value) && is_object(new_value)) check_same(what, name + ".", *old_value, *new_value);
    fail(ErrorKind::kInput, what, " is of a run with other settings: ", name, " was ", old_text, ", now it is ",
         new_text);
  };
  for (const auto& [key, value] : before.object()) compare(key);
  for (const auto& [key, value] : here.object()) compare(key);
}

void check_identity(const std::string& what, const std::string& saved, const std::string& now) {
  if (saved != now) check_same(what, "", Json::parse(saved, "settings of " + what), Json::parse(now, "settings"));
}

TrainingState numbers_from(const Json& json) {
  TrainingState state;
  const auto natural = [](const Json& value) { return value.integer(0, kMost); };
  state.seed = json.at("seed").natural();
  state.update = natural(json.at("update"));
  state.epochs = json.at("epochs").number(0);
  state.settled = json.at("settled").boolean();
  state.finished = json.at("finished").boolean();
  state.validated = natural(json.at("validated"));
  if (const auto best = json.find("best")) state.best = best->number();
  state.best_update = natural(json.at("best_update"));
  state.bad = natural(json.at("bad"));
  if (const auto plateau = json.find("plateau")) {
    const Json best = plateau->at("best");
    state.plateau = {.rate = plateau->at("rate").number(0),
                     .best = best.is_null() ? kInfinity : best.number(),
                     .bad = natural(plateau->at("bad")),
                     .resting = natural(plateau->at("resting"))};
  }
  const Json report = json.at("report");
  state.report = {.loss = report.at("loss").number(),
                  .count = report.at("count").number(0),
                  .norm = report.at("norm").number(0),
                  .updates = natural(report.at("updates"))};
  state.metrics_length = natural(json.at("metrics_length"));
  for (const Json& each : json.at("snapshots").array()) {
    state.snapshots.push_back({.update = natural(each.at("update")), .value = each.at("value").number()});
  }
  return state;
}

}  // namespace

void save_checkpoint(Files& files, const std::string& path, const TrainingState& state, const TrainingParts& parts) {
  const OptimizerState optimizer = parts.optimizer.state();
  std::vector<FileTensor> tensors;
  add_weights(tensors, parts.parameters, kWeights);
  for (const auto& [name, tensor] : optimizer.tensors) tensors.push_back(file_tensor(kOptimizer + name, tensor));
  if (parts.average != nullptr) {
    for (const Parameter& parameter : parts.parameters) {
      const Tensor& average = parts.average->of(parameter);
      if (average.defined()) tensors.push_back(file_tensor(kAverage + parameter.name, average));
    }
  }
  for (std::size_t i = 0; i < state.snapshots.size(); ++i) {
    for (const auto& [name, tensor] : state.snapshots[i].weights) {
      tensors.push_back(file_tensor(snapshot_prefix(i) + name, tensor));
    }
  }
  tensors.push_back(file_bytes("position", state.position));
  write_sealed(files, path, kCheckpointFormat,
               {{"identity", state.identity}, {"state", numbers_of(state, optimizer, parts.average)}},
               std::move(tensors));
}

TrainingState load_checkpoint(Files& files, const std::string& path, const std::string& identity,
                              const TrainingParts& parts) {
  const Sealed sealed = read_sealed(files, path, kCheckpointFormat);
  const Safetensors& content = sealed.content;
  const std::string& what = content.what();
  check_identity(what, metadata(content, "identity"), identity);

  const Json json = Json::parse(metadata(content, "state"), "state in " + what);
  TrainingState state = numbers_from(json);
  state.identity = identity;
  state.position = bytes_of(content.at("position"));
  std::size_t used = 1;

  const Json saved = json.at("optimizer");
  OptimizerState optimizer{.kind = std::string(saved.at("kind").text()),
                           .steps = saved.at("steps").integer(0, kMost),
                           .tensors = tensors_under(content, kOptimizer, used)};
  for (const auto& [name, count] : saved.at("counts").object()) optimizer.counts.emplace(name, count.integer(0, kMost));

  const auto averages = tensors_under(content, kAverage, used);
  for (std::size_t i = 0; i < state.snapshots.size(); ++i) {
    state.snapshots[i].weights = tensors_under(content, snapshot_prefix(i), used);
  }
  const auto refuse = [&](const auto&... why) { fail(ErrorKind::kFile, what, ": ", why...); };
  for (const Snapshot& each : state.snapshots) {
    if (each.weights.size() != parts.parameters.size()) refuse("a snapshot of ", each.weights.size(), " weights");
    for (const Parameter& parameter : parts.parameters) {
      const auto found = each.weights.find(parameter.name);
      if (found == each.weights.end() || found->second.shape() != parameter.value.shape() ||
          found->second.dtype() != parameter.value.dtype()) {
        refuse("a snapshot without weights '", parameter.name, "' that fit");
      }
    }
  }
  const bool has_average = json.find("average_updates").has_value();
  if (has_average != (parts.average != nullptr)) {
    refuse(has_average ? "it has a moving average, this run has none" : "it has no moving average, this run has one");
  }

  const std::vector<Tensor> weights = read_weights(content, kWeights, parts.parameters);
  used += weights.size();
  if (used != content.tensors().size())
    refuse(content.tensors().size(), " tensors, of which ", used, " have a meaning");
  const std::int64_t average_updates = has_average ? json.at("average_updates").integer(0, kMost) : 0;
  try {
    parts.optimizer.check_state(optimizer);
    if (has_average) parts.average->check_state(averages, average_updates);
  } catch (const Error& error) {
    refuse(error.what());
  }
  // Nothing below can fail for a reason that is in the file.
  parts.optimizer.resume(optimizer);
  if (has_average) parts.average->resume(averages, average_updates);
  set_weights(parts.parameters, weights);
  return state;
}

}  // namespace regard
