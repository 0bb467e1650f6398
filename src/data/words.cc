#include "data/words.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "data/bytes.h"
#include "data/unicode.h"

namespace regard {
namespace {

constexpr std::size_t kEntryBytes = 88;  // of an entry in a table of counts, beside those of its text

// How a token departs from the rule for blanks; the first byte of its entry in the vocabulary.
enum Departure : char { kAsUsual = '0', kGlued = '1', kApart = '2' };

struct Part {
  std::size_t begin, end;  // bytes
  LetterClass first, last;
};

LetterClass last_class(std::string_view text) {
  std::size_t at = text.size();
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return letter_class(utf8::read(text, at).code);
}

// Words and marks in order; runs of wide characters whole.
template <class Use>
void split(std::string_view text, const Use& use) {
  Part part = {0, 0, LetterClass::kSpace, LetterClass::kSpace};
  const auto finish = [&] {
    if (part.end > part.begin) {
      part.last = last_class(text.substr(part.begin, part.end - part.begin));
      use(part);
    }
    part.begin = part.end;
  };
  for (std::size_t at = 0; at < text.size();) {
    const Cluster cluster = next_cluster(text, at);
    at = cluster.end;
    const LetterClass kind = letter_class(cluster.first);
    const bool continues = part.end > part.begin && part.end == cluster.begin && kind == part.first &&
                           (kind == LetterClass::kWord || kind == LetterClass::kWideWord);
    if (!continues) {
      finish();
      part = {cluster.begin, cluster.begin, kind, kind};
      if (kind == LetterClass::kSpace) {
        at = cluster.begin + utf8::read(text, cluster.begin).length;  // a mark on a blank is no blank
        continue;
      }
    }
    part.end = cluster.end;
  }
  finish();
}

class Words final : public Tokenizer {
 public:
  Words(Vocabulary vocabulary, Segmenter segmenter, bool lower)
      : vocabulary_(std::move(vocabulary)), segmenter_(std::move(segmenter)), lower_(lower) {}

  // The words of a text with their entries: a byte for the blanks, then the word.
  template <class Use>
  static void each(std::string_view text, const Segmenter& segmenter, bool lower, const Use& use) {
    std::size_t before_end = 0;
    LetterClass before = LetterClass::kSpace;
    std::string entry;
    const auto give = [&](const Part& part) {
      Departure departure = kAsUsual;
      if (before != LetterClass::kSpace) {
        const bool glued = before_end == part.begin;
        if (glued != glued_by_rule(before, part.first)) departure = glued ? kGlued : kApart;
      }
      entry.assign(1, departure);
      const std::string_view word = text.substr(part.begin, part.end - part.begin);
      if (lower) {
        entry += to_lower(word);
      } else {
        entry += word;
      }
      use(entry, part);
      before_end = part.end;
      before = part.last;
    };
    split(text, [&](const Part& part) {
      if (part.first != LetterClass::kWideWord) return give(part);
      const std::string_view run = text.substr(part.begin, part.end - part.begin);
      std::size_t begin = 0;
      for (const std::size_t end : segmenter.cut(run)) {
        give({part.begin + begin, part.begin + end, part.first, last_class(run.substr(begin, end - begin))});
        begin = end;
      }
    });
  }

  std::vector<Token> encode(std::string_view text) const override {
    check_text(text);
    std::vector<Token> tokens;
    each(text, segmenter_, lower_, [&](std::string& entry, const Part& part) {
      std::int32_t id = vocabulary_.find(entry);
      if (id < 0 && entry[0] != kAsUsual) {  // the word counts for more than its blanks
        entry[0] = kAsUsual;
        id = vocabulary_.find(entry);
      }
      if (!utf8::valid(std::string_view(text).substr(part.begin, part.end - part.begin))) id = -1;
      tokens.push_back({id < 0 ? special().unknown : id, static_cast<std::uint32_t>(part.begin),
                        static_cast<std::uint32_t>(part.end)});
    });
    return tokens;
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string out;
    LetterClass before = LetterClass::kSpace;
    for (const std::int32_t id : ids) {
      check_id(id);
      const bool unknown = id == special().unknown;
      if (!unknown && id < static_cast<std::int32_t>(Vocabulary::kSpecial)) continue;
      const std::string_view entry = unknown ? std::string_view("0⁇") : vocabulary_.text(id);
      const std::string_view word = entry.substr(1);
      const LetterClass first = unknown ? LetterClass::kWord : letter_class(utf8::read(word, 0).code);
      const bool rule = before == LetterClass::kSpace || glued_by_rule(before, first);
      const bool glued = entry[0] == kAsUsual ? rule : entry[0] == kGlued || out.empty();
      if (!glued) out += ' ';
      out += word;
      before = unknown ? LetterClass::kWord : last_class(word);
    }
    return out;
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(vocabulary_.size()); }

