// Batches: what is in them, in which order, and going on from every position.
#include "data/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/pool.h"
#include "data/characters.h"
#include "regard/error.h"
#include "regard/random.h"
#include "support/error_of.h"
#include "support/folder.h"

namespace regard {
namespace {

using Order = std::vector<std::vector<std::uint64_t>>;  // the lines of every batch

std::shared_ptr<const Tokenizer> letters() {
  static const std::shared_ptr<const Tokenizer> made = build_characters([](const auto& use) { use("abcdefghij"); });
  return made;
}

// Lines of 1 to 40 letters; the target has about as many as the source.
std::vector<LinePair> pairs(std::size_t count) {
  std::vector<LinePair> out;
  for (std::size_t i = 0; i < count; ++i) {
    const RandomKey key = RandomKey(9).at(i);
    const std::size_t source = 1 + random_below(key, 0, 40),
                      target = std::max<std::size_t>(1, source - random_below(key, 1, 5) % source);
    out.push_back({i + 1, std::string(source, static_cast<char>('a' + i % 10)), std::string(target, 'b')});
  }
  return out;
}

// A stream that can be read only once, as a pipe is.
class Once final : public PairStream {
 public:
  explicit Once(std::vector<LinePair> pairs) : list_(std::move(pairs)) {}
  bool next(LinePair& pair) override { return list_.next(pair); }
  PairPosition position() const override { return list_.position(); }
  void seek(const PairPosition&) override { FAIL() << "nobody can seek in a pipe"; }
  bool can_seek() const override { return false; }
  std::size_t held() const override { return 0; }
  std::string name() const override { return "a pipe"; }

