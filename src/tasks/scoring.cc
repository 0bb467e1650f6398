#include "tasks/scoring.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "tasks/translation_pairs.h"

namespace regard {
namespace {

constexpr std::size_t kBytesTogether = std::size_t{1} << 20;  // of text, at most, but for one line that is longer

std::string line_of(const Translator& translator, const Translator::Result& result, const ScoringSettings& settings) {
  const double count = static_cast<double>(result.each.size());
  std::string line =
      fmt::format("{:.4f}", settings.normalize ? result.log_probability / count : result.log_probability);
  if (!settings.per_token) return line;
  const std::vector<std::string> names = labels_of(translator.target(), result.tokens);
  line += " |||";
  for (std::size_t i = 0; i < names.size(); ++i) line += fmt::format(" {}:{:.4f}", names[i], result.each[i]);
  return line;
}

}  // namespace

ScoringReport score_pairs(const Translator& translator, PairReader& pairs, const ScoringSettings& settings,
                          const std::function<void(std::string_view)>& write, const Context& context) {
  check(settings.longest >= 1 && settings.together >= 1, "score: at most ", settings.longest, " tokens, ",
        settings.together, " pairs together: expected 1 or more");
  ScoringReport report;
  std::uint64_t too_long = 0, first_too_long = 0;
  std::vector<TextPair> waiting;
  std::vector<bool> given;  // of every line since the last flush: is it one of those waiting?
  std::size_t bytes = 0;
  const Room room = translator.room(settings.longest);
  const auto flush = [&] {
    const std::vector<Translator::Result> results = translator.force(waiting, {}, context);
    std::size_t next = 0;
    for (const bool scored : given) write(scored ? line_of(translator, results[next++], settings) : "nan");
    report.scored += waiting.size();
    waiting.clear();
    given.clear();
    bytes = 0;
  };
  const auto skip_to = [&](std::uint64_t line) {  // those left out before it
    for (; report.pairs + 1 < line; ++report.pairs) {
      given.push_back(false);
      if (given.size() >= settings.together) flush();
    }
  };
  for (LinePair pair; pairs.next(pair); ++report.pairs) {
    stop_if_asked(context);
    skip_to(pair.line);
    const bool fits =
        has_room(room, translator.source().encode(pair.source).size(), translator.target().encode(pair.target).size());
    given.push_back(fits);
    if (fits) {
      bytes += pair.source.size() + pair.target.size();
      waiting.push_back({std::move(pair.source), std::move(pair.target)});
    } else if (++too_long == 1) {
      first_too_long = pair.line;
    }
    if (given.size() >= settings.together || bytes >= kBytesTogether) flush();
  }
  skip_to(pairs.report().read + 1);
  flush();
  if (pairs.report().dropped() > 0) report.left_out = pairs.report().text();
  if (too_long > 0) {
    report.left_out += fmt::format("{} pair{} with a side of more than {} tokens, the first at line {}\n", too_long,
                                   too_long == 1 ? "" : "s", std::min(room.source, room.target), first_too_long);
  }
  return report;
}

}  // namespace regard
