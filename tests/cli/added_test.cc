// A mechanism is one file: the program regard_added is regard and tests/added/euclidean.cc, nothing else.
#include <gtest/gtest.h>

#include <string>

#include "support/paths.h"
#include "support/shell.h"

namespace {

using regard::has;
using regard::lines;
using regard::Outcome;
using regard::shell;

const std::string kAdded = std::string("\"") + regard::build_path("/regard_added\" ");

TEST(AddedMechanism, IsListedAndExplained) {
  const Outcome all = shell(kAdded + "list"), known = shell("$regard list");
  EXPECT_EQ(lines(all.out), lines(known.out) + 1);
  EXPECT_TRUE(has(all, "\neuclidean ")) << all.out;
  EXPECT_TRUE(has(all, "−‖q − k‖²/2")) << all.out;
  EXPECT_FALSE(has(known, "euclidean")) << known.out;
  EXPECT_TRUE(has(shell(kAdded + "list --line 'euclidean | causal'"), "euclidean | causal | softmax | sum"));
  EXPECT_EQ(shell("$regard list --line 'euclidean | causal'").status, 2);
}

TEST(AddedMechanism, HasAnEntryInTheDocuments) {
  EXPECT_TRUE(has(shell(kAdded + "docs mechanisms"), "| `euclidean` | −‖q − k‖²/2 | Tsai et al. 2019 | plain loops |"));
}

TEST(AddedMechanism, IsVerifiedWithAllTheOthers) {
  const Outcome verified = shell(kAdded + "verify --op attend"), known = shell("$regard verify --op attend");
  EXPECT_EQ(verified.status, 0) << verified.out;
  EXPECT_EQ(known.status, 0) << known.out;
  const auto cases = [](const Outcome& outcome) {  // "712 cases of 1 operation: …"
    const std::size_t at = outcome.out.find(" cases of 1 operation");
    return at == std::string::npos ? 0 : std::stol(outcome.out.substr(outcome.out.rfind('\n', at) + 1));
  };
  EXPECT_GT(cases(verified), cases(known)) << verified.out << known.out;
}

TEST(AddedMechanism, HasARowInTheBenchmark) {
  EXPECT_TRUE(
      has(shell("printf 'cases\\nquit\\n' | " + kAdded + "bench mechanisms --turns"), "mechanisms/euclidean\""));
}

}  // namespace
