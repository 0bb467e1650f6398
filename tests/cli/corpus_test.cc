// `regard corpus`.
#include <gtest/gtest.h>

#include "support/shell.h"

namespace {

using regard::has;
using regard::lines;
using regard::Outcome;
using regard::shell;

TEST(CorpusCommand, PrintsPairsSeparatedByATab) {
  const Outcome outcome = shell("$regard corpus zh-en --lines 50 --seed 3");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(lines(outcome.out), 50);
  EXPECT_TRUE(outcome.out.starts_with("他们在看。\tThey are watching.\n")) << outcome.out;
  EXPECT_EQ(shell("$regard corpus zh-en --lines 50 --seed 3 | grep -cP '^[^\\t]+\\t[^\\t]+$'").out, "50\n");
  EXPECT_EQ(outcome.out, shell("$regard corpus zh-en --lines 50 --seed 3").out);
  EXPECT_EQ(lines(shell("$regard corpus fr-en --lines 0").out), 0);
}

TEST(CorpusCommand, WritesAlignmentsOfTheSegmentedWords) {
  const Outcome outcome = shell(
      "folder=$(mktemp -d); $regard corpus en-fr --lines 20 --split test --segmented --alignments $folder/a > $folder/t"
      " && paste $folder/t $folder/a; rm -r $folder");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(lines(outcome.out), 20);
  EXPECT_TRUE(has(outcome, " .\t")) << outcome.out;
  EXPECT_TRUE(has(outcome, "\t0-0 ")) << outcome.out;
}

TEST(CorpusCommand, MistakesAreOneLine) {
  const Outcome pair = shell("$regard corpus de-en 2>&1 >/dev/null");
  EXPECT_EQ(pair.status, 2);
  EXPECT_EQ(lines(pair.out), 1);
  EXPECT_TRUE(has(pair, "'de-en', expected zh-en, en-zh, en-fr, fr-en, zh-fr or fr-zh")) << pair.out;
  const Outcome file = shell("$regard corpus zh-en --lines 1 --alignments /nowhere/a 2>&1 >/dev/null");
  EXPECT_EQ(file.status, 2);
  EXPECT_EQ(lines(file.out), 1);
  EXPECT_TRUE(has(file, "/nowhere/a")) << file.out;
  const Outcome count = shell("$regard corpus zh-en --lines -1 2>&1 | head -n 2");  // once two to the 64th of them
  EXPECT_EQ(lines(count.out), 1);
  EXPECT_TRUE(has(count, "--lines: Value -1 not in range")) << count.out;
}

TEST(CorpusCommand, NoTwoSeedsAreOne) {
  EXPECT_EQ(shell("$regard corpus zh-en --lines 1 --seed 18446744073709551615").status, 0);
  for (const char* seed : {"-1", "18446744073709551616", "''", "1.5", "7x"}) {
    const Outcome outcome = shell(std::string("$regard corpus zh-en --lines 1 --seed ") + seed + " 2>&1 >/dev/null");
    EXPECT_EQ(outcome.status, 2) << seed;
    EXPECT_EQ(lines(outcome.out), 1) << outcome.out;
    EXPECT_TRUE(has(outcome, "expected a whole number from 0 to 18446744073709551615")) << outcome.out;
  }
}

}  // namespace
