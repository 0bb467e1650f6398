// Checks of the tree itself: who may include whom, and with which flags files are compiled.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/paths.h"

namespace {

namespace fs = std::filesystem;

// Each folder of src/ may include itself and those before it. Public headers belong to the folder that they are named
// after: regard/nn/linear.h to nn; those directly in regard/ to base.
constexpr std::array<std::string_view, 17> kOrder = {"base",   "tensor", "kernels", "autograd", "attention", "nn",
                                                     "verify", "models", "io",      "data",     "train",     "decode",
                                                     "view",   "tasks",  "serve",   "c",        "cli"};

int place(std::string_view folder) {
  const auto* found = std::find(kOrder.begin(), kOrder.end(), folder);
  return found == kOrder.end() ? -1 : static_cast<int>(found - kOrder.begin());
}

std::string first_folder(const std::string& path) {
  if (path.starts_with("regard/")) {
    const std::string rest = path.substr(7);
    return rest.find('/') == std::string::npos ? "base" : first_folder(rest);
  }
  return path.substr(0, path.find('/'));
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

bool is_source(const fs::path& path) { return path.extension() == ".h" || path.extension() == ".cc"; }

// The name in a line `#include "name"`, else nothing.
std::string included(std::string_view line) {
  const auto skip = [&line] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
  skip();
  if (!line.starts_with('#')) return {};
  line.remove_prefix(1);
  skip();
  if (!line.starts_with("include")) return {};
  line.remove_prefix(7);
  skip();
  if (!line.starts_with('"')) return {};
  line.remove_prefix(1);
  return std::string(line.substr(0, line.find('"')));
}

// What is wrong with the includes of a file of src/ or include/; empty if nothing is.
std::vector<std::string> wrong_includes(const std::string& name, const std::string& content) {
  std::vector<std::string> wrong;
  std::istringstream lines(content);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string target = included(line);
    if (target.empty() || target.starts_with("hwy/")) continue;
    const int here = place(first_folder(name)), there = place(first_folder(target));
    if (there < 0 || there > here) wrong.push_back(name + ':' + std::to_string(number) + " includes " + target);
  }
  return wrong;
}

TEST(IncludeDirection, FoldersIncludeOnlyThoseBeforeThem) {
  const fs::path root = fs::path(regard::source_path("")) / "src";
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || !is_source(entry.path())) continue;
    ++files;
    const std::string name = fs::relative(entry.path(), root).generic_string();
    EXPECT_GE(place(first_folder(name)), 0) << "src/" << name << ": the folder has no place in the order";
    for (const std::string& each : wrong_includes(name, read(entry.path()))) ADD_FAILURE() << each;
  }
  EXPECT_GT(files, 10);
}

// A file that includes it takes twice as long to compile.
TEST(IncludeDirection, OneFileIncludesCli11) {
  const fs::path root = fs::path(regard::source_path("")) / "src";
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file() || !is_source(entry.path())) continue;
    const bool includes = read(entry.path()).find("#include <CLI/") != std::string::npos;
    if (includes) files.push_back(fs::relative(entry.path(), root).generic_string());
  }
  EXPECT_EQ(files, std::vector<std::string>{"cli/app.cc"});
}

TEST(IncludeDirection, PublicHeadersIncludeOnlyEachOther) {
  const fs::path root = fs::path(regard::source_path("")) / "include" / "regard";
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    ++files;
    std::istringstream lines(read(entry.path()));
    for (std::string line; std::getline(lines, line);) {
      const std::string target = included(line);
      EXPECT_TRUE(target.empty() || target.starts_with("regard/")) << entry.path() << " includes " << target;
      // What is installed must not ask for anything but the standard library.
      EXPECT_FALSE(line.starts_with("#include <") && line.find('/') != std::string::npos)
          << entry.path() << ": " << line;
    }
    const std::string name = fs::relative(entry.path(), root.parent_path()).generic_string();
    for (const std::string& each : wrong_includes(name, read(entry.path()))) ADD_FAILURE() << each;
  }
  EXPECT_GT(files, 0);
}

