// HTTP: connections, limits, deadlines. What is asked and answered is somebody else's business.
//
//     HttpServer server({.port = 8080}, [](const HttpRequest& request, std::shared_ptr<Reply> reply) {
//       reply->send({.body = "{}"});                       // now or later, from any thread
//     });
//     server.run(stop);                                    // until asked to stop, and all is answered
//
// One thread does all input and output. A client that sends slowly, takes slowly or says nothing costs a few hundred
// bytes and is cut off by a deadline for the whole request. A request that is malformed never reaches the handler.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/limits.h"

namespace regard::serve {

struct HttpRequest {
  std::string method, path;  // the path without what follows a '?'
  std::string type;          // of the body
  std::string body;
  std::string key;  // of "Authorization: Bearer KEY"
  std::string id;   // of this request, for logs and errors
};

struct HttpAnswer {
  int status = 200;
  std::string body = {};
  std::string type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// {"error": "…", "id": "…"}, and Retry-After where it makes sense.
HttpAnswer error_answer(int status, std::string_view text, std::string_view id);

// Where the answer goes. Every function may be called from any thread; of what comes after the answer nothing is sent.
// One that goes away without an answer was forgotten: the client is told 500.
class Reply {
 public:
  virtual ~Reply() = default;
  virtual void send(HttpAnswer answer) = 0;
  // Server-sent events instead of an answer: any number of them, then the end.
  virtual void event(std::string_view name, std::string_view data) = 0;
  virtual void end() = 0;
  virtual std::stop_token gone() const = 0;  // asked to stop when nobody waits for the answer any more
};

class HttpServer {
 public:
  struct Settings {
    std::string host = "127.0.0.1";
    int port = 8080;  // 0: one that is free
    Limits limits = {};
  };
  using Handler = std::function<void(const HttpRequest& request, std::shared_ptr<Reply> reply)>;

  HttpServer(const Settings& settings, Handler handler);  // listens; throws if it cannot
  ~HttpServer();                                          // all Replies must be gone
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  std::int64_t connections() const;
  // Asked to stop, it takes no new connections, answers what was asked, and returns: true if all was answered in time.
  bool run(const std::stop_token& stop);

  static bool available();  // false: this program was built without

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace regard::serve
