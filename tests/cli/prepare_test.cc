// regard prepare, as its users meet it.
#include <gtest/gtest.h>

#include <string>

#include "data/tokenizer.h"
#include "data/train_pieces.h"
#include "support/folder.h"
#include "support/shell.h"

#if REGARD_TEXT_LIBRARIES
namespace {

using regard::has;
using regard::lines;
using regard::Outcome;
using regard::shell;

TEST(Prepare, TellsWhatIsInTheDataAndWritesVocabularies) {
  const regard::Folder folder;
  std::string source, target;
  for (int i = 0; i < 200; ++i) {
    source += i == 7 ? "\n" : "he reads book number " + std::to_string(i % 20) + (i % 3 == 0 ? " today .\n" : " .\n");
    target += i == 9 ? "\xFF\n" : "il lit le livre " + std::to_string(i % 20) + " .\n";
  }
  folder.write("a.en", source);
  folder.write("a.fr", target);
  const std::string files = folder / "a.en" + " " + folder / "a.fr";
  const Outcome made = shell("$regard prepare --train " + files + " --tokenizer words --vocabulary 20 --out " +
                             folder / "out" + " 2>&1");
  EXPECT_EQ(made.status, 0) << made.out;
  EXPECT_TRUE(has(made, "pairs   198 of ")) << made.out;
  EXPECT_TRUE(has(made, "1 line left out: empty: " + folder / "a.en" + ":8\n")) << made.out;
  EXPECT_TRUE(has(made, "1 line left out: not UTF-8: " + folder / "a.fr" + ":10 (byte 1)\n")) << made.out;
  EXPECT_TRUE(has(made, "vocabulary 20 of which 16 occur")) << made.out;
  EXPECT_TRUE(has(made, "unknown most often: ")) << made.out;
  EXPECT_TRUE(has(made, "Tokens of a source sentence\n")) << made.out;
  EXPECT_TRUE(has(made, "source.vocabulary (")) << made.out;
  EXPECT_EQ(regard::Tokenizer::from(folder.read("out/source.vocabulary"))->size(), 20);
  EXPECT_EQ(regard::Tokenizer::from(folder.read("out/target.vocabulary"))->kind(), "words");
  for (const char* name : {"out/lengths.svg", "out/scatter.svg"}) {
    EXPECT_TRUE(folder.read(name).starts_with("<svg ")) << name;
    EXPECT_TRUE(folder.read(name).ends_with("</svg>\n")) << name;
  }
  // The same again, with one thread: the same bytes.
  const Outcome again = shell("$regard prepare --threads 1 --train " + files +
                              " --tokenizer words --vocabulary 20 --out " + folder / "two" + " 2>&1");
  EXPECT_EQ(again.status, 0);
  for (const char* name : {"source.vocabulary", "lengths.svg", "scatter.svg"}) {
    EXPECT_EQ(folder.read(std::string("out/") + name), folder.read(std::string("two/") + name));
  }
}

TEST(Prepare, ReadsTheStandardInput) {
  const Outcome made =
      shell("$regard corpus zh-en --lines 300 | $regard prepare --train - --tokenizer characters --joint 2>&1");
  EXPECT_EQ(made.status, 0) << made.out;
  EXPECT_TRUE(has(made, "pairs   300 of the standard input\n")) << made.out;
  EXPECT_TRUE(has(made, "100.00 % of the tokens are known")) << made.out;
}

TEST(Prepare, ReadsPipesAsItReadsFiles) {
  const regard::Folder folder;
  folder.write("a", "one two\n\nthree\n");
  folder.write("b", "un deux\nx\ntrois\n");
  const auto told = [&](const std::string& files) {
    folder.write("run.sh", "cd " + folder.path() + "; timeout 20 $regard prepare --tokenizer words --train " + files);
    const Outcome made = shell("export regard; bash " + folder / "run.sh" + " 2>&1");
    EXPECT_EQ(made.status, 0) << files << ": " << made.out;
    EXPECT_TRUE(has(made, "pairs   2 of ")) << made.out;
    EXPECT_TRUE(has(made, "1 line left out: empty: ")) << made.out;
    EXPECT_TRUE(has(made, "vocabulary 7 of which 3 occur; 100.00 % of the tokens are known")) << made.out;
  };
  told("a b");
  told("<(cat a) <(cat b)");
  told("<(paste a b)");
  told("<(gzip -c a) b");
  EXPECT_EQ(shell("mkfifo " + folder / "pipe.tsv").status, 0);
  told("pipe.tsv & paste a b | timeout 20 cp /dev/stdin pipe.tsv; wait $!");
  told("- < <(paste a b)");
}

TEST(Prepare, AWaitForAPipeCanBeEnded) {
  const regard::Folder folder;
  const Outcome ended = shell("cd " + folder.path() +
                              "; mkfifo pipe; timeout 20 $regard prepare --train pipe --tokenizer words 2>&1 & job=$!; "
                              "sleep 0.5; kill -TERM $job; wait $job; echo status $?");
  EXPECT_TRUE(has(ended, "status 143")) << ended.out;
}

TEST(Prepare, LearnsPieces) {
  if (regard::find_pieces_module() == nullptr) GTEST_SKIP() << "SentencePiece was not there when this was built";
  const regard::Folder folder;
  const Outcome made = shell(
      "$regard corpus zh-en --lines 2000 | $regard prepare --train - --tokenizer pieces --vocabulary 1200 --lower "
      "--joint "
      "--byte-fallback --out " +
      folder / "out" + " 2>&1");
  EXPECT_EQ(made.status, 0) << made.out;
  const auto pieces = regard::Tokenizer::from(folder.read("out/joint.vocabulary"));
  EXPECT_EQ(pieces->size(), 1200);
  EXPECT_EQ(pieces->decode(pieces->ids("They are watching.")), "they are watching.");
}

TEST(Prepare, MistakesAreOneLine) {
  const regard::Folder folder;
  folder.write("a", "1\n2\n");
  folder.write("b", "1\n");
  folder.write("empty", "");
  const std::string a = folder / "a", b = folder / "b", empty = folder / "empty";
  const auto mistake = [&](const std::string& arguments, const std::string& part) {
    const Outcome outcome = shell("$regard prepare " + arguments + " 2>&1 >/dev/null");
    EXPECT_EQ(outcome.status, 2) << arguments << ": " << outcome.out;
    EXPECT_EQ(lines(outcome.out), 1) << outcome.out;
    EXPECT_TRUE(has(outcome, part)) << outcome.out;
  };
  mistake("", "--train");
  mistake("--train " + a + " " + b + " --tokenizer words", "ends after line 1");
  mistake("--train " + folder / "none.tsv" + " --tokenizer words", "No such file");
  mistake("--train " + empty + " --tokenizer words", empty + " has no pair");
  mistake("--train " + a + " " + a + " --tokenizer word", "--tokenizer");
  mistake("--train " + a + " " + a + " --tokenizer words --vocabulary 3", "vocabulary may have");
  mistake("--train " + a + " " + a + " --tokenizer characters --dictionary " + b, "dictionary is for words");
  mistake("--train " + a + " --columns 0,1 --tokenizer words", "--columns");
  mistake("--train " + a + " --columns 1 --tokenizer words", "--columns");
  if (regard::find_pieces_module() != nullptr) {
    folder.write("many", "abcdefghijklmnopqrstuvwxyz\n");
    const std::string many = folder / "many";
    mistake("--train " + many + " " + many + " --vocabulary 10", "their characters alone take");
  }
  mistake("--train " + a + " " + a + " " + a + " --tokenizer words", "");
  mistake("--train " + a + " " + a + " --tokenizer words --out " + a + "/x", "folder");
}

}  // namespace
#endif
