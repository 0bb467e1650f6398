// regard list and regard docs, as their users meet them.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "support/paths.h"
#include "support/shell.h"

namespace {

using regard::has;
using regard::lines;
using regard::Outcome;
using regard::shell;

TEST(List, HasALineForEveryMechanism) {
  const Outcome all = shell("$regard list");
  EXPECT_EQ(all.status, 0);
  EXPECT_EQ(lines(all.out), 37) << all.out;  // one is the head
  EXPECT_TRUE(has(all, "\nadditive                 score   vᵀ tanh(W_q q + W_k k + b) ")) << all.out;
  long parts = 0;
  for (const char* family : {"score", "scope", "align", "read"}) {
    const Outcome some = shell(std::string("$regard list --family ") + family);
    EXPECT_EQ(some.status, 0);
    EXPECT_GT(lines(some.out), 3) << some.out;
    parts += lines(some.out) - 1;
  }
  EXPECT_EQ(parts, lines(all.out) - 1);
}

TEST(List, TellsWhatALineMeans) {
  EXPECT_EQ(shell("$regard list --line 'rotary(scaled_dot) | local_m:64 & causal | softmax:0.5'").out,
            "rotary(scaled_dot) | causal & window:64 | softmax:temperature=0.5 | sum\n"
            "  score  rotary          the score of q and k turned by their positions; base 10000 (Su et al. 2021)\n"
            "           scaled_dot      qᵀk/√d (Vaswani et al. 2017)\n"
            "  scope  causal          j ≤ i (Vaswani et al. 2017)\n"
            "  scope  window          |j − i| ≤ distance; distance 64 (Beltagy et al. 2020)\n"
            "  align  softmax         p = exp(e/T)/Σ exp(e/T); temperature 0.5 (Bahdanau et al. 2015)\n"
            "  read   sum             Σ_j p_j v_j\n");
}

TEST(List, SpeaksJson) {
  const Outcome line = shell("$regard list --json --line 'random_synth:9,fixed | window:2'");
  EXPECT_EQ(line.status, 0);
  EXPECT_TRUE(line.out.starts_with(R"({"line": "random_synth:9,fixed | window:2 | softmax | sum", "parts": [{"name": )"
                                   R"("random_synth", "family": "score", )"))
      << line.out;
  EXPECT_TRUE(has(line, R"("values": {"length": 9, "learning": "fixed"}, "inner": []})")) << line.out;
  EXPECT_EQ(lines(line.out), 1);
  const Outcome all = shell("$regard list --json");
  EXPECT_EQ(lines(all.out), 36) << all.out;
  EXPECT_TRUE(all.out.starts_with("[{\"name\": \"additive\"") && all.out.ends_with("}]\n")) << all.out;
}

TEST(List, ExplainsWhatALineCosts) {
  const Outcome told =
      shell("$regard list --threads 1 --explain 'scaled_dot | causal | sparsemax' --shape 2,4,100,100,20");
  EXPECT_EQ(told.status, 0);
  EXPECT_TRUE(
      told.out.starts_with("scaled_dot | causal | sparsemax | sum\n"
                           "  shape    batch 2, heads 4, queries 100, keys 100, width 20\n"
                           "  kernels  product tiles; whole rows; "))
      << told.out;
  EXPECT_TRUE(has(told,
                  ", 1 thread\n  pairs    40400 of 80000 are seen\n"
                  "  work     3.23 Mflop forward, 8.08 Mflop backward\n  memory   "))
      << told.out;
  EXPECT_TRUE(has(told, "  slower   sparsemax needs whole rows: ")) << told.out;
  EXPECT_TRUE(has(told, "  slower   width 20 is no multiple of 16: ")) << told.out;
  EXPECT_TRUE(
      has(shell("$regard list --explain 'scaled_dot | causal'"), "  slower   nothing: this is the fastest path"));
  EXPECT_TRUE(has(shell("$regard list --explain 'dot | mask'"), "which are seen, the call says"));
  const Outcome json = shell("$regard list --json --explain additive --shape 1,2,9,9,16");
  EXPECT_EQ(lines(json.out), 1);
  EXPECT_TRUE(json.out.starts_with(R"({"line": "additive | global | softmax | sum", "batch": 1, "heads": 2, )"
                                   R"("queries": 9, "keys": 9, "width": 16, "score": "additive tiles", )"))
      << json.out;
  EXPECT_TRUE(has(json, R"("whole_rows": false, "slower": ["additive is no matrix product: additive tiles"])"))
      << json.out;
  EXPECT_TRUE(has(json, R"("visible_pairs": 162, )")) << json.out;
}

TEST(List, MistakesAreOneLine) {
  for (const auto& [arguments, words] :
       {std::pair("--line 'aditive | causal'",
                  "regard: unknown score 'aditive' in \"aditive | causal\"; did you mean "
                  "'additive'? known: additive, "),
        std::pair("--line ''", "regard: list: --line is empty, expected a value"),
        std::pair("--line ' '", "regard: expected a score, got nothing in"),
        std::pair("--family scroe", "regard: unknown family 'scroe'; did you mean 'score'?"),
        std::pair("--explain dot --line dot", "regard: list: "), std::pair("--shape 1,2,3,4,5", "regard: list: "),
        std::pair("--explain dot --shape 1,2,3,4", "regard: list: "),
        std::pair("--explain dot --shape 1,2,0,4,5", "regard: list: --shape has 0, expected five numbers from 1 on"),
        std::pair("--explain location:4", "regard: attend: location:4 is made for at most 4 positions"),
        std::pair("--family read --line dot", "regard: list: ")}) {
    const Outcome outcome = shell(std::string("$regard list ") + arguments + " 2>&1 >/dev/null");
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_EQ(lines(outcome.out), 1) << outcome.out;
    EXPECT_TRUE(outcome.out.starts_with(words)) << outcome.out;
  }
}

TEST(Docs, MechanismsAreWhatTheProgramSays) {
  std::ifstream file(regard::source_path("/docs/mechanisms.md"));
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const Outcome made = shell("$regard docs mechanisms");
  EXPECT_EQ(made.status, 0);
  EXPECT_GT(lines(made.out), 50);
  EXPECT_TRUE(page == made.out) << "stale: regard docs mechanisms > docs/mechanisms.md";
}

TEST(Docs, UnknownPagesAreOneLine) {
  const Outcome outcome = shell("$regard docs mecanisms 2>&1 >/dev/null");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "regard: docs: unknown page 'mecanisms'; did you mean 'mechanisms'? (pages: mechanisms)\n");
  EXPECT_EQ(shell("$regard docs 2>&1 >/dev/null").out, "regard: docs: which page? (pages: mechanisms)\n");
}

}  // namespace
