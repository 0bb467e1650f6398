// `regard align`, `regard heads`, `regard eval align`: as their users run them.
#include <gtest/gtest.h>

#include "cli/two_directions.h"

namespace regard {
namespace {

class Align : public TwoDirections {
 protected:
  static void SetUpTestSuite() {
    TwoDirections::SetUpTestSuite();
    folder_->write("a.zh", "他们 在 看 。\n\n你 好\n");
    folder_->write("a.en", "They are watching .\nnobody\nhello\n");
    folder_->write("pairs.tsv", "他们在看。\tThey are watching.\n\n她笑了。\tShe laughed.\n");
  }
  static void refuses(const std::string& command, std::string_view part) {
    const Outcome outcome = in(command + " 2>&1 >/dev/null");
    EXPECT_EQ(outcome.status, 2) << command;
    EXPECT_EQ(lines(outcome.out), 1) << outcome.out;
    EXPECT_TRUE(has(outcome, part)) << command << ": " << outcome.out;
  }
};

TEST_F(Align, WritesALineAPairAndAnEmptyOneForWhatIsLeftOut) {
  const Outcome outcome = in("$regard align -m zh-en.model a.zh a.en 2>errors");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(lines(outcome.out), 3) << outcome.out;
  EXPECT_NE(outcome.out.find("\n\n"), std::string::npos) << outcome.out;
  EXPECT_EQ(in("$regard align -m zh-en.model a.zh a.en 2>/dev/null | grep -cE '^([0-9]+-[0-9]+ ?)+$'").out, "2\n");
  EXPECT_NE(folder_->read("errors").find("empty"), std::string::npos);
  EXPECT_EQ(in("$regard align -m zh-en.model -m en-zh.model --symmetrize union pairs.tsv 2>/dev/null | wc -l").out,
            "3\n");
  EXPECT_EQ(in("$regard align -m zh-en.model - < pairs.tsv 2>/dev/null | wc -l").out, "3\n");
  const Outcome empty_end = in("printf 'a\\tb\\n\\n\\n' | $regard align -m zh-en.model - 2>/dev/null | wc -l");
  EXPECT_EQ(empty_end.out, "3\n");
}

TEST_F(Align, KindsAndLevels) {
  const auto first = [](const std::string& options) {
    const Outcome outcome = in("$regard align -m zh-en.model " + options + " pairs.tsv 2>/dev/null | head -n 1");
    EXPECT_EQ(outcome.status, 0);
    return outcome.out;
  };
  const auto groups = [](const std::string& line) { return std::count(line.begin(), line.end(), ' ') + 1; };
  EXPECT_EQ(groups(first("--alignment soft")), 3);                // They | are | watching.
  EXPECT_EQ(groups(first("--alignment soft --level piece")), 4);  // and a mark
  EXPECT_EQ(groups(first("--alignment soft --level character")), 18);
  EXPECT_EQ(groups(first("--alignment soft --words blanks")), 3);
  EXPECT_EQ(first("--alignment soft --words blanks").find(','), std::string::npos);  // one Chinese word
  EXPECT_NE(first("--alignment spans").find(":"), std::string::npos);
  EXPECT_NE(first("--alignment 0.01"), first("--alignment 1"));
}

TEST_F(Align, AnswersDoNotDependOnBatchesOrThreads) {
  const std::string once = in("$regard corpus zh-en --lines 700 > c.tsv; $regard align -m zh-en.model c.tsv").out;
  EXPECT_EQ(lines(once), 700);
  EXPECT_TRUE(once == in("$regard align -m zh-en.model --batch-tokens 64 --threads 1 c.tsv").out);
  EXPECT_TRUE(once == in("cut -f1 c.tsv > c.zh; cut -f2 c.tsv > c.en; $regard align -m zh-en.model c.zh c.en").out);
}

TEST_F(Align, HeadsAreChosenAndWrittenIntoTheModels) {
  in("cp zh-en.model 1.model; cp en-zh.model 2.model; $regard corpus zh-en --lines 50 > d.tsv");
  const Outcome dry = in("$regard heads -m 1.model -m 2.model --dry-run d.tsv");
  EXPECT_EQ(dry.status, 0) << dry.out;
  EXPECT_TRUE(has(dry, "50 pairs; agreement with the other direction")) << dry.out;
  EXPECT_EQ(in("cmp zh-en.model 1.model && cmp en-zh.model 2.model").status, 0);
  EXPECT_EQ(in("$regard heads -m 1.model -m 2.model d.tsv").out, dry.out);
  EXPECT_TRUE(has(in("$regard info 1.model"), "\"alignment\"") || has(in("$regard info 1.model"), "alignment"));
  EXPECT_TRUE(has(in("$regard heads -m 1.model -m 2.model --dry-run d.tsv"), "chosen, as before"));
  EXPECT_TRUE(has(in("$regard heads -m 1.model --show 100 --dry-run d.tsv"), "a model of words")) << dry.out;
  EXPECT_EQ(lines(in("$regard heads -m 1.model --show 100 --dry-run d.tsv").out), 3 + 2 * 3 * 2);
}

TEST_F(Align, MistakesAreOneLine) {
  refuses("$regard align a.zh a.en", "--model");
  refuses("$regard align -m zh-en.model", "pairs");
  refuses("$regard align -m zh-en.model -m en-zh.model -m zh-en.model a.zh a.en", "3 models");
  refuses("$regard align -m none.model a.zh a.en", "none.model");
  refuses("$regard align -m a.zh a.zh a.en", "a.zh");
  refuses("$regard align -m zh-en.model a.zh none.en", "none.en");
  refuses("printf 'x\\n' > short; $regard align -m zh-en.model a.zh short", "short");
  refuses("$regard align -m zh-en.model --alignment harder a.zh a.en", "expected hard, soft, spans");
  refuses("$regard align -m zh-en.model --level words a.zh a.en", "expected word, character or piece");
  refuses("$regard align -m zh-en.model --words comma a.zh a.en", "'auto' or 'blanks'");
  refuses("$regard align -m zh-en.model --symmetrize intersect a.zh a.en", "did you mean 'intersection'");
  refuses("$regard align -m zh-en.model --layer 2 a.zh a.en", "layer 2, the model has 2");
  refuses("$regard align -m zh-en.model --head 2 a.zh a.en", "head 2, the model has 2");
  refuses("$regard align -m zh-en.model -m en-zh.model --alignment soft --separate a.zh a.en", "two models");
  refuses("printf '' > empty; $regard heads -m zh-en.model empty empty", "no pair");
}

TEST_F(Align, IsEvaluatedAgainstGold) {
  folder_->write("gold", "0-0 3-3 1p1\n0p1\n");
  folder_->write("found", "0-0 1-1 2-2\n0-1\n");
  const Outcome outcome = in("$regard eval align gold found");
  EXPECT_EQ(outcome.out, "precision 0.7500  recall 0.5000  AER 0.3333  (2 lines, 4 links found, 2 sure)\n");
  EXPECT_EQ(in("$regard eval align gold < found").out, outcome.out);
  EXPECT_EQ(in("printf '1-1 4-4 2p2\\n1p2\\n' | $regard eval align --one-based "
               "- found")
                .out,
            outcome.out);
  EXPECT_TRUE(has(in("$regard eval align gold found --json"), "\"recall\":0.5,"))
      << in("$regard eval align gold found --json").out;
  folder_->write("s", "a b c d\na\n");
  folder_->write("t", "a b c d\na b\n");
  EXPECT_EQ(in("$regard eval align gold found --texts s t").out, outcome.out);
  folder_->write("t", "a b c d\na\n");
  refuses("$regard eval align gold found --texts s t", "gold:2: link 0-1, the sentences have 1 and 1 words");
}

TEST_F(Align, BrokenGoldIsOneLine) {
  refuses("printf '0-0\\n0~0\\n' > g; printf '0-0\\n\\n' | $regard eval align g", "g:2: '0~0' is no link");
  refuses("printf '0-0\\n' > g; printf '0-0\\n\\n' | $regard eval align g", "differ in length: 1 lines");
  refuses("printf '0-0\\n' > g; printf '0p0\\n' | $regard eval align g", "possible");
  refuses("printf '0-0\\n' | $regard eval align - -", "both the standard input");
  refuses("printf '0-0\\n' > g; printf '0-0\\n' | $regard eval align --one-based g", "'0-0' is no link");
  refuses("$regard eval align", "gold");
  refuses("$regard eval", "");
}

}  // namespace
}  // namespace regard
