#include "train/loop.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <memory>

#include "base/check.h"
#include "io/json.h"
#include "train/checkpoint.h"
#include "train/metrics.h"

namespace regard {
namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string position_text(const Reached& at) { return fmt::format("update {} (epoch {:.2f})", at.updates, at.epochs); }

// What the run says of itself, and what of the loop's settings determines the result.
std::string identity_of(const LoopSettings& settings, bool validates) {
  JsonWriter out;
  out.begin_object();
  for (const auto& [key, value] : Json::parse(settings.identity, "identity").object())
    out.key(key).raw(value.to_json());
  out.key("seed").value(settings.seed).key("accumulate").value(settings.accumulate).key("clip").value(settings.clip);
  out.key("moving average").value(settings.moving_average);
  out.key("best by").value(settings.best_by == BestBy::kLoss ? "loss" : "score");
  if (settings.average > 0 && !validates) out.key("save every").value(to_text(settings.save_every));
  for (const TokenizerBytes& each : settings.tokenizers) {
    out.key("tokenizer " + each.name).value(each.kind + " " + digest_of_bytes(each.bytes));
  }
  return out.end_object().text();
}

class Loop {
 public:
  Loop(const LoopSettings& settings, const TrainingTask& task, const Context& context)
      : settings_(checked(settings, task)),
        task_(task),
        context_(context),
        files_(settings.files != nullptr ? *settings.files : disk()),
        checkpoint_(checkpoint_of(settings.path)),
        clock_(settings.clock ? settings.clock : steady_seconds),
        trainer_(task.parameters, task.optimizer, {.clip = settings.clip, .reduce = task.reduce}) {
    if (settings.moving_average > 0) average_.emplace(task.parameters, settings.moving_average);
    if (const auto* plateau = std::get_if<PlateauSettings>(&settings.rate)) plateau_.emplace(*plateau);
  }

  LoopResult run() {
    start();
    LoopResult::Reason reason = LoopResult::Reason::kDone;
    try {
      for (;;) {
        if (!state_.settled) settle();
        if (settings_.patience > 0 && state_.bad >= settings_.patience) {
          reason = LoopResult::Reason::kPatience;
          break;
        }
        if (is_over(settings_.stop_after, reached())) break;
        stop_if_asked(context_);
        update();
      }
      if (!state_.finished) finish();
      if (settings_.stop_after.unit == Count::Unit::kSeconds) note_stop();
    } catch (const Error& error) {
      if (in_update_) throw;
      const bool stopped = error.kind() == ErrorKind::kCancelled;
      if (!stopped && error.kind() != ErrorKind::kFile && saved_ != state_.update) save();
      if (!stopped) throw Error(error.kind(), fmt::format("{} ({})", error.what(), what_is_kept()));
      save();
      note_stop();
      fail(ErrorKind::kCancelled, "stopped after ", position_text(reached()), ", saved in '", checkpoint_,
           "': the same command with --resume goes on");
    }
    LoopResult result{.reason = reason, .reached = reached(), .best = state_.best, .best_update = state_.best_update};
    if (result.best && settings_.best_by == BestBy::kLoss) result.best = -*result.best;
    return result;
  }

 private:
  static const LoopSettings& checked(const LoopSettings& settings, const TrainingTask& task) {
    check(!settings.path.empty(), "train: where should the model go?");
    check(task.loss && task.epochs && task.position && task.seek, "train: the task gives no data");
    check(settings.accumulate >= 1, "train: ", settings.accumulate, " parts a batch, expected 1 or more");
    check(settings.patience >= 0 && settings.average >= 0, "train: patience ", settings.patience, ", average ",
          settings.average, ": expected 0 or more");
    check(settings.clip >= 0, "train: clip is ", settings.clip, ", expected 0 or more");
    if (!task.validate) {
      check(settings.patience == 0 && std::holds_alternative<Schedule>(settings.rate),
            "train: patience and a plateau need validations");
      check(
          settings.average == 0 || settings.save_every.unit != Count::Unit::kSeconds,
          "train: without validations average is the mean of what was saved, expected save_every in updates or epochs, "
          "got ",
          to_text(settings.save_every));
    }
    return settings;
  }

