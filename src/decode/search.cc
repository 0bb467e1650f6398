#include "decode/search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/budget_scope.h"
#include "base/check.h"
#include "base/pool.h"
#include "kernels/softmax.h"
#include "models/tape_pool.h"

namespace regard {
namespace {

// So many sources a thread are searched by each thread for itself, which waits for nobody; with fewer all threads share
// the products of one batch.
constexpr std::int64_t kLeastShare = 4;

struct Written {  // a word and what was before it: beginnings share theirs
  std::int32_t before;
  std::int32_t word;
  std::int32_t row;  // of the step that wrote it
};

// What one source is looking for.
class Looking {
 public:
  Looking(std::int64_t longest, const SearchSettings& settings, bool records)
      : longest_(std::max(longest, static_cast<std::int64_t>(settings.prefix.size()))),
        settings_(settings),
        records_(records) {}

  struct Row {                  // a beginning
    std::int32_t written = -1;  // its last word in all_, −1: none yet
    std::int32_t origin = 0;    // its row in the step before, counted within the source
    double log_probability = 0;
  };
  std::vector<Row> rows = {Row{}};  // what goes on
  std::int64_t place = 0;           // of the source among those of the last step
  SearchSteps steps = {};           // if it records
  std::int32_t word_of(const Row& row) const {
    return row.written < 0 ? settings_.begin : all_[static_cast<std::size_t>(row.written)].word;
  }

  // One step: of every row the likeliest words and their log-probabilities, `each` of them, and that of the end or of
  // the word that it has to write. `first`: the number of the first row.
  void step(std::int64_t each, const std::int32_t* words, const float* log_probabilities, const float* ends,
            std::int64_t first) {
    struct Candidate {
      std::size_t row;
      std::int32_t word;
      double log_probability;
    };
    ++length_;
    std::vector<Candidate> candidates;
    const bool told = length_ <= static_cast<std::int64_t>(settings_.prefix.size());
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (told) {
        candidates.push_back({row, settings_.prefix[static_cast<std::size_t>(length_ - 1)],
                              rows[row].log_probability + static_cast<double>(ends[row])});
        continue;
      }
      if (length_ > longest_) {  // nothing but the end fits
        candidates.push_back({row, settings_.end, rows[row].log_probability + static_cast<double>(ends[row])});
        continue;
      }
      for (std::int64_t i = 0; i < each; ++i) {
        const auto at = static_cast<std::int64_t>(row) * each + i;
        candidates.push_back({row, words[at], rows[row].log_probability + static_cast<double>(log_probabilities[at])});
      }
    }
    std::erase_if(candidates, [](const Candidate& c) { return c.log_probability == -kInfinite; });
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
      return a.row != b.row ? a.row < b.row : a.word < b.word;  // one order, also among equals
    });
    std::vector<Row> next;
    std::vector<SearchRow> went_on, ended;  // for the record
    const auto record = [&](const Candidate& c) {
      if (!records_) return;
      (c.word == settings_.end ? ended : went_on)
          .push_back({c.word, length_ == 1 ? -1 : static_cast<std::int32_t>(c.row), c.log_probability});
    };
    const auto beam = static_cast<std::size_t>(settings_.beam);
    for (std::size_t i = 0; i < candidates.size() && next.size() < beam; ++i) {
      const Candidate& c = candidates[i];
      const std::int32_t before = rows[c.row].written;
      const auto number = static_cast<std::int32_t>(first + static_cast<std::int64_t>(c.row));
      if (c.word != settings_.end) {
        all_.push_back({before, c.word, number});
        next.push_back(
            {static_cast<std::int32_t>(all_.size()) - 1, static_cast<std::int32_t>(c.row), c.log_probability});
        record(c);
      } else if (i < beam || length_ > longest_) {
        Ended& made = ended_.emplace_back();
        made.hypothesis = {words_before(before), c.log_probability, score(c.log_probability, length_)};
        made.last = before;
        made.row = number;
        record(c);
      }
    }
    if (records_) {
      went_on.insert(went_on.end(), ended.begin(), ended.end());
      steps.push_back(std::move(went_on));
    }
    rows = std::move(next);
    if (length_ > longest_ || (!rows.empty() && is_beaten(rows[0].log_probability))) rows.clear();
  }
  bool is_done() const { return rows.empty(); }

  // What ended, best first, with where it looked if that is kept.
  Hypotheses found(const Decoding& decoding, std::int64_t source) {
    check(!ended_.empty(), "decoding: whatever is written has the probability 0; the model is damaged");
    std::stable_sort(ended_.begin(), ended_.end(),
                     [](const Ended& a, const Ended& b) { return a.hypothesis.score > b.hypothesis.score; });
    Hypotheses made;
    for (Ended& each : ended_) {
      if (made.size() == static_cast<std::size_t>(settings_.best)) break;
      made.push_back(std::move(each.hypothesis));
      if (settings_.keeps == Keeps::kNothing) continue;
      std::vector<std::int32_t> path = {each.row};
      for (std::int32_t at = each.last; at >= 0; at = all_[static_cast<std::size_t>(at)].before) {
        path.push_back(all_[static_cast<std::size_t>(at)].row);
      }
      std::reverse(path.begin(), path.end());
      made.back().looked = decoding.looked(source, path);
    }
    return made;
  }

 private:
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
  double score(double log_probability, std::int64_t length) const {
    return log_probability / std::pow(static_cast<double>(length), settings_.penalty);
  }
  // Enough has ended, and as many of it as are wanted would be better than the likeliest beginning if that ended now
  // for sure. (To count what has ended is not enough: unlikely ends come early.)
  bool is_beaten(double log_probability) const {
    if (ended_.size() < static_cast<std::size_t>(settings_.beam)) return false;
    if (settings_.beam == 1) return true;  // greedy: the end was the likeliest word
    const double live = score(log_probability, length_ + 1);
    return std::count_if(ended_.begin(), ended_.end(),
                         [&](const Ended& each) { return each.hypothesis.score >= live; }) >= settings_.best;
  }
  std::vector<std::int32_t> words_before(std::int32_t written) const {
    std::vector<std::int32_t> words;
    for (; written >= 0; written = all_[static_cast<std::size_t>(written)].before) {
      words.push_back(all_[static_cast<std::size_t>(written)].word);
    }
    std::reverse(words.begin(), words.end());
    return words;
  }

  struct Ended {
    Hypothesis hypothesis;
    std::int32_t last = -1, row = 0;  // its last word in all_, and the row that wrote the end
  };

  std::int64_t longest_, length_ = 0;
  const SearchSettings& settings_;
  bool records_;
  std::vector<Written> all_;
  std::vector<Ended> ended_;
};

