// `regard doctor` as its users meet it.
#include <gtest/gtest.h>

#include <string>

#include "cli/shell.h"

namespace regard {
namespace {

TEST(Doctor, FindsThisMachineFit) {
  const ShellResult result = run_in_shell("$regard doctor");
  EXPECT_EQ(result.status, 0) << result.out;
  for (const char* part : {"Regard 0.", "processor", "kernels", "threads", "memory", "disk", "files", "matrix product",
                           "functions", "not a number", "float mode", "same bits", "All is well."}) {
    EXPECT_TRUE(result.has(part)) << part << " is missing in\n" << result.out;
  }
  EXPECT_FALSE(result.has("PROBLEM")) << result.out;
}

TEST(Doctor, AProblemComesWithAdviceAndStatus1) {
  const ShellResult result = run_in_shell("ulimit -n 64; $regard doctor");
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(result.has("PROBLEM  files")) << result.out;
  EXPECT_TRUE(result.has("-> allow more: ulimit -n 1024")) << result.out;
  EXPECT_TRUE(result.has("\n1 problem.\n")) << result.out;
}

TEST(Doctor, LeavesNothingBehind) {
  const ShellResult result = run_in_shell("d=$(mktemp -d) && cd $d && $regard doctor >/dev/null; ls -A $d; rmdir $d");
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.status, 0);
}

TEST(Doctor, SaysWhichKernelsWereAskedFor) {
  const ShellResult result = run_in_shell("REGARD_TARGET=sse4 $regard doctor");
  if (result.status == 2) GTEST_SKIP() << "no SSE4 here";
  EXPECT_TRUE(result.has("kernels         sse4")) << result.out;
  EXPECT_TRUE(result.has("REGARD_TARGET")) << result.out;
}

}  // namespace
}  // namespace regard
