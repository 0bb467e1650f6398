#include "train/loop.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "regard/autograd/ops.h"
#include "regard/error.h"
#include "support/cases.h"
#include "support/damage.h"
#include "support/error_of.h"
#include "support/files.h"
#include "train/checkpoint.h"
#include "train/fingerprint.h"
#include "train/without_times.h"

namespace regard {
namespace {

constexpr std::int64_t kPartsAnEpoch = 7;

// Three weights that follow targets drawn from the place in the data and from the key of the update.
struct Tiny {
  Parameters parameters;
  Parameter& weight = parameters.add("weight", Tensor::of({3}, {1.0f, 2.0f, 3.0f}));
  Adam adam{parameters};
  std::int64_t next = 0;
  std::vector<double> keys;  // what the updates drew
  int validations = 0;
  std::function<void(Tiny&, std::int64_t update)> before_loss = {};
  std::function<void(Tiny&)> before_validation = {};
  std::function<double(Tiny&)> score = {};
  float poison = 0;

  TrainingTask task() {
    return {.parameters = parameters,
            .optimizer = adam,
            .loss =
                [this](Tape& tape, const PartInfo& info) {
                  if (before_loss) before_loss(*this, info.update);
                  const double drawn = static_cast<double>(uniform(info.key, static_cast<std::uint64_t>(info.part)));
                  keys.push_back(drawn);
                  const double target = std::sin(static_cast<double>(next++)) + drawn + static_cast<double>(poison);
                  const Var gap = tape.use(weight) - number(tape, target);
                  return LossPart{sum(gap * gap), 3};
                },
            .epochs = [this] { return static_cast<double>(next) / kPartsAnEpoch; },
            .position = [this] { return "at " + std::to_string(next); },
            .seek = [this](std::string_view at) { next = std::stoll(std::string(at.substr(3))); },
            .validate =
                [this] {
                  if (before_validation) before_validation(*this);
                  ++validations;
                  const float* w = weight.value.data<float>();
                  // Now up, now down: there is something to be patient about.
                  const double wave = 1 + 0.5 * std::sin(5.0 * static_cast<double>(next));
                  const double loss = std::abs(static_cast<double>(w[0]) - 0.5) * wave;
                  Validation out{.loss = loss, .sample = "a sample"};
                  if (score) out.score = score(*this);
                  return out;
                }};
  }
};

LoopSettings settings(Files& files, bool resume = false) {
  LoopSettings out;
  out.path = "m";
  out.resume = resume;
  out.stop_after = updates(20);
  out.save_every = updates(3);
  out.valid_every = updates(4);
  out.report_every = updates(2);
  out.accumulate = 2;
  out.clip = 1;
  out.rate = PlateauSettings{.rate = 0.05, .patience = 0};
  out.moving_average = 0.7;
  out.average = 2;
  out.config = R"({"width":3})";
  out.files = &files;
  return out;
}

LoopResult run(Files& files, bool resume = false) {
  Tiny tiny;
  return train(settings(files, resume), tiny.task(), {});
}

std::vector<std::string> files_of(Files& files) {
  return {read_file(files, "m"), read_file(files, "m.ckpt"), without_times(read_file(files, "m.metrics.jsonl"))};
}

const std::vector<std::string>& undisturbed() {
  static const std::vector<std::string> all = [] {
    MemoryFiles files;
    run(files);
    return files_of(files);
  }();
  return all;
}

std::vector<std::string> lines_of(Files& files, std::string_view kind) {
  std::vector<std::string> out;
  const std::string all = read_file(files, "m.metrics.jsonl");
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = all.find('\n', begin);
    const std::string line = all.substr(begin, end - begin);
    if (line.find("\"kind\":\"" + std::string(kind) + "\"") != std::string::npos) out.push_back(line);
    begin = end + 1;
  }
  return out;
}

TEST(Loop, TwoEqualRunsWriteEqualFiles) {
  MemoryFiles files;
  const LoopResult result = run(files);
  EXPECT_EQ(files_of(files), undisturbed());
  EXPECT_EQ(result.reason, LoopResult::Reason::kDone);
  EXPECT_EQ(result.reached.updates, 20);
  EXPECT_TRUE(result.best.has_value());
  EXPECT_EQ(lines_of(files, "report").size(), 10u);
  EXPECT_EQ(lines_of(files, "validation").size(), 5u);
  EXPECT_EQ(lines_of(files, "average").size(), 1u);
}

TEST(Loop, StoppedByRequestAtAnyUpdateItGoesOnToTheSameFiles) {
  for (std::int64_t at = 0; at < 20; ++at) {
    MemoryFiles files;
    Tiny tiny;
    std::stop_source source;
    if (at == 0) source.request_stop();
    TrainingTask task = tiny.task();
    task.on_update = [&](const UpdateReport& report) {
      if (report.reached.updates == at) source.request_stop();
    };
    try {
      train(settings(files), task, {.cancel = source.get_token()});
      FAIL() << at;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
      EXPECT_NE(std::string(error.what()).find("after update " + std::to_string(at)), std::string::npos)
          << error.what();
      EXPECT_NE(std::string(error.what()).find("--resume"), std::string::npos) << error.what();
    }
    run(files, true);
    ASSERT_EQ(files_of(files), undisturbed()) << at;
  }
}

TEST(Loop, StoppedByRequestInAnyValidationItGoesOnToTheSameFiles) {
  for (int at = 0; at < 6; ++at) {  // the last one is that of the mean
    MemoryFiles files;
    Tiny tiny;
    tiny.before_validation = [&](Tiny& self) {
      if (self.validations == at) throw Error(ErrorKind::kCancelled, "stopped");
    };
    EXPECT_THROW(train(settings(files), tiny.task(), {}), Error) << at;
    run(files, true);
    ASSERT_EQ(files_of(files), undisturbed()) << at;
  }
}

TEST(Loop, EndedAnywhereItGoesOnToTheSameFiles) {
  struct End {};
  for (std::int64_t at = 0; at < 40; ++at) {  // at any part of any batch
    MemoryFiles files;
    Tiny tiny;
    tiny.before_loss = [&](Tiny& self, std::int64_t) {
      if (self.next == at) throw End();
    };
    EXPECT_THROW(train(settings(files), tiny.task(), {}), End);
    run(files, true);
    ASSERT_EQ(files_of(files), undisturbed()) << at;
  }
}

TEST(Loop, WhateverCallOfTheDiskFailsTheRunGoesOnToTheSameFiles) {
  int failures = 0;
  for (std::int64_t n = 0;; ++n) {
    MemoryFiles memory;
    FailingFiles files(memory);
    files.first_failing = n;
    files.error = n % 2 == 0 ? ENOSPC : EIO;
    const std::string text = error_of([&] { run(files); });
    if (files.last.empty()) break;
    ++failures;
    ASSERT_FALSE(exists(memory, "m.tmp") || exists(memory, "m.ckpt.tmp")) << files.last;
    // Closing what is synced loses nothing, and a folder that is not synced at the start is not worth stopping for.
    ASSERT_TRUE(files.last == "close" || n <= 1 || !text.empty()) << files.last << " " << n;
    ASSERT_EQ(exists(memory, "m") ? error_of([&] { load_model(memory, "m"); }) : "", "");
    run(memory, true);
    ASSERT_EQ(files_of(memory), undisturbed()) << n << " " << files.last;
  }
  EXPECT_GT(failures, 50);
}

TEST(Loop, WhenThePowerGoesTheRunGoesOnToTheSameFiles) {
  MemoryFiles counted;
  FailingFiles count(counted);
  run(count);
  for (int i = 0; i < cases(2000); ++i) {
    const RandomKey key = RandomKey(41).at(static_cast<std::uint64_t>(i));
    MemoryFiles memory;
    FailingFiles files(memory);
    files.first_failing = static_cast<std::int64_t>(random_below(key, 0, static_cast<std::uint32_t>(count.calls + 1)));
    files.failing = std::numeric_limits<std::int64_t>::max();
    error_of([&] { run(files); });
    MemoryFiles found = MemoryFiles::found(memory.after_power_loss(key.at(1)));
    run(found, true);
    ASSERT_EQ(files_of(found), undisturbed()) << i;
  }
}

TEST(Loop, ADamagedCheckpointIsAClearErrorAndNothingIsTouched) {
  MemoryFiles files;
  run(files);
  std::string bytes = read_file(files, "m.ckpt");
  flip(bytes, 8 * bytes.size() - 3);
  MemoryFiles damaged =
      MemoryFiles::found({{"m", read_file(files, "m")}, {"m.ckpt", bytes}, {"m.metrics.jsonl", "{}\n"}});
  const std::string text = error_of([&] { run(damaged, true); });
  EXPECT_NE(text.find("'m.ckpt' is damaged"), std::string::npos) << text;
  EXPECT_EQ(read_file(damaged, "m.ckpt"), bytes);
  EXPECT_EQ(read_file(damaged, "m.metrics.jsonl"), "{}\n");
  EXPECT_EQ(read_file(damaged, "m"), read_file(files, "m"));
}

TEST(Loop, WhatIsThereIsNotOverwrittenUnlessItIsToGoOn) {
  for (const char* name : {"m", "m.ckpt"}) {
    MemoryFiles files = MemoryFiles::found({{name, "something"}});
    EXPECT_NE(error_of([&] { run(files); }).find("exists: --resume"), std::string::npos) << name;
    EXPECT_EQ(read_file(files, name), "something");
    EXPECT_FALSE(exists(files, "m.metrics.jsonl"));
  }
  MemoryFiles files = MemoryFiles::found({{"m.metrics.jsonl", "of a run that never saved\n"}});
  Tiny tiny;
  std::vector<std::string> log;
  train(settings(files, true), tiny.task(), {.log = [&](std::string_view line) { log.emplace_back(line); }});
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[0], "there is no 'm.ckpt': starting anew");
  EXPECT_EQ(log[1], "'m.metrics.jsonl' is of a run that is gone: it begins anew");
  EXPECT_EQ(files_of(files), undisturbed());
}