void check_settings(const SearchSettings& settings, std::int64_t words) {
  check(settings.beam >= 1, "search: a beam of ", settings.beam, ", expected 1 or more");
  check(settings.best >= 1 && settings.best <= settings.beam, "search: ", settings.best, " results of a beam of ",
        settings.beam, ", expected 1 to ", settings.beam);
  check(std::isfinite(settings.penalty) && settings.penalty >= 0, "search: a length penalty of ", settings.penalty,
        ", expected 0 or more");
  check_limit(settings.limit);
  for (const std::int32_t id : {settings.begin, settings.end}) {
    check(id >= 0 && id < words, "search: word ", id, " begins or ends, expected 0 to ", words - 1);
  }
  for (const std::int32_t id : settings.prefix) {
    check(id >= 0 && id < words && id != settings.end, "search: word ", id,
          " in what results begin with, expected 0 to ", words - 1, " and not the end");
  }
}

}  // namespace

std::int64_t LengthLimit::of(std::int64_t source) const {
  const std::int64_t by_source = static_cast<std::int64_t>(factor * static_cast<double>(source)) + more;
  return words > 0 ? std::min(words, by_source) : by_source;
}

std::int64_t LengthLimit::of(std::int64_t source, const Room& room) const {
  return std::min(of(source), room.target - 1);
}

void check_limit(const LengthLimit& limit) {
  check(limit.factor >= 0 && limit.factor <= 1e3 && limit.more >= 0 && limit.more <= 1'000'000 && limit.words >= 0,
        "decoding: results of at most ", limit.factor, " · source + ", limit.more, " words and of at most ",
        limit.words, ", expected 0 to 1000, 0 to 1000000 and 0 or more");
}

