#include "data/batches.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/pool.h"
#include "regard/random.h"

namespace regard {
namespace {

// What is read and split at a time, by all threads: so many pairs, or so many bytes if they are long.
constexpr std::size_t kBlockPairs = 512;
constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

// Numbers of many pairs, in one piece of memory.
class PairStore {
 public:
  void add(std::uint64_t id, std::span<const std::int32_t> source, std::span<const std::int32_t> target) {
    pairs_.push_back(
        {id, tokens_.size(), static_cast<std::uint32_t>(source.size()), static_cast<std::uint32_t>(target.size())});
    tokens_.insert(tokens_.end(), source.begin(), source.end());
    tokens_.insert(tokens_.end(), target.begin(), target.end());
  }
  void clear() {
    tokens_.clear();
    pairs_.clear();
  }
  std::size_t size() const { return pairs_.size(); }
  std::int64_t source_length(std::size_t i) const { return pairs_[i].source; }
  std::int64_t target_length(std::size_t i) const { return pairs_[i].target; }
  std::uint64_t id(std::size_t i) const { return pairs_[i].id; }
  std::span<const std::int32_t> source(std::size_t i) const {
    return {tokens_.data() + pairs_[i].start, pairs_[i].source};
  }
  std::span<const std::int32_t> target(std::size_t i) const {
    return {tokens_.data() + pairs_[i].start + pairs_[i].source, pairs_[i].target};
  }
  std::size_t bytes() const { return tokens_.size() * sizeof(std::int32_t) + pairs_.size() * sizeof(Entry); }
  std::size_t held() const { return tokens_.capacity() * sizeof(std::int32_t) + pairs_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    std::uint64_t id;
    std::size_t start;
    std::uint32_t source, target;
  };
  std::vector<std::int32_t> tokens_;
  std::vector<Entry> pairs_;
};

template <class T>
void shuffle(std::span<T> items, RandomKey key) {
  for (std::size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[random_below(key, i, static_cast<std::uint32_t>(i))]);
  }
}

struct Encoded {
  LinePair line;
  PairPosition behind;
  std::vector<std::int32_t> source, target;
};

}  // namespace

class PairBatches::Impl {
 public:
  Impl(std::unique_ptr<PairStream> stream, std::shared_ptr<const Tokenizer> source,
       std::shared_ptr<const Tokenizer> target, const BatchingSettings& settings)
      : stream_(std::move(stream)), source_(std::move(source)), target_(std::move(target)), settings_(settings) {
    check(stream_ && source_ && target_, "batches need a stream and two tokenizers");
    check(settings.sentences >= 0, "a batch cannot have ", settings.sentences, " sentences");
    check(settings.sentences > 0 || settings.tokens >= 2, "a batch needs 2 tokens or more, got ", settings.tokens);
    check(settings.longest > 0, "the longest sentence may have 1 token or more, got ", settings.longest);
    check(settings.memory <= std::uint64_t{1} << 36, "at most 2^36 bytes may be held, got ", settings.memory);
    check(settings.window > 0, "a window has 1 batch or more, got ", settings.window);
  }

  bool next(std::vector<SequencePair>& pairs) {
    pairs.clear();
    if (!started_) seek({});
    if (!whole_ && at_ == batches()) {
      if (rewind_) go_to({});
      rewind_ = false;
      if (filled_) ++window_;
      fill_window();
    }
    if (at_ == batches()) {
      check(any_, "no pairs to learn from in ", stream_->name(), ": ", report_.too_long, " were too long (more than ",
            settings_.longest, " tokens), ", report_.empty, " had nothing in them");
      start_epoch(epoch_ + 1);
      return false;
    }
    const std::span<const std::uint32_t> rows = batch(at_++);
    std::int64_t source = 0, target = 0, tokens = 0;
    for (const std::uint32_t row : rows) {
      const auto source_tokens = store_.source(row), target_tokens = store_.target(row);
      pairs.push_back(
          {store_.id(row), {source_tokens.begin(), source_tokens.end()}, {target_tokens.begin(), target_tokens.end()}});
      source = std::max(source, store_.source_length(row));
      target = std::max(target, store_.target_length(row) + 1);
      tokens += store_.source_length(row) + store_.target_length(row) + 1;
    }
    ++report_.batches;
    report_.pairs += rows.size();
    report_.tokens += static_cast<std::uint64_t>(tokens);
    report_.places += static_cast<std::uint64_t>(source + target) * rows.size();
    return true;
  }

  BatchPosition position() const {
    // A window that is not filled yet starts where the one before has ended.
    return {epoch_, window_, at_, whole_ || filled_ ? start_ : taken_};
  }