TEST(Loop, WithoutItsCheckpointAModelIsNotOverwrittenEither) {
  MemoryFiles files = MemoryFiles::found({{"m", "something"}});
  EXPECT_EQ(error_of([&] { run(files, true); }),
            "'m' is there, but no 'm.ckpt' to go on from: another name leaves it as it is");
  EXPECT_EQ(read_file(files, "m"), "something");
  EXPECT_FALSE(exists(files, "m.metrics.jsonl"));
}

TEST(Loop, FromItsFirstWriteOnAModelHasACheckpoint) {
  MemoryFiles files;
  Tiny tiny;
  std::vector<std::string> there;
  tiny.before_loss = [&](Tiny&, std::int64_t update) {
    if (update == 0) there = {exists(files, "m") ? "model" : "", exists(files, "m.ckpt") ? "checkpoint" : ""};
  };
  train(settings(files), tiny.task(), {});
  EXPECT_EQ(there, (std::vector<std::string>{"", "checkpoint"}));
}

TEST(Loop, AModelThatIsGoneIsMissedOrWrittenAgain) {
  MemoryFiles files;
  run(files);
  MemoryFiles without = MemoryFiles::found(
      {{"m.ckpt", read_file(files, "m.ckpt")}, {"m.metrics.jsonl", read_file(files, "m.metrics.jsonl")}});
  EXPECT_NE(error_of([&] { run(without, true); }).find("'m' is gone: it had the best weights, of update "),
            std::string::npos);
  const auto unwatched = [](Files& disk, bool resume) {
    Tiny tiny;
    TrainingTask task = tiny.task();
    task.validate = nullptr;
    LoopSettings all = settings(disk, resume);
    all.rate = constant_rate(0.05);
    train(all, task, {});
  };
  MemoryFiles plain;
  unwatched(plain, false);
  MemoryFiles again = MemoryFiles::found(
      {{"m.ckpt", read_file(plain, "m.ckpt")}, {"m.metrics.jsonl", read_file(plain, "m.metrics.jsonl")}});
  unwatched(again, true);
  EXPECT_EQ(read_file(again, "m"), read_file(plain, "m"));
}

