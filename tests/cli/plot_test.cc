// `regard plot` and `regard bleu`.
#include <gtest/gtest.h>

#include "support/shell.h"

namespace {

using regard::has;
using regard::lines;
using regard::Outcome;
using regard::shell;

TEST(PlotCommand, WritesAPictureAndNotesABrokenLastLine) {
  const Outcome outcome = shell(
      "folder=$(mktemp -d); cd $folder;"
      "echo '{\"kind\":\"report\",\"update\":100,\"loss\":4.2}' > a.model.metrics.jsonl;"
      "printf '{\"kind\":\"report\",\"update\":200,\"loss\":3.2}\\n{\"kind\":\"rep' > b.metrics.jsonl;"
      "$regard plot a.model.metrics.jsonl b.metrics.jsonl --out x.svg --log 2>&1; echo $?; cat x.svg; rm -r $folder");
  EXPECT_TRUE(
      outcome.out.starts_with("plot: b.metrics.jsonl: the last line, 2, is not complete and was left out\n0\n<svg "))
      << outcome.out;
  EXPECT_TRUE(has(outcome, ">a</text>")) << outcome.out;
  EXPECT_TRUE(has(outcome, ">b</text>")) << outcome.out;
}

TEST(PlotCommand, MistakesAreOneLine) {
  for (const char* call : {"$regard plot /nowhere.jsonl --out /tmp/x.svg", "$regard plot /dev/null --out /tmp/x.svg",
                           "$regard plot /dev/null"}) {
    const Outcome outcome = shell(std::string(call) + " 2>&1 >/dev/null");
    EXPECT_EQ(outcome.status, 2) << outcome.out;
    EXPECT_EQ(lines(outcome.out), 1) << outcome.out;
  }
}

TEST(BleuCommand, ScoresTheStandardInput) {
  const Outcome outcome = shell(
      "file=$(mktemp); printf 'The cat sat on the mat.\\nIt is raining.\\n' > $file;"
      "printf 'The cat sat on a mat.\\nIt is raining.\\n' | $regard bleu $file;"
      "$regard bleu --score-only --tokenizer none --lowercase $file --input $file; rm $file");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.out.starts_with("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:regard-"))
      << outcome.out;
  EXPECT_TRUE(has(outcome, "hyp_len = 11 ref_len = 11)\n100.00\n")) << outcome.out;
}

TEST(BleuCommand, FilesOfUnlikeLengthAreAnError) {
  const Outcome outcome = shell(
      "file=$(mktemp); printf 'a\\nb\\n' > $file; echo a | $regard bleu $file 2>&1 >/dev/null; status=$?; rm $file; "
      "exit "
      "$status");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(lines(outcome.out), 1) << outcome.out;
  EXPECT_TRUE(has(outcome, "differ in length: 1 line")) << outcome.out;
}

}  // namespace
