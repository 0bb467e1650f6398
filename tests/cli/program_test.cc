// The program as its users meet it: what it prints, and with which status it ends.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

#include "support/paths.h"
#include "support/shell.h"

namespace {

using regard::has;
using regard::lines;
using regard::Outcome;
using regard::shell;

TEST(Program, VersionIsOneLine) {
  const Outcome outcome = shell("$regard --version");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.out.starts_with("regard 0.")) << outcome.out;
  EXPECT_EQ(lines(outcome.out), 1);
}

TEST(Program, WithoutArgumentsItListsItsCommands) {
  const Outcome outcome = shell("$regard");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(has(outcome, "\n  bench ")) << outcome.out;
  EXPECT_TRUE(has(outcome, "\nExample:\n  regard ")) << outcome.out;
  EXPECT_EQ(outcome.out, shell("$regard --help").out);
  EXPECT_EQ(outcome.out, shell("$regard help").out);
  EXPECT_LE(lines(outcome.out), 40);
}

TEST(Program, EveryCommandExplainsItselfAndEndsWithAnExample) {
  const Outcome list = shell("$regard | sed -nE 's/^  ([a-z-]+) +[a-z].*/\\1/p' | grep -v '^regard$'");
  ASSERT_GT(lines(list.out), 0);
  std::string_view rest = list.out;
  while (!rest.empty()) {
    const std::string name(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(name.size() + 1);
    const Outcome outcome = shell("$regard " + name + " --help");
    EXPECT_EQ(outcome.status, 0) << name;
    const std::size_t example = outcome.out.rfind("Example:\n  regard " + name);
    ASSERT_NE(example, std::string::npos) << outcome.out;
    EXPECT_LE(lines(std::string_view(outcome.out).substr(example)), 5) << outcome.out;
    EXPECT_EQ(outcome.out, shell("$regard help " + name).out);
  }
}

TEST(Program, UnknownCommandIsOneLineWithASuggestion) {
  const Outcome outcome = shell("$regard bnech 2>&1 >/dev/null");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(lines(outcome.out), 1);
  EXPECT_TRUE(outcome.out.starts_with("regard: unknown command 'bnech'; did you mean 'bench'?")) << outcome.out;
  EXPECT_FALSE(has(shell("$regard zzzzzz 2>&1"), "did you mean"));
}

TEST(Program, UnknownOptionIsOneLineWithASuggestion) {
  const Outcome outcome = shell("$regard bench limits --thraeds 2 2>&1 >/dev/null");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(lines(outcome.out), 1);
  EXPECT_TRUE(outcome.out.starts_with("regard: bench: unknown option '--thraeds'; did you mean '--threads'?"))
      << outcome.out;
}

TEST(Program, AnOptionIsNotTheValueOfTheOneBefore) {
  for (const std::string option : {"--sed", "--seed"}) {  // unknown or known, with more behind it or not
    for (const char* more : {"", " 3"}) {
      const Outcome outcome =
          shell("$regard train translate --builtin zh-en --out " + option + more + " 2>&1 >/dev/null");
      EXPECT_EQ(outcome.status, 2);
      EXPECT_EQ(outcome.out, "regard: train: --out: expected a value, got '" + option +
                                 "' (if that is the value: --out=" + option + ")\n");
    }
  }
  EXPECT_TRUE(has(shell("$regard list --family=--nothing 2>&1"), "unknown family '--nothing'"));  // said so, it is one
}

TEST(Program, BadValueIsOneLine) {
  for (const char* value : {"abc", "-1", "100000", "''", "99999999999999999999"}) {
    const Outcome outcome = shell(std::string("$regard bench limits --threads ") + value + " 2>&1 >/dev/null");
    EXPECT_EQ(outcome.status, 2) << value;
    EXPECT_EQ(lines(outcome.out), 1) << outcome.out;
    EXPECT_TRUE(has(outcome, "--threads")) << outcome.out;
  }
}

TEST(Program, BadTargetNamesWhatTheProcessorCanRun) {
  const Outcome outcome = shell("REGARD_TARGET=mmx $regard bench limits 2>&1 >/dev/null");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(lines(outcome.out), 1);
  EXPECT_TRUE(outcome.out.starts_with("regard: REGARD_TARGET: ")) << outcome.out;
}

TEST(Program, ReaderThatGoesAwayEndsItQuietly) {
  EXPECT_EQ(shell("( $regard --help; echo $? >&2 ) 2>&1 | true").out, "");
  EXPECT_EQ(shell("$regard --help >&- 2>&1").out, "");
  EXPECT_EQ(shell("$regard --help >&-").status, 0);
}

TEST(Program, OutputThatCannotBeWrittenIsNoSuccess) {
  for (const char* command : {"--help", "list", "docs mechanisms"}) {  // the last two are more than a buffer holds
    const Outcome outcome = shell(std::string("$regard ") + command + " 2>&1 >/dev/full");
    EXPECT_EQ(outcome.status, 2) << command;
    EXPECT_EQ(outcome.out, "regard: cannot write the output: No space left on device\n") << command;
  }
}

TEST(Program, AStandardErrorThatTakesNothingIsNoReasonToEnd) {
  EXPECT_EQ(shell("$regard nope 2>/dev/full").status, 2);
  EXPECT_EQ(shell("$regard list --nope 2>/dev/full").status, 2);
  EXPECT_EQ(shell("$regard translate -m nope x 2>/dev/full").status, 2);
}

// Starts a command that waits for input, so that it is known to be running when the signal comes.
int status_after(std::initializer_list<int> signals) {
  std::array<int, 2> to{}, from{};
  if (pipe(to.data()) != 0 || pipe(from.data()) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    dup2(to[0], 0);
    dup2(from[1], 1);
    for (const int each : {to[0], to[1], from[0], from[1]}) close(each);
    execl(regard::build_path("/regard").c_str(), "regard", "bench", "limits", "--turns", nullptr);
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  [[maybe_unused]] const auto written = write(to[1], "cases\n", 6);
  std::string answer;
  std::array<char, 4096> buffer;
  for (ssize_t got; !answer.ends_with("ok\n") && (got = read(from[0], buffer.data(), buffer.size())) > 0;)
    answer.append(buffer.data(), static_cast<std::size_t>(got));
  for (const int each : signals) kill(child, each);
  int status = 0;
  waitpid(child, &status, 0);
  close(to[1]);
  close(from[0]);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(Program, ControlCEndsWithStatus130) { EXPECT_EQ(status_after({SIGINT}), 130); }
TEST(Program, TermEndsWithStatus143) { EXPECT_EQ(status_after({SIGTERM}), 143); }

}  // namespace
