// The library as its users get it: installed in a folder of its own, found by CMake and by pkg-config, used from C++
// and from C. The projects that use it are the examples.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "support/paths.h"
#include "support/shell.h"

namespace regard {
namespace {

namespace fs = std::filesystem;

class Installed : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    root = fs::temp_directory_path() / ("regard_install_test_" + std::to_string(getpid()));
    const Outcome outcome = shell("cmake --install " + build_path(" --prefix ") + root.string() + "/first 2>&1");
    ASSERT_EQ(outcome.status, 0) << outcome.out;
    fs::rename(root / "first", prefix());  // an installed tree may be moved
  }
  static void TearDownTestSuite() { fs::remove_all(root); }
  static fs::path prefix() { return root / "prefix"; }

  // Runs a command in the folder of the test and expects it to end well.
  static std::string run(const std::string& command) {
    const Outcome outcome = shell("cd " + root.string() + " && { " + command + "; } 2>&1");
    EXPECT_EQ(outcome.status, 0) << command << '\n' << outcome.out;
    return outcome.out;
  }

  static inline fs::path root;
};

TEST_F(Installed, CppProjectsFindItWithCMake) {
  run("cmake -S " + source_path("/examples -B examples -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=") +
      REGARD_CXX " -DCMAKE_CXX_COMPILER_LAUNCHER=" REGARD_LAUNCHER " -DCMAKE_PREFIX_PATH=" + prefix().string() +
      " -DCMAKE_CXX_FLAGS='-Wall -Wextra -Wconversion -Wshadow -Wpedantic -Werror'");
  run("cmake --build examples");
  EXPECT_EQ(run("examples/attention"),
            "context [1, 1, 2, 8]\n"
            " 0.168 0.438 0.210 0.184 0.000\n"
            " 0.131 0.486 0.189 0.193 0.000\n");
  EXPECT_EQ(
      run("examples/limits"),
      "matmul: [2, 3] by [4, 5]: 3 columns meet 4 rows\n"
      "out of memory: a tensor of 4294967296 bytes does not fit: 192 of 67108864 bytes (memory_limit) are in use\n"
      "and on it goes: 6\n");
  EXPECT_TRUE(run("examples/train").ends_with("looked at the marked card in 32 of 32 unseen examples\n"));
}

TEST_F(Installed, CProgramsFindItWithPkgConfig) {
  const std::string path = "PKG_CONFIG_PATH=$(dirname $(find " + prefix().string() + " -name regard.pc)) ";
  run("cc -std=c99 -pedantic -Wall -Wextra -Werror " + source_path("/examples/attention.c $(") + path +
      "pkg-config --cflags --libs regard) -o attention_c");
  const std::string libraries = "LD_LIBRARY_PATH=$(" + path + "pkg-config --variable=libdir regard) ";
  EXPECT_EQ(run(libraries + "./attention_c"), "read 16.21, weights 0.682 0.014 0.304\n");
  const std::string version = run(path + "pkg-config --modversion regard");
  EXPECT_EQ(
      run(prefix().string() + "/bin/regard --version").rfind("regard " + version.substr(0, version.size() - 1), 0), 0u);
}

}  // namespace
}  // namespace regard