  std::string piece(std::int32_t id) const override {
    check_id(id);
    const std::string& entry = vocabulary_.text(id);
    if (id < static_cast<std::int32_t>(Vocabulary::kSpecial)) return entry;
    return (entry[0] == kGlued ? "￭" : entry[0] == kApart ? "▁" : "") + entry.substr(1);
  }

  std::string_view kind() const override { return "words"; }

 protected:
  std::string payload() const override {
    ByteWriter out;
    out.number(lower_ ? 1 : 0);
    out.number(vocabulary_.size() - Vocabulary::kSpecial);
    for (std::size_t i = Vocabulary::kSpecial; i < vocabulary_.size(); ++i) {
      out.text(vocabulary_.text(static_cast<std::int32_t>(i)));
    }
    segmenter_.write(out);
    return out.take();
  }

 private:
  Vocabulary vocabulary_;
  Segmenter segmenter_;
  bool lower_;
};

}  // namespace

std::unique_ptr<Tokenizer> build_words(const EachText& texts, const WordSettings& settings) {
  check(settings.size > static_cast<std::int64_t>(Vocabulary::kSpecial) && settings.size <= Tokenizer::kMostIds,
        "a vocabulary may have 5 to ", Tokenizer::kMostIds, " ids, got ", settings.size);
  SegmenterBuilder builder;
  texts([&](std::string_view text) {
    split(text, [&](const Part& part) {
      const std::string_view run = text.substr(part.begin, part.end - part.begin);
      if (part.first == LetterClass::kWideWord && utf8::valid(run)) builder.add(run);
    });
  });
  Segmenter segmenter = builder.build(settings.user);
  TextCounts counts;
  std::size_t held = 0;  // bytes of counts
  const auto count = [&](const std::string& entry) {
    const auto [at, added] = counts.try_emplace(entry, 0);
    ++at->second;
    if (added) held += kEntryBytes + entry.size();
  };
  std::uint64_t few = 1;
  texts([&](std::string_view text) {
    Words::each(text, segmenter, settings.lower, [&](std::string& entry, const Part&) {
      if (entry.size() > 1 + kMostWordBytes) return;
      count(entry);
      if (entry[0] != kAsUsual) {  // known as usual, it serves the departures that are too rare for an id
        entry[0] = kAsUsual;
        count(entry);
      }
    });
    while (held > settings.counted_bytes) {
      std::erase_if(counts, [&](const auto& each) {
        const bool forgotten = each.second <= few;
        if (forgotten) held -= kEntryBytes + each.first.size();
        return forgotten;
      });
      ++few;
    }
  });
  check(!counts.empty(), "there is no text to learn words from");
  Vocabulary vocabulary;
  for (const auto& [entry, times] : by_count(counts)) {
    if (static_cast<std::int64_t>(vocabulary.size()) >= settings.size || times < settings.least_count) break;
    if (utf8::valid(entry)) vocabulary.add(entry);
  }
  return std::make_unique<Words>(std::move(vocabulary), std::move(segmenter), settings.lower);
}

std::unique_ptr<Tokenizer> read_words(std::string_view payload) {
  ByteReader in(payload, "tokenizer (words)");
  const bool lower = in.number(1) == 1;
  const std::size_t count = in.count();
  in.expect(count < static_cast<std::size_t>(Tokenizer::kMostIds), "has too many words");
  Vocabulary vocabulary;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string_view entry = in.text();
    in.expect(entry.size() > 1 && entry[0] >= kAsUsual && entry[0] <= kApart && utf8::valid(entry),
              "has an entry that is no word");
    in.expect(vocabulary.add(entry), "has a word twice");
  }
  Segmenter segmenter = Segmenter::read(in);
  in.end();
  return std::make_unique<Words>(std::move(vocabulary), std::move(segmenter), lower);
}

}  // namespace regard
