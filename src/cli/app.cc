// The one file that knows CLI11 (10 s to compile).
#include "cli/app.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <istream>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "base/suggest.h"
#include "cli/note.h"
#include "view/terminal.h"

namespace regard::cli {
namespace {

// Some editors begin a file with a mark of its encoding; it is no part of the first setting.
struct SettingsFile : CLI::ConfigTOML {
  std::vector<CLI::ConfigItem> from_config(std::istream& in) const override {
    for (const char byte : {'\xEF', '\xBB', '\xBF'}) {
      if (in.peek() == static_cast<unsigned char>(byte)) in.get();
    }
    return CLI::ConfigTOML::from_config(in);
  }
};

[[noreturn]] void unknown_arguments(const CLI::App& app, const std::string& command) {
  std::vector<std::string> left = app.remaining();
  std::string name = left.empty() ? "" : left.front();
  for (const std::string& each : left) {
    if (each.starts_with('-') && each != "--") {
      name = each.substr(0, each.find('='));
      break;
    }
  }
  std::vector<std::string> known;
  std::string asked = command;
  const auto learn = [&known](const CLI::App& from) {
    for (const CLI::Option* option : from.get_options()) {
      for (const std::string& each : option->get_lnames()) known.push_back("--" + each);
      for (const std::string& each : option->get_snames()) known.push_back("-" + each);
    }
  };
  learn(app);
  for (const CLI::App* part : app.get_subcommands({})) known.push_back(part->get_name());
  for (const CLI::App* part : app.get_subcommands()) {  // the one that was asked for
    learn(*part);
    asked += " " + part->get_name();
  }
  const char* kind = name.starts_with('-') ? "option" : "argument";
  fail(ErrorKind::kInput, asked, ": unknown ", kind, " '", name, "'", did_you_mean(name, known), " (regard ", asked,
       " --help lists what there is)");
}

// "INI was not able to parse hiden": a line of a file of settings that is none.
[[noreturn]] void unknown_setting(const CLI::App& app, const std::string& command, const std::string& said) {
  const std::string name = printable(std::string_view(said).substr(said.rfind(' ') + 1));
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& each : option->get_lnames()) known.push_back(each);
  }
  fail(ErrorKind::kInput, command, ": unknown setting '", name, "' in the file of --config", did_you_mean(name, known),
       " (expected lines such as batch-tokens=2048)");
}

// The first value that is not as it should be, of the options that were said, and its option.
struct Said {
  std::string option, value;
};
template <class Wrong>
std::optional<Said> find_said(const CLI::App& app, const Wrong& wrong) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() || option->count() == 0) continue;
    for (const std::string& value : option->results()) {
      if (wrong(value)) return Said{option->get_name(), value};
    }
  }
  for (const CLI::App* part : app.get_subcommands()) {  // the one that was asked for
    if (std::optional<Said> found = find_said(*part, wrong)) return found;
  }
  return std::nullopt;
}

// `--out --sed 3`: a value that was forgotten, not a model with the name --sed.
void check_values_are_no_options(const CLI::App& app, const std::string& command,
                                 const std::vector<std::string>& arguments) {
  const auto found = find_said(app, [&](const std::string& value) {
    return value.size() > 2 && value.starts_with("--") && std::ranges::find(arguments, value) != arguments.end();
  });
  if (!found) return;
  fail(ErrorKind::kInput, command, ": ", found->option, ": expected a value, got '", found->value,
       "' (if that is the value: ", found->option, "=", found->value, ")");
}

}  // namespace

Option* Option::required() {
  option_->required();
  return this;
}

Option* Option::expected(int values) {
  option_->expected(values);
  return this;
}

Option* Option::expected(int least, int most) {
  option_->expected(least, most);
  return this;
}

Option* Option::allow_extra_args(bool allow) {
  option_->allow_extra_args(allow);
  return this;
}

Option* Option::delimiter(char between) {
  option_->delimiter(between);
  return this;
}

Option* Option::needs(const Option* other) {
  option_->needs(other->option_);
  return this;
}

Option* Option::excludes(const Option* other) {
  option_->excludes(other->option_);
  return this;
}

Option* Option::check(Range<int> range) {
  option_->check(CLI::Range(range.least, range.most));
  return this;
}

Option* Option::check(Range<std::int64_t> range) {
  option_->check(CLI::Range(range.least, range.most));
  return this;
}

Option* Option::check(Range<std::uint64_t> range) {
  option_->check(CLI::Range(range.least, range.most));
  return this;
}

Option* Option::check(Range<double> range) {
  option_->check(CLI::Range(range.least, range.most));
  return this;
}

Option* Option::check(const IsMember& member) {
  option_->check(CLI::IsMember(member.words));
  return this;
}

Option* Option::check(const std::function<std::string(const std::string&)>& mistake) {
  option_->check(mistake);
  return this;
}

Option* Option::each(const std::function<void(const std::string&)>& run) {
  option_->each(run);
  return this;
}

