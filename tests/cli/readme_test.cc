// What the READMEs show is what the program prints.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "kernels/target.h"
#include "support/sanitized.h"
#include "support/shell.h"

namespace regard {
namespace {

// The block behind the comment that names the command.
std::string shown_in(const std::string& file) {
  std::ifstream in(REGARD_SOURCE_DIR "/" + file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::string mark = "<!-- regard demo -->\n```\n";
  const std::size_t begin = text.find(mark);
  if (begin == std::string::npos) return "";
  const std::size_t from = begin + mark.size();
  return text.substr(from, text.find("```", from) - from);
}

// Without the line that names this machine's instructions and threads.
std::string without_machine(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("Model ")) out += line + '\n';
  }
  return out;
}

TEST(Readme, ShowsWhatTheDemoPrints) {
  if (REGARD_SANITIZED) GTEST_SKIP() << "slow with a sanitizer";
  if (target() == "sse4" || target() == "neon") GTEST_SKIP() << "this processor has bits of its own";
  const Outcome demo = shell("$regard demo 2>/dev/null");
  ASSERT_EQ(demo.status, 0);
  for (const char* file : {"README.md", "README.zh-CN.md"}) {
    EXPECT_EQ(without_machine(shown_in(file)), without_machine(demo.out))
        << file << ": put the output of `regard demo` there";
  }
}

}  // namespace
}  // namespace regard
