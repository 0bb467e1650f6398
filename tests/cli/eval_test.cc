// regard eval translate.
#include <gtest/gtest.h>

#include "support/folder.h"
#include "support/shell.h"

namespace regard {
namespace {

TEST(EvalCommand, ScoresTranslationsThatAreGiven) {
  const Folder folder;
  folder.write("s", "他们在看。\n我很好。\n");
  folder.write("t", "They are watching the birds.\nI am fine.\n");
  folder.write("h", "They are watching the birds.\nI was fine.\n");
  const Outcome got =
      shell("cd " + folder.path() + " && $regard eval translate --test s t --hypotheses h --svg x.svg --json x.json");
  EXPECT_EQ(got.status, 0) << got.out;
  EXPECT_TRUE(has(got, "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:regard-")) << got.out;
  EXPECT_TRUE(has(got, "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:regard-")) << got.out;
  EXPECT_TRUE(has(got, "exact 1 of 2 (50.0 %)")) << got.out;
  EXPECT_TRUE(has(got, "1–10          2")) << got.out;
  EXPECT_EQ(folder.read("x.svg").find("<svg"), 0u);
  EXPECT_EQ(folder.read("x.json").find("{\"sentences\":2,\"exact\":1,"), 0u);
}

TEST(EvalCommand, TrainsEvaluatesAndWritesTheSameOnAnyNumberOfThreads) {
  const Folder folder;
  const Outcome made = shell("cd " + folder.path() +
                             " && $regard train translate --builtin zh-en --lines 40 --model gru-attention --hidden 16 "
                             "--embedding 16 --tokenizer words --stop-after 2u --out m >/dev/null && for n in 1 2; do "
                             "$regard eval translate -m m --builtin zh-en --sentences 20 --beam 2 --out h$n --threads "
                             "$n > o$n; done; cmp h1 h2 && cmp o1 o2 && wc -l < h1 && cat o1");
  EXPECT_EQ(made.status, 0) << made.out;
  EXPECT_TRUE(has(made, "20\n")) << made.out;
  EXPECT_TRUE(has(made, "perplexity")) << made.out;
}

TEST(EvalCommand, MistakesAreOneLine) {
  const Folder folder;
  folder.write("s", "a\n");
  const auto mistake = [&](const std::string& arguments, const std::string& part) {
    const Outcome got = shell("cd " + folder.path() + " && $regard eval " + arguments + " 2>&1");
    EXPECT_EQ(got.status, 2) << arguments;
    EXPECT_EQ(lines(got.out), 1) << got.out;
    EXPECT_TRUE(has(got, part)) << arguments << ": " << got.out;
  };
  mistake("", "eval: what is to be evaluated? expected align or translate");
  mistake("tranlsate", "unknown argument 'tranlsate'");
  mistake("translate --tset s", "unknown option '--tset'; did you mean '--test'?");
  mistake("translate --test s s", "expected a model (-m) or translations to score");
  mistake("translate --hypotheses s", "expected either --test with one or two files, or --builtin");
  mistake("translate --hypotheses s --test s s --bleu 14", "unknown tokenizer '14'");
  mistake("translate -m s --test s s", "s");
  mistake("translate --hypotheses s --test s s --svg no/where", "cannot create 'no/where.tmp'");
  mistake("translate --hypotheses s --builtin xx-en", "xx");
}

}  // namespace
}  // namespace regard
