// What the READMEs show is what the program prints.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "kernels/target.h"
#include "support/paths.h"
#include "support/sanitized.h"
#include "support/shell.h"

namespace regard {
namespace {

// The blocks behind comments that name the command.
std::vector<std::string> shown_in(const std::string& file) {
  std::ifstream in(source_path("/") + file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::string mark = "<!-- regard demo -->\n```\n";
  std::vector<std::string> blocks;
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const std::size_t from = at + mark.size();
    blocks.push_back(text.substr(from, text.find("```", from) - from));
  }
  return blocks;
}

TEST(Readme, ShowsWhatTheDemoPrints) {
#ifdef __clang__
  GTEST_SKIP() << "a minute of training, and the same bits with any compiler";
#endif
  if (REGARD_SANITIZED) GTEST_SKIP() << "slow with a sanitizer";
  if (target() == "sse4" || target() == "neon") GTEST_SKIP() << "this processor has bits of its own";
  const Outcome demo = shell("$regard demo 2>/dev/null");
  ASSERT_EQ(demo.status, 0);
  for (const char* file : {"README.md", "README.zh-CN.md"}) {
    const std::vector<std::string> blocks = shown_in(file);
    EXPECT_EQ(blocks.size(), 2u) << file;
    for (const std::string& block : blocks) {
      EXPECT_TRUE(has(demo, block)) << file << ": `regard demo` does not print\n" << block << "but\n" << demo.out;
    }
  }
}

}  // namespace
}  // namespace regard