 private:
  PairList list_;
};

std::unique_ptr<PairStream> list(std::size_t count) { return std::make_unique<PairList>(pairs(count)); }

constexpr std::uint64_t kLittle = 8000;  // bytes: less than the lists of the tests take

PairBatches made(std::unique_ptr<PairStream> stream, const BatchingSettings& settings) {
  return {std::move(stream), letters(), letters(), settings};
}

std::vector<std::uint64_t> lines_of(const std::vector<SequencePair>& batch) {
  std::vector<std::uint64_t> lines;
  for (const SequencePair& pair : batch) lines.push_back(pair.id);
  return lines;
}

Order epoch(PairBatches& batches) {
  Order out;
  for (std::vector<SequencePair> batch; batches.next(batch);) out.push_back(lines_of(batch));
  return out;
}

std::vector<std::uint64_t> sorted_lines(const Order& order) {
  std::vector<std::uint64_t> all;
  for (const auto& batch : order) all.insert(all.end(), batch.begin(), batch.end());
  std::sort(all.begin(), all.end());
  return all;
}

const std::vector<BatchingSettings>& all_settings() {
  static const std::vector<BatchingSettings> all = {
      {.tokens = 200, .window = 4, .seed = 3},
      {.sentences = 7, .window = 5, .seed = 3},
      {.tokens = 200, .window = 4, .memory = kLittle, .seed = 3},
      {.sentences = 7, .window = 5, .memory = kLittle, .seed = 3},
      {.tokens = 200, .window = 4, .seed = 3, .shuffle = false},
      {.tokens = 200, .window = 4, .memory = kLittle, .seed = 3, .shuffle = false, .source_end = true},
      {.tokens = 41, .window = 1, .memory = 0, .seed = 3},
  };
  return all;
}

TEST(Batches, HaveEveryPairOnceAnEpoch) {
  std::vector<std::uint64_t> every(500);
  for (std::size_t i = 0; i < every.size(); ++i) every[i] = i + 1;
  for (const BatchingSettings& settings : all_settings()) {
    BatchingSettings all = settings;
    if (all.tokens == 41) all.tokens = 42;
    PairBatches batches = made(list(500), all);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(batches.position().epoch, static_cast<std::uint64_t>(i));
      EXPECT_EQ(sorted_lines(epoch(batches)), every);
    }
    EXPECT_EQ(batches.whole(), all.memory > kLittle);
    EXPECT_EQ(batches.report().pairs, 1500u);
    EXPECT_EQ(batches.report().too_long, 0u);
  }
}

TEST(Batches, HoldWhatTheLinesSay) {
  const std::vector<LinePair> lines = pairs(300);
  for (const BatchingSettings& settings : all_settings()) {
    PairBatches batches = made(list(300), settings);
    for (std::vector<SequencePair> batch; batches.next(batch);) {
      for (const SequencePair& pair : batch) {
        std::vector<std::int32_t> source = letters()->ids(lines[pair.id - 1].source);
        if (settings.source_end) source.push_back(2);
        EXPECT_EQ(pair.source, source);
        EXPECT_EQ(pair.target, letters()->ids(lines[pair.id - 1].target));
      }
    }
  }
}

TEST(Batches, KeepToTheirBudget) {
  for (const BatchingSettings& settings : all_settings()) {
    PairBatches batches = made(list(400), settings);
    std::size_t full = 0, count = 0;
    for (std::vector<SequencePair> batch; batches.next(batch); ++count) {
      std::size_t source = 0, target = 0;
      for (const SequencePair& pair : batch) {
        source = std::max(source, pair.source.size());
        target = std::max(target, pair.target.size() + 1);
      }
      const auto most = static_cast<std::size_t>(settings.tokens);
      if (settings.sentences > 0) {
        EXPECT_LE(batch.size(), static_cast<std::size_t>(settings.sentences));
        full += batch.size() == static_cast<std::size_t>(settings.sentences) ? 1 : 0;
      } else {
        EXPECT_LE(source * batch.size(), most);
        EXPECT_LE(target * batch.size(), most);
        full += std::max(source, target) * (batch.size() + 1) > most * 3 / 4 ? 1 : 0;
      }
    }
    if (settings.memory > 0) {  // else a window is one pair
      EXPECT_GT(full * 4, count * 3);
    }
  }
}

TEST(Batches, OrderIsAFunctionOfSeedAndEpochAlone) {
  for (const std::uint64_t memory : {std::uint64_t{1} << 20, kLittle}) {
    const BatchingSettings settings = {.tokens = 200, .window = 4, .memory = memory, .seed = 3};
    BatchingSettings other = settings;
    other.seed = 4;
    PairBatches batches = made(list(500), settings), again = made(list(500), settings), others = made(list(500), other);
    const Order first = epoch(batches), second = epoch(batches);
    EXPECT_NE(first, second);
    EXPECT_NE(first, epoch(others));
    {
      const ThreadLimit limit(1);
      EXPECT_EQ(first, epoch(again));
    }
    PairBatches jump = made(list(500), settings);
    jump.seek({.epoch = 1});
    EXPECT_EQ(second, epoch(jump));
    jump.seek({});
    EXPECT_EQ(first, epoch(jump));
    EXPECT_EQ(second, epoch(jump));
  }
}

TEST(Batches, WithoutShufflingAllEpochsAreEqual) {
  PairBatches batches = made(list(300), {.tokens = 200, .window = 1000, .shuffle = false});
  const Order first = epoch(batches);
  EXPECT_EQ(first, epoch(batches));
  std::size_t before = 0;
  const std::vector<LinePair> lines = pairs(300);
  for (const auto& batch : first) {
    for (const std::uint64_t line : batch) {
      const std::size_t length = std::max(lines[line - 1].source.size(), lines[line - 1].target.size() + 1);
      EXPECT_GE(length, before);
      before = length;
    }
  }
}

TEST(Batches, GoOnFromEveryPositionAsIfNothingHadHappened) {
  const Folder folder;
  std::string source, target;
  for (const LinePair& pair : pairs(120)) {
    source += pair.line % 11 == 0 ? "\n" : pair.source + "\n";
    target += pair.target + "\r\n";
  }
  const PairFiles files = {.source = folder.write("a", source), .target = folder.write("b", target)};
  for (const BatchingSettings& settings : all_settings()) {
    BatchingSettings little = settings;
    little.memory = std::min<std::uint64_t>(little.memory, little.memory > kLittle ? little.memory : 3000);
    PairBatches batches = made(std::make_unique<PairReader>(files), little);
    std::vector<BatchPosition> positions;
    std::vector<std::vector<std::uint64_t>> given;  // an empty one ends an epoch
    for (int i = 0; i < 2;) {
      positions.push_back(batches.position());
      std::vector<SequencePair> batch;
      if (!batches.next(batch)) ++i;
      given.push_back(lines_of(batch));
    }
    ASSERT_GT(given.size(), 15u);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      PairBatches resumed = made(std::make_unique<PairReader>(files), little);
      resumed.seek(positions[i]);
      EXPECT_EQ(resumed.position(), positions[i]);
      for (std::size_t j = i; j < given.size(); ++j) {
        if (j < positions.size()) {
          EXPECT_EQ(resumed.position(), positions[j]);
        }
        std::vector<SequencePair> batch;
        resumed.next(batch);
        ASSERT_EQ(lines_of(batch), given[j]) << "from " << i << " at " << j;
      }
    }
  }
}

TEST(Batches, APositionOfOtherDataIsRefused) {
  PairBatches whole = made(list(100), {.tokens = 200});
  EXPECT_NE(error_of([&] { whole.seek({.batch = 1000}); }).find("other data"), std::string::npos);
  EXPECT_NE(error_of([&] { whole.seek({.window = 1}); }).find("other data"), std::string::npos);
  PairBatches streamed = made(list(500), {.tokens = 200, .window = 4, .memory = kLittle});
  EXPECT_NE(error_of([&] { streamed.seek({.batch = 1000}); }).find("other data"), std::string::npos);
  EXPECT_FALSE(error_of([&] { streamed.seek({.window = 3, .batch = 1, .start = {.line = 501}}); }).empty());
}

