#include "tasks/translation_pairs.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/pool.h"

namespace regard {
namespace {

// Beginnings that a thread goes on with at a time: with more their scores of all words leave the cache. regard
// translate, model in the box, 1000 short lines, in turns: 250 take 546 ms, 125 480, 62 460; 1000 long lines, one run
// after another: 82 take 822 ms, 41 897, 20 1071.
constexpr std::int64_t kRowsOfAThread = 96;

}  // namespace

BatchSettings ends_of(const Tokenizer& target) {
  const SpecialIds ids = target.special();
  check(ids.begin >= 0 && ids.end >= 0, "translation: a tokenizer without begin and end (", ids.begin, ", ", ids.end,
        ")");
  return {.begin = ids.begin, .end = ids.end};
}

std::vector<std::int32_t> source_ids(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::int32_t> ids = tokenizer.ids(text);
  ids.push_back(ends_of(tokenizer).end);
  return ids;
}

bool has_room(const Room& room, std::size_t source, std::size_t target) {
  return static_cast<std::int64_t>(source) <= room.source && static_cast<std::int64_t>(target) <= room.target;
}

bool has_room(const Room& room, const SequencePair& pair) {
  return has_room(room, pair.source.size(), pair.target.size() + 1);
}

void check_room(const Room& room, const SequencePair& pair) {
  check(has_room(room, pair), "a pair of ", pair.source.size() - 1, " and ", pair.target.size(),
        " tokens: the model has room for ", to_text(room));
}

void for_each_batch(
    const std::vector<SequencePair>& pairs, std::int64_t tokens, const BatchSettings& ends,
    const std::function<void(const Batch&, const std::function<std::size_t(std::int64_t row)>& number)>& each,
    std::int64_t most) {
  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return pairs[a].source.size() > pairs[b].source.size(); });
  for (std::size_t begin = 0; begin < order.size();) {
    std::vector<SequencePair> some;
    std::size_t longest = 0, end = begin;
    for (; end < order.size() && (most == 0 || end - begin < static_cast<std::size_t>(most)); ++end) {
      const SequencePair& pair = pairs[order[end]];
      longest = std::max({longest, pair.source.size(), pair.target.size() + 1});
      if (end > begin && longest * (end - begin + 1) > static_cast<std::size_t>(tokens)) break;
      some.push_back(pair);
    }
    const Batch batch = make_batch(some, ends);
    each(batch, [&](std::int64_t row) { return order[begin + batch.order[static_cast<std::size_t>(row)]]; });
    begin = end;
  }
}

std::vector<Hypotheses> search_all(const SequenceModel& model, const std::vector<SequencePair>& pairs,
                                   const SearchSettings& settings, std::int64_t tokens, const Context& context,
                                   std::vector<SearchSteps>* steps) {
  std::vector<Hypotheses> found(pairs.size());
  if (steps != nullptr) steps->assign(pairs.size(), {});
  std::vector<SequencePair> sources;
  sources.reserve(pairs.size());
  for (const SequencePair& pair : pairs) sources.push_back({.id = pair.id, .source = pair.source});
  for_each_batch(
      sources, std::max<std::int64_t>(1, tokens / settings.beam), {settings.begin, settings.end},
      [&](const Batch& batch, const auto& number) {
        std::vector<SearchSteps> written;
        std::vector<Hypotheses> some = search(model, batch, settings, context, steps == nullptr ? nullptr : &written);
        for (std::size_t row = 0; row < some.size(); ++row) {
          const std::size_t to = number(static_cast<std::int64_t>(row));
          found[to] = std::move(some[row]);
          if (steps != nullptr) (*steps)[to] = std::move(written[row]);
        }
      },
      std::max<std::int64_t>(1, kRowsOfAThread * threads() / settings.beam));
  return found;
}

}  // namespace regard
