// Options of commands that can write a trace of what they did: --trace and what belongs to it.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/check.h"
#include "cli/app.h"
#include "cli/note.h"
#include "tasks/traces.h"

namespace regard::cli {

struct TraceOptions {
  std::string path;
  std::string maps;  // not said: cross
  bool beam = false, erasure = false;

  bool asked() const { return !path.empty(); }
  Keeps keeps() const {  // of a search
    return maps == "all" ? Keeps::kMaps : maps == "norms" ? Keeps::kEverything : Keeps::kSource;
  }
  TraceSettings settings() const { return {.maps = keeps(), .erasure = erasure}; }

  void add(App& app, bool searches) {
    app.add_option("--trace", path,
                   "write the weights of all layers and heads, for regard view and other programs (docs/trace.md)")
        ->option_text("FILE");
    app.add_option("--trace-maps", maps,
                   "in the trace: cross, where the source was looked at; all, also what encoder and decoder looked at\n"
                   "of themselves; norms, also lengths of values (cross)")
        ->check(IsMember({"cross", "all", "norms"}))
        ->option_text("KIND");
    if (searches) app.add_flag("--trace-beam", beam, "in the trace: what the search wrote, step after step");
    app.add_flag(
        "--erasure", erasure,
        "in the trace: how far the log-probability falls without the words looked at most, and without others");
  }

  void check_asked(const char* command) const {
    check(asked() || maps.empty(), command, ": --trace-maps is for --trace");
    check(asked() || !beam, command, ": --trace-beam is for --trace");
    check(asked() || !erasure, command, ": --erasure is for --trace");
  }

  // As a whole or not at all. What did not fit is said.
  void write(TraceCollector& collector) const {
    if (collector.left_out() > 0) {
      note("regard: '{}' has the first {} results; {} more are left out, a trace has at most {} MB\n", path,
           collector.trace().items.size(), collector.left_out(), TraceCollector::kMostBytes >> 20);
    }
    collector.write(path);
  }
};

}  // namespace regard::cli
