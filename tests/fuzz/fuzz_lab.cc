// The lab, from the body of a request to the numbers.
#include "fuzz/target.h"
#include "io/json.h"
#include "serve/lab.h"

namespace regard::serve {
namespace {

void fuzz_lab(std::string_view bytes) {
  try {
    const std::string answer = attend_json(attend_request(bytes, "application/json", {}), {.threads = 1});
    const Json told = Json::parse(answer, "the answer");
    hold(told.at("scores").array().size() == told.at("weights").array().size(), "weights are as many as scores");
  } catch (const Refusal& refusal) {
    hold(refusal.status() == 400 || refusal.status() == 413, "a refusal has its status");
    hold(std::string_view(refusal.what()).find('\n') == std::string_view::npos, "a refusal is one line");
  } catch (const Error& error) {
    hold(error.kind() == ErrorKind::kLimit, error.what());
  }
}

const FuzzTarget target("lab", fuzz_lab);

}  // namespace
}  // namespace regard::serve
