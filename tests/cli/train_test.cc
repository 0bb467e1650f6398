// `regard train translate` and `regard translate`, as their users type them.
#include <gtest/gtest.h>

#include "support/files.h"
#include "support/shell.h"

namespace regard {
namespace {

const std::string kSmall =
    " --tokenizer words --model gru-attention --hidden 24 --embedding 16 --batch-tokens 300 --best-by loss ";

std::string in(const Folder& folder, const std::string& command) { return "cd " + folder.path() + "; " + command; }

TEST(Train, WritesAModelThatTranslatesAndItsDiary) {
  const Folder folder;
  const Outcome made = shell(in(folder,
                                "$regard train translate --builtin zh-en --lines 80 --stop-after 4u "
                                "--report-every 2u --valid-every 4u --out m.model" +
                                    kSmall + "2>&1"));
  ASSERT_EQ(made.status, 0) << made.out;
  EXPECT_TRUE(has(made, "update 2  loss ")) << made.out;
  EXPECT_TRUE(has(made, "validation at update 4: loss ")) << made.out;
  EXPECT_TRUE(has(made, "BLEU")) << made.out;
  EXPECT_EQ(lines(shell(in(folder, "cat m.model.metrics.jsonl")).out), 3);
  const Outcome found =
      shell(in(folder, "printf '他们在看。\\n\\n你好\\n' | $regard translate -m m.model --beam 2 2>&1"));
  EXPECT_EQ(found.status, 0) << found.out;
  EXPECT_EQ(lines(found.out), 3) << found.out;
  EXPECT_TRUE(has(shell(in(folder, "echo 他们在看。 | $regard translate -m m.model --map")), "└") ||
              has(shell(in(folder, "echo 他们在看。 | $regard translate -m m.model --map")), "┌"));
  EXPECT_EQ(shell(in(folder, "$regard translate -m m.model < /dev/null")).out, "");
}

TEST(Train, AConfigFileSaysWhatTheCommandLineDoesNot) {
  const Folder folder;
  const Outcome made =
      shell(in(folder,
               "printf "
               "'\\357\\273\\277hidden=24\\nembedding=16\\ntokenizer=\"words\"\\nmodel=gru\\nstop-after=9u\\nbest-by="
               "loss\\n' > a.ini;"
               "$regard train translate --config a.ini --builtin en-fr --lines 60 --stop-after 2u --out m.model 2>&1"));
  EXPECT_EQ(made.status, 0) << made.out;
  EXPECT_TRUE(has(made, "Done after 2 updates")) << made.out;
  EXPECT_TRUE(has(made, "seq2seq")) << made.out;
}

TEST(Train, ARunThatIsAskedToStopSavesAndTheSameCommandGoesOn) {
  const Folder folder;
  const std::string command =
      "$regard train translate --builtin zh-en --lines 2000 --valid-every 1000u "
      "--report-every 1u --out ";
  const std::string rest = kSmall + "--stop-after 12u ";
  ASSERT_EQ(shell(in(folder, command + "straight" + rest)).status, 0);
  // The signal comes when the second report has been written. (A shell lets its jobs ignore Ctrl-C.)
  const Outcome stopped =
      shell(in(folder, "mkfifo pipe; " + command + "m" + rest +
                           "> pipe 2>&1 & job=$!; "
                           "{ while read -r line; do echo \"$line\"; case \"$line\" in *'update 2 '*) "
                           "kill -TERM $job;; esac; done; } < pipe; wait $job; echo \"status $?\""));
  EXPECT_TRUE(has(stopped, "status 143")) << stopped.out;
  EXPECT_TRUE(has(stopped, "--resume")) << stopped.out;
  const Outcome again = shell(in(folder, command + "m --resume" + rest + "2>&1"));
  EXPECT_EQ(again.status, 0) << again.out;
  EXPECT_EQ(shell(in(folder, "cmp straight m && cmp straight.ckpt m.ckpt")).status, 0) << stopped.out << again.out;
}

TEST(Train, WhatAModelHasNoRoomForIsLeftOutAndSaid) {
  const Folder folder;
  shell(
      in(folder,
         "$regard corpus zh-en --lines 60 > a.tsv; head -n 20 a.tsv > v.tsv; "
         "for i in $(seq 60); do printf 他们在看。; done > long; paste long long >> v.tsv; printf 'alone\n' >> v.tsv"));
  const Outcome made =
      shell(in(folder,
               "$regard train translate --train a.tsv --valid v.tsv --tokenizer words --model "
               "transformer-tiny --hidden 16 --ffn 16 --heads 2 --encoder-layers 1 --decoder-layers 1 "
               "--decoder-attention dense_synth:30 --positions learned --longest 50 --batch-tokens 200 "
               "--stop-after 3u --out m 2>&1"));
  EXPECT_EQ(made.status, 0) << made.out;
  EXPECT_TRUE(has(made, "It has room for 49 tokens of a source and 29 of a target: pairs with more than 29 on a side"))
      << made.out;
  EXPECT_TRUE(has(made, "v.tsv:22 (1 of 2)")) << made.out;  // has one column
  EXPECT_TRUE(has(made,
                  "longer than the model has room for (49 tokens of a source and 29 of a target), the first at "
                  "v.tsv:"))
      << made.out;
  // A long line is cut, whatever is asked for.
  const Outcome found = shell(in(folder, "$regard translate -m m --max-line 2000 < long 2>&1"));
  EXPECT_EQ(found.status, 0) << found.out;
  EXPECT_EQ(lines(found.out), 1);
  const Outcome given = shell(in(folder, "$regard translate -m m --force long < long 2>&1"));
  EXPECT_EQ(given.status, 2);
  EXPECT_TRUE(has(given, "the model has room for 49 tokens of a source and 29 of a target")) << given.out;
}

TEST(Train, ARunGoesOnWithItsOwnTextAndSettingsAlone) {
  const Folder folder;
  shell(in(folder, "$regard corpus zh-en --lines 60 > a.tsv; tac a.tsv > b.tsv; head -n 9 a.tsv > v.tsv"));
  const std::string command = "$regard train translate --resume --out m" + kSmall;
  const std::string first = "--train a.tsv --valid v.tsv --stop-after 4u --schedule cosine --warmup 2 ";
  ASSERT_EQ(shell(in(folder, command + first)).status, 0);
  for (const auto& [arguments, part] : std::initializer_list<std::pair<std::string, std::string>>{
           {first + "--dropout 0.5", ": model.dropout was \"0.2\", now it is \"0.5\"\n"},
           {"--train b.tsv --valid v.tsv --stop-after 4u --schedule cosine --warmup 2", ": text was \"60 pairs "},
           {"--train a.tsv --valid b.tsv --stop-after 4u --schedule cosine --warmup 2", ": validation was \"9 pairs "},
           {"--train a.tsv --stop-after 4u --schedule cosine --warmup 2", ": validation was \"9 pairs "},
           {"--train a.tsv --valid v.tsv --stop-after 9u --schedule cosine --warmup 2",
            ": training.stop_after was \"4u\", now "}}) {
    const Outcome refused = shell(in(folder, command + arguments + " 2>&1 >/dev/null"));
    EXPECT_EQ(refused.status, 2) << arguments;
    EXPECT_TRUE(has(refused, "'m.ckpt' is of a run with other settings" + part)) << refused.out;
  }
  EXPECT_EQ(shell(in(folder, command + first)).status, 0);
  EXPECT_TRUE(has(shell(in(folder, "$regard info m")), "13a"));  // what was chosen is told
  const Outcome alone = shell(in(folder, "rm m.ckpt; " + command + first + "2>&1 >/dev/null"));
  EXPECT_EQ(alone.status, 2);
  EXPECT_TRUE(has(alone, "'m' is there, but no 'm.ckpt' to go on from")) << alone.out;
}

TEST(Train, ReportsTellHowAttentionIsDoingAlsoWithoutValidation) {
  const Folder folder;
  shell(in(folder, "$regard corpus zh-en --lines 60 > a.tsv"));
  const auto trained = [&](const std::string& attention) {
    return shell(in(folder,
                    "rm -f m*; $regard train translate --train a.tsv --tokenizer words --model transformer-tiny "
                    "--hidden 16 --ffn 16 --heads 2 --encoder-layers 2 --decoder-layers 1 --batch-tokens 200 "
                    "--stop-after 1u --report-every 1u --out m " +
                        attention + " 2>&1"));
  };
  const Outcome usual = trained("");
  for (const char* name : {"attention_entropy 0", "encoder_entropy 0", "decoder_entropy 0", "dead_heads "}) {
    EXPECT_TRUE(has(usual, name)) << usual.out;
  }
  const Outcome blind = trained("--encoder-attention 'scaled_dot | uniform'");
  EXPECT_TRUE(has(blind, "dead_heads 4")) << blind.out;
  const Outcome blind_decoder = trained("--decoder-attention 'scaled_dot | uniform'");
  EXPECT_TRUE(has(blind_decoder, "decoder_entropy 1")) << blind_decoder.out;
}

TEST(Train, PipesTeachWhatFilesTeach) {
  const Folder folder;
  ASSERT_EQ(shell(in(folder, "$regard corpus zh-en --lines 60 > t.tsv; cut -f1 t.tsv > a; cut -f2 t.tsv > b")).status,
            0);
  const auto train = [&](const std::string& name, const std::string& data) {
    folder.write(name + ".sh",
                 "timeout 60 $regard train translate --stop-after 3u --valid-every 3u --out " + name + kSmall + data);
    const Outcome made = shell(in(folder, "export regard; bash " + name + ".sh 2>&1"));
    EXPECT_EQ(made.status, 0) << data << ": " << made.out;
    EXPECT_TRUE(has(made, "60 pairs; words: ")) << made.out;
    EXPECT_EQ(shell(in(folder, "cmp files " + name + " && cmp files.ckpt " + name + ".ckpt")).status, 0) << data;
  };
  train("files", "--train a b --valid t.tsv");
  train("two", "--train <(cat a) <(cat b) --valid <(cat t.tsv)");
  train("half", "--train <(gzip -c a) b --valid <(cat a) <(cat b)");
  ASSERT_EQ(shell(in(folder, "mkfifo pipe.tsv")).status, 0);
  train("named", "--train pipe.tsv --valid t.tsv & timeout 60 cp t.tsv pipe.tsv; wait $!");
}

TEST(Train, MistakesAreOneLineAndLeaveNothingBehind) {
  const Folder folder;
  for (const auto& [arguments, part] : std::initializer_list<std::pair<std::string, std::string>>{
           {"translate --out m", "--builtin"},
           {"parse --builtin zh-en --out m", "parse"},
           {"translate --builtin zh-xx --out m", "zh-xx"},
           {"translate --builtin zh-en --model gruu --out m", "did you mean 'gru'"},
           {"translate --builtin zh-en --rate much --out m", "rate is 'much'"},
           {"translate --builtin zh-en --dropout 1 --out m", "dropout"},
           {"translate --builtin zh-en --attention aditive --out m", "did you mean 'additive'"},
           {"translate --builtin zh-en --stop-after soon --out m", "stop_after"},
           {"translate --builtin zh-en --out none/m", "there is no folder"},
           {"translate --train none.tsv --out m", "none.tsv"},
           {"translate --builtin zh-en --model gru --encoder-attention dot --out m",
            "--encoder-attention is for transf"},
           {"translate --config none.ini --builtin zh-en --out m", "none.ini"},
           {"translate --train a b c --out m", "train"},
           {"translate --builtin zh-en --columns 1,2 --out m", "--columns is for files"},
           {"translate --builtin zh-en --out . --resume", "is a folder"},
           {"translate --builtin '' --out m", "--builtin is empty"},
           {"translate --builtin zh-en --out m --stop-after 2h30m", "'2h30m' is not one number with a unit; expected"},
           {"translate --builtin zh-en --out m --stop-after 0u", "'0u' is not more than 0 and at most 1e15; expected"},
           {"translate --builtin zh-en --out m --bleu words", "known: 13a, zh, char, intl, none"},
           {"translate --builtin zh-en --out m --seed 1 --seed 2", "--seed is said more than once"},
           {"translate --builtin zh-en --joint=abc --out m", "--joint: 'abc', expected true or false"}}) {
    const Outcome outcome = shell(in(folder, "$regard train " + arguments + " 2>&1"));
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_EQ(lines(outcome.out), 1) << outcome.out;
    EXPECT_TRUE(has(outcome, part)) << outcome.out;
    EXPECT_TRUE(folder.names().empty()) << arguments;
  }
  const Outcome setting =
      shell(in(folder, "echo hiden=3 > a.ini; $regard train translate --config a.ini --builtin zh-en --out m 2>&1"));
  EXPECT_EQ(setting.status, 2);
  EXPECT_TRUE(has(setting, "train: unknown setting 'hiden' in the file of --config; did you mean 'hidden'?"))
      << setting.out;
  const Outcome table =
      shell(in(folder, "printf 'one\\ntwo\\n' > a.tsv; $regard train translate --train a.tsv --out m 2>&1"));
  EXPECT_EQ(table.status, 2);
  EXPECT_TRUE(has(table, "a.tsv has no pair: 2 lines left out; a.tsv:1: ")) << table.out;
  EXPECT_EQ(shell(in(folder, "echo x > m; echo hello | $regard translate -m m 2>&1")).status, 2);
  EXPECT_EQ(shell(in(folder, "echo hello | $regard translate -m none 2>&1")).status, 2);
}

}  // namespace
}  // namespace regard
