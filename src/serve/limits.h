// Every limit of the server, in one place. What goes beyond one is refused with a status and a reason (docs/serve.md);
// nothing a client sends makes the server hold more than these say.
#pragma once

#include <cstddef>
#include <cstdint>

namespace regard::serve {

struct Limits {
  // Of connections.
  std::int64_t connections = 10'000;  // at once; one more is told 503
  std::int64_t per_client = 0;        // requests of one address under way, beyond: 429; 0: no such limit
  std::size_t header = 8 << 10;       // bytes, beyond: 431
  std::size_t body = 1 << 20;         // bytes, beyond: 413
  double read_seconds = 10;           // from the first byte of a request to its last
  double write_seconds = 30;          // for an answer to be taken
  double idle_seconds = 60;           // between two requests of a connection

  // Of a request.
  std::int64_t texts = 128;          // in one request
  std::int64_t text = 20'000;        // bytes of all of them, beyond: 413
  std::int64_t tokens = 1000;        // of a side of a pair that is aligned or scored
  std::int64_t beam = 16;            //
  std::int64_t alternatives = 10;    //
  std::int64_t weights = 1'000'000;  // numbers of attention in one answer
  std::int64_t html_depth = 64;      // of inline elements; deeper ones stay where they are
  double request_seconds = 30;       // from the last byte of a request to its answer, beyond: 503

  // Of the work.
  std::int64_t queue = 64;    // requests that wait, beyond: 503
  std::int64_t batch = 64;    // lines that are translated together
  double delay = 0.002;       // seconds that a request waits for others to be translated with
  std::int64_t workers = 2;   // threads that translate
  int threads = 0;            // cores that each of them may use; 0: all
  double drain_seconds = 30;  // for what is under way, once the server is asked to stop
};

}  // namespace regard::serve