TEST(Loop, AnErrorInAValidationIsSavedBeforeAndSaid) {
  MemoryFiles files;
  Tiny tiny;
  tiny.before_validation = [](Tiny& now) {
    if (now.next == 2 * 8) throw Error(ErrorKind::kInput, "nothing fits");  // update 8, the last save is of update 6
  };
  EXPECT_EQ(error_of([&] { train(settings(files), tiny.task(), {}); }), "nothing fits ('m.ckpt' holds update 8)");
  run(files, true);
  EXPECT_EQ(files_of(files), undisturbed());
}

TEST(Loop, AMeanOfSavesThatTheClockMakesIsRefused) {
  MemoryFiles files;
  Tiny tiny;
  TrainingTask task = tiny.task();
  task.validate = nullptr;
  LoopSettings all = settings(files);
  all.rate = constant_rate(0.05);
  all.save_every = seconds(600);
  EXPECT_NE(error_of([&] { train(all, task, {}); }).find("expected save_every in updates or epochs, got "),
            std::string::npos);
}

TEST(Loop, TimeSinceTheLastLineOfTheDiaryCountsAfterAStop) {
  MemoryFiles files;
  double now = 0;
  const auto run_for = [&](double seconds, bool resume) {
    Tiny tiny;
    std::stop_source source;
    TrainingTask task = tiny.task();
    task.validate = nullptr;
    const double end = now + seconds;
    task.on_update = [&](const UpdateReport&) {
      if (++now >= end) source.request_stop();
    };
    LoopSettings all = settings(files, resume);
    all.rate = constant_rate(0.05);
    all.average = 0;
    all.stop_after = regard::seconds(20);
    all.report_every = updates(1000);
    all.clock = [&] { return now; };
    return error_of([&] { train(all, task, {.cancel = source.get_token()}); });
  };
  for (int part = 0; part < 4; ++part) run_for(5, part > 0);
  EXPECT_EQ(run_for(5, true), "");
  EXPECT_EQ(now, 20);
}