  double seconds_now() const { return seconds_before_ + (clock_() - started_); }
  Reached reached() const { return {.updates = state_.update, .epochs = task_.epochs(), .seconds = seconds_now()}; }
  double rate_of(std::int64_t updates_done) const {
    return plateau_ ? plateau_->rate() : std::get<Schedule>(settings_.rate)(updates_done);
  }
  TrainingParts parts() {
    return {.parameters = task_.parameters, .optimizer = task_.optimizer, .average = average_ ? &*average_ : nullptr};
  }
  void log(const std::string& line) const {
    if (context_.log) context_.log(line);
  }

  std::string what_is_kept() const {
    return saved_ ? fmt::format("'{}' holds update {}", checkpoint_, *saved_) : "nothing was saved yet";
  }

  void start() {
    check_files();
    metrics_ = std::make_unique<Metrics>(files_, metrics_of(settings_.path));  // from here on this run is ours alone
    check_files();                                                             // another one may just have ended
    const bool there = exists(files_, checkpoint_), model_there = exists(files_, settings_.path);
    state_.identity = identity_of(settings_, static_cast<bool>(task_.validate));
    state_.seed = settings_.seed;
    if (there) {
      state_ = load_checkpoint(files_, checkpoint_, state_.identity, parts());
      if (plateau_ && state_.plateau) plateau_->resume(*state_.plateau);
      saved_ = state_.update;
      task_.seek(state_.position);
      if (!task_.validate && !model_there) state_.finished = false;  // it is written again
      if (state_.best && !model_there) {
        fail(ErrorKind::kFile, "'", settings_.path, "' is gone: it had the best weights, of update ",
             state_.best_update, ", and '", checkpoint_, "' has those of update ", state_.update);
      }
    } else if (settings_.resume) {
      log(fmt::format("there is no '{}': starting anew", checkpoint_));
    }
    const std::optional<double> stopped = there ? metrics_->last("stopped") : std::nullopt;
    if (!there && metrics_->length() > 0) {
      log(fmt::format("'{}' is of a run that is gone: it begins anew", metrics_of(settings_.path)));
    }
    if (!metrics_->cut(state_.metrics_length)) {
      log(fmt::format("'{}' is shorter than it was: it goes on where it ends", metrics_of(settings_.path)));
    }
    if (there) {
      seconds_before_ = std::max(stopped.value_or(0), metrics_->last("seconds").value_or(0));
      log(fmt::format("going on after {}", position_text(reached())));
    }
    started_ = clock_();
    begun_ = reached();
    last_report_ = last_validation_ = last_save_ = begun_.seconds;
    if (!there) save();  // whoever writes a model has a checkpoint
  }

  void check_files() const {
    if (!settings_.resume) check_free(files_, settings_.path);
    if (exists(files_, settings_.path) && !exists(files_, checkpoint_)) {
      fail(ErrorKind::kFile, "'", settings_.path, "' is there, but no '", checkpoint_,
           "' to go on from: another name leaves it as it is");
    }
  }

  // Behind what the checkpoint knows of the diary, so that the time since its last line counts, too.
  void note_stop() {
    JsonWriter line = begin_line("stop", reached());
    line.key("stopped").raw(clock_number(seconds_now())).end_object();
    try {
      metrics_->write(line.text());
    } catch (const Error&) {  // everything that counts is saved
    }
  }

  void update() {
    in_update_ = true;
    state_.epochs = task_.epochs();
    state_.finished = false;
    const double rate = rate_of(state_.update);
    StepResult result;
    PartInfo info{.update = state_.update,
                  .key = RandomKey(settings_.seed).at(static_cast<std::uint64_t>(state_.update))};
    try {
      trainer_.begin();
      for (; info.part < settings_.accumulate; ++info.part) {
        trainer_.add([&](Tape& tape) { return task_.loss(tape, info); });
      }
      result = trainer_.finish(rate);
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{} (epoch {:.2f}; {})", error.what(), state_.epochs, what_is_kept()));
    }
    if (average_) average_->update();
    ++state_.update;
    state_.settled = false;
    state_.report.loss += result.loss * result.count;
    state_.report.count += result.count;
    state_.report.norm += result.norm;
    ++state_.report.updates;
    tokens_ += result.count;
    in_update_ = false;
    if (task_.on_update) task_.on_update(report(rate));
    if (context_.progress) {
      const bool known = settings_.stop_after.unit == Count::Unit::kUpdates;
      context_.progress({.what = "training",
                         .done = state_.update,
                         .total = known ? static_cast<std::int64_t>(settings_.stop_after.amount) : 0});
    }
  }

