// What the shared library shows: what the public headers declare, and nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/shell.h"

namespace regard {
namespace {

namespace fs = std::filesystem;

const std::set<std::string>& declared() {  // every word of the public headers, but for comments
  static const std::set<std::string> words = [] {
    std::set<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(source_path("/include/regard"))) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        line.resize(std::min(line.find("//"), line.size()));
        const std::regex word("[A-Za-z_][A-Za-z_0-9]*");
        for (std::sregex_iterator at(line.begin(), line.end(), word), end; at != end; ++at) found.insert(at->str());
      }
    }
    return found;
  }();
  return words;
}

// "regard::Tape::backward(regard::Var)" -> "regard::Tape::backward"; "vtable for regard::Adam" -> "regard::Adam".
std::string name_of(const std::string& symbol) {
  const std::string front = symbol.substr(0, symbol.find_first_of("(<["));
  return front.substr(front.rfind(' ') + 1);
}

// Why a symbol should not be there; "" if it should.
std::string wrong(const std::string& symbol) {
  const std::string name = name_of(symbol);
  if (!name.starts_with("regard::") && !name.starts_with("regard_")) return "is not ours";
  std::istringstream parts(std::regex_replace(name, std::regex("::|~"), " "));
  for (std::string part; parts >> part;) {
    if (part.starts_with("operator")) continue;
    if (!declared().contains(part)) return "'" + part + "' stands in no public header";
  }
  return "";
}

std::vector<std::string> exported() {
  const Outcome outcome = shell("nm -D -C --defined-only " + build_path("/libregard.so | cut -c20-"));
  std::vector<std::string> all;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) all.push_back(line);
  return all;
}

TEST(Exports, NothingButWhatThePublicHeadersDeclare) {
  const std::vector<std::string> all = exported();
  ASSERT_GT(all.size(), 100u);
  for (const std::string& symbol : all) EXPECT_EQ(wrong(symbol), "") << symbol;
}

TEST(Exports, InternalsAreSeenAsSuch) {
  EXPECT_NE(wrong("hwy::SupportedTargets()"), "");
  EXPECT_NE(wrong("std::vector<float, std::allocator<float> >::_M_realloc_insert()"), "");
  EXPECT_NE(wrong("fmt::v9::vformat[abi:cxx11](int)"), "");
  EXPECT_NE(wrong("regard::gemm(regard::MatrixOf<float const>)"), "");
  EXPECT_NE(wrong("regard::N_AVX3::Adam(float)"), "");
  EXPECT_EQ(wrong("regard::Tape::backward(regard::Var)"), "");
  EXPECT_EQ(wrong("typeinfo for regard::Error"), "");
}

TEST(Exports, TheNameSaysWhichInterface) {
  const Outcome outcome = shell("objdump -p " + build_path("/libregard.so | grep SONAME"));
  EXPECT_TRUE(has(outcome, "libregard.so.0.1\n")) << outcome.out;
}

TEST(Exports, HighwaysLibraryIsNotNeeded) {
  const Outcome outcome = shell("objdump -p " + build_path("/libregard.so | grep NEEDED"));
  EXPECT_TRUE(has(outcome, "libstdc++")) << outcome.out;
  EXPECT_FALSE(has(outcome, "libhwy")) << outcome.out;
}

TEST(Exports, EveryFunctionOfTheCHeaderIsThere) {
  std::ifstream file(source_path("/include/regard/regard.h"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::vector<std::string> all = exported();
  const std::set<std::string> there(all.begin(), all.end());
  const std::regex declaration("REGARD_API [^;(]*(regard_[a-z_]+)\\(");
  int functions = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at, ++functions) {
    EXPECT_TRUE(there.contains(at->str(1))) << at->str(1);
  }
  EXPECT_GE(functions, 11);
}

}  // namespace
}  // namespace regard