TEST(Loop, ARunThatIsDoneStaysAsItIsAndMayGoFurther) {
  MemoryFiles files;
  run(files);
  Tiny again;
  train(settings(files, true), again.task(), {});
  EXPECT_EQ(files_of(files), undisturbed());
  EXPECT_EQ(again.validations, 0);
  Tiny more;
  LoopSettings further = settings(files, true);
  further.stop_after = updates(30);
  EXPECT_EQ(train(further, more.task(), {}).reached.updates, 30);
  EXPECT_EQ(more.next, 60);
}

TEST(Loop, OtherSettingsAreRefused) {
  MemoryFiles files;
  run(files);
  Tiny tiny;
  LoopSettings other = settings(files, true);
  other.seed = 2;
  EXPECT_NE(error_of([&] { train(other, tiny.task(), {}); }).find("seed was 1, now it is 2"), std::string::npos);
  other = settings(files, true);
  other.tokenizers = {{"source", "words", "other"}};
  EXPECT_NE(error_of([&] { train(other, tiny.task(), {}); }).find("tokenizer source was nothing"), std::string::npos);
  other = settings(files, true);
  other.identity = R"({"rate":0.1})";
  EXPECT_NE(error_of([&] { train(other, tiny.task(), {}); }).find("rate was nothing, now it is 0.1"),
            std::string::npos);
  EXPECT_EQ(files_of(files), undisturbed());
}

