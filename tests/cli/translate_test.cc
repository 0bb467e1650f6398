// `regard translate` as its users meet it: at a prompt, in a pipe, with lines that nobody should write.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "support/files.h"
#include "support/paths.h"
#include "support/shell.h"
#include "tasks/alignment.h"

namespace regard {
namespace {

class Translate : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new Folder;
    const Outcome trained =
        run("$regard train translate --builtin zh-en --lines 60 --tokenizer words --model gru-attention --hidden 16 "
            "--embedding 12 --batch-tokens 300 --stop-after 12u --valid-every 100u --rate 0.01 --out m.model 2>&1");
    ASSERT_EQ(trained.status, 0) << trained.out;
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static Outcome run(const std::string& command) { return shell("cd '" + *folder_ / "" + "' && { " + command + "; }"); }
  static std::string file(const std::string& name) { return *folder_ / name; }
  static std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> all;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }

 private:
  inline static Folder* folder_ = nullptr;
};

TEST_F(Translate, WordsOfTheCommandLineAreTranslatedAtOnce) {
  const Outcome words = run("$regard translate -m m.model '他们在看。'");
  const Outcome line = run("echo '他们在看。' | $regard translate -m m.model");
  EXPECT_EQ(words.status, 0);
  EXPECT_EQ(lines(words.out), 1);
  EXPECT_EQ(words.out, line.out);
}

TEST_F(Translate, WordsAndAFileAreTooMuch) {
  const Outcome both = run("echo x > file; $regard translate -m m.model --input file '他们在看。' 2>&1");
  EXPECT_EQ(both.status, 2);
  EXPECT_EQ(both.out, "regard: translate: words and --input file, expected one of them\n");
}

TEST_F(Translate, WhatIsSaidOfALineThatIsTooLongIsTheLimit) {
  const Outcome outcome = run("head -c 1100000 /dev/zero | tr '\\0' a | $regard translate -m m.model 2>&1");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(has(outcome, "a line of 1100000 bytes, expected at most 1048576: left empty")) << outcome.out;
}

TEST_F(Translate, ALineInALineOutInOrder) {
  run("$regard corpus zh-en --lines 700 --seed 3 | cut -f1 > many; sed -i '100s/.*//; 600s/.*//' many");
  const std::vector<std::string> all = split(run("$regard translate -m m.model --beam 1 < many").out);
  ASSERT_EQ(all.size(), 700u);
  EXPECT_EQ(all[99], "");
  EXPECT_EQ(all[599], "");
  for (const int number : {1, 99, 101, 512, 513, 700}) {
    const Outcome alone = run("sed -n " + std::to_string(number) + "p many | $regard translate -m m.model --beam 1");
    EXPECT_EQ(alone.out, all[static_cast<std::size_t>(number) - 1] + "\n") << number;
  }
  EXPECT_EQ(run("gzip -k many; $regard translate -m m.model --beam 1 --input many.gz --threads 1").out,
            run("$regard translate -m m.model --beam 1 --input many --batch-tokens 100").out);
}

TEST_F(Translate, SeveralOfALineAreNumberedAndScored) {
  const Outcome best = run("printf '他们在看。\\n\\n你好\\n' | $regard translate -m m.model --beam 4 --n-best 3");
  const std::vector<std::string> all = split(best.out);
  ASSERT_EQ(all.size(), 7u) << best.out;
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(all[static_cast<std::size_t>(i)].starts_with("0 ||| ")) << best.out;
  EXPECT_TRUE(all[3].starts_with("1 |||  ||| ")) << best.out;
  EXPECT_TRUE(all[6].starts_with("2 ||| ")) << best.out;
  const Outcome two = run("$regard translate -m m.model -m m.model 他们在看。 --scores");
  const Outcome one = run("$regard translate -m m.model 他们在看。 --scores");
  EXPECT_EQ(two.out.substr(0, two.out.find(" ||| ")), one.out.substr(0, one.out.find(" ||| ")));
}

