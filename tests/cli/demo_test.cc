// `regard demo` as its users meet it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "support/shell.h"

namespace regard {
namespace {

std::string bits_line(const std::string& out) {
  const std::size_t begin = out.find("Bits ");
  return begin == std::string::npos ? "" : out.substr(begin, out.find('\n', begin) - begin);
}

TEST(Demo, ShowsScoreAndMaps) {
  const Outcome result = shell("$regard demo --steps 40 2>/dev/null");
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(has(result, " of 500 unseen examples exactly right")) << result.out;
  EXPECT_TRUE(has(result, "\n  input   ")) << result.out;
  EXPECT_TRUE(has(result, "\n  output  ")) << result.out;
  EXPECT_TRUE(has(result, "    ┌──")) << result.out;
  EXPECT_TRUE(has(result, " │")) << result.out;
  EXPECT_EQ(result.out.find('\033'), std::string::npos) << "colours went into a pipe";
}

TEST(Demo, TellsHowFarItIsInAFewLinesWhenNobodyWatches) {
  const Outcome result = shell("$regard demo --steps 8 2>&1 >/dev/null");
  EXPECT_EQ(lines(result.out), 4) << result.out;
  EXPECT_TRUE(has(result, "training  step 8 of 8   loss ")) << result.out;
  EXPECT_EQ(result.out.find('\r'), std::string::npos);
}

TEST(Demo, ColoursWhenAskedAndNotWhenForbidden) {
  EXPECT_TRUE(has(shell("COLORTERM=truecolor $regard demo --steps 1 --color always 2>/dev/null"), "\033[48;2;"));
  EXPECT_TRUE(has(shell("COLORTERM= $regard demo --steps 1 --color always 2>/dev/null"), "\033[48;5;"));
  EXPECT_FALSE(has(shell("$regard demo --steps 1 --color always --no-color 2>/dev/null"), "\033["));
}

TEST(Demo, LooksAtTheInputThatItIsGiven) {
  const Outcome result = shell("$regard demo --steps 1 --task copy --input k#ta.c 2>/dev/null");
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(has(result, "in the same order")) << result.out;
  EXPECT_TRUE(has(result, "  input   k # t a . c\n")) << result.out;
}

TEST(Demo, GivesTheSameBitsOnAnyThreadsAndInstructionSet) {
  const std::string expected = bits_line(shell("$regard demo --steps 5 --threads 1 2>/dev/null").out);
  ASSERT_GT(expected.size(), 20u);
  EXPECT_EQ(bits_line(shell("$regard demo --steps 5 --threads 2 2>/dev/null").out), expected);
  EXPECT_NE(bits_line(shell("$regard demo --steps 5 --seed 2 2>/dev/null").out), expected);
  const Outcome avx2 = shell("REGARD_TARGET=avx2 $regard demo --steps 5 --threads 3 2>/dev/null");
  if (avx2.status == 0) {  // else this processor has no AVX2
    EXPECT_EQ(bits_line(avx2.out), expected);
  }
}

TEST(Demo, WrongOptionsAreOneLineAndStatus2) {
  for (const char* options : {"--steps 0", "--steps ten", "--task sort", "--color sometimes", "--input K",
                              "--seconds -1", "--seed x", "--sedd 3", "more"}) {
    const Outcome result = shell(std::string("$regard demo ") + options + " 2>&1 >/dev/null");
    EXPECT_EQ(result.status, 2) << options;
    EXPECT_EQ(lines(result.out), 1) << result.out;
    EXPECT_TRUE(result.out.starts_with("regard: ")) << result.out;
  }
}

// Whether the process waits for Control-C by now: one that comes earlier ends any program, whatever it is.
bool waits_for_control_c(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("SigBlk:")) return (std::stoull(line.substr(7), nullptr, 16) >> (SIGINT - 1) & 1) != 0;
  return false;
}

TEST(Demo, ControlCStopsItCleanly) {
  const pid_t child = fork();
  if (child == 0) {
    if (freopen("/dev/null", "w", stdout) == nullptr || freopen("/dev/null", "w", stderr) == nullptr) _exit(126);
    execl(REGARD_BINARY_DIR "/regard", "regard", "demo", "--steps", "100000", nullptr);
    _exit(127);
  }
  int status = 0;
  bool ended = false;
  while (!waits_for_control_c(child) && !ended) {
    usleep(1'000);
    ended = waitpid(child, &status, WNOHANG) == child;
  }
  ASSERT_FALSE(ended) << "it ended before it could be stopped, with " << status;
  kill(child, SIGINT);
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

}  // namespace
}  // namespace regard
