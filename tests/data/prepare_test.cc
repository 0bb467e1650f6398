#include "data/prepare.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <stop_token>
#include <thread>

#include "data/characters.h"
#include "data/words.h"
#include "support/error_of.h"
#include "support/folder.h"

namespace regard {
namespace {

// A named pipe into which somebody writes once.
class Pipe {
 public:
  Pipe(std::string path, std::string bytes) : path_(std::move(path)) {
    EXPECT_EQ(mkfifo(path_.c_str(), 0600), 0);
    writer_ =
        std::jthread([path = path_, bytes = std::move(bytes)] { std::ofstream(path, std::ios::binary) << bytes; });
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::jthread writer_;
};

std::vector<std::string> read(const OpenPairs& open) {
  std::vector<std::string> all;
  const auto stream = open();
  for (LinePair pair; stream->next(pair);) {
    all.push_back(std::to_string(pair.line) + " " + pair.source + "|" + pair.target);
  }
  return all;
}

TEST(OpenPairs, WhatCanBeReadOnlyOnceIsThereEachTime) {
  const Folder folder;
  const Pipe source(folder / "a", "one\n\ntwo\nthree\n"), target(folder / "b", "un\nx\ndeux\n\xFF\n");
  const Pipe table(folder / "a.tsv", "one\tun\n"), mixed(folder / "m", "one\n");
  const std::string file = folder.write("file", "un\n");
  const OpenPairs two = open_pairs({.source = source.path(), .target = target.path()});
  const OpenPairs one = open_pairs({.source = table.path()});
  const OpenPairs half = open_pairs({.source = file, .target = mixed.path()});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(read(two), (std::vector<std::string>{"1 one|un", "3 two|deux"}));
    EXPECT_EQ(read(one), (std::vector<std::string>{"1 one|un"}));
    EXPECT_EQ(read(half), (std::vector<std::string>{"1 un|one"}));
  }
  EXPECT_EQ(two()->name(), source.path() + " and " + target.path());
  EXPECT_EQ(two()->report().dropped(), 2u);  // and what was left out is known
  EXPECT_EQ(two()->report().text(), "1 line left out: empty: " + source.path() +
                                        ":2\n1 line left out: not UTF-8: " + target.path() + ":4 (byte 1)\n");
}

TEST(OpenPairs, NobodyWaitsForAPipeThatNobodyWritesInto) {
  const Folder folder;
  ASSERT_EQ(mkfifo((folder / "a").c_str(), 0600), 0);
  std::stop_source source;
  source.request_stop();
  const Context context = {.cancel = source.get_token()};
  EXPECT_NE(error_of([&] { open_pairs({.source = folder / "a"}, context); }), "");
}

TEST(BuildTokenizers, ReadADictionaryOnce) {
  const Folder folder;
  const Pipe dictionary(folder / "words", "狼吞虎咽\n");
  const std::vector<LinePair> pairs = {{1, "他狼吞虎咽了", "他狼吞虎咽了"}};
  const OpenPairs open = [&] { return std::make_unique<PairList>(pairs, "pairs"); };
  const TokenizerPair made = build_tokenizers(open, {.kind = "words", .dictionary = dictionary.path()});
  for (const Tokenizer* each : {made.source.get(), made.target.get()}) {
    bool found = false;
    for (std::int32_t id = 0; id < each->size(); ++id) found = found || each->piece(id) == "狼吞虎咽";
    EXPECT_TRUE(found);
  }
}

TEST(BuildTokenizers, WithoutTextThereAreNoneOfAnyKind) {
  const OpenPairs open = [] { return std::make_unique<PairList>(std::vector<LinePair>{}, "pairs"); };
  for (const char* kind : {"words", "characters"}) {
    EXPECT_EQ(error_of([&] { build_tokenizers(open, {.kind = kind}); }),
              std::string("there is no text to learn ") + kind + " from");
  }
}

}  // namespace
}  // namespace regard
