// regard quantize, as its users meet it.
#include <gtest/gtest.h>

#include <string>

#include "support/files.h"
#include "support/paths.h"
#include "support/shell.h"

namespace regard {
namespace {

const std::string kModel = source_path("/tests/golden/model-1.0.safetensors");

TEST(Quantize, WritesASmallerModelThatSaysWhatItIs) {
  const Folder folder;
  for (const std::string to : {"bf16", "int8"}) {
    const std::string out = folder / to;
    const Outcome made = shell("$regard quantize " + kModel + " --to " + to + " --out " + out);
    EXPECT_EQ(made.status, 0) << made.out;
    EXPECT_EQ(lines(made.out), 1) << made.out;
    const Outcome told = shell("$regard info " + out);
    EXPECT_TRUE(has(told, "regard-model 1.1")) << told.out;
    EXPECT_TRUE(has(told, "weights  30 in 3 tensors")) << told.out;
    EXPECT_TRUE(has(told, "  weights  " + to)) << told.out;
    EXPECT_TRUE(has(told, to == "bf16" ? "encoder.weight  BF16 [4, 6]" : "I8   [4, 6]")) << told.out;
  }
}

TEST(Quantize, WhatCannotBeIsOneLineAndNothingIsOverwritten) {
  const Folder folder;
  const std::string out = folder / "small";
  ASSERT_EQ(shell("$regard quantize " + kModel + " --out " + out).status, 0);
  const std::string before = read_file(disk(), out);
  for (const std::string& wrong :
       {kModel + " --to bf16 --out " + out, out + " --to bf16 --out " + (folder / "smaller"),
        kModel + " --to int4 --out " + (folder / "other"), (folder / "none") + " --out " + (folder / "other"), kModel,
        kModel + " --out " + (folder / "no/such/folder")}) {
    const Outcome outcome = shell("$regard quantize " + wrong + " 2>&1");
    EXPECT_NE(outcome.status, 0) << outcome.out;
    EXPECT_EQ(lines(outcome.out), 1) << outcome.out;
  }
  EXPECT_EQ(read_file(disk(), out), before);
  EXPECT_FALSE(exists(disk(), folder / "other"));
  EXPECT_FALSE(exists(disk(), folder / "smaller"));
}

}  // namespace
}  // namespace regard
