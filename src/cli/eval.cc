// `regard eval`: how good a model, or what it gave, is.
#include "cli/eval.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace regard::cli {
namespace {

const AddCommand eval({
    .name = "eval",
    .summary = "evaluate a model, or what it gave",
    .example = "regard eval translate -m zh-en.model --builtin zh-en\n"
               "regard eval align gold.align < found.align",
    .build = [](App& app) -> Run {
      auto all = std::make_shared<std::vector<std::pair<App*, Run>>>();
      for (const Evaluation& each : {eval_align(), eval_translate()}) {
        App* const part = app.add_subcommand(each.name, each.summary);
        all->emplace_back(part, each.build(*part));
      }
      return [all](const Context& context) {
        std::string names;
        for (const auto& [part, run] : *all) {
          if (part->parsed()) return run(context);
          names += (names.empty() ? "" : " or ") + part->get_name();
        }
        fail(ErrorKind::kInput, "eval: what is to be evaluated? expected ", names);
      };
    },
});

}  // namespace
}  // namespace regard::cli
