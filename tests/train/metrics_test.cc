#include "train/metrics.h"

#include <gtest/gtest.h>

#include "regard/error.h"
#include "support/error_of.h"
#include "support/files.h"

namespace regard {
namespace {

TEST(Metrics, EachLineIsThereAtOnce) {
  const Folder folder;
  Metrics metrics(disk(), folder / "m");
  EXPECT_EQ(metrics.length(), 0);
  EXPECT_FALSE(metrics.last("seconds").has_value());
  metrics.write(R"({"a":1})");
  EXPECT_EQ(read_file(disk(), folder / "m"), "{\"a\":1}\n");
  metrics.write(R"({"a":2,"seconds":1.5})");
  EXPECT_EQ(metrics.length(), disk().size(folder / "m").value);
  EXPECT_EQ(metrics.last("seconds"), 1.5);
  EXPECT_FALSE(metrics.last("b").has_value());
}

TEST(Metrics, AreCutToWhatACheckpointKnows) {
  const Folder folder;
  {
    Metrics metrics(disk(), folder / "m");
    metrics.write("{\"a\":1}");
    metrics.write("{\"a\":2}");
  }
  Metrics metrics(disk(), folder / "m");
  EXPECT_FALSE(metrics.cut(17));
  EXPECT_EQ(metrics.length(), 16);
  EXPECT_TRUE(metrics.cut(8));
  metrics.write("{\"a\":3}");
  EXPECT_EQ(read_file(disk(), folder / "m"), "{\"a\":1}\n{\"a\":3}\n");
}

TEST(Metrics, TwoRunsCannotWriteOneDiary) {
  const Folder folder;
  const Metrics metrics(disk(), folder / "m");
  EXPECT_NE(error_of([&] { Metrics(disk(), folder / "m"); }).find("another process is writing it"), std::string::npos);
}

TEST(Metrics, AFullDiskIsAnError) {
  const Folder folder;
  FailingFiles files(disk());
  Metrics metrics(files, folder / "m");
  files.first_failing = files.calls;
  files.error = ENOSPC;
  EXPECT_NE(error_of([&] { metrics.write("{}"); }).find("No space left"), std::string::npos);
  EXPECT_THROW(Metrics(disk(), folder / "no/m"), Error);
}

TEST(Metrics, NumbersOfTheClockAreAlwaysAsLong) {
  for (const double value : {0.0, 1.0, 1234567.8912, -1.0, 1e300, -1e300, 0.0 / 0.0}) {
    EXPECT_EQ(clock_number(value).size(), 13u) << value;
  }
  EXPECT_EQ(clock_number(1.5), "        1.500");
}

}  // namespace
}  // namespace regard
