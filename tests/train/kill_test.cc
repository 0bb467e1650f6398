// Kills a training program at random moments, lets it go on, and compares what is left in the end with what a run
// leaves that nobody disturbed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "io/file.h"
#include "regard/random.h"
#include "support/cases.h"
#include "support/files.h"
#include "support/paths.h"
#include "support/shell.h"
#include "train/loop.h"
#include "train/without_times.h"

namespace regard {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

pid_t start(const std::string& path, bool resume) {
  const std::string program = build_path("/train_letters");
  const pid_t child = fork();
  if (child != 0) return child;
  execl(program.c_str(), program.c_str(), path.c_str(), resume ? "--resume" : nullptr, nullptr);
  _exit(127);
}

int wait_for(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
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

TEST(Kill, AFileThatMayNotGrowIsAClearErrorAndTheRunGoesOn) {
  const Folder folder;
  const std::string straight = folder / "straight", limited = folder / "limited";
  ASSERT_EQ(wait_for(start(straight, false)), 0);
  const std::string program = build_path("/train_letters ");
  for (const int blocks : {1, 80, 300}) {  // of 512 bytes; too little for anything, for a checkpoint, for snapshots
    const Outcome outcome = shell("ulimit -f " + std::to_string(blocks) + "; " + program + limited + " --resume 2>&1");
    EXPECT_EQ(outcome.status, 2) << outcome.out;
    EXPECT_TRUE(has(outcome, "File too large")) << outcome.out;
    EXPECT_EQ(lines(outcome.out), 1) << outcome.out;
    for (const std::string& name : folder.names()) EXPECT_FALSE(name.ends_with(".tmp")) << name;
  }
  ASSERT_EQ(wait_for(start(limited, true)), 0);
  EXPECT_EQ(read_file(disk(), limited), read_file(disk(), straight));
  EXPECT_EQ(read_file(disk(), checkpoint_of(limited)), read_file(disk(), checkpoint_of(straight)));
}

}  // namespace
}  // namespace regard
