// `regard doctor` as its users meet it.
#include <gtest/gtest.h>

#include <string>

#include "support/shell.h"

namespace regard {
namespace {

TEST(Doctor, FindsThisMachineFit) {
  const Outcome result = shell("$regard doctor");
  EXPECT_EQ(result.status, 0) << result.out;
  for (const char* part : {"Regard 0.", "processor", "kernels", "threads", "memory", "disk", "files", "matrix product",
                           "functions", "not a number", "float mode", "same bits", "All is well."}) {
    EXPECT_TRUE(has(result, part)) << part << " is missing in\n" << result.out;
  }
  EXPECT_FALSE(has(result, "PROBLEM")) << result.out;
}

TEST(Doctor, AProblemComesWithAdviceAndStatus1) {
  const Outcome result = shell("ulimit -n 64; $regard doctor");
  EXPECT_EQ(result.status, 1);
  EXPECT_TRUE(has(result, "PROBLEM  files")) << result.out;
  EXPECT_TRUE(has(result, "-> allow more: ulimit -n 1024")) << result.out;
  EXPECT_TRUE(has(result, "\n1 problem.\n")) << result.out;
}

TEST(Doctor, LeavesNothingBehind) {
  const Outcome result = shell("d=$(mktemp -d) && cd $d && $regard doctor >/dev/null; ls -A $d; rmdir $d");
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.status, 0);
}

TEST(Doctor, SaysWhichKernelsWereAskedFor) {
  const Outcome result = shell("REGARD_TARGET=sse4 $regard doctor");
  if (result.status == 2) GTEST_SKIP() << "no SSE4 here";
  EXPECT_TRUE(has(result, "kernels         sse4")) << result.out;
  EXPECT_TRUE(has(result, "REGARD_TARGET")) << result.out;
}

}  // namespace
}  // namespace regard
