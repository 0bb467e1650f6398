// What the server does with a request: the paths, the models, the batcher and the metrics. It knows nothing of sockets:
// tests hand it requests and look at the answers.
//
//     Service service(models, {.limits = limits});
//     service.handle(request, reply);                 // answers now or later, from one of its threads
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"
#include "serve/batcher.h"
#include "serve/http.h"
#include "serve/limits.h"
#include "serve/metrics.h"
#include "serve/models.h"
#include "serve/request.h"

namespace regard::serve {

class Service {
 public:
  struct Settings {
    Limits limits = {};
    std::string key = {};                            // that clients must have; "": none
    std::function<std::int64_t()> connections = {};  // how many there are, for the metrics
    std::function<void(std::string_view)> log = {};  // one line about what went wrong
  };
  Service(const Models& models, Settings settings);  // the models have to outlive it
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void handle(const HttpRequest& request, std::shared_ptr<Reply> reply);
  static std::vector<std::string_view> paths();

 private:
  struct Asked;  // a request on its way
  using AskedPointer = std::shared_ptr<Asked>;
  struct Route {
    std::string_view method, path;
    void (Service::*serve)(const AskedPointer&);
  };
  static const std::vector<Route>& routes();

  void translate(const AskedPointer& asked);
  void edit(const AskedPointer& asked);
  void align(const AskedPointer& asked);
  void score(const AskedPointer& asked);
  void detect(const AskedPointer& asked);
  void attend(const AskedPointer& asked);
  void languages(const AskedPointer& asked);
  void models(const AskedPointer& asked);
  void mechanisms(const AskedPointer& asked);
  void health(const AskedPointer& asked);
  void metrics(const AskedPointer& asked);
  void openapi(const AskedPointer& asked);

  void let_in(const Asked& asked, const std::string& key) const;
  void add(const AskedPointer& asked, Batcher::Job job);
  // What `write` says of each pair, under this name.
  using WritePair = std::function<void(JsonWriter& out, const PairsRequest& request, const Translator& translator,
                                       const TextPair& pair, const Context& context)>;
  void answer_pairs(const AskedPointer& asked, PairsRequest given, const char* name, const WritePair& write);
  // Calls, and turns what is thrown into an answer.
  void guarded(const AskedPointer& asked, const std::function<void()>& work) const;

  const Models& models_;
  Settings settings_;
  Metrics metrics_;
  Batcher batcher_;  // last: its threads use all of the above
};

}  // namespace regard::serve
