// regard compare.
#include <gtest/gtest.h>

#include "support/folder.h"
#include "support/shell.h"

namespace regard {
namespace {

TEST(CompareCommand, WritesAFolderAndGoesOnInIt) {
  const Folder folder;
  const std::string command = "cd " + folder.path() +
                              " && $regard compare translate --mechanisms \"none; dot | sparsemax\" --budget 2u "
                              "--lines 60 --tests 6 --hidden 16 --embedding 16 --out c ";
  const Outcome first = shell(command + "2>&1");
  EXPECT_EQ(first.status, 0) << first.out;
  EXPECT_TRUE(has(first, "dot | sparsemax  cross")) << first.out;
  EXPECT_TRUE(has(first, "Written to c: compare.md, compare.json, lengths.svg, time.svg")) << first.out;
  for (const char* name : {"c/compare.md", "c/compare.json", "c/lengths.svg", "c/time.svg"}) {
    EXPECT_FALSE(folder.read(name).empty()) << name;
  }
  const Outcome again = shell(command + "2>&1");
  EXPECT_EQ(again.status, 0) << again.out;
  EXPECT_TRUE(has(again, "2/2  dot | sparsemax: done before")) << again.out;
  const Outcome other = shell(command + "--seed 2 2>&1");
  EXPECT_EQ(other.status, 2);
  EXPECT_EQ(lines(other.out), 1) << other.out;
  EXPECT_TRUE(has(other, "training.seed is 1 there and 2 here")) << other.out;
}

TEST(CompareCommand, MistakesAreOneLineAndMakeNoFolder) {
  const Folder folder;
  for (const char* arguments : {"", "caption", "translate --mechanisms dto", "translate --budget 5",
                                "translate --where here", "translate --model nothing", "translate --builtin xx",
                                "translate --model transformer-tiny --mechanisms none"}) {
    const Outcome got = shell("cd " + folder.path() + " && $regard compare " + arguments + " 2>&1");
    EXPECT_EQ(got.status, 2) << arguments;
    EXPECT_EQ(lines(got.out), 1) << arguments << ": " << got.out;
  }
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace regard