TEST(IncludeDirection, WrongWayIsSeen) {
  EXPECT_EQ(wrong_includes("base/a.cc", "#include \"kernels/target.h\"\n").size(), 1u);
  EXPECT_EQ(wrong_includes("base/a.cc", "#include \"regard/nn/linear.h\"\n").size(), 1u);
  EXPECT_EQ(wrong_includes("regard/tensor/a.h", "#include \"regard/nn/linear.h\"\n").size(), 1u);
  EXPECT_EQ(wrong_includes("base/a.cc", "#include \"regard/error.h\"\n").size(), 0u);
  EXPECT_EQ(wrong_includes("base/a.cc", "  # include \"nowhere/x.h\"\n").size(), 1u);
  EXPECT_EQ(wrong_includes("cli/a.cc", "#include \"kernels/target.h\"\n#include <vector>\n").size(), 0u);
}

const std::string& commands() {
  static const std::string all = read(fs::path(regard::build_path("")) / "compile_commands.json");
  return all;
}

std::vector<std::string> command_lines() {
  std::vector<std::string> out;
  std::istringstream lines(commands());
  for (std::string line; std::getline(lines, line);) {
    const bool ours =
        line.find(" -c " + regard::source_path("/")) != std::string::npos;  // GoogleTest may be built along
    if (ours && line.find("\"command\":") != std::string::npos) out.push_back(line);
  }
  return out;
}

// Types that a file shows to others: "namespace type", of those that begin a line outside of namespaces without a name.
std::vector<std::string> shown_types(const std::string& content) {
  std::vector<std::string> types;
  std::string space;
  std::istringstream lines(content);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("namespace ") && line.ends_with("{")) space = line.substr(10, line.size() - 12);
    if (line.starts_with("}  // namespace") && line != "}  // namespace") space = "";
    if (line == "}  // namespace") space = "regard";  // one without a name has ended
    const bool type = line.starts_with("struct ") || line.starts_with("class ");
    if (!type || !line.ends_with("{") || line.find('<') != std::string::npos || space.empty()) continue;
    std::istringstream words(line);
    std::string word, name;
    words >> word >> name;
    if (name == "REGARD_API") words >> name;
    if (name.find("::") == std::string::npos) types.push_back(space + " " + name);
  }
  return types;
}

// Two types of one name in one namespace: the linker takes the functions of either for both, and nobody is told.
TEST(Types, NoTwoHeadersHaveTheSame) {
  std::map<std::string, std::string> seen;
  for (const char* top : {"src", "include"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(regard::source_path("")) / top)) {
      if (entry.path().extension() != ".h") continue;
      for (const std::string& type : shown_types(read(entry.path()))) {
        const auto [found, added] = seen.emplace(type, entry.path().string());
        EXPECT_TRUE(added) << type << " is in " << found->second << " and in " << entry.path();
      }
    }
  }
  EXPECT_GT(seen.size(), 100u);
}

TEST(Types, AreFoundWithTheirNamespaces) {
  EXPECT_EQ(shown_types("namespace regard {\nstruct A {\n};\nclass REGARD_API B final : public A {\n};\nstruct C;\n"
                        "}  // namespace regard\nnamespace regard::x {\nclass A {\n"),
            (std::vector<std::string>{"regard A", "regard B", "regard::x A"}));
}

TEST(CompileFlags, EveryFileKeepsProductsAndSumsApart) {
  ASSERT_GT(command_lines().size(), 5u) << "in " << regard::build_path("");
  for (const std::string& line : command_lines()) {
    EXPECT_NE(line.find(" -ffp-contract=off "), std::string::npos) << line;
    EXPECT_EQ(line.find("-ffp-contract=fast"), std::string::npos) << line;
  }
}

TEST(CompileFlags, NoFileIsCompiledWithLooseArithmetic) {
  for (const char* flag : {"-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-fassociative-math",
                           "-freciprocal-math", "-ffinite-math-only", "-march=native", "-mtune=native", "-fopenmp"}) {
    EXPECT_EQ(commands().find(flag), std::string::npos) << flag;
  }
}

}  // namespace