  UpdateReport report(double rate) const {
    const Reached now = reached();
    UpdateReport out{.reached = now, .rate = rate, .tokens = state_.report.count};
    out.loss = state_.report.loss / state_.report.count;
    out.norm = state_.report.norm / static_cast<double>(state_.report.updates);
    if (now.seconds > last_report_) out.tokens_per_second = tokens_ / (now.seconds - last_report_);
    const double done = share_done(settings_.stop_after, now), before = share_done(settings_.stop_after, begun_);
    if (done > before) out.seconds_left = (now.seconds - begun_.seconds) * (1 - done) / (done - before);
    return out;
  }

  // What follows an update: report, validation, checkpoint.
  void settle() {
    const Reached now = reached(), before = {.updates = state_.update - 1, .epochs = state_.epochs};
    // Nothing to report: it was done before the run was stopped in its validation.
    if (state_.report.updates > 0 && is_due(settings_.report_every, before, now, last_report_)) write_report();
    if (task_.validate && state_.validated != state_.update &&
        is_due(settings_.valid_every, before, now, last_validation_)) {
      validate(false);
    }
    state_.settled = true;
    state_.epochs = now.epochs;
    if (is_due(settings_.save_every, before, now, last_save_)) {
      if (!task_.validate) take_snapshot(0);
      save();
      last_save_ = seconds_now();
    }
  }

  void write_report() {
    UpdateReport out = report(rate_of(state_.update - 1));
    if (task_.health) out.health = task_.health();
    JsonWriter line = begin_line("report", out.reached);
    line.key("loss").value(out.loss).key("rate").value(out.rate).key("norm").value(out.norm);
    line.key("tokens").value(out.tokens).key("tokens_per_second").raw(clock_number(out.tokens_per_second));
    if (!out.health.empty()) {
      line.key("health").begin_object();
      for (const auto& [name, value] : out.health) line.key(name).value(value);
      line.end_object();
    }
    end_line(line, out.reached);
    if (task_.on_report) task_.on_report(out);
    state_.report = {};
    tokens_ = 0;
    last_report_ = seconds_now();
  }

  static JsonWriter begin_line(const char* kind, const Reached& at) {
    JsonWriter line;
    line.begin_object().key("kind").value(kind).key("update").value(at.updates).key("epoch").value(at.epochs);
    return line;
  }
  void end_line(JsonWriter& line, const Reached& at) {
    metrics_->write(line.key("seconds").raw(clock_number(at.seconds)).end_object().text());
  }

  // `averaged`: the weights are the mean of several, and the moving average is not asked.
  void validate(bool averaged) {
    ValidationReport out{.averaged = averaged};
    double value = 0;
    {
      const auto use = averaged ? nullptr : weights_in_use();
      out.result = task_.validate();
      if (settings_.best_by == BestBy::kScore)
        check(out.result.score.has_value(), "train: the best score is asked for, but a validation gave none");
      value = settings_.best_by == BestBy::kScore ? *out.result.score : -out.result.loss;
      out.best = std::isfinite(value) && (!state_.best || value > *state_.best);
      if (!averaged) take_snapshot_of_these(value);
      if (out.best) write_model();
    }
    if (out.best) {
      state_.best = value;
      state_.best_update = state_.update;
    }
    if (!averaged) {
      state_.bad = out.best ? 0 : state_.bad + 1;
      state_.validated = state_.update;
      if (plateau_) plateau_->report(out.result.loss);
    }
    out.reached = reached();
    last_validation_ = out.reached.seconds;
    JsonWriter line = begin_line(averaged ? "average" : "validation", out.reached);
    line.key("loss").value(out.result.loss);
    if (out.result.score) line.key("score").value(*out.result.score);
    line.key("best").value(out.best);
    if (!out.result.sample.empty()) line.key("sample").value(out.result.sample);
    end_line(line, out.reached);
    if (task_.on_validation) task_.on_validation(out);
  }

  // The weights that count are the moving averages, if there are any.
  std::unique_ptr<AverageInUse> weights_in_use() {
    return average_ && average_->updates() > 0 ? std::make_unique<AverageInUse>(*average_) : nullptr;
  }

  void take_snapshot(double value) {
    const auto use = weights_in_use();
    take_snapshot_of_these(value);
  }

