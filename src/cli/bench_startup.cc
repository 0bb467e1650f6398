// bench startup: from the start of a process to its end, for the smallest thing the program can be asked.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/check.h"
#include "cli/bench.h"

namespace regard::cli {
namespace {

// Runs this very program; what it prints goes to the write end of `output`, or nowhere.
int run_version(int output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (output >= 0) {
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  }
  char name[] = "regard", option[] = "--version";
  char* arguments[] = {name, option, nullptr};
  pid_t child = 0;
  const int failed = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  check(failed == 0, "bench startup: cannot start /proc/self/exe");
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

double gap() {  // it must have said its name
  int ends[2];
  check(pipe(ends) == 0, "bench startup: no pipe");
  const int status = run_version(ends[1]);
  close(ends[1]);
  char text[64] = {};
  const ssize_t got = read(ends[0], text, sizeof(text) - 1);
  close(ends[0]);
  return status == 0 && got > 0 && std::string(text).starts_with("regard ") ? 0 : 2;
}

const AddBench add({.name = "startup", .summary = "regard --version from start to end of the process", .cases = [] {
                      return std::vector<Case>{{.name = "version", .operation = "startup", .prepare = [] {
                                                  return Job{.run = [] { run_version(-1); }, .gap = gap};
                                                }}};
                    }});

}  // namespace
}  // namespace regard::cli