TEST(Loop, ALossThatIsNotFiniteStopsWithoutTouchingWeightsOrCheckpoint) {
  for (const float poison : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1e25f}) {
    MemoryFiles files;
    Tiny tiny;
    std::uint64_t weights = 0;
    std::string checkpoint;
    tiny.before_loss = [&](Tiny& self, std::int64_t update) {
      if (update != 7) return;
      weights = fingerprint(self.parameters);
      checkpoint = read_file(files, "m.ckpt");
      self.poison = poison;
    };
    const std::string text = error_of([&] { train(settings(files), tiny.task(), {}); });
    EXPECT_NE(text.find("step 8"), std::string::npos) << text;
    EXPECT_NE(text.find("epoch 2.00; 'm.ckpt' holds update 6"), std::string::npos) << text;
    EXPECT_EQ(fingerprint(tiny.parameters), weights);
    EXPECT_EQ(read_file(files, "m.ckpt"), checkpoint);
    run(files, true);
    EXPECT_EQ(files_of(files), undisturbed());
  }
}

TEST(Loop, EveryUpdateHasAKeyOfItsOwnAndItsParts) {
  MemoryFiles files;
  Tiny tiny;
  train(settings(files), tiny.task(), {});
  ASSERT_EQ(tiny.keys.size(), 40u);
  std::sort(tiny.keys.begin(), tiny.keys.end());
  EXPECT_EQ(std::unique(tiny.keys.begin(), tiny.keys.end()), tiny.keys.end());
}

TEST(Loop, WithoutValidationTheModelIsWrittenAtTheEnd) {
  MemoryFiles files;
  Tiny tiny;
  TrainingTask task = tiny.task();
  task.validate = {};
  LoopSettings plain = settings(files);
  plain.rate = constant_rate(0.05);
  plain.average = 0;
  plain.moving_average = 0;
  task.on_update = [&](const UpdateReport&) { EXPECT_FALSE(exists(files, "m")); };
  EXPECT_FALSE(train(plain, task, {}).best.has_value());
  Tiny loaded;
  load_model(files, "m").fill(loaded.parameters);
  EXPECT_EQ(fingerprint(loaded.parameters), fingerprint(tiny.parameters));
  plain.patience = 3;
  plain.path = "n";
  EXPECT_THROW(train(plain, task, {}), Error);  // patience with what?
}

TEST(Loop, WithoutValidationTheMeanOfTheLastSavesIsTheModel) {
  MemoryFiles files;
  Tiny tiny;
  std::vector<float> first;
  TrainingTask task = tiny.task();
  task.validate = {};
  LoopSettings plain = settings(files);
  plain.rate = constant_rate(0.05);
  plain.moving_average = 0;
  plain.save_every = updates(9);
  task.on_update = [&](const UpdateReport& report) {
    if (report.reached.updates >= 18) first.push_back(tiny.weight.value.data<float>()[0]);
  };
  train(plain, task, {});  // saves after 9, 18 and 20
  Tiny loaded;
  load_model(files, "m").fill(loaded.parameters);
  ASSERT_EQ(first.size(), 3u);
  EXPECT_NEAR(loaded.weight.value.data<float>()[0], (first[0] + first[2]) / 2, 1e-6);
  EXPECT_EQ(tiny.weight.value.data<float>()[0], first[2]);  // the weights are the run's own again
}

TEST(Loop, ValidationsSeeTheMovingAverageAndTheModelHoldsIt) {
  MemoryFiles files;
  Tiny tiny;
  float seen = 0, own = 0;
  TrainingTask task = tiny.task();
  task.on_update = [&](const UpdateReport&) { own = tiny.weight.value.data<float>()[0]; };
  tiny.before_validation = [&](Tiny& self) { seen = self.weight.value.data<float>()[0]; };
  LoopSettings plain = settings(files);
  plain.average = 0;
  plain.stop_after = updates(4);  // one validation, which is the best
  train(plain, task, {});
  EXPECT_NE(seen, own);
  Tiny loaded;
  load_model(files, "m").fill(loaded.parameters);
  EXPECT_EQ(loaded.weight.value.data<float>()[0], seen);
  EXPECT_EQ(tiny.weight.value.data<float>()[0], own);
}