  void seek(const BatchPosition& to) {
    if (!started_) load();
    started_ = true;
    const bool possible = !whole_ || (to.window == 0 && to.start == PairPosition{});
    check(possible, "cannot go on with window ", to.window, ": all of ", stream_->name(),
          " is held, it has one window (other data or other settings than before?)");
    start_epoch(to.epoch);
    if (!whole_) {
      go_to(to.start);
      rewind_ = false;
      window_ = to.window;
      taken_ = to.start;
      if (to.batch > 0) fill_window();
    }
    check(to.batch <= batches(), "cannot go on with batch ", to.batch, " of window ", to.window, " of epoch ", to.epoch,
          ": there are ", batches(), " in ", stream_->name(), " (other data or other settings than before?)");
    at_ = static_cast<std::size_t>(to.batch);
  }

  bool whole() const { return whole_; }
  std::size_t held() const {
    return store_.held() + pending_.held() + stream_->held() +
           (rows_.capacity() + starts_.capacity()) * sizeof(std::uint32_t);
  }
  const BatchReport& report() const { return report_; }
  const PairStream& stream() const { return *stream_; }

 private:
  RandomKey key() const { return RandomKey(settings_.seed).at(epoch_); }

  std::size_t batches() const { return starts_.empty() ? 0 : starts_.size() - 1; }
  std::span<const std::uint32_t> batch(std::size_t i) const {
    const std::uint32_t which = order_[i];
    return {rows_.data() + starts_[which], starts_[which + 1] - starts_[which]};
  }

  // The next pair that is neither too long nor empty; false: the end.
  bool read(Encoded*& pair) {
    while (true) {
      if (block_at_ == block_.size()) {
        read_block();
        if (block_.empty()) return false;
      }
      pair = &block_[block_at_++];
      const auto source = static_cast<std::int64_t>(pair->source.size());
      const auto target = static_cast<std::int64_t>(pair->target.size());
      const std::int64_t most =
          settings_.sentences > 0 ? settings_.longest : std::min(settings_.longest, settings_.tokens);
      // Ends are not counted against `longest`, but they take their place in the budget.
      const std::int64_t end = settings_.source_end ? 1 : 0;
      const bool long_source = source - end > most || (settings_.sentences == 0 && source > settings_.tokens);
      const bool long_target = target > most || (settings_.sentences == 0 && target + 1 > settings_.tokens);
      if (long_source || long_target) {
        if (report_.too_long++ == 0) report_.first_too_long = pair->line.line;
      } else if (source == end || target == 0) {
        ++report_.empty;
      } else {
        any_ = true;
        return true;
      }
    }
  }

  void read_block() {
    forget_block();
    std::size_t bytes = 0;
    for (Encoded each; block_.size() < kBlockPairs && bytes < kBlockBytes && stream_->next(each.line);) {
      each.behind = stream_->position();
      bytes += each.line.source.size() + each.line.target.size();
      block_.push_back(std::move(each));
    }
    parallel(block_.size(), [this](std::size_t i) {
      Encoded& each = block_[i];
      each.source = source_->ids(each.line.source);
      if (settings_.source_end) each.source.push_back(source_->special().end);
      each.target = target_->ids(each.line.target);
    });
  }

  void forget_block() {
    block_.clear();
    block_at_ = 0;
  }

  // Reads what there is. If it does not fit it will be read window by window; what cannot be read twice is kept for
  // that.
  void load() {
    Encoded* pair = nullptr;
    while (read(pair)) {
      if (store_.bytes() + (pair->source.size() + pair->target.size()) * sizeof(std::int32_t) > settings_.memory) {
        whole_ = false;
        --block_at_;
        break;
      }
      store_.add(pair->line.line, pair->source, pair->target);
    }
    if (whole_) return;
    if (stream_->can_seek()) {
      store_ = {};
      report_ = {};
      stream_->seek({});
      forget_block();
    } else {
      std::swap(pending_, store_);
    }
  }

  void go_to(const PairPosition& to) {
    if (stream_->can_seek()) {
      stream_->seek(to);
      forget_block();
      return;
    }
    // Forward only: over what was read already, then over what comes.
    check(to.line >= last_line_, "cannot go back in ", stream_->name(),
          ": it can be read only once (store it in a file to go through it again)");
    while (pending_at_ < pending_.size() && pending_.id(pending_at_) <= to.line) ++pending_at_;
    last_line_ = to.line;
    Encoded* pair = nullptr;
    while (pending_at_ == pending_.size() && read(pair)) {
      if (pair->line.line <= to.line) continue;
      --block_at_;
      break;
    }
  }

  bool window_is_full(std::int64_t tokens, std::size_t pairs) const {
    if (settings_.sentences > 0) return static_cast<std::int64_t>(pairs) >= settings_.window * settings_.sentences;
    return tokens >= settings_.window * settings_.tokens;
  }

  std::int64_t weight(std::size_t row) const {
    return std::max(store_.source_length(row), store_.target_length(row) + 1);
  }

