// Runs the program in a shell, as its users do; $regard is the program.
#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "support/paths.h"

namespace regard {

struct Outcome {
  int status = -1;  // as a shell would see it: 128 + n if ended by signal n
  std::string out;  // what it wrote to both streams
};

inline Outcome shell(const std::string& command) {
  Outcome outcome;
  const std::string line = "regard=" + build_path("/regard; ") + command;
  FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> buffer;
  for (std::size_t got; (got = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    outcome.out.append(buffer.data(), got);
  const int status = pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

inline long lines(std::string_view text) { return std::count(text.begin(), text.end(), '\n'); }

inline bool has(const Outcome& outcome, std::string_view part) { return outcome.out.find(part) != std::string::npos; }

}  // namespace regard