TEST(Loop, StopsWhenPatienceIsOverAndKeepsTheBest) {
  MemoryFiles files;
  Tiny tiny;
  const double scores[] = {1, 5, 2, 3, 4, 9, 9, 9};
  tiny.score = [&](Tiny& self) { return scores[self.validations - 1]; };
  LoopSettings early = settings(files);
  early.best_by = BestBy::kScore;
  early.patience = 3;
  early.average = 0;
  early.stop_after = updates(1000);
  std::vector<std::int64_t> best;
  TrainingTask task = tiny.task();
  task.on_validation = [&](const ValidationReport& report) {
    if (report.best) best.push_back(report.reached.updates);
  };
  const LoopResult result = train(early, task, {});
  EXPECT_EQ(result.reason, LoopResult::Reason::kPatience);
  EXPECT_EQ(result.reached.updates, 20);
  EXPECT_EQ(result.best, 5);
  EXPECT_EQ(result.best_update, 8);
  EXPECT_EQ(best, (std::vector<std::int64_t>{4, 8}));
}

TEST(Loop, AScoreThatIsNotANumberIsNeverTheBest) {
  MemoryFiles files;
  Tiny tiny;
  tiny.score = [&](Tiny& self) { return self.validations == 2 ? 0.5 : std::nan(""); };
  LoopSettings by_score = settings(files);
  by_score.best_by = BestBy::kScore;
  const LoopResult result = train(by_score, tiny.task(), {});
  EXPECT_EQ(result.best, 0.5);
  EXPECT_EQ(result.best_update, 8);
  Tiny without;
  MemoryFiles others;
  by_score.files = &others;
  EXPECT_NE(error_of([&] { train(by_score, without.task(), {}); }).find("gave none"), std::string::npos);
}

TEST(Loop, TheMeanOfTheBestWeightsBecomesTheModelIfItIsBetter) {
  for (const bool better : {false, true}) {
    MemoryFiles files;
    Tiny tiny;
    tiny.score = [&](Tiny& self) { return self.validations == 6 ? (better ? 100.0 : 0.0) : 10.0 - self.validations; };
    LoopSettings mean = settings(files);
    mean.best_by = BestBy::kScore;
    mean.average_best = true;
    mean.moving_average = 0;
    std::vector<float> weights;
    tiny.before_validation = [&](Tiny& self) { weights.push_back(self.weight.value.data<float>()[0]); };
    const LoopResult result = train(mean, tiny.task(), {});
    ASSERT_EQ(weights.size(), 6u);
    EXPECT_NEAR(weights[5], (weights[0] + weights[1]) / 2, 1e-6);  // the two best
    Tiny loaded;
    load_model(files, "m").fill(loaded.parameters);
    EXPECT_EQ(loaded.weight.value.data<float>()[0], better ? weights[5] : weights[0]);
    EXPECT_EQ(result.best, better ? 100 : 9);
  }
}

TEST(Loop, CountsEpochsAndFollowsTheSchedule) {
  MemoryFiles files;
  Tiny tiny;
  LoopSettings by_epochs = settings(files);
  by_epochs.accumulate = 1;
  by_epochs.stop_after = epochs(3);
  by_epochs.valid_every = epochs(1);
  by_epochs.report_every = epochs(0.5);
  by_epochs.rate = Schedule([](std::int64_t steps) { return 0.1 / static_cast<double>(steps + 1); });
  by_epochs.average = 0;
  std::vector<double> rates;
  std::vector<std::int64_t> reports, validations;
  TrainingTask task = tiny.task();
  task.on_update = [&](const UpdateReport& report) { rates.push_back(report.rate); };
  task.on_report = [&](const UpdateReport& report) { reports.push_back(report.reached.updates); };
  task.on_validation = [&](const ValidationReport& report) { validations.push_back(report.reached.updates); };
  train(by_epochs, task, {});
  EXPECT_EQ(validations, (std::vector<std::int64_t>{7, 14, 21}));
  EXPECT_EQ(reports, (std::vector<std::int64_t>{4, 7, 11, 14, 18, 21}));
  ASSERT_EQ(rates.size(), 21u);
  EXPECT_EQ(rates[20], 0.1 / 21);
}

