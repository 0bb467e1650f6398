// `regard quantize`: a model with smaller weights.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "base/check.h"
#include "cli/command.h"
#include "cli/text.h"
#include "io/model_file.h"

namespace regard::cli {
namespace {

struct Options {
  std::string model, to = "int8", out;
};

int run(const Options& options) {
  const Storage storage = storage_of(options.to);
  const ModelFile file = load_model(disk(), options.model);
  check(!exists(disk(), options.out), "'", options.out, "' is there already");
  file.save_as(disk(), options.out, storage);
  const auto size = [](const std::string& path) { return static_cast<std::uint64_t>(disk().size(path).value); };
  fmt::print("{}: {} bytes, {} had {}\n", options.out, with_commas(size(options.out)), options.model,
             with_commas(size(options.model)));
  return 0;
}

const AddCommand quantize({
    .name = "quantize",
    .summary = "make a model smaller: weights of 16 or 8 bits",
    .example = "regard quantize zh-en.model --to int8 --out small.model",
    .build = [](App& app) -> Run {
      auto options = std::make_shared<Options>();
      app.add_option("model", options->model, "with weights of f32")->required()->option_text("MODEL");
      app.add_option("--to", options->to, "bf16: half the size; int8: a quarter, and faster (int8)")
          ->option_text("TYPE");
      app.add_option("--out", options->out, "the new model; one that is there is not overwritten")
          ->required()
          ->option_text("FILE");
      return [options](const Context&) { return run(*options); };
    },
});

}  // namespace
}  // namespace regard::cli
