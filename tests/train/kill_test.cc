// Kills a training program at random moments, lets it go on, and compares what is left in the end with what a run
// leaves that nobody disturbed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <regex>
#include <thread>

#include "io/file.h"
#include "regard/random.h"
#include "support/cases.h"
#include "support/files.h"
#include "train/loop.h"

namespace regard {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

pid_t start(const std::string& path, bool resume) {
  const pid_t child = fork();
  if (child != 0) return child;
  const char* program = REGARD_BINARY_DIR "/train_letters";
  execl(program, program, path.c_str(), resume ? "--resume" : nullptr, nullptr);
  _exit(127);
}

int wait_for(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

std::string without_times(const std::string& metrics) {
  return std::regex_replace(metrics, std::regex("\"(seconds|tokens_per_second)\": *[0-9.]+"), "\"$1\":");
}

TEST(Kill, WhateverTheMomentTheRunEndsWithTheSameFiles) {
  const Folder folder;
  const std::string straight = folder / "straight";
  const auto begin = Clock::now();
  ASSERT_EQ(wait_for(start(straight, false)), 0);
  const double whole = Seconds(Clock::now() - begin).count();
  int killed = 0;
  for (int i = 0; i < cases(25); ++i) {
    const RandomKey key = RandomKey(77).at(static_cast<std::uint64_t>(i));
    const Folder here;
    const std::string path = here / "model";
    const auto kills = 1 + random_below(key, 0, 3);
    for (std::uint64_t k = 0; k < kills; ++k) {
      const pid_t child = start(path, k > 0);
      std::this_thread::sleep_for(Seconds(whole * static_cast<double>(uniform(key, k + 1))));
      kill(child, SIGKILL);
      const int status = wait_for(child);
      killed += WIFSIGNALED(status) ? 1 : 0;
    }
    ASSERT_EQ(wait_for(start(path, true)), 0) << i;
    EXPECT_EQ(read_file(disk(), path), read_file(disk(), straight)) << i;
    EXPECT_EQ(read_file(disk(), checkpoint_of(path)), read_file(disk(), checkpoint_of(straight))) << i;
    EXPECT_EQ(without_times(read_file(disk(), metrics_of(path))),
              without_times(read_file(disk(), metrics_of(straight))))
        << i;
    EXPECT_EQ(here.names(), (std::vector<std::string>{"model", "model.ckpt", "model.metrics.jsonl"}));
    if (HasFailure()) break;
  }
  EXPECT_GT(killed, 0);
}

}  // namespace
}  // namespace regard