  void take_snapshot_of_these(double value) {
    if (settings_.average == 0) return;
    auto& all = state_.snapshots;
    if (!all.empty() && all.back().update == state_.update) return;
    Snapshot& added =
        all.emplace_back(Snapshot{.update = state_.update, .value = std::isfinite(value) ? value : -1e300});
    for (const Parameter& parameter : task_.parameters) added.weights.emplace(parameter.name, parameter.value.clone());
    if (static_cast<std::int64_t>(all.size()) <= settings_.average) return;
    auto worst = all.begin();  // the oldest
    if (settings_.average_best) {
      for (auto each = all.begin(); each != all.end(); ++each) {
        if (each->value < worst->value) worst = each;
      }
    }
    all.erase(worst);
  }

  void write_model() {
    save_model(files_, settings_.path,
               {.config = settings_.config, .parameters = &task_.parameters, .tokenizers = settings_.tokenizers});
  }

  void save() {
    state_.position = task_.position();
    if (plateau_) state_.plateau = plateau_->state();
    metrics_->sync();  // before a checkpoint says how long it is
    state_.metrics_length = metrics_->length();
    save_checkpoint(files_, checkpoint_, state_, parts());
    saved_ = state_.update;
  }

  void finish() {
    if (task_.validate) {
      if (state_.validated != state_.update) validate(false);
    } else {
      take_snapshot(0);
    }
    if (state_.snapshots.size() > 1) {
      const MeanInUse use(task_.parameters, state_.snapshots);
      if (task_.validate) {
        validate(true);
      } else {
        write_model();
      }
    } else if (!task_.validate) {
      const auto use = weights_in_use();
      write_model();
    }
    state_.finished = true;
    save();
  }

  // Within its life, the weights are the mean of the snapshots.
  class MeanInUse {
   public:
    MeanInUse(Parameters& parameters, const std::vector<Snapshot>& snapshots) : parameters_(parameters) {
      for (Parameter& parameter : parameters) {
        Tensor mean = Tensor::empty(parameter.value.shape(), parameter.value.dtype());
        if (mean.dtype() == DType::kF64) {
          average<double>(mean, parameter.name, snapshots);
        } else {
          average<float>(mean, parameter.name, snapshots);
        }
        before_.push_back(std::move(mean));
      }
      swap();
    }
    ~MeanInUse() { swap(); }
    MeanInUse(const MeanInUse&) = delete;
    MeanInUse& operator=(const MeanInUse&) = delete;

   private:
    template <class T>
    static void average(const Tensor& mean, const std::string& name, const std::vector<Snapshot>& snapshots) {
      for (std::int64_t i = 0; i < mean.size(); ++i) {
        double sum = 0;
        for (const Snapshot& each : snapshots) sum += static_cast<double>(each.weights.at(name).data<T>()[i]);
        mean.data<T>()[i] = static_cast<T>(sum / static_cast<double>(snapshots.size()));
      }
    }
    void swap() {
      for (Parameter& parameter : parameters_) {
        std::swap(parameter.value, before_[parameter.index]);
        ++parameter.version;
      }
    }
    Parameters& parameters_;
    std::vector<Tensor> before_;
  };

  const LoopSettings& settings_;
  const TrainingTask& task_;
  const Context& context_;
  Files& files_;
  std::string checkpoint_;
  std::function<double()> clock_;
  Trainer trainer_;
  std::optional<Average> average_;
  std::optional<Plateau> plateau_;
  std::unique_ptr<Metrics> metrics_;
  TrainingState state_;
  std::optional<std::int64_t> saved_;  // the update that the checkpoint holds
  bool in_update_ = false;             // then the data is ahead of the weights, and there is nothing to save
  // Of the clock, which no result depends on.
  double started_ = 0, seconds_before_ = 0;
  double last_report_ = 0, last_validation_ = 0, last_save_ = 0;
  double tokens_ = 0;  // since the last report, by this process
  Reached begun_;
};

}  // namespace

void check_free(Files& files, const std::string& path) {
  for (const std::string& each : {path, checkpoint_of(path)}) {
    if (exists(files, each)) {
      fail(ErrorKind::kFile, "'", each, "' exists: --resume goes on with it, another name leaves it as it is");
    }
  }
}

std::string checkpoint_of(const std::string& path) { return path + ".ckpt"; }
std::string metrics_of(const std::string& path) { return path + ".metrics.jsonl"; }

LoopResult train(const LoopSettings& settings, const TrainingTask& task, const Context& context) {
  const ContextScope scope(context);
  return Loop(settings, task, context).run();
}

}  // namespace regard
