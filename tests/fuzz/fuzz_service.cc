// Requests to a server with two small models, from the body to the answer. The first byte says to which path.
#include <future>

#include "fuzz/target.h"
#include "io/json.h"
#include "serve/service.h"
#include "serve/tiny_models.h"

namespace regard::serve {
namespace {

class Kept : public Reply {
 public:
  void send(HttpAnswer answer) override { promise_.set_value(std::move(answer)); }
  void event(std::string_view, std::string_view data) override { Json::parse(data, "an event"); }
  void end() override { promise_.set_value({.body = "{}"}); }
  std::stop_token gone() const override { return {}; }
  HttpAnswer answer() { return promise_.get_future().get(); }

 private:
  std::promise<HttpAnswer> promise_;
};

Service& service() {
  static Service made(
      TinyModels::all(),
      {.limits =
           {.texts = 3, .text = 60, .tokens = 20, .beam = 4, .alternatives = 3, .delay = 0, .workers = 1, .threads = 1},
       .log = [](std::string_view line) { hold(false, std::string(line).c_str()); }});
  return made;
}

void fuzz_service(std::string_view bytes) {
  if (!HttpServer::available()) return;
  static const char* const paths[] = {"/translate", "/edit", "/align", "/score", "/detect", "/attend", "/health"};
  Input input(bytes);
  const std::string path = paths[input.below(std::size(paths))];
  const auto reply = std::make_shared<Kept>();
  service().handle({.method = path == "/health" ? "GET" : "POST",
                    .path = path,
                    .type = "application/json",
                    .body = std::string(input.rest()),
                    .key = {},
                    .id = "1"},
                   reply);
  const HttpAnswer answer = reply->answer();
  hold(answer.status == 200 || (answer.status >= 400 && answer.status < 500) || answer.status == 503,
       "it is no mistake of ours");
  if (answer.type == "application/json") Json::parse(answer.body, "the answer");
}

const FuzzTarget target("service", fuzz_service);

}  // namespace
}  // namespace regard::serve