TEST_F(Translate, WhatIsGivenHasTheScoreThatItWasFoundWith) {
  run("$regard corpus zh-en --lines 20 --seed 4 | cut -f1 > some");
  const std::vector<std::string> found = split(run("$regard translate -m m.model --scores < some").out);
  run("$regard translate -m m.model < some > given");
  const std::vector<std::string> forced = split(run("$regard translate -m m.model --scores --force given < some").out);
  ASSERT_EQ(found.size(), 20u);
  ASSERT_EQ(forced.size(), 20u);
  const auto text = [](const std::string& line) { return line.substr(0, line.find(" ||| ")); };
  const auto score = [](const std::string& line) { return std::stod(line.substr(line.find(" ||| ") + 5)); };
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(text(found[i]), text(forced[i]));
    EXPECT_NEAR(score(found[i]), score(forced[i]), 2e-4);
  }
  const Outcome fewer = run("head -3 given > few; $regard translate -m m.model --force few < some 2>&1 >/dev/null");
  EXPECT_EQ(fewer.status, 2);
  EXPECT_TRUE(has(fewer, "few has 3 lines, the input more")) << fewer.out;
}

TEST_F(Translate, AlignmentsFollowTheTranslation) {
  const Outcome best = run("$regard translate -m m.model 他们在看。 --alignment hard --scores --n-best 2");
  for (const std::string& line : split(best.out)) {
    const std::size_t first = line.find(" ||| "), second = line.find(" ||| ", first + 5),
                      third = line.find(" ||| ", second + 5);
    ASSERT_NE(third, std::string::npos) << line;
    const std::string links = line.substr(second + 5, third - second - 5);
    EXPECT_EQ(links.find_first_not_of("0123456789- "), std::string::npos) << line;
    EXPECT_NE(links.find('-'), std::string::npos) << line;
  }
  run("$regard translate -m m.model 他们在看。 > given; echo 他们在看。 > asked");
  const std::string forced = run("$regard translate -m m.model --force given --alignment soft < asked").out;
  EXPECT_EQ(forced, run("$regard translate -m m.model --alignment soft < asked").out);
  EXPECT_EQ(run("$regard translate -m m.model x --alignment sometimes 2>&1").status, 2);
}

TEST_F(Translate, MapsAreThoseThatTheModelSaysShowTheAlignment) {
  run("cp m.model said.model");
  store_choice(file("said.model"), {.layer = 0, .head = 0, .shift = 1});
  const auto rows = [](const std::string& model) {  // the weights behind the labels
    std::vector<std::string> found;
    for (const std::string& line : split(run("$regard translate --map 他们在看。 -m " + model).out)) {
      if (const std::size_t at = line.find("│"); at != std::string::npos) found.push_back(line.substr(at));
    }
    return found;
  };
  const std::vector<std::string> usual = rows("m.model"), said = rows("said.model");
  ASSERT_GT(usual.size(), 2u);
  ASSERT_EQ(said.size(), usual.size());
  EXPECT_NE(said, usual);
  for (std::size_t i = 0; i + 1 < usual.size(); ++i) EXPECT_EQ(said[i], usual[i + 1]) << i;
  const Outcome none = run("$regard translate -m m.model --map --layer 1 他们在看。 2>&1");
  EXPECT_EQ(none.status, 2);
  EXPECT_TRUE(has(none, "layer 1, the model has 1 (0 to 0)")) << none.out;
}

TEST_F(Translate, SamplesAreTheSameForTheSameSeed) {
  const std::string command = "$regard translate -m m.model --top-k 20 --n-best 4 他们在看。 --seed ";
  EXPECT_EQ(run(command + "1").out, run(command + "1").out);
  EXPECT_NE(run(command + "1").out, run(command + "2").out);
}

TEST_F(Translate, BrokenLinesAreSaidAndTheOthersUntouched) {
  const std::string good = run("echo 他们在看。 | $regard translate -m m.model").out;
  const Outcome broken =
      run("printf '他们在看。\\n\\377\\376\\n他\\000们\\n他们在看。\\n' | $regard translate -m m.model 2>said");
  EXPECT_EQ(broken.status, 0);
  EXPECT_EQ(lines(broken.out), 4);
  EXPECT_TRUE(broken.out.starts_with(good) && broken.out.ends_with(good)) << broken.out;
  const Outcome said = run("cat said");
  EXPECT_TRUE(has(said, "input:2: 2 bytes are no UTF-8")) << said.out;
  EXPECT_TRUE(has(said, "input:3: 1 byte is no UTF-8 or NUL")) << said.out;
  const Outcome huge =
      run("{ echo 他们在看。; head -c 10000000 /dev/zero | tr '\\0' a; echo; echo 他们在看。; } | "
          "$regard translate -m m.model 2>said");
  EXPECT_EQ(huge.status, 1);
  EXPECT_EQ(huge.out, good + "\n" + good);
  EXPECT_TRUE(has(run("cat said"), ":2: a line of 10000000 bytes"));
}

