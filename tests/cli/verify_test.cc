// regard verify, as its users meet it.
#include <gtest/gtest.h>

#include <cctype>
#include <string>

#include "support/shell.h"

namespace {

using regard::has;
using regard::lines;
using regard::Outcome;
using regard::shell;

TEST(Verify, OfOneOperationSaysThatAllIsWell) {
  const Outcome outcome = shell("$regard verify --op softmax");
  EXPECT_EQ(outcome.status, 0) << outcome.out;
  EXPECT_EQ(lines(outcome.out), 3) << outcome.out;
  EXPECT_TRUE(has(outcome, "\nsoftmax ")) << outcome.out;
  EXPECT_TRUE(has(outcome, " ok\n")) << outcome.out;
}

TEST(Verify, OfEverythingListsEveryOperation) {
  const Outcome outcome = shell("$regard verify");
  EXPECT_EQ(outcome.status, 0) << outcome.out;
  for (const char* name : {"\nmatmul ", "\ngelu_tanh ", "\nrecurrence ", "\nattend ", " of 42 operations: all agree"}) {
    EXPECT_TRUE(has(outcome, name)) << name << outcome.out;
  }
}

TEST(Verify, UnknownNamesAreOneLineThatListsTheKnown) {
  const Outcome operation = shell("$regard verify --op softmacks 2>&1 >/dev/null");
  EXPECT_EQ(operation.status, 2);
  EXPECT_EQ(lines(operation.out), 1);
  EXPECT_TRUE(has(operation, "'softmacks'") && has(operation, "log_softmax")) << operation.out;
  const Outcome target = shell("$regard verify --target mmx 2>&1 >/dev/null");
  EXPECT_EQ(target.status, 2);
  EXPECT_EQ(lines(target.out), 1);
  EXPECT_TRUE(has(target, "'mmx'")) << target.out;
}

TEST(Verify, HashIsTheSameForAnyThreadCount) {
  const Outcome one = shell("$regard verify --hash --threads 1"), three = shell("$regard verify --hash --threads 3");
  EXPECT_EQ(one.status, 0);
  ASSERT_EQ(one.out.size(), 33u) << one.out;
  for (std::size_t i = 0; i < 32; ++i) EXPECT_TRUE(std::isxdigit(static_cast<unsigned char>(one.out[i]))) << one.out;
  EXPECT_EQ(one.out, three.out);
  EXPECT_NE(shell("$regard verify --hash --op matmul").out, one.out);
}

}  // namespace
