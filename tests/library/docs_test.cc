// What the documents show of the examples is what is compiled.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "support/paths.h"

namespace {

std::string read(const std::string& name) {
  std::ifstream file(regard::source_path("/") + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

// How many blocks of a document follow a comment <!-- examples/NAME -->; each has to be that file.
int check_examples(const std::string& document) {
  const std::string text = read(document), mark = "<!-- examples/";
  int blocks = 0;
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1), ++blocks) {
    const std::size_t name_at = at + 5, code_at = text.find('\n', text.find("```", at)) + 1;
    const std::string name = text.substr(name_at, text.find(' ', name_at) - name_at);
    EXPECT_EQ(text.substr(code_at, text.find("```", code_at) - code_at), read(name)) << document << ", " << name;
  }
  return blocks;
}

TEST(Documents, ShowTheExamplesThatAreCompiled) {
  EXPECT_EQ(check_examples("docs/library.md"), 4);
  EXPECT_EQ(check_examples("README.md"), 1);
  EXPECT_EQ(check_examples("README.zh-CN.md"), 1);
}

}  // namespace
