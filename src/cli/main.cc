// The program `regard`: finds the command, parses its options, runs it, and turns what it throws into one line.
//
// Exit status: 0 done · 1 a mistake of ours · 2 a mistake of the user · 128 + n ended by signal n (Ctrl-C: 130).
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "base/pool.h"
#include "base/suggest.h"
#include "cli/command.h"
#include "cli/note.h"
#include "cli/signals.h"
#include "kernels/target.h"
#include "regard/error.h"

namespace regard::cli {
namespace {

constexpr int kOurMistake = 1;
constexpr int kUsersMistake = 2;

#if defined(__x86_64__)
// Runs before anything that was compiled for x86-64-v2 can meet an instruction that the processor lacks.
[[gnu::constructor(101)]] void refuse_old_processors() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt")) return;
  constexpr std::string_view kText = "regard: this processor is too old: SSE4.2 and POPCNT are needed (x86-64-v2)\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kText.data(), kText.size());
  _exit(kUsersMistake);
}
#endif

int complain(int status, std::string_view text) {
  note("regard: {}\n", text);
  return status;
}

// Whoever starts us with a standard stream closed would see our output in the next file that we open.
void fill_closed_streams() {
  for (int stream = 0; stream <= 2; ++stream) {
    if (fcntl(stream, F_GETFD) == -1 && errno == EBADF && open("/dev/null", O_RDWR) != stream) _exit(kOurMistake);
  }
}

// What could not be written must not look like success; a reader that went away (`regard … | head`) is no mistake.
int close_output(int status) {
  const bool lost = std::ferror(stdout) != 0;
  if ((std::fflush(stdout) == 0 && !lost) || errno == EPIPE || status != 0) return status;
  return complain(kUsersMistake, text("cannot write the output: ", std::strerror(errno)));
}

void print_help() {
  fmt::print("Regard {}: the attention engine that shows its work\n\n  regard COMMAND [options]\n\n", version());
  for (const auto& [name, command] : commands()) fmt::print("  {:<10} {}\n", name, command.summary);
  const auto first = commands().contains("demo") ? commands().find("demo") : commands().begin();
  fmt::print("\n  regard COMMAND --help explains a command, regard --version tells the version.\n");
  if (first == commands().end()) return;
  const std::string_view example = first->second.example;
  fmt::print("\nExample:\n  {}\n", example.substr(0, example.find('\n')));
}

void print_version() {
  if (*commit() == '\0') {
    fmt::print("regard {}\n", version());
  } else {
    fmt::print("regard {} ({})\n", version(), commit());
  }
}

int unknown_command(const std::string& name) {
  std::vector<std::string> known{"help"};
  std::string list;
  for (const auto& [each, command] : commands()) {
    known.push_back(each);
    list += list.empty() ? each : ", " + each;
  }
  const char* kind = name.starts_with('-') ? "option" : "command";
  return complain(kUsersMistake,
                  text("unknown ", kind, " '", name, "'", did_you_mean(name, known), " (commands: ", list, ")"));
}

std::string indented(const std::string& lines) {
  std::string out = "  ";
  for (const char letter : lines) {
    out += letter;
    if (letter == '\n') out += "  ";
  }
  return out;
}

int run(const Command& command, const std::vector<std::string>& arguments) {
  App app(command.name, command.summary);
  app.footer(text("Example:\n", indented(command.example)));
  const Run work = command.build(app);
  Context context;
  app.add_option("--threads", context.threads, "how many threads to use; 0: one a core (changes no result)")
      ->check(Range(0, 1024))
      ->option_text("N");
  if (!app.parse(arguments)) {
    fmt::print("{}", app.help());
    return 0;
  }
  context.cancel = stop_on_signals();
  if (const char* name = std::getenv("REGARD_TARGET"); name != nullptr && *name != '\0') {
    try {
      use_target(name);
    } catch (const Error& error) {
      return complain(kUsersMistake, text("REGARD_TARGET: ", error.what()));
    }
  }
  const ThreadLimit limit(context.threads);
  return work(context);
}

int start(const std::vector<std::string>& arguments) {
  const std::string first = arguments.empty() ? "--help" : arguments.front();
  std::vector<std::string> rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (first == "--version" || first == "-V") {
    print_version();
    return 0;
  }
  if (first == "--help" || first == "-h" || (first == "help" && rest.empty())) {
    print_help();
    return 0;
  }
  std::string name = first;
  if (first == "help") {
    name = rest.front();
    rest = {"--help"};
  }
  const auto found = commands().find(name);
  return found == commands().end() ? unknown_command(name) : run(found->second, rest);
}

int our_mistake(const std::exception& error) {
  return complain(kOurMistake, text("internal error, please report it: ", one_line(error.what())));
}

int guarded(int count, char** values) {
  try {
    return start({values + 1, values + count});
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kCancelled && signal_received() != 0) return 128 + signal_received();
    return complain(error.kind() == ErrorKind::kInternal ? kOurMistake : kUsersMistake, error.what());
  } catch (const std::bad_alloc&) {
    return complain(kUsersMistake, "not enough memory");
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) == 0) return our_mistake(error);
    return complain(kUsersMistake, text("cannot write the output: ", error.code().message()));
  } catch (const std::exception& error) {
    return our_mistake(error);
  }
}

}  // namespace
}  // namespace regard::cli

int main(int count, char** values) {
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error like a full disk, not an end
  std::signal(SIGPIPE, SIG_DFL);  // a parent that ignores it hands that on; `regard … | head` shall end quietly
  regard::cli::fill_closed_streams();
  return regard::cli::close_output(regard::cli::guarded(count, values));
}