  void fill_window() {
    store_.clear();
    start_ = taken_;
    std::int64_t tokens = 0;
    while (!window_is_full(tokens, store_.size()) && (store_.size() == 0 || store_.bytes() < settings_.memory)) {
      if (pending_at_ < pending_.size()) {
        store_.add(pending_.id(pending_at_), pending_.source(pending_at_), pending_.target(pending_at_));
        taken_ = {.line = pending_.id(pending_at_)};
        if (++pending_at_ == pending_.size()) {
          pending_ = {};
          pending_at_ = 0;
        }
      } else {
        Encoded* pair = nullptr;
        if (!read(pair)) break;
        store_.add(pair->line.line, pair->source, pair->target);
        taken_ = pair->behind;
      }
      last_line_ = taken_.line;
      tokens += weight(store_.size() - 1);
    }
    filled_ = true;
    all_rows(key().at(1).at(window_));
    cut(rows_);
    finish(key().at(2).at(window_));
  }

  void all_rows(RandomKey order) {
    rows_.resize(store_.size());
    std::iota(rows_.begin(), rows_.end(), 0u);
    starts_.clear();
    if (settings_.shuffle) shuffle(std::span(rows_), order);
  }

  void order_epoch() {
    all_rows(key().at(1));
    std::size_t begin = 0;
    while (begin < rows_.size()) {
      std::size_t end = begin;
      for (std::int64_t tokens = 0; end < rows_.size() && !window_is_full(tokens, end - begin); ++end) {
        tokens += weight(rows_[end]);
      }
      cut(std::span(rows_).subspan(begin, end - begin));
      begin = end;
    }
    finish(key().at(2));
  }

  // Sorts rows by length (those of equal length keep their order) and notes where batches start.
  void cut(std::span<std::uint32_t> rows) {
    std::stable_sort(rows.begin(), rows.end(), [this](std::uint32_t a, std::uint32_t b) {
      const auto length = [this](std::uint32_t row) {
        return std::pair(weight(row), store_.source_length(row) + store_.target_length(row));
      };
      return length(a) < length(b);
    });
    const auto first = static_cast<std::size_t>(rows.data() - rows_.data());
    std::int64_t source = 0, target = 0, count = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      source = std::max(source, store_.source_length(rows[i]));
      target = std::max(target, store_.target_length(rows[i]) + 1);
      ++count;
      const bool over =
          settings_.sentences > 0 ? count > settings_.sentences : std::max(source, target) * count > settings_.tokens;
      if (i == 0 || over) {
        starts_.push_back(static_cast<std::uint32_t>(first + i));
        source = store_.source_length(rows[i]);
        target = store_.target_length(rows[i]) + 1;
        count = 1;
      }
    }
  }

  void finish(RandomKey order) {
    at_ = 0;
    order_.resize(starts_.size());
    std::iota(order_.begin(), order_.end(), 0u);
    if (settings_.shuffle) shuffle(std::span(order_), order);
    if (!starts_.empty()) starts_.push_back(static_cast<std::uint32_t>(rows_.size()));
  }

  void start_epoch(std::uint64_t epoch) {
    epoch_ = epoch;
    window_ = at_ = 0;
    start_ = taken_ = {};
    starts_.clear();
    filled_ = false;
    rewind_ = true;
    if (whole_) order_epoch();
  }

  std::unique_ptr<PairStream> stream_;
  std::shared_ptr<const Tokenizer> source_, target_;
  BatchingSettings settings_;
  BatchReport report_;

  std::vector<Encoded> block_;
  std::size_t block_at_ = 0;

  bool started_ = false, whole_ = true, any_ = false;
  bool filled_ = false, rewind_ = false;  // of a stream: the window is read; its start has to be gone to
  PairStore store_;                       // all pairs, or those of the window
  PairStore pending_;  // of a stream that can be read only once: what was read to see whether it fits
  std::size_t pending_at_ = 0;
  std::uint64_t last_line_ = 0;
  PairPosition taken_;  // behind the last pair of the window

  std::vector<std::uint32_t> rows_;    // of the store, batch after batch
  std::vector<std::uint32_t> starts_;  // where each batch starts in rows_, and the end
  std::vector<std::uint32_t> order_;   // in which they are given
  std::uint64_t epoch_ = 0, window_ = 0;
  PairPosition start_;
  std::size_t at_ = 0;  // of order_
};

PairBatches::PairBatches(std::unique_ptr<PairStream> stream, std::shared_ptr<const Tokenizer> source,
                         std::shared_ptr<const Tokenizer> target, const BatchingSettings& settings)
    : impl_(std::make_unique<Impl>(std::move(stream), std::move(source), std::move(target), settings)) {}
PairBatches::~PairBatches() = default;
PairBatches::PairBatches(PairBatches&&) noexcept = default;
PairBatches& PairBatches::operator=(PairBatches&&) noexcept = default;
bool PairBatches::next(std::vector<SequencePair>& pairs) { return impl_->next(pairs); }
BatchPosition PairBatches::position() const { return impl_->position(); }
void PairBatches::seek(const BatchPosition& position) { impl_->seek(position); }
bool PairBatches::whole() const { return impl_->whole(); }
std::size_t PairBatches::held() const { return impl_->held(); }
const BatchReport& PairBatches::report() const { return impl_->report(); }
const PairStream& PairBatches::stream() const { return impl_->stream(); }

}  // namespace regard
