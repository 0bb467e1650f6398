#include "data/segment.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "data/lines.h"

namespace regard {
namespace {

constexpr double kScale = 1e6;
constexpr std::size_t kLongestFound = 4;  // characters of a word that is found in the text
constexpr std::uint64_t kLeastCount = 4;  // seen less often it is chance
constexpr double kLeastTogether = 2.0;    // log of how much more often than by chance
constexpr double kLeastBranching = 0.9;   // nats, on the side where neighbours vary less
constexpr int kRounds = 4;

std::vector<std::size_t> borders(std::string_view text) {  // of characters, in bytes, with 0 and the end
  std::vector<std::size_t> out = {0};
  for (std::size_t at = 0; at < text.size();) {
    at += utf8::read(text, at).length;
    out.push_back(at);
  }
  return out;
}

std::size_t characters(std::string_view text) { return borders(text).size() - 1; }

std::int64_t score_of(double count, double total) { return std::llround(std::log(count / total) * kScale); }

}  // namespace

std::vector<UserWord> read_user_words(const std::string& path) {
  LineReader reader(path, 4096);
  LineReport report;
  std::vector<UserWord> words;
  for (LineReader::Line line; reader.next(line);) {
    const auto wrong = [&](const char* what) {
      fail(ErrorKind::kFile, "'", reader.name(), "' line ", line.number, ": ", what, " (expected: word [count])");
    };
    if (line.too_long) wrong("too long");
    std::string_view text = line.text;
    const auto trim = [&text] {
      text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
      while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    };
    trim();
    if (text.empty() || text.front() == '#') continue;
    if (!is_whole(text, reader.name(), line.number, report)) wrong("no text in UTF-8");
    UserWord word;
    const std::size_t blank = text.find_first_of(" \t");
    word.word = text.substr(0, blank);
    if (blank != std::string_view::npos) {
      text.remove_prefix(blank);
      trim();
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), word.count);
      if (error != std::errc() || end != text.data() + text.size() || word.count == 0 ||
          word.count > 1'000'000'000'000) {
        wrong("the count is no whole number from 1 to 10^12");
      }
    }
    if (characters(word.word) > Segmenter::kLongestWord) wrong("a word of more than 32 characters");
    words.push_back(std::move(word));
  }
  return words;
}

std::vector<std::size_t> Segmenter::cut(std::string_view run) const {
  const std::vector<std::size_t> at = borders(run);
  const std::size_t count = at.size() - 1;
  struct Best {
    std::int64_t score = std::numeric_limits<std::int64_t>::min();
    std::size_t from = 0;
  };
  std::vector<Best> best(count + 1);
  best[0].score = 0;
  for (std::size_t begin = 0; begin < count; ++begin) {
    const std::int64_t here = best[begin].score;
    for (std::size_t length = 1; length <= longest_ && begin + length <= count; ++length) {
      const std::size_t end = begin + length;
      const auto found = scores_.find(run.substr(at[begin], at[end] - at[begin]));
      if (found == scores_.end() && length > 1) continue;
      const std::int64_t score = here + (found == scores_.end() ? unknown_ : found->second);
      if (score > best[end].score) best[end] = {score, begin};  // of equal paths the one with the longer last word
    }
  }
  std::vector<std::size_t> ends;
  for (std::size_t i = count; i > 0; i = best[i].from) ends.push_back(at[i]);
  std::reverse(ends.begin(), ends.end());
  return ends;
}

void Segmenter::set(std::string word, std::int64_t score) {
  longest_ = std::max(longest_, characters(word));
  unknown_ = std::min(unknown_, score - 10'000'000);
  scores_[std::move(word)] = score;
}

void Segmenter::write(ByteWriter& out) const {
  std::vector<std::pair<std::string_view, std::int64_t>> sorted(scores_.begin(), scores_.end());
  std::sort(sorted.begin(), sorted.end());
  out.number(sorted.size());
  for (const auto& [word, score] : sorted) {
    out.text(word);
    out.number(static_cast<std::uint64_t>(-score));
  }
}

