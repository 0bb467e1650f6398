// Bytes on a connection, as they are: requests that are whole, cut off, or none. The first byte says where the bytes
// are cut in two.
#include <future>
#include <stop_token>
#include <thread>

#include "fuzz/target.h"
#include "serve/http.h"
#include "support/http_client.h"

namespace regard::serve {
namespace {

// Answers everything with what it was asked.
class EchoServer {
 public:
  static int port() {
    static EchoServer made;
    return made.server_.port();
  }

 private:
  EchoServer()
      : server_(
            {.port = 0, .limits = {.header = 1024, .body = 2000, .read_seconds = 5, .idle_seconds = 5}},
            [](const HttpRequest& request, const std::shared_ptr<Reply>& reply) {
              hold(request.body.size() <= 2000, "a body is bounded");
              hold(request.path.find('?') == std::string::npos, "a path has no question");
              if (request.path == "/events") {
                reply->event("one", request.method);
                return reply->end();
              }
              reply->send({.body = request.method + " " + request.path + "\n" + request.type + "\n" + request.body});
            }),
        thread_([this](const std::stop_token& stop) { server_.run(stop); }) {}

  HttpServer server_;
  std::jthread thread_;
};

void fuzz_http(std::string_view bytes) {
  if (!HttpServer::available()) return;
  Input input(bytes);
  const std::size_t cut = input.below(256);
  const std::string_view all = input.rest();
  Client client(EchoServer::port());
  if (!client.connected()) return;  // no port is free
  client.send(all.substr(0, cut));
  client.send(all.substr(std::min(cut, all.size())));
  client.finish();
  const std::string answer = client.read_all();
  hold(answer.empty() || answer.starts_with("HTTP/1."), "an answer is HTTP");
}

const FuzzTarget target("http", fuzz_http);

}  // namespace
}  // namespace regard::serve
