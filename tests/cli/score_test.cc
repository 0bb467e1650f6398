// regard score.
#include <gtest/gtest.h>

#include "support/folder.h"
#include "support/shell.h"

namespace regard {
namespace {

TEST(ScoreCommand, WritesALineAPairAndSaysWhatItLeftOut) {
  const Folder folder;
  folder.write("p.tsv", "他们在看。\tThey are watching.\n\tnothing\n小红在看。\tShe is watching.\n");
  const Outcome got =
      shell("cd " + folder.path() +
            " && $regard train translate --builtin zh-en --lines 40 --model gru-attention --hidden 16 --embedding 16 "
            "--tokenizer words --stop-after 2u --out m >/dev/null && $regard score -m m p.tsv > a 2> e && "
            "cut -f2 p.tsv | sed 2d > t && cut -f1 p.tsv | sed 2d > s && $regard score -m m s t --threads 1 > b && "
            "sed 2d a | cmp - b && sed -n 2p a && cat e && wc -l < a");
  EXPECT_EQ(got.status, 0) << got.out;
  EXPECT_TRUE(has(got, "nan\n")) << got.out;
  EXPECT_TRUE(has(got, "p.tsv:2")) << got.out;
  EXPECT_TRUE(has(got, "3\n")) << got.out;
}

TEST(ScoreCommand, MistakesAreOneLine) {
  for (const char* arguments :
       {"", "-m nothing", "-m nothing a b", "-m nothing a b c", "-m nothing a b --columns 1,2"}) {
    const Outcome got = shell(std::string("$regard score ") + arguments + " 2>&1");
    EXPECT_EQ(got.status, 2) << arguments;
    EXPECT_EQ(lines(got.out), 1) << got.out;
  }
}

}  // namespace
}  // namespace regard
