// `regard serve`: translations over HTTP.
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "cli/command.h"
#include "cli/note.h"
#include "serve/http.h"
#include "serve/models.h"
#include "serve/service.h"

namespace regard::cli {
namespace {

struct Options {
  std::vector<std::string> models;
  std::string host = "127.0.0.1", key;
  int port = 8080;
  bool int8 = false;
  serve::Limits limits;
};

int run(const Options& options, const Context& context) {
  check(serve::HttpServer::available(), "serve: this program was built without Boost, which the server needs");
  const serve::Models models(options.models, options.int8);
  std::unique_ptr<serve::Service> service;
  serve::HttpServer server({.host = options.host, .port = options.port, .limits = options.limits},
                           [&](const serve::HttpRequest& request, std::shared_ptr<serve::Reply> reply) {
                             service->handle(request, std::move(reply));
                           });
  service = std::make_unique<serve::Service>(
      models, serve::Service::Settings{
                  .limits = options.limits,
                  .key = options.key,
                  .connections = [&server] { return server.connections(); },
                  .log = [](std::string_view line) { note("regard: serve: {}\n", line); },
              });
  std::string names;
  for (const serve::Model& each : models.all()) names += (names.empty() ? "" : ", ") + each.name;
  const bool six = options.host.find(':') != std::string::npos;
  fmt::print("serving {} on http://{}{}{}:{}\n", names, six ? "[" : "", options.host, six ? "]" : "", server.port());
  std::fflush(stdout);
  const bool answered = server.run(context.cancel);
  service.reset();  // before the server: its threads still hold answers
  if (!answered) note("regard: serve: not all was answered within {} s\n", options.limits.drain_seconds);
  return answered ? 0 : 1;
}

const AddCommand command({
    .name = "serve",
    .summary = "translations over HTTP, in LibreTranslate's shape",
    .example = "regard serve -m zh-en.model --port 8080\n"
               "curl -d '{\"q\": \"他们在看。\"}' -H 'Content-Type: application/json' localhost:8080/translate",
    .build = [](App& app) -> Run {
      auto options = std::make_shared<Options>();
      serve::Limits& limits = options->limits;
      app.add_option("-m,--model", options->models,
                     "a model, named after its languages (zh-en.model) or with them (zh-en=FILE); several may be\n"
                     "given. None: the models in the box")
          ->allow_extra_args(false)
          ->option_text("MODEL");
      app.add_option("--port", options->port, "where to listen (8080); 0: a port that is free")
          ->check(Range(0, 65535))
          ->option_text("N");
      app.add_option("--host", options->host,
                     "an address of this machine (127.0.0.1: nobody else can ask); 0.0.0.0: all")
          ->option_text("ADDRESS");
      app.add_option("--api-key", options->key, "what clients have to send as api_key, or as Authorization: Bearer")
          ->envname("REGARD_API_KEY")
          ->check([](const std::string& key) { return key.empty() ? "an empty key would let everybody in" : ""; })
          ->option_text("KEY");
      app.add_flag("--int8", options->int8, "compute with weights of 8 bits: faster, nearly the same translations");
      const auto whole = [&app](const char* name, auto& value, std::int64_t least, const char* help) {
        app.add_option(name, value, help)
            ->check(Range(least, std::int64_t{1} << 30))
            ->group("Limits")
            ->option_text("N");
      };
      const auto real = [&app](const char* name, double& value, const char* help) {
        const auto seconds = [](const std::string& given) {  // Range has nothing against nan
          char* end = nullptr;
          const auto said = static_cast<double>(std::strtold(given.c_str(), &end));
          const bool number = !given.empty() && end == given.c_str() + given.size();
          const bool right = number && said >= 0 && said <= 86400;
          return right ? std::string() : text("'", given, "', expected seconds from 0 to 86400");
        };
        app.add_option(name, value, help)->check(seconds)->group("Limits")->option_text("X");
      };
      whole("--connections", limits.connections, 1, "at once (10000), beyond: 503");
      whole("--per-client", limits.per_client, 0, "requests of one address under way, beyond: 429 (0: no limit)");
      whole("--header", limits.header, 64, "bytes of a header (8192), beyond: 431");
      whole("--body", limits.body, 1, "bytes of a body (1048576), beyond: 413");
      whole("--texts", limits.texts, 1, "texts of a request (128), beyond: 413");
      whole("--text", limits.text, 1, "bytes of all texts of a request (20000), beyond: 413");
      whole("--tokens", limits.tokens, 1, "tokens of a side that is aligned or scored (1000), beyond: 413");
      whole("--beam", limits.beam, 1, "the largest that may be asked for (16)");
      whole("--alternatives", limits.alternatives, 0, "that may be asked for (10)");
      whole("--weights", limits.weights, 1, "numbers of attention in an answer (1000000), beyond: 413");
      whole("--queue", limits.queue, 1, "requests that wait (64), beyond: 503");
      whole("--batch", limits.batch, 1, "lines that are translated together (64)");
      app.add_option("--workers", limits.workers, "threads that translate (2)")
          ->check(Range(1, 1024))
          ->group("Limits")
          ->option_text("N");
      real("--delay", limits.delay, "seconds that a request waits for company (0.002)");
      real("--read-seconds", limits.read_seconds, "for a request to arrive as a whole (10)");
      real("--write-seconds", limits.write_seconds, "for an answer to be taken (30)");
      real("--idle-seconds", limits.idle_seconds, "between two requests of a connection (60)");
      real("--request-seconds", limits.request_seconds, "for an answer to be found (30), beyond: 503");
      real("--drain-seconds", limits.drain_seconds, "for what is under way when asked to stop (30)");
      return [options](const Context& context) {
        options->limits.threads = context.threads;
        return run(*options, context);
      };
    },
});

}  // namespace
}  // namespace regard::cli
