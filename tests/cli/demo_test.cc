// `regard demo` as its users meet it.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "support/folder.h"
#include "support/paths.h"
#include "support/shell.h"

namespace regard {
namespace {

// Little enough for a test: what it learns is nothing.
const std::string kShort = "$regard demo --updates 2 --lines 300 --tests 4 ";

std::string line_with(const std::string& out, const std::string& what) {
  const std::size_t begin = out.find(what);
  return begin == std::string::npos ? "" : out.substr(begin, out.find('\n', begin) - begin);
}

TEST(Demo, TranslatesTrainsAndComparesAndLeavesNothingBehind) {
  const Folder folder;
  const Outcome result = shell("TMPDIR=" + folder.path() + " " + kShort + "2>&1");
  EXPECT_EQ(result.status, 0) << result.out;
  EXPECT_TRUE(has(result, "1  The model in the box translates")) << result.out;
  EXPECT_TRUE(has(result, "  He gets up at six every morning.\n")) << result.out;
  EXPECT_TRUE(has(result, "    ┌──")) << result.out;
  EXPECT_TRUE(has(result, "  with attention     BLEU ")) << result.out;
  EXPECT_TRUE(has(result, "  without            BLEU ")) << result.out;
  EXPECT_TRUE(has(result, "  a long sentence    ")) << result.out;
  EXPECT_TRUE(has(result, "\nNext\n  regard translate ")) << result.out;
  EXPECT_EQ(result.out.find('\033'), std::string::npos) << "colours went into a pipe";
  EXPECT_EQ(result.out.find('\r'), std::string::npos);
  EXPECT_TRUE(folder.names().empty()) << folder.names()[0];
}

TEST(Demo, KeepsItsModelsWhereItIsTold) {
  const Folder folder;
  const Outcome result = shell(kShort + "--color always --keep " + folder / "a/b" + " 2>/dev/null");
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(has(result, "\033[48;")) << "no colours";
  EXPECT_TRUE(has(result, "a/b/with.model"));
  for (const char* name : {"a/b/with.model", "a/b/without.model"}) {
    EXPECT_EQ(shell("$regard info " + folder / name + " >/dev/null").status, 0) << name;
  }
}

TEST(Demo, GivesTheSameBitsOnAnyThreadsAndInstructionSet) {
  const std::string expected = line_with(shell(kShort + "--threads 1 2>/dev/null").out, "  bits ");
  ASSERT_GT(expected.size(), 20u);
  EXPECT_EQ(line_with(shell(kShort + "--threads 2 2>/dev/null").out, "  bits "), expected);
  EXPECT_NE(line_with(shell(kShort + "--seed 2 2>/dev/null").out, "  bits "), expected);
  const Outcome avx2 = shell("REGARD_TARGET=avx2 " + kShort + "--threads 3 2>/dev/null");
  if (avx2.status == 0) {  // else this processor has no AVX2
    EXPECT_EQ(line_with(avx2.out, "  bits "), expected);
  }
}

TEST(Demo, WrongOptionsAreOneLineAndStatus2) {
  for (const char* options : {"--updates 0", "--updates ten", "--lines 3", "--color sometimes", "--seed x", "--sedd 3",
                              "--keep /dev/null/a", "more"}) {
    const Outcome result = shell(std::string("$regard demo ") + options + " 2>&1 >/dev/null");
    EXPECT_EQ(result.status, 2) << options;
    EXPECT_EQ(lines(result.out), 1) << result.out;
    EXPECT_TRUE(result.out.starts_with("regard: ")) << result.out;
  }
}

TEST(Demo, SaysWhereItLookedForTheModelInTheBox) {
  const Outcome result = shell("REGARD_MODELS=/nowhere $regard demo 2>&1 >/dev/null");
  EXPECT_NE(result.status, 0);
  EXPECT_EQ(lines(result.out), 1) << result.out;
  EXPECT_TRUE(has(result, "/nowhere/zh-en.model")) << result.out;
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
    execl(build_path("/regard").c_str(), "regard", "demo", "--updates", "100000", nullptr);
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
