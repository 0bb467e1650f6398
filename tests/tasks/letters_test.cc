#include "tasks/letters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "kernels/target.h"
#include "regard/error.h"
#include "support/sanitized.h"
#include "tasks/letters_run.h"
#include "train/fingerprint.h"

namespace regard {
namespace {

bool is_letter(std::int32_t word) { return word >= 2 && word < 2 + static_cast<std::int32_t>(Letters::kLetters); }

TEST(Letters, TheTargetIsTheLettersInReverseWithoutTheNoise) {
  const Letters task({});
  bool noise_seen = false;
  for (std::uint64_t number = 0; number < 300; ++number) {
    const LettersExample example = task.training(number);
    std::vector<std::int32_t> expected;
    for (const std::int32_t word : example.pair.source) {
      if (is_letter(word)) expected.insert(expected.begin(), word);
    }
    EXPECT_EQ(example.pair.target, expected);
    noise_seen |= expected.size() < example.pair.source.size();
    ASSERT_EQ(example.places.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(example.pair.source[static_cast<std::size_t>(example.places[i])], expected[i]);
    }
    EXPECT_TRUE(std::is_sorted(example.places.rbegin(), example.places.rend()));
  }
  EXPECT_TRUE(noise_seen);
}

TEST(Letters, CopyKeepsTheOrder) {
  const Letters task({.reverse = false});
  for (std::uint64_t number = 0; number < 50; ++number) {
    const LettersExample example = task.training(number);
    EXPECT_TRUE(std::is_sorted(example.places.begin(), example.places.end()));
  }
}

TEST(Letters, AnExampleIsAFunctionOfSeedAndNumber) {
  const Letters one({.seed = 5}), same({.seed = 5}), other({.seed = 6});
  int different = 0;
  for (std::uint64_t number = 0; number < 50; ++number) {
    EXPECT_EQ(one.training(number).pair.source, same.training(number).pair.source);
    different += one.training(number).pair.source != other.training(number).pair.source ? 1 : 0;
  }
  EXPECT_GT(different, 40);
}

TEST(Letters, NoTestExampleIsEverTrainedOn) {
  const Letters task({.least_letters = 1, .most_letters = 2, .most_noise = 1});  // few sources: they would meet
  std::set<std::vector<std::int32_t>> trained;
  for (std::uint64_t number = 0; number < 20'000; ++number) trained.insert(task.training(number).pair.source);
  std::set<std::vector<std::int32_t>> tested;
  for (std::uint64_t number = 0; number < 2000; ++number) tested.insert(task.test(number).pair.source);
  EXPECT_GT(trained.size(), 1000u);
  EXPECT_GT(tested.size(), 100u);
  for (const auto& source : tested) EXPECT_FALSE(trained.contains(source));
}

TEST(Letters, TextAndWordsAreEachOthersOpposite) {
  const std::vector<std::int32_t> words = Letters::words("k#ta.c-~z");
  std::string text;
  for (const std::string& label : Letters::labels(words)) text += label;
  EXPECT_EQ(text, "k#ta.c-~z");
  EXPECT_THROW(Letters::words("K"), Error);
  EXPECT_THROW(Letters::text(static_cast<std::int32_t>(Letters::kWords)), Error);
}

// What `regard demo` does, on its own settings: it learns the task, and looks where it should.
TEST(LettersRun, TheDemoLearnsTheTask) {
  if (REGARD_SANITIZED) GTEST_SKIP() << "slow with a sanitizer";
  LettersRun run({});
  run.train({});
  const LettersScore score = run.test(200, {});
  EXPECT_EQ(score.examples, 200);
  EXPECT_GE(score.exact, 180) << score.pointed << " of " << score.letters << " letters looked at the right place";
  EXPECT_GE(score.pointed * 10, score.letters * 8);
  const LettersAnswer answer = run.answer(Letters::words("k#ta.c"));
  EXPECT_EQ(answer.written, Letters::words("catk"));
  EXPECT_EQ(answer.weights.shape(), (Shape{4, 6}));
}

// A long run: a difference of one bit in one step would grow, and be seen in the weights at the end.
TEST(LettersRun, AThousandStepsGiveTheSameBitsOnAnyThreadsAndInstructions) {
  const std::int64_t steps = REGARD_SANITIZED ? 20 : 1000;
  std::uint64_t expected = 0;
  std::string first;
  for (const std::string& name : targets()) {
    if (name == "sse4") continue;  // has bits of its own
    const TargetScope scope(name);
    for (const int threads : first.empty() ? std::vector{1, 2, 3} : std::vector{2}) {
      LettersRun run({.steps = steps, .batch = 24});  // enough rows for several threads
      run.train({.threads = threads});
      const std::uint64_t bits = fingerprint(run.parameters());
      if (first.empty()) {
        expected = bits;
        first = name;
      }
      EXPECT_EQ(bits, expected) << name << ", " << threads << " threads, against " << first << ", 1 thread";
    }
  }
  EXPECT_FALSE(first.empty());
}

TEST(LettersRun, TestingChangesNoWeight) {
  LettersRun run({.steps = 2, .batch = 8});
  run.train({});
  const std::uint64_t before = fingerprint(run.parameters());
  run.test(20, {});
  EXPECT_EQ(fingerprint(run.parameters()), before);
}

TEST(LettersRun, StopsWhenAsked) {
  std::stop_source stop;
  const Context context{.cancel = stop.get_token()};
  LettersRun run({.batch = 4});
  try {
    run.train(context, [&](const LettersRun::Moment& moment) {
      if (moment.step == 3) stop.request_stop();
    });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
  }
  EXPECT_EQ(run.steps(), 3);
}

TEST(LettersRun, StopsAfterTheSecondsGiven) {
  LettersRun run({.steps = 1'000'000, .batch = 4, .seconds = 0.01});
  run.train({});
  EXPECT_LT(run.steps(), 1'000'000);
  EXPECT_GT(run.steps(), 0);
}

}  // namespace
}  // namespace regard
