// regard probe.
#include <gtest/gtest.h>

#include "support/folder.h"
#include "support/shell.h"

namespace regard {
namespace {

TEST(ProbeCommand, PrintsNumbersAndDraws) {
  const Folder folder;
  const Outcome got = shell("cd " + folder.path() +
                            " && $regard probe gradient --length 10 --width 8 --svg g.svg && $regard probe saturation "
                            "--widest 16 --svg s.svg && $regard probe order --svg o.svg --threads 1");
  EXPECT_EQ(got.status, 0) << got.out;
  EXPECT_TRUE(has(got, "attention")) << got.out;
  EXPECT_TRUE(has(got, "entropy, 1/√d")) << got.out;
  EXPECT_TRUE(has(got, "sinusoids")) << got.out;
  for (const char* name : {"g.svg", "s.svg", "o.svg"}) EXPECT_EQ(folder.read(name).find("<svg"), 0u) << name;
}

TEST(ProbeCommand, MistakesAreOneLine) {
  for (const char* arguments : {"", "gradeint", "errors", "errors -m nothing", "gradient --length 1",
                                "order --svg no/where", "saturation --kyes 4"}) {
    const Outcome got = shell(std::string("$regard probe ") + arguments + " 2>&1");
    EXPECT_EQ(got.status, 2) << arguments;
    EXPECT_EQ(lines(got.out), 1) << arguments << ": " << got.out;
  }
}

}  // namespace
}  // namespace regard