namespace {

std::vector<Hypotheses> search_together(const SequenceModel& model, const Batch& batch, const SearchSettings& settings,
                                        const Context& context, std::vector<SearchSteps>* steps) {
  const std::int64_t vocabulary = model.target_words();
  std::vector<Looking> all;
  std::vector<std::int32_t> running;  // sources
  for (std::int64_t row = 0; row < batch.size(); ++row) {
    all.emplace_back(settings.limit.of(batch.lengths[static_cast<std::size_t>(row)], model.room()), settings,
                     steps != nullptr);
    running.push_back(static_cast<std::int32_t>(row));
  }
  std::vector<Hypotheses> found(all.size());
  if (steps != nullptr) steps->assign(all.size(), {});
  if (all.empty()) return found;

  const std::unique_ptr<Decoding> decoding =
      model.decode(batch, {.keeps = settings.keeps, .what_if = settings.what_if});
  // Ends may stand among the best of every row, so twice as many words as beginnings.
  const std::int64_t each = std::min(2 * settings.beam, vocabulary);
  std::int64_t width = 1, width_before = 1;
  std::vector<std::int32_t> origins, previous, ids;
  std::vector<float> values, ends;
  for (std::size_t step = 0; !running.empty(); ++step) {
    stop_if_asked(context);
    const std::int32_t also = step < settings.prefix.size() ? settings.prefix[step] : settings.end;
    origins.clear();
    previous.clear();
    for (const std::int32_t source : running) {
      const Looking& looking = all[static_cast<std::size_t>(source)];
      for (std::int64_t i = 0; i < width; ++i) {  // who has fewer beginnings repeats the last one, unread
        const auto& row = looking.rows[std::min(static_cast<std::size_t>(i), looking.rows.size() - 1)];
        origins.push_back(static_cast<std::int32_t>(looking.place * width_before) + row.origin);
        previous.push_back(looking.word_of(row));
      }
    }
    const Tensor logits = decoding->step(running, origins, previous);
    const auto rows = static_cast<std::size_t>(logits[0]);
    ids.resize(rows * static_cast<std::size_t>(each));
    values.resize(ids.size());
    ends.resize(rows);
    likeliest({logits.data<float>(), rows, static_cast<std::size_t>(vocabulary), static_cast<std::size_t>(vocabulary)},
              {.count = static_cast<std::size_t>(each),
               .columns = ids.data(),
               .values = values.data(),
               .also = static_cast<std::size_t>(also),
               .also_values = ends.data()});
    std::vector<std::int32_t> still;
    for (std::size_t s = 0; s < running.size(); ++s) {
      Looking& looking = all[static_cast<std::size_t>(running[s])];
      const auto first = static_cast<std::int64_t>(s) * width;
      for (std::int64_t i = 0; i < width; ++i) {
        check(!std::isnan(ends[static_cast<std::size_t>(first + i)]),
              "decoding: the score of a word is not a number; the model is damaged");
      }
      looking.place = static_cast<std::int64_t>(s);
      looking.step(each, ids.data() + first * each, values.data() + first * each, ends.data() + first, first);
      if (looking.is_done()) {
        if (steps != nullptr) (*steps)[static_cast<std::size_t>(running[s])] = std::move(looking.steps);
      } else {
        still.push_back(running[s]);
      }
    }
    running = std::move(still);
    width_before = width;
    width = settings.beam;
  }
  // At the end, when both threads and all that was kept are there.
  parallel(all.size(), [&](std::size_t i) { found[i] = all[i].found(*decoding, static_cast<std::int64_t>(i)); });
  return found;
}

}  // namespace

std::vector<Hypotheses> search(const SequenceModel& model, const Batch& batch, const SearchSettings& settings,
                               const Context& context, std::vector<SearchSteps>* steps) {
  check_settings(settings, model.target_words());
  const std::int64_t parts = threads();
  if (parts == 1 || batch.size() < kLeastShare * parts) return search_together(model, batch, settings, context, steps);
  std::vector<Hypotheses> found(static_cast<std::size_t>(batch.size()));
  if (steps != nullptr) steps->assign(found.size(), {});
  const std::shared_ptr<Budget> budget = current_budget();
  TapePool* const tapes = tape_pool_in_force();
  parallel(static_cast<std::size_t>(parts), [&](std::size_t part) {
    const BudgetScope memory(budget);
    const TapePoolScope scope(tapes);
    const Batch own = some_sources(batch, static_cast<std::int64_t>(part), parts);
    std::vector<SearchSteps> written;
    std::vector<Hypotheses> some =
        search_together(model, own, settings, context, steps == nullptr ? nullptr : &written);
    for (std::size_t i = 0; i < some.size(); ++i) {
      const std::size_t row = part + i * static_cast<std::size_t>(parts);
      found[row] = std::move(some[i]);
      if (steps != nullptr) (*steps)[row] = std::move(written[i]);
    }
  });
  return found;
}

}  // namespace regard
