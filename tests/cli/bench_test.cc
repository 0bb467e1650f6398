// The benchmarks compute the right thing and speak the protocol; how fast they are is nothing for a test.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include "support/shell.h"

namespace {

using regard::has;
using regard::lines;
using regard::Outcome;
using regard::shell;

namespace fs = std::filesystem;

std::set<std::string> benches() {  // as the error for an unknown one lists them
  const Outcome outcome =
      shell("$regard bench nosuch 2>&1 | sed -nE 's/.*known: (.*)\\)/\\1/p' | tr -d ' ' | tr , '\n'");
  std::istringstream names(outcome.out);
  std::set<std::string> all;
  for (std::string name; names >> name;) all.insert(name);
  return all;
}

Outcome ask(const std::string& bench, const std::string& commands) {
  return shell("printf '" + commands + "quit\\n' | $regard bench " + bench + " --turns 2>&1");
}

TEST(Bench, TheOnesKnownByNameAreThere) {
  for (const char* name : {"limits", "startup", "matmul", "matmul_backward", "matmul_int8", "elementwise", "optimizer",
                           "overhead", "gru", "lstm", "cross_entropy", "attention", "mechanisms", "additive"}) {
    EXPECT_TRUE(benches().contains(name)) << name;
  }
}

TEST(Bench, EveryCaseHasANameOfItsOwnAndAKnownLimit) {
  std::set<std::string> seen;
  for (const std::string& name : benches()) {
    const Outcome outcome = ask(name, "cases\\n");
    EXPECT_EQ(outcome.status, 0);
    EXPECT_TRUE(outcome.out.ends_with("]}\nok\n")) << outcome.out;
    std::istringstream rows(outcome.out);
    std::set<std::string> limits;
    for (std::string row; std::getline(rows, row) && row != "ok";) {
      ASSERT_TRUE(row.starts_with("{\"case\": \"" + name + "/")) << row;
      EXPECT_TRUE(seen.insert(row.substr(0, row.find(','))).second) << row;
      const std::size_t at = row.find("\"limit\": \"") + 10;
      limits.insert(row.substr(at, row.find('"', at) - at));
    }
    limits.erase("");
    for (const std::string& limit : limits) EXPECT_TRUE(has(ask(name, "describe " + limit + "\\n"), "\nok\n")) << limit;
  }
}

TEST(Bench, SmallCasesAgreeWithTheirReferences) {
  for (const char* name : {"limits/fma",
                           "limits/copy_64x512",
                           "limits/update_64x512",
                           "optimizer/adam_4x64x64",
                           "overhead/add",
                           "overhead/multiply",
                           "overhead/tanh",
                           "overhead/matmul",
                           "overhead/chain",
                           "startup/version",
                           "matmul/5x256x128",
                           "matmul_int8/int8_5x256x128",
                           "matmul_backward/dx_5x256x128",
                           "matmul_backward/dw_5x256x128",
                           "elementwise/tanh_64x512",
                           "elementwise/gelu_64x512",
                           "elementwise/softmax_64x512",
                           "elementwise/layer_norm_64x512",
                           "elementwise/dropout_64x512",
                           "gru/64x30x256",
                           "lstm/64x30x256",
                           "attention/both_64_padding_dropout",
                           "attention/weights_of_a_head",
                           "mechanisms/alibi",
                           "additive/projected",
                           "additive/additive"}) {
    const std::string text = name;
    const Outcome outcome = ask(text.substr(0, text.find('/')), "check " + text + "\\n");
    EXPECT_TRUE(outcome.out.ends_with("\nok\n")) << name << ": " << outcome.out;
  }
}

TEST(Bench, InputsAndOutputsAreWrittenForPeers) {
  const fs::path folder = fs::temp_directory_path() / ("regard_bench_test_" + std::to_string(getpid()));
  fs::create_directory(folder);
  const Outcome outcome =
      ask("matmul", "prepare matmul/5x256x128 " + folder.string() +
                        "\\nrun matmul/5x256x128 2 3\\noutput matmul/5x256x128 " + (folder / "y.f32").string() + "\\n");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(lines(outcome.out), 4) << outcome.out;  // ok, two times on one line, ok, ok
  EXPECT_EQ(fs::file_size(folder / "x.f32"), 5u * 128 * 4);
  EXPECT_EQ(fs::file_size(folder / "w.f32"), 128u * 256 * 4);
  EXPECT_EQ(fs::file_size(folder / "y.f32"), 5u * 256 * 4);
  fs::remove_all(folder);
}

TEST(Bench, NonsenseIsAnsweredAndSurvived) {
  const Outcome outcome = ask("limits",
                              "\\nfoo\\nrun limits/fma 0 1\\nrun limits/fma -1 -1\\nrun limits/nosuch 1 1\\nprepare\\n"
                              "output limits/fma /dev/null\\noutput matmul/5x256x128 /nowhere/at/all\\nmachine\\n");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_TRUE(outcome.out.ends_with("}\nok\n")) << outcome.out;
  EXPECT_EQ(lines(outcome.out), 10) << outcome.out;
}

TEST(Bench, JsonIsOneLineACase) {
  const Outcome outcome = shell("$regard bench limits --json --repeat 1 --case copy_64");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(lines(outcome.out), 1);
  EXPECT_TRUE(outcome.out.starts_with("{\"case\": \"limits/copy_64x512\", \"seconds\": ")) << outcome.out;
}

TEST(Bench, CaseThatDoesNotExistIsTheUsersMistake) {
  const Outcome outcome = shell("$regard bench limits --case nosuch 2>&1 >/dev/null");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.out, "regard: bench limits: no case has 'nosuch' in its name\n");
}

}  // namespace