TEST_F(Translate, WrongRequestsAreOneLineAndStatus2) {
  run("echo nonsense > bad.model");
  for (const char* options :
       {"-m none.model", "-m bad.model", "-m m.model --beam 0", "-m m.model --n-best 9 --beam 2", "-m m.model --bean 2",
        "-m m.model --top-p 2", "-m m.model --temperature 0", "-m m.model --input none", "-m m.model --layer 5 --map x",
        "-m m.model --force none < /dev/null", "-m", "-m ''", "-m m.model --sample --force m.model"}) {
    const Outcome result = run(std::string("echo x | $regard translate ") + options + " 2>&1 >/dev/null");
    EXPECT_EQ(result.status, 2) << options;
    EXPECT_EQ(lines(result.out), 1) << options << ": " << result.out;
    EXPECT_TRUE(result.out.starts_with("regard: ")) << result.out;
  }
  const Outcome box = run("mkdir -p empty; REGARD_MODELS=empty $regard translate 他们 2>&1");
  EXPECT_EQ(box.status, 2);
  EXPECT_TRUE(has(box, "no model for zh-en in the box")) << box.out;
  EXPECT_TRUE(
      has(run("mkdir -p box; cp m.model box/zh-en.model; REGARD_MODELS=box $regard translate 他们 --scores"), " ||| "));
}

TEST_F(Translate, AReaderThatLeavesEndsIt) {
  const Outcome result = run("yes 他们在看。 | head -5000 | $regard translate -m m.model --beam 1 2>&1 | head -1");
  EXPECT_EQ(lines(result.out), 1);
  EXPECT_FALSE(has(result, "regard:")) << result.out;
}

std::string read_until(int file, const std::string& end) {
  std::string got;
  while (got.find(end) == std::string::npos) {
    pollfd wanted{.fd = file, .events = POLLIN, .revents = 0};
    if (poll(&wanted, 1, 60'000) <= 0) return got + " (nothing more came)";
    std::array<char, 4096> buffer;
    const ssize_t count = read(file, buffer.data(), buffer.size());
    if (count <= 0) return got;
    got.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return got;
}

TEST_F(Translate, AnswersEveryLineAtATerminalAndStopsAtControlC) {
  const std::string want = run("$regard translate -m m.model 他们在看。").out;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(child, 0);
  if (child == 0) {
    execl(build_path("/regard").c_str(), "regard", "translate", "-m", file("m.model").c_str(), nullptr);
    _exit(127);
  }
  for (int turn = 0; turn < 3; ++turn) {
    const std::string typed = "他们在看。\n";
    ASSERT_EQ(write(terminal, typed.data(), typed.size()), static_cast<ssize_t>(typed.size()));
    const std::string answer = want.substr(0, want.size() - 1) + "\r\n";
    const std::string got = read_until(terminal, answer);  // the terminal echoes what is typed
    EXPECT_NE(got.find(answer), std::string::npos) << got;
  }
  ASSERT_EQ(write(terminal, "\3", 1), 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  close(terminal);
}

TEST_F(Translate, APipeThatWaitsForTheAnswerGetsIt) {
  std::array<int, 2> to{}, from{};
  ASSERT_EQ(pipe(to.data()), 0);
  ASSERT_EQ(pipe(from.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(to[0], 0);
    dup2(from[1], 1);
    for (const int each : {to[0], to[1], from[0], from[1]}) close(each);
    execl(build_path("/regard").c_str(), "regard", "translate", "-m", file("m.model").c_str(), nullptr);
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  for (int turn = 0; turn < 2; ++turn) {
    const std::string line = "你好\n";
    ASSERT_EQ(write(to[1], line.data(), line.size()), static_cast<ssize_t>(line.size()));
    EXPECT_TRUE(read_until(from[0], "\n").ends_with("\n"));
  }
  close(to[1]);
  int status = 0;
  waitpid(child, &status, 0);
  close(from[0]);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace regard