TEST(Loop, ThePlateauIsToldEveryLoss) {
  MemoryFiles files;
  Tiny tiny;
  double last = 1;
  TrainingTask task = tiny.task();
  task.validate = [&] { return Validation{.loss = 5}; };
  task.on_update = [&](const UpdateReport& report) { last = report.rate; };
  train(settings(files), task, {});
  EXPECT_EQ(last, 0.05 / 2 / 2 / 2);  // after 8, 12 and 16; that of 20 comes too late
}

TEST(Loop, CountsMinutesAcrossStops) {
  MemoryFiles files;
  double now = 1000;
  LoopSettings timed = settings(files);
  timed.stop_after = seconds(100);
  timed.save_every = seconds(10);
  timed.valid_every = seconds(30);
  timed.report_every = seconds(5);
  timed.clock = [&] { return now; };
  Tiny tiny;
  TrainingTask task = tiny.task();
  std::stop_source source;
  std::optional<double> left;
  double speed = 0;
  task.on_update = [&](const UpdateReport& report) {
    now += 1;
    left = report.seconds_left;
    speed = std::max(speed, report.tokens_per_second);
    if (report.reached.updates == 41) source.request_stop();
  };
  EXPECT_THROW(train(timed, task, {.cancel = source.get_token()}), Error);
  EXPECT_NEAR(left.value(), 60, 1e-9);
  EXPECT_LE(speed, 12);  // two parts of three numbers a second, or a little more when a report is a second late
  EXPECT_EQ(lines_of(files, "report").size(), 8u);
  now = 5;  // another machine, another clock
  Tiny second;
  TrainingTask rest = second.task();
  rest.on_update = [&](const UpdateReport&) { now += 1; };
  timed.resume = true;
  const LoopResult result = train(timed, rest, {});
  EXPECT_NEAR(result.reached.seconds, 100, 1e-6);
  EXPECT_NEAR(static_cast<double>(result.reached.updates), 101,
              2);  // a second or two between the last report and the stop
}

TEST(Loop, OneRunAtATime) {
  const Folder folder;
  LoopSettings one = settings(disk());
  one.path = folder / "m";
  Tiny tiny;
  std::string text;
  TrainingTask task = tiny.task();
  task.on_update = [&](const UpdateReport& report) {
    if (report.reached.updates != 5) return;
    Tiny other;
    LoopSettings two = one;
    two.resume = true;
    text = error_of([&] { train(two, other.task(), {}); });
  };
  train(one, task, {});
  EXPECT_NE(text.find("another process is writing it"), std::string::npos) << text;
  EXPECT_EQ(read_file(disk(), one.path), undisturbed()[0]);
}

TEST(Loop, TheHookSeesGradientsAndTotals) {
  MemoryFiles files;
  Tiny tiny;
  int calls = 0;
  TrainingTask task = tiny.task();
  task.reduce = [&](Gradients&, StepTotals& totals) {
    ++calls;
    EXPECT_EQ(totals.count, 6);
  };
  train(settings(files), task, {});
  EXPECT_EQ(calls, 20);
}

TEST(Loop, MistakesAreErrors) {
  MemoryFiles files;
  Tiny tiny;
  const auto refused = [&](const std::function<void(LoopSettings&)>& spoil) {
    LoopSettings bad = settings(files);
    spoil(bad);
    return !error_of([&] { train(bad, tiny.task(), {}); }).empty();
  };
  EXPECT_TRUE(refused([](LoopSettings& bad) { bad.path = ""; }));
  EXPECT_TRUE(refused([](LoopSettings& bad) { bad.accumulate = 0; }));
  EXPECT_TRUE(refused([](LoopSettings& bad) { bad.patience = -1; }));
  EXPECT_TRUE(refused([](LoopSettings& bad) { bad.clip = -1; }));
  EXPECT_TRUE(refused([](LoopSettings& bad) { bad.moving_average = 1; }));
  EXPECT_TRUE(refused([](LoopSettings& bad) { bad.identity = "["; }));
  EXPECT_TRUE(refused([](LoopSettings& bad) { bad.path = "m", bad.config = "{"; }));
}

}  // namespace
}  // namespace regard