TEST(Batches, APipeIsReadOnceWhetherItFitsOrNot) {
  const BatchingSettings fits = {.tokens = 200, .window = 4, .seed = 3};
  PairBatches held = made(std::make_unique<Once>(pairs(200)), fits), from_list = made(list(200), fits);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(epoch(held), epoch(from_list));

  const BatchingSettings little = {.tokens = 200, .window = 4, .memory = kLittle, .seed = 3};
  PairBatches streamed = made(std::make_unique<Once>(pairs(500)), little), file = made(list(500), little);
  std::vector<BatchPosition> positions;
  Order order;
  for (std::vector<SequencePair> batch; streamed.next(batch);) {
    order.push_back(lines_of(batch));
    positions.push_back(streamed.position());
  }
  EXPECT_FALSE(streamed.whole());
  EXPECT_EQ(order, epoch(file));
  std::vector<SequencePair> batch;
  EXPECT_NE(error_of([&] { streamed.next(batch); }).find("only once"), std::string::npos);
  for (const std::size_t i : {std::size_t{0}, positions.size() / 3, positions.size() / 2, positions.size() - 1}) {
    PairBatches resumed = made(std::make_unique<Once>(pairs(500)), little);
    resumed.seek(positions[i]);
    EXPECT_EQ(epoch(resumed), Order(order.begin() + static_cast<std::ptrdiff_t>(i) + 1, order.end()));
  }
}

TEST(Batches, WhatIsTooLongOrEmptyIsLeftOutAndCounted) {
  std::vector<LinePair> lines = pairs(20);
  lines[4].source = std::string(300, 'a');
  lines[7].target = std::string(300, 'a');
  lines[9].source = "";
  PairBatches batches = made(std::make_unique<PairList>(lines), {.tokens = 400, .longest = 299});
  EXPECT_EQ(sorted_lines(epoch(batches)).size(), 17u);
  EXPECT_EQ(batches.report().too_long, 2u);
  EXPECT_EQ(batches.report().first_too_long, 5u);
  EXPECT_EQ(batches.report().empty, 1u);
  PairBatches budget = made(std::make_unique<PairList>(lines), {.tokens = 30, .longest = 299});
  for (const std::uint64_t line : sorted_lines(epoch(budget))) {
    EXPECT_LE(lines[line - 1].source.size(), 30u);
    EXPECT_LE(lines[line - 1].target.size(), 29u);
  }
  EXPECT_GT(budget.report().too_long, 2u);
}

TEST(Batches, NothingToLearnFromIsAnError) {
  std::vector<SequencePair> batch;
  PairBatches none = made(list(0), {});
  EXPECT_NE(error_of([&] { none.next(batch); }).find("no pairs"), std::string::npos);
  PairBatches all_long =
      made(std::make_unique<PairList>(std::vector<LinePair>{{1, "aaaa", "b"}}), {.longest = 3, .memory = 1});
  EXPECT_NE(error_of([&] { all_long.next(batch); }).find("1 were too long"), std::string::npos);
  for (const BatchingSettings& bad :
       std::vector<BatchingSettings>{{.tokens = 1}, {.sentences = -1}, {.longest = 0}, {.window = 0}}) {
    EXPECT_FALSE(error_of([&] { made(list(3), bad); }).empty());
  }
}

TEST(Batches, SortingSavesPadding) {
  PairBatches batches = made(list(2000), {.tokens = 1000, .window = 20}),
              one = made(list(2000), {.sentences = 40, .window = 1});
  epoch(batches);
  epoch(one);
  EXPECT_LT(batches.report().waste(), 0.1);
  EXPECT_GT(one.report().waste(), 0.3);
  EXPECT_GT(batches.report().waste(), 0.0);
}

TEST(Batches, AFileLargerThanMemoryIsReadWithinAWindow) {
  const Folder folder;
  std::string text;
  for (const LinePair& pair : pairs(60'000)) text += pair.source + "\t" + pair.target + "\n";
  PairBatches batches = made(std::make_unique<PairReader>(PairFiles{.source = folder.write("a.tsv", text)}),
                             {.tokens = 500, .window = 20, .memory = 200'000});
  std::size_t most = 0, count = 0;
  for (std::vector<SequencePair> batch; batches.next(batch); count += batch.size())
    most = std::max(most, batches.held());
  EXPECT_EQ(count, 60'000u);
  EXPECT_GT(text.size(), 2'000'000u);
  EXPECT_LT(most, 900'000u);
}

}  // namespace
}  // namespace regard
