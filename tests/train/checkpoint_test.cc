#include "train/checkpoint.h"

#include <gtest/gtest.h>

#include <memory>

#include "regard/error.h"
#include "regard/nn/initial.h"
#include "support/damage.h"
#include "support/error_of.h"
#include "support/files.h"
#include "train/fingerprint.h"

namespace regard {
namespace {

constexpr const char* kIdentity = R"({"model":"tiny","rate":0.1})";

// A model after a few steps of training, with everything a run may have.
struct Trained {
  Parameters parameters;
  Gradients gradients;
  Adam adam;
  Average average;
  TrainingState state;

  explicit Trained(int steps, int first = 1)
      : gradients(fill(parameters, first)), adam(parameters), average(parameters, 0.9) {
    for (int i = 0; i < steps; ++i) step(i);
    state = {.identity = kIdentity,
             .seed = 18446744073709551615u,
             .update = steps,
             .epochs = 0.1 + steps,
             .position = std::string("\0 any\xff", 6),
             .settled = false,
             .validated = 3,
             .best = -1.0 / 3,
             .best_update = 3,
             .bad = 2,
             .plateau = Plateau::State{.rate = 0.1, .bad = 1, .resting = 4},
             .report = {.loss = 2.0 / 3, .count = 17, .norm = 0.7, .updates = 2},
             .metrics_length = 1234};
    for (int i = 0; i < 2; ++i) {
      Snapshot& snapshot = state.snapshots.emplace_back(Snapshot{.update = i, .value = 0.5 - i});
      for (const Parameter& parameter : parameters) snapshot.weights.emplace(parameter.name, parameter.value.clone());
    }
  }
  static Parameters& fill(Parameters& parameters, int first) {
    parameters.add("a", normal({3, 4}, 1, RandomKey(static_cast<std::uint64_t>(first))));
    parameters.add("b", Tensor::zeros({5}));
    parameters.add("none", Tensor::zeros({0}));
    return parameters;
  }
  void step(int number) {
    gradients.zero();
    gradients.settle();
    for (const Parameter& parameter : parameters) {
      gradients.of(parameter).copy_from(
          normal(parameter.value.shape(), 1, RandomKey(50).at(static_cast<std::uint64_t>(number))));
    }
    adam.step(gradients, 0.01);
    average.update();
  }
  TrainingParts parts() { return {.parameters = parameters, .optimizer = adam, .average = &average}; }
  std::string saved() {
    MemoryFiles files;
    save_checkpoint(files, "c", state, parts());
    return read_file(files, "c");
  }
  void load(const std::string& bytes, const std::string& identity = kIdentity) {
    MemoryFiles files = MemoryFiles::found({{"c", bytes}});
    state = load_checkpoint(files, "c", identity, parts());
  }
};

TEST(Checkpoint, ARunGoesOnFromItBitForBit) {
  Trained straight(4), other(2, 7);
  const std::string bytes = straight.saved();
  other.load(bytes);
  EXPECT_EQ(other.saved(), bytes);  // nothing is lost, to the last bit
  EXPECT_EQ(other.state.seed, 18446744073709551615u);
  EXPECT_EQ(other.state.position, straight.state.position);
  EXPECT_EQ(other.state.plateau->best, std::numeric_limits<double>::infinity());
  EXPECT_EQ(other.adam.steps(), 4);
  for (int i = 4; i < 8; ++i) straight.step(i), other.step(i);
  EXPECT_EQ(straight.saved(), other.saved());
}

TEST(Checkpoint, BeforeTheFirstStepToo) {
  Trained run(0), other(3);
  run.state = {.identity = kIdentity};
  other.load(run.saved());
  EXPECT_EQ(other.saved(), run.saved());
  EXPECT_EQ(other.average.updates(), 0);
  EXPECT_FALSE(other.state.best.has_value());
}

TEST(Checkpoint, DamageIsAlwaysSeenAndTouchesNothing) {
  Trained one(3), two(5, 2), target(2, 3);
  const std::string before = target.saved();
  const TrainingState state = target.state;
  expect_damage_is_refused(one.saved(), two.saved(), [&](const std::string& bytes) { Trained(0).load(bytes); });
  Chance chance(5);
  for (int i = 0; i < 100; ++i) {
    std::string bytes = one.saved();
    flip(bytes, chance.below(8 * bytes.size()));
    EXPECT_THROW(target.load(bytes), Error);
  }
  EXPECT_EQ(target.saved(), before);
}

TEST(Checkpoint, ForgedFilesDoNoHarm) {
  Trained one(3), two(5, 2);
  expect_no_harm_from_forgeries(one.saved(), two.saved(), [&](const std::string& bytes) {
    Trained target(1, 3);
    const std::string before = target.saved();
    try {
      target.load(bytes);
    } catch (const Error& error) {
      EXPECT_EQ(target.saved(), before) << error.what();
      if (error.kind() == ErrorKind::kFile) throw;
      EXPECT_NE(std::string(error.what()).find("other settings"), std::string::npos) << error.what();
      throw Error(ErrorKind::kFile, error.what());  // other settings are an input's mistake
    }
  });
}

TEST(Checkpoint, OfAnotherRunIsRefusedAndNamesTheSetting) {
  Trained run(2);
  const std::string bytes = run.saved();
  EXPECT_EQ(error_of([&] { run.load(bytes, R"({"model":"tiny","rate":0.2})"); }),
            "'c' is of a run with other settings: rate was 0.1, now it is 0.2");
  EXPECT_EQ(error_of([&] { run.load(bytes, R"({"model":"tiny","rate":0.1,"clip":1})"); }),
            "'c' is of a run with other settings: clip was nothing, now it is 1");
  EXPECT_EQ(error_of([&] { run.load(bytes, R"({ "rate": 0.1, "model": "tiny" })"); }), "");  // the same
  Trained plain(2);
  MemoryFiles files = MemoryFiles::found({{"c", bytes}});
  const TrainingParts without{.parameters = plain.parameters, .optimizer = plain.adam};
  EXPECT_NE(error_of([&] { load_checkpoint(files, "c", kIdentity, without); }).find("moving average"),
            std::string::npos);
  Sgd sgd(plain.parameters);
  const TrainingParts other{.parameters = plain.parameters, .optimizer = sgd, .average = &plain.average};
  EXPECT_EQ(error_of([&] { load_checkpoint(files, "c", kIdentity, other); }),
            "'c': optimiser: a state of adam for sgd");
}

TEST(Checkpoint, AModelIsNone) {
  Trained run(1);
  std::string bytes = run.saved();
  bytes.replace(bytes.find("regard-checkpoint"), 17, "regard-model     ");
  EXPECT_NE(error_of([&] { run.load(sealed_anew(bytes)); }).find("is not a regard-checkpoint file"), std::string::npos);
}

TEST(Checkpoint, WhenThePowerGoesItIsTheOldOneOrTheNewOne) {
  Trained run(2);
  const std::string old_bytes = run.saved();
  run.step(2);
  run.state.update = 3;
  const std::string new_bytes = run.saved();
  for (int i = 0; i < cases(2000); ++i) {
    const RandomKey key = RandomKey(31).at(static_cast<std::uint64_t>(i));
    MemoryFiles memory = MemoryFiles::found({{"c", old_bytes}});
    FailingFiles files(memory);
    files.first_failing = static_cast<std::int64_t>(random_below(key, 0, 24));
    files.failing = std::numeric_limits<std::int64_t>::max();
    const bool failed = !error_of([&] { save_checkpoint(files, "c", run.state, run.parts()); }).empty();
    const auto found = memory.after_power_loss(key.at(1));
    ASSERT_TRUE(found.contains("c")) << i;
    ASSERT_TRUE(found.at("c") == new_bytes || (failed && found.at("c") == old_bytes)) << i;
  }
}

}  // namespace
}  // namespace regard
