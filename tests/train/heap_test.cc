// After the first steps, training takes nothing from the heap. To see that, this program's malloc is ours: it counts,
// and hands on to the C library's. `new` of every kind ends there too.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <vector>

#include "base/pool.h"
#include "regard/autograd/ops.h"
#include "regard/train/trainer.h"
#include "support/files.h"
#include "support/sanitized.h"
#include "train/letters_training.h"
#include "train/loop.h"

namespace {
std::atomic<bool> counting{false};
std::atomic<long> taken{0};
}  // namespace

#if !REGARD_SANITIZED && defined(__GLIBC__)
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* old, std::size_t bytes);
void* __libc_memalign(std::size_t align, std::size_t bytes);

static void count_one() {
  if (counting.load(std::memory_order_relaxed)) taken.fetch_add(1, std::memory_order_relaxed);
}
__attribute__((visibility("default"))) void* malloc(std::size_t bytes) {
  count_one();
  return __libc_malloc(bytes);
}
__attribute__((visibility("default"))) void* calloc(std::size_t count, std::size_t bytes) {
  count_one();
  return __libc_calloc(count, bytes);
}
__attribute__((visibility("default"))) void* realloc(void* old, std::size_t bytes) {
  count_one();
  return __libc_realloc(old, bytes);
}
__attribute__((visibility("default"))) void* aligned_alloc(std::size_t align, std::size_t bytes) {
  count_one();
  return __libc_memalign(align, bytes);
}
__attribute__((visibility("default"))) int posix_memalign(void** result, std::size_t align, std::size_t bytes) {
  count_one();
  *result = __libc_memalign(align, bytes);
  return *result == nullptr ? ENOMEM : 0;
}
}
#endif

namespace regard {
namespace {

struct Count {
  Count() {
    taken = 0;
    counting = true;
  }
  ~Count() { counting = false; }
};

TEST(Heap, TheCounterCounts) {
  if (REGARD_SANITIZED) GTEST_SKIP() << "a sanitizer has the heap";
  std::vector<std::vector<char>> kept(3);
  {
    const Count count;
    kept[0].resize(1000);
    kept[1].resize(1 << 20);
    const Tensor tensor = Tensor::zeros({100});
  }
  EXPECT_GE(taken.load(), 4);  // two vectors, the tensor and its memory
}

TEST(Heap, AfterWarmingUpAStepTakesNothing) {
  if (REGARD_SANITIZED) GTEST_SKIP() << "a sanitizer has the heap";
  for (const auto& [limit, name] : std::vector<std::pair<int, std::string>>{{1, "gru-attention"},
                                                                            {2, "gru-attention"},
                                                                            {2, "gru"},
                                                                            {2, "luong"},
                                                                            {2, "transformer-tiny"},
                                                                            {2, "convs2s"}}) {
    const ThreadLimit scope(limit);
    Parameters parameters;
    const auto model = make_model(Builder(parameters, RandomKey(3)), letters_model(name, 32, 64));
    Adam adam(parameters);
    Trainer trainer(parameters, adam, {.clip = 1});
    std::vector<Batch> batches;
    for (std::uint64_t b = 0; b < 5; ++b) {
      std::vector<SequencePair> pairs;
      for (std::uint64_t i = 0; i < 16; ++i) pairs.push_back(letters_pair(16 * b + i, 10));
      batches.push_back(make_batch(pairs, {}));
    }
    const LossOptions options{.label_smoothing = 0.1, .training = true};
    const auto step = [&](std::size_t number) {
      trainer.step(1e-3, [&](Tape& tape) { return model->loss(tape, batches[number % batches.size()], options).sum; });
    };
    for (std::size_t i = 0; i < 5; ++i) step(i);
    // A thread of the pool warms up when it first gets something to do, which may be late on a busy machine.
    for (int attempt = 0; attempt < 5 && (attempt == 0 || taken.load() != 0); ++attempt) {
      const Count count;
      for (std::size_t i = 0; i < 50; ++i) step(i);
    }
    EXPECT_EQ(taken.load(), 0) << name << ", " << limit << " threads";
  }
}

TEST(Heap, AfterWarmingUpTheLoopTakesNothingBetweenReports) {
  if (REGARD_SANITIZED) GTEST_SKIP() << "a sanitizer has the heap";
  const Folder folder;
  Parameters parameters;
  Parameter& weight = parameters.add("weight", Tensor::of({3}, {1.0f, 2.0f, 3.0f}));
  Adam adam(parameters);
  std::int64_t parts = 0;
  TrainingTask task{.parameters = parameters,
                    .optimizer = adam,
                    .loss =
                        [&](Tape& tape, const PartInfo&) {
                          ++parts;
                          return LossPart{sum(tape.use(weight) * tape.use(weight)), 3};
                        },
                    .epochs = [&] { return static_cast<double>(parts) / 10; },
                    .position = [&] { return std::to_string(parts); },
                    .seek = [](std::string_view) {}};
  task.on_update = [](const UpdateReport& report) {
    if (report.reached.updates == 10) taken = 0;
    counting = report.reached.updates >= 10 && report.reached.updates < 90;
  };
  LoopSettings settings;
  settings.path = folder / "m";
  settings.stop_after = updates(99);
  settings.accumulate = 2;
  settings.moving_average = 0.9;
  train(settings, task, {});
  EXPECT_EQ(taken.load(), 0);
  EXPECT_EQ(parts, 198);
}

}  // namespace
}  // namespace regard
