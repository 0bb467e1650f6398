// `regard eval NAME`: each thing that can be evaluated is one file, eval_NAME.cc, which gives one of these. The command
// lists them (eval.cc).
#pragma once

#include <functional>

#include "cli/command.h"

namespace regard::cli {

struct Evaluation {
  const char* name;
  const char* summary;  // one line, lower case, no full stop
  std::function<Run(App&)> build;
};

Evaluation eval_align();      // eval_align.cc
Evaluation eval_translate();  // eval_translate.cc

}  // namespace regard::cli
