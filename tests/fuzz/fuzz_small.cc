// Small texts that people write: links, settings, counts, metrics. The first byte says which.
#include "fuzz/target.h"
#include "models/presets.h"
#include "tasks/links.h"
#include "train/counts.h"
#include "view/plot.h"

namespace regard {
namespace {

void fuzz_small(std::string_view bytes) {
  Input input(bytes);
  const std::size_t which = input.below(5);
  const std::string_view text = input.rest();
  taken([&] {
    if (which == 0) {
      const Links links = parse_links(text, "here");
      hold(parse_links(pharaoh(links), "what was written") == links, "what is written reads as the same");
      for (const Link& each : links) hold(each.source <= 200 || each.source <= kMostUnits, "links are bounded");
      if (links.size() < 100) symmetrized(Symmetry::kGrowDiagFinalAnd, links, turned(links));
    } else if (which == 1) {
      const GoldLinks gold = parse_gold(text, "here", 1);
      AlignmentScore score;
      score.add(gold.sure, gold);
      hold(score.precision() == 1, "what is sure is possible");
    } else if (which == 2) {
      const Count count = parse_count(text, "--stop-after");
      hold(count.amount >= 0, "a count is no less than 0");
      hold(parse_count(to_text(count), "what was written").unit == count.unit, "what is written reads as the same");
    } else if (which == 3) {
      const std::size_t equals = std::min(text.find('='), text.size());
      ModelSettings settings;
      set(settings, text.substr(0, equals), text.substr(std::min(equals + 1, text.size())));
      for (const auto& [key, value] : list(settings)) set(settings, key, value);
    } else {
      const PlotRun run = parse_metrics(text, "this");
      plot_svg({&run, 1}, {.log = input.below(2) == 1});
    }
  });
}

const FuzzTarget target("small", fuzz_small);

}  // namespace
}  // namespace regard