Segmenter Segmenter::read(ByteReader& in) {
  Segmenter out;
  const std::size_t count = in.count();
  std::string_view before;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view word = in.text();
    in.expect(!word.empty() && word.size() <= 4 * kLongestWord && utf8::valid(word), "has a word that is none");
    in.expect(characters(word) <= kLongestWord, "has a word that is too long");
    in.expect(i == 0 || before < word, "has words out of order");
    before = word;
    // Small enough that the sum over the longest text cannot overflow.
    out.set(std::string(word), -static_cast<std::int64_t>(in.number(1'000'000'000)));
  }
  return out;
}

void SegmenterBuilder::add(std::string_view run) {
  const auto known = runs_.find(run);
  if (known != runs_.end()) {
    ++known->second;
    return;
  }
  if (run.empty() || bytes_ + run.size() > kRuns) return;
  bytes_ += run.size();
  runs_.emplace(run, 1);
}

// Sequences that look like words, with how often they are there.
TextCounts SegmenterBuilder::candidates() const {
  std::vector<std::pair<std::string_view, std::uint64_t>> runs(runs_.begin(), runs_.end());
  std::sort(runs.begin(), runs.end());  // what is forgotten below must not depend on the order of a table
  TextCounts counts;
  std::uint64_t total = 0, forget = 1;
  for (const auto& [run, times] : runs) {
    const std::vector<std::size_t> at = borders(run);
    for (std::size_t begin = 0; begin + 1 < at.size(); ++begin) {
      total += times;
      // One character more than a word has: its neighbours are counted that way.
      for (std::size_t length = 1; length <= kLongestFound + 1 && begin + length < at.size(); ++length) {
        counts[std::string(run.substr(at[begin], at[begin + length] - at[begin]))] += times;
      }
    }
    while (counts.size() > kSequences) {
      std::erase_if(counts, [&](const auto& entry) { return entry.second <= forget && entry.first.size() > 4; });
      ++forget;
    }
  }
  // Branching: Σ −q log q over the neighbours of either side; the border of a run is a neighbour that is new each time.
  struct Side {
    double entropy = 0;
    std::uint64_t inside = 0;
  };
  std::unordered_map<std::string_view, std::pair<Side, Side>> sides;
  const auto often = [&](std::string_view text) -> double {
    const auto found = counts.find(text);
    return found == counts.end() ? 0 : static_cast<double>(found->second);
  };
  std::vector<std::string_view> sequences;
  for (const auto& [text, count] : counts) sequences.push_back(text);
  std::sort(sequences.begin(), sequences.end());
  const auto meet = [&](std::string_view word, double together, bool right) {
    const auto found = counts.find(word);
    if (found == counts.end() || found->second < kLeastCount) return;
    auto& [left_side, right_side] = sides[found->first];
    Side& side = right ? right_side : left_side;
    const double share = together / static_cast<double>(found->second);
    side.entropy -= share * std::log(share);
    side.inside += static_cast<std::uint64_t>(together);
  };
  for (const std::string_view text : sequences) {
    const std::vector<std::size_t> at = borders(text);
    const std::size_t length = at.size() - 1;
    if (length < 3) continue;
    meet(text.substr(0, at[length - 1]), often(text), true);
    meet(text.substr(at[1]), often(text), false);
  }
  TextCounts words;
  for (const std::string_view text : sequences) {
    const std::vector<std::size_t> at = borders(text);
    const std::size_t length = at.size() - 1;
    const double count = often(text);
    if (length == 1) words[std::string(text)] = static_cast<std::uint64_t>(count);
    if (length < 2 || length > kLongestFound || count < static_cast<double>(kLeastCount)) continue;
    double together = std::numeric_limits<double>::infinity();
    for (std::size_t i = 1; i < length; ++i) {
      const double parts = often(text.substr(0, at[i])) * often(text.substr(at[i]));
      together = std::min(together, std::log(count * static_cast<double>(total) / std::max(parts, 1.0)));
    }
    if (together < kLeastTogether) continue;
    double branching = std::numeric_limits<double>::infinity();
    const auto [left, right] = sides[text];
    for (const Side& side : {left, right}) {
      const double border = std::max(0.0, count - static_cast<double>(side.inside)) / count;
      branching = std::min(branching, side.entropy + border * std::log(count));
    }
    if (branching >= kLeastBranching) words[std::string(text)] = static_cast<std::uint64_t>(count);
  }
  return words;
}

Segmenter SegmenterBuilder::build(const std::vector<UserWord>& user) const {
  TextCounts words = candidates();
  std::vector<std::pair<std::string_view, std::uint64_t>> runs(runs_.begin(), runs_.end());
  for (const UserWord& each : user) {
    const std::vector<std::size_t> at = borders(each.word);
    for (std::size_t i = 0; i + 1 < at.size(); ++i) words.emplace(each.word.substr(at[i], at[i + 1] - at[i]), 1);
    std::uint64_t& count = words[each.word];
    count = std::max({count, each.count, std::uint64_t{1}});
  }
  Segmenter out;
  for (int round = 0; round <= kRounds; ++round) {
    out = Segmenter();
    double total = 0;
    for (const auto& [word, count] : words) total += static_cast<double>(count);
    for (const auto& [word, count] : words) out.set(word, score_of(static_cast<double>(count), total));
    for (const UserWord& each : user) {
      if (each.count > 0) continue;
      // A little better than the best way to cut it.
      out.scores_.erase(each.word);
      std::int64_t parts = 0;
      std::size_t begin = 0;
      for (const std::size_t end : out.cut(each.word)) {
        const auto found = out.scores_.find(std::string_view(each.word).substr(begin, end - begin));
        parts += found == out.scores_.end() ? out.unknown_ : found->second;
        begin = end;
      }
      const std::int64_t own = score_of(static_cast<double>(words[each.word]), total);
      out.set(each.word, std::min<std::int64_t>(0, std::max(own, parts + 1)));
    }
    if (round == kRounds) break;
    TextCounts next;
    for (const auto& [run, times] : runs) {
      std::size_t begin = 0;
      for (const std::size_t end : out.cut(run)) {
        next[std::string(run.substr(begin, end - begin))] += times;
        begin = end;
      }
    }
    for (auto& [word, count] : words) {
      const auto found = next.find(word);
      count = found == next.end() ? 0 : found->second;
    }
    // Characters stay, or what is made of them could not be cut; so does what the user gave.
    std::erase_if(words, [](const auto& entry) { return entry.second < 2 && characters(entry.first) > 1; });
    for (auto& [word, count] : words) count = std::max<std::uint64_t>(count, 1);
    for (const UserWord& each : user) {
      std::uint64_t& count = words[each.word];
      count = std::max({count, each.count, std::uint64_t{1}});
    }
  }
  return out;
}

}  // namespace regard
