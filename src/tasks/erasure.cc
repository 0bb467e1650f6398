#include "tasks/erasure.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "regard/random.h"

namespace regard {
namespace {

using Words = std::vector<std::size_t>;  // numbers of words

// The words that were looked at most, and the others, each in the order of the text.
struct Split {
  Words most, others;
};

Split split(const UnitWeights& weights, std::size_t count) {
  std::vector<double> mass(weights.sources, 0);
  for (std::size_t t = 0; t < weights.targets; ++t) {
    for (std::size_t s = 0; s < weights.sources; ++s) mass[s] += weights.at(t, s);
  }
  Words order(weights.sources);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return mass[a] > mass[b]; });
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count);
  Split made{.most = {order.begin(), middle}, .others = {middle, order.end()}};
  std::sort(made.most.begin(), made.most.end());
  std::sort(made.others.begin(), made.others.end());
  return made;
}

// So many of them, as the key has it.
Words draw(Words from, std::size_t count, RandomKey key) {
  count = std::min(count, from.size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto left = static_cast<std::uint32_t>(from.size() - i);
    std::swap(from[i], from[i + random_below(key, i, left)]);
  }
  from.resize(count);
  std::sort(from.begin(), from.end());
  return from;
}

}  // namespace

std::int64_t erased_words(std::int64_t words, double share) {
  if (words < 2) return 0;
  const auto count = static_cast<std::int64_t>(std::lround(share * static_cast<double>(words)));
  return std::clamp<std::int64_t>(count, 1, words - 1);
}

ErasedLine erased(std::string_view line, const std::vector<Translator::Part>& parts, const std::vector<TextUnit>& words,
                  std::span<const std::size_t> gone) {
  std::vector<bool> stays(line.size(), true);
  for (const std::size_t word : gone) {
    std::size_t end = words[word].end;
    const std::size_t begin = words[word].begin;
    if ((begin == 0 || line[begin - 1] == ' ') && end < line.size() && line[end] == ' ') ++end;
    for (std::size_t i = begin; i < end; ++i) stays[i] = false;
  }
  ErasedLine made;
  std::vector<std::size_t> now;  // where each byte has gone
  for (std::size_t i = 0; i < line.size(); ++i) {
    now.push_back(made.text.size());
    if (stays[i]) made.text += line[i];
  }
  now.push_back(made.text.size());
  for (const Translator::Part& part : parts) made.parts.push_back({now[part.begin], now[part.end], part.tokens});
  return made;
}

std::vector<std::optional<TraceErasure>> erasures(const Translator& translator, std::span<const std::string> lines,
                                                  std::span<const Translator::Result> results,
                                                  std::span<const std::shared_ptr<const Translator::Looked>> looked,
                                                  const AlignmentChoice& choice, const ErasureSettings& settings,
                                                  std::int64_t batch_tokens, const Context& context) {
  check(lines.size() == results.size() && lines.size() == looked.size(), "erasure: ", lines.size(), " lines, ",
        results.size(), " results and ", looked.size(), " maps");
  check(settings.share > 0 && settings.share < 1, "erasure: ", settings.share, " of the words, expected 0 to 1");
  check(settings.draws >= 1, "erasure: ", settings.draws, " draws, expected 1 or more");
  // Of every line as it is, without what was looked at most, without what was drawn.
  std::vector<std::string> texts;
  std::vector<Translator::Result> forced;
  std::vector<std::size_t> counts(lines.size(), 0);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const TextPair pair{.source = lines[i], .target = results[i].text};
    const PairUnits units = units_of(translator, pair, *looked[i], AlignmentLevel::kWord, settings.words);
    const auto count =
        static_cast<std::size_t>(erased_words(static_cast<std::int64_t>(units.source.size()), settings.share));
    counts[i] = count;
    if (count == 0) continue;
    std::vector<Translator::Part> parts = results[i].parts;
    if (parts.empty()) parts = {{0, lines[i].size(), results[i].tokens.size()}};
    const auto add = [&](const Words& gone) {
      ErasedLine line = erased(lines[i], parts, units.source, gone);
      texts.push_back(std::move(line.text));
      forced.push_back({.text = results[i].text, .tokens = results[i].tokens, .parts = std::move(line.parts)});
    };
    const Split words = split(unit_weights(*looked[i], units, choice), count);
    add({});
    add(words.most);
    const RandomKey key = RandomKey(settings.seed).at(XXH3_64bits(lines[i].data(), lines[i].size()));
    for (std::int64_t k = 0; k < settings.draws; ++k) {
      add(draw(words.others, count, key.at(static_cast<std::uint64_t>(k))));
    }
  }
  const std::vector<double> likely = translator.log_probabilities(texts, forced, batch_tokens, context);
  std::vector<std::optional<TraceErasure>> made(lines.size());
  auto next = likely.begin();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (counts[i] == 0) continue;
    const double whole = *next++;
    TraceErasure one{.most = whole - *next++, .words = static_cast<std::int64_t>(counts[i])};
    for (std::int64_t k = 0; k < settings.draws; ++k) one.random += whole - *next++;
    one.random /= static_cast<double>(settings.draws);
    if (std::isfinite(one.most) && std::isfinite(one.random)) made[i] = one;
  }
  return made;
}

}  // namespace regard
