// regard verify: every operation on this processor, kernels against references.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/text.h"
#include "kernels/target.h"
#include "regard/context.h"
#include "verify/checks.h"
#include "verify/reference_run.h"
#include "verify/table.h"

namespace regard::cli {
namespace {

struct Options {
  std::string op;
  std::string target;
  bool hash = false;
};

// "12 %" of the bound; what is not finite says so.
std::string percent(double fraction) {
  if (!(fraction < 10)) return fmt::format("{:.1g}×", fraction);
  return fmt::format("{:.0f} %", 100 * fraction);
}

int verify_operations(const Options& options, const Context& context) {
  const std::vector<std::string> names = options.target.empty() ? targets() : std::vector<std::string>{options.target};
  std::string list;
  for (const std::string& name : names) {
    const TargetScope available(name);  // throws if it is not
    list += (list.empty() ? "" : ", ") + name;
  }
  if (!options.op.empty()) verify::row_of(options.op);  // throws if there is none
  std::size_t cases = 0, operations = 0, failed = 0;
  fmt::print("{}  {}  cases  forward  backward  result   (of the bound 2e-6·(1 + Σ|terms|), on {})\n",
             padded("operation", 20), padded("formula", 57), list);
  for (const verify::Row& row : verify::table()) {
    if (!options.op.empty() && options.op != name_of(row.op)) continue;
    stop_if_asked(context);
    const verify::Report report = verify::verify(row, names);
    const bool good = report.trouble.empty();
    fmt::print("{}  {}  {:>5}  {:>7}  {:>8}  {}\n", padded(name_of(row.op), 20), padded(row.formula, 57), report.cases,
               percent(report.worst.forward), percent(report.worst.backward), good ? "ok" : "FAIL");
    if (!good) fmt::print("    {}\n", report.trouble);
    cases += report.cases;
    ++operations;
    failed += !good;
  }
  if (failed > 0) {
    fmt::print("{} of {} operations FAILED\n", failed, operations);
    return 1;
  }
  fmt::print("{} cases of {} operation{}: all agree with their references\n", cases, operations,
             operations == 1 ? "" : "s");
  return 0;
}

// Of the reference run, or of all that one operation gives: where two builds differ, the latter says by which.
int print_hash(const Options& options) {
  const TargetScope scope(options.target.empty() ? target() : options.target);
  fmt::print("{}\n",
             options.op.empty() ? verify::reference_hash() : verify::operation_hash(verify::row_of(options.op)));
  return 0;
}

const AddCommand command({
    .name = "verify",
    .summary = "check every operation against its reference on this processor",
    .example = "regard verify\nregard verify --op softmax --target avx2",
    .build = [](App& app) -> Run {
      auto options = std::make_shared<Options>();
      app.add_option("--op", options->op, "only this operation")->option_text("NAME");
      app.add_option("--target", options->target, "only this instruction set")->option_text("NAME");
      app.add_flag("--hash", options->hash,
                   "print a hash of the bits of a training run (with --op: of that operation); the same everywhere");
      return [options](const Context& context) {
        const ContextScope scope(context);
        return options->hash ? print_hash(*options) : verify_operations(*options, context);
      };
    },
});

}  // namespace
}  // namespace regard::cli
