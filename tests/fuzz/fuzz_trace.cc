// Trace files, with a digest that fits, and what is drawn of them.
#include "fuzz/target.h"
#include "io/json.h"
#include "support/damage.h"
#include "view/show.h"

namespace regard {
namespace {

std::int64_t numbers_of(const Trace& trace) {
  std::int64_t count = 0;
  for (const TraceItem& item : trace.items) {
    for (const TraceMap& map : item.maps) count += map.weights.size();
  }
  return count;
}

void fuzz_trace(std::string_view bytes) {
  taken([&] {
    const Trace trace = Trace::parse(sealed_anew(std::string(bytes)), "a trace");
    const std::string written = trace.bytes();
    hold(Trace::parse(written, "what was written").bytes() == written, "what is written reads as the same");
    for (std::size_t i = 0; i < trace.items.size() && numbers_of(trace) < 5000; ++i) {
      for (const bool words : {false, true}) {
        ShowSettings settings;
        settings.choice.item = static_cast<std::int64_t>(i);
        settings.choice.words = words;
        settings.choice.rollout = settings.choice.norms = false;
        taken([&] { show(trace, settings, ShowFormat::kTerminal); });
        taken([&] { show(trace, settings, ShowFormat::kSvg); });
        taken([&] { Json::parse(show(trace, settings, ShowFormat::kJson), "the map as JSON"); });
      }
    }
  });
}

const FuzzTarget target("trace", fuzz_trace);

// Every way to draw: the first bytes say which, the rest is a trace.
void fuzz_view(std::string_view bytes) {
  Input input(bytes);
  ShowSettings settings;
  settings.view = static_cast<View>(input.below(9));
  const ShowFormat formats[] = {ShowFormat::kTerminal, ShowFormat::kSvg, ShowFormat::kTxt, ShowFormat::kHtml};
  const ShowFormat format = formats[input.below(std::size(formats))];
  const std::size_t how = input.below(256);
  settings.choice = {.item = static_cast<std::int64_t>(how & 1),
                     .layer = {},
                     .head = {},
                     .words = (how & 2) != 0,
                     .rollout = (how & 4) != 0,
                     .norms = (how & 8) != 0};
  if ((how & 16) != 0) settings.choice.layer = 0;
  if ((how & 32) != 0) settings.choice.head = 1;
  settings.terminal.colors = (how & 64) != 0 ? Colors::kAll : Colors::kNone;
  settings.terminal.half = (how & 128) != 0;
  settings.token = std::string(input.text());
  taken([&] {
    const Trace trace = Trace::parse(sealed_anew(std::string(input.rest())), "a trace");
    settings.other = &trace;
    if (numbers_of(trace) < 5000) show(trace, settings, format);
  });
}

const FuzzTarget view_target("view", fuzz_view);

}  // namespace
}  // namespace regard