Option* Option::envname(const std::string& name) {
  option_->envname(name);
  return this;
}

Option* Option::group(const std::string& title) {
  option_->group(title);
  return this;
}

Option* Option::option_text(const std::string& text) {
  option_->option_text(text);
  return this;
}

App::App(std::string name, std::shared_ptr<CLI::App> app) : name_(std::move(name)), app_(std::move(app)) {}

App::App(const std::string& name, const std::string& summary)
    : App(name, std::make_shared<CLI::App>(text("regard ", name, ": ", summary), text("regard ", name))) {
  app_->get_formatter()->column_width(28);
}

Option* App::keep(CLI::Option* option) { return &options_.emplace_back(option); }

Option* App::add_option(const std::string& name, std::string& value, const std::string& help) {
  return keep(app_->add_option(name, value, help));
}

Option* App::add_option(const std::string& name, std::optional<std::string>& value, const std::string& help) {
  return keep(app_->add_option(name, value, help));
}

Option* App::add_option(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  return keep(app_->add_option(name, values, help));
}

Option* App::add_option(const std::string& name, int& value, const std::string& help) {
  return keep(app_->add_option(name, value, help));
}

Option* App::add_option(const std::string& name, std::int64_t& value, const std::string& help) {
  return keep(app_->add_option(name, value, help));
}

Option* App::add_option(const std::string& name, std::optional<std::int64_t>& value, const std::string& help) {
  return keep(app_->add_option(name, value, help));
}

Option* App::add_option(const std::string& name, std::uint64_t& value, const std::string& help) {
  return keep(app_->add_option(name, value, help));
}

Option* App::add_option(const std::string& name, double& value, const std::string& help) {
  return keep(app_->add_option(name, value, help));
}

Option* App::add_option(const std::string& name, std::vector<std::int64_t>& values, const std::string& help) {
  return keep(app_->add_option(name, values, help));
}

Option* App::add_option_function(const std::string& name, const std::function<void(const std::string&)>& run,
                                 const std::string& help) {
  return keep(app_->add_option_function(name, run, help));
}

Option* App::add_flag(const std::string& name, bool& value, const std::string& help) {
  return keep(app_->add_flag(name, value, help));
}

Option* App::add_flag_function(const std::string& name, const std::function<void(std::int64_t times)>& run,
                               const std::string& help) {
  CLI::Option* const option = app_->add_flag_function(name, run, help);
  option->check([](const std::string& value) {  // or --joint=abc is an exception of the standard library's
    try {
      CLI::detail::to_flag_value(value);
      return std::string();
    } catch (const std::exception&) {
      return text("'", value, "', expected true or false");
    }
  });
  return keep(option);
}

Option* App::set_config(const std::string& name, const std::string& help) {
  CLI::Option* const option = app_->set_config(name, "", help);
  app_->config_formatter(std::make_shared<SettingsFile>());
  app_->allow_config_extras(CLI::config_extras_mode::error);
  return keep(option);
}

App* App::add_subcommand(const std::string& name, const std::string& summary) {
  CLI::App* const part = app_->add_subcommand(name, summary);
  part->fallthrough();  // --threads is the command's
  parts_.push_back(std::unique_ptr<App>(new App(name, app_->get_subcommand_ptr(part))));
  return parts_.back().get();
}

bool App::parsed() const { return app_->parsed(); }

void App::footer(const std::string& text) { app_->footer(text); }

std::string App::help() const { return app_->help(); }

bool App::parse(const std::vector<std::string>& arguments) {
  if (!parts_.empty()) app_->require_subcommand(0, 1);
  try {
    app_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // it takes the last first
  } catch (const CLI::CallForHelp&) {
    return false;
  } catch (const CLI::ExtrasError&) {
    check_values_are_no_options(*app_, name_, arguments);
    unknown_arguments(*app_, name_);
  } catch (const CLI::FileError& error) {  // "small.ini was not readable (missing?)"
    fail(ErrorKind::kInput, name_, ": --config: ", error.what());
  } catch (const CLI::ConfigError& error) {
    unknown_setting(*app_, name_, error.what());
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string said = one_line(error.what());
    const std::size_t end = said.find(": At Most 1 required but received ");
    if (end == std::string::npos) fail(ErrorKind::kInput, name_, ": ", said);
    fail(ErrorKind::kInput, name_, ": ", said.substr(0, end), " is said more than once");
  } catch (const CLI::ParseError& error) {
    fail(ErrorKind::kInput, name_, ": ", one_line(error.what()));
  }
  check_values_are_no_options(*app_, name_, arguments);
  // `-m "$MODEL"` where nobody set MODEL: an option with nothing after it is a mistake, not the wish for what is usual.
  if (const auto found = find_said(*app_, [](const std::string& value) { return value.empty(); })) {
    fail(ErrorKind::kInput, name_, ": ", found->option, " is empty, expected a value");
  }
  return true;
}

}  // namespace regard::cli
