// The options of a command:
//
//     auto beam = std::make_shared<std::int64_t>(5);
//     app.add_option("--beam", *beam, "how many beginnings are kept (5)")->check(Range(1, 256))->option_text("N");
//
// CLI11 does the work, in app.cc alone: with its headers a command took 7.5 s to compile, without them 3.3. The methods
// keep its names.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace regard::cli {

// What a value has to be: a number within limits, which is read as a `Number` whatever the variable is.
template <class Number>
struct Range {
  Range(Number from, Number to) : least(from), most(to) {}
  Number least, most;
};

struct IsMember {
  explicit IsMember(std::vector<std::string> all) : words(std::move(all)) {}
  std::vector<std::string> words;
};

class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option* required();
  Option* expected(int values);
  Option* expected(int least, int most);
  Option* allow_extra_args(bool allow);  // false: one value each time that the option is said
  Option* delimiter(char between);       // of several values in one argument
  Option* needs(const Option* other);
  Option* excludes(const Option* other);

  Option* check(Range<int> range);
  Option* check(Range<std::int64_t> range);
  Option* check(Range<std::uint64_t> range);
  Option* check(Range<double> range);
  Option* check(const IsMember& member);
  Option* check(const std::function<std::string(const std::string&)>& mistake);  // empty if there is none
  Option* each(const std::function<void(const std::string&)>& run);              // for every value

  Option* envname(const std::string& name);      // of a variable of the environment that serves as well
  Option* group(const std::string& title);       // under which the help lists it
  Option* option_text(const std::string& text);  // what the help says for the value

 private:
  CLI::Option* option_;
};

class App {
 public:
  App(const std::string& name, const std::string& summary);

  // A name without dashes is a place: "files". A variable keeps its value if nothing is said.
  Option* add_option(const std::string& name, std::string& value, const std::string& help);
  Option* add_option(const std::string& name, std::optional<std::string>& value, const std::string& help);
  Option* add_option(const std::string& name, std::vector<std::string>& values, const std::string& help);
  Option* add_option(const std::string& name, int& value, const std::string& help);
  Option* add_option(const std::string& name, std::int64_t& value, const std::string& help);
  Option* add_option(const std::string& name, std::optional<std::int64_t>& value, const std::string& help);
  Option* add_option(const std::string& name, std::uint64_t& value, const std::string& help);
  Option* add_option(const std::string& name, double& value, const std::string& help);
  Option* add_option(const std::string& name, std::vector<std::int64_t>& values, const std::string& help);
  Option* add_option_function(const std::string& name, const std::function<void(const std::string&)>& run,
                              const std::string& help);

  Option* add_flag(const std::string& name, bool& value, const std::string& help);
  Option* add_flag_function(const std::string& name, const std::function<void(std::int64_t times)>& run,
                            const std::string& help);

  // An option that names a file with lines such as batch-tokens=2048: the same as --batch-tokens 2048, which wins.
  Option* set_config(const std::string& name, const std::string& help);

  // One of several things to do, of which at most one is asked for. It lives as long as this, and takes the options of
  // this as well.
  App* add_subcommand(const std::string& name, const std::string& summary);
  bool parsed() const;  // it was asked for
  const std::string& get_name() const { return name_; }

  void footer(const std::string& text);  // of the help

  // Sets the variables. What is wrong is an Error. False: help was asked for.
  bool parse(const std::vector<std::string>& arguments);
  std::string help() const;  // of the subcommand that was asked for, if one was

 private:
  App(std::string name, std::shared_ptr<CLI::App> app);
  Option* keep(CLI::Option* option);

  std::string name_;
  std::shared_ptr<CLI::App> app_;
  std::deque<Option> options_;  // which stay where they are
  std::vector<std::unique_ptr<App>> parts_;
};

}  // namespace regard::cli
