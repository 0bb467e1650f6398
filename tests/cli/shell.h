// Runs a line of shell in which $regard is the program that was built.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

namespace regard {

struct ShellResult {
  int status = -1;  // as a shell would see it: 128 + n if ended by signal n
  std::string out;  // what it wrote to standard output; add 2>&1 for both

  bool has(std::string_view part) const { return out.find(part) != std::string::npos; }
  long lines() const {
    long count = 0;
    for (const char letter : out) count += letter == '\n' ? 1 : 0;
    return count;
  }
};

inline ShellResult run_in_shell(const std::string& command) {
  ShellResult result;
  const std::string line = "regard=" REGARD_BINARY_DIR "/regard; " + command;
  FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) return result;
  std::array<char, 4096> buffer;
  for (std::size_t got; (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    result.out.append(buffer.data(), got);
  const int status = pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace regard
