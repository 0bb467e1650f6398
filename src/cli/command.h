// A subcommand of the program `regard` is one file of this folder:
//
//     const AddCommand greet({
//         .name = "greet",
//         .summary = "say hello",
//         .example = "regard greet --name Ada",
//         .build = [](App& app) -> Run {
//           auto name = std::make_shared<std::string>("world");
//           app.add_option("--name", *name, "whom to greet");
//           return [name](const Context& context) {
//             fmt::print("hello {}\n", *name);
//             return 0;
//           };
//         },
//     });
//
// `build` declares the options (only of the command that was asked for, so that start-up does not grow with the number
// of commands) and returns what runs once they are parsed. --threads and --help come by themselves. The context holds
// the thread count and `cancel`, which Ctrl-C requests: a long command looks at it and ends with an Error of kind
// kCancelled, or in its own orderly way. A mistake of the user is a regard::Error; it becomes one line and status 2.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "cli/app.h"
#include "regard/context.h"
#include "regard/version.h"

namespace regard::cli {

using Run = std::function<int(const Context&)>;  // returns the exit status

struct Command {
  const char* name;
  const char* summary;  // one line, lower case, no full stop
  const char* example;  // one line that can be pasted; several are separated by '\n'
  Run (*build)(App& app);
};

inline std::map<std::string, Command>& commands() {  // sorted, so that lists come out in one order
  static std::map<std::string, Command> all;
  return all;
}

struct AddCommand {
  explicit AddCommand(const Command& command) { commands().emplace(command.name, command); }
};

const char* commit();  // of the sources when they were configured; "" if that is not known

}  // namespace regard::cli
