#include "data/prepare.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "base/check.h"
#include "base/pool.h"
#include "data/characters.h"
#include "data/train_pieces.h"
#include "data/words.h"

namespace regard {
namespace {

constexpr std::size_t kMostHeld = std::size_t{1} << 30;  // bytes of what can be read only once
constexpr std::size_t kMostMissed = 100'000;             // different unknown texts that are counted, none of them long
constexpr std::size_t kBlock = 1024;                     // pairs that are split at a time

// Pieces read what looks alike as the same; but what is only ever written stays as it was in the texts.
std::shared_ptr<const Tokenizer> build(const EachText& texts, const TokenizerSettings& settings,
                                       const std::vector<UserWord>& user, bool as_written) {
  if (settings.kind == "characters") {
    return build_characters(texts, {.size = settings.size, .lower = settings.lower});
  }
  if (settings.kind == "words") {
    return build_words(
        texts, {.size = settings.size, .least_count = settings.least_count, .lower = settings.lower, .user = user});
  }
  check(settings.kind == "pieces" || settings.kind == "unigram", "unknown kind of tokens '", settings.kind,
        "' (known: pieces, unigram, words, characters)");
  return train_pieces(texts, {.size = settings.size,
                              .unigram = settings.kind == "unigram",
                              .lower = settings.lower,
                              .as_written = as_written,
                              .byte_fallback = settings.byte_fallback,
                              .most_bytes = settings.most_bytes,
                              .together = settings.joint ? 2U : 1U});
}

// Counts the tokens of one side.
class Counter {
 public:
  explicit Counter(const Tokenizer& tokenizer)
      : tokenizer_(tokenizer), used_(static_cast<std::size_t>(tokenizer.size()), false) {}

  void add(const std::string& text, const std::vector<Token>& tokens, std::uint64_t line) {
    const std::size_t length = tokens.size();
    ++out_.lengths[std::min(length, SideSurvey::kLongest)];
    out_.tokens += length;
    if (length > out_.longest) {
      out_.longest = length;
      out_.longest_line = line;
    }
    for (const Token& token : tokens) {
      used_[static_cast<std::size_t>(token.id)] = true;
      if (token.id != tokenizer_.special().unknown) continue;
      ++out_.unknown;
      std::string missed = text.substr(token.begin, token.end - token.begin);
      if (missed.size() > kMostWordBytes) continue;
      if (missed_.size() < kMostMissed || missed_.contains(missed)) ++missed_[std::move(missed)];
    }
  }

  SideSurvey finish() {
    out_.used = static_cast<std::uint64_t>(std::count(used_.begin(), used_.end(), true));
    for (const auto& [text, count] : by_count(missed_)) {
      if (out_.missed.size() < 10) out_.missed.emplace_back(text, count);
    }
    return std::move(out_);
  }

 private:
  const Tokenizer& tokenizer_;
  std::vector<bool> used_;
  TextCounts missed_;
  SideSurvey out_;
};

// What is not there at all is told by who opens it.
bool is_read_once(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status about = fs::status(path, error);
  return path == "-" || (fs::exists(about) && !fs::is_regular_file(about) && !fs::is_directory(about));
}

}  // namespace

OpenPairs open_pairs(const PairFiles& files, const Context& context) {
  if (!is_read_once(files.source) && !is_read_once(files.target)) {
    return [files] { return std::make_unique<PairReader>(files); };
  }
  PairReader reader(files);
  const auto held = std::make_shared<std::vector<LinePair>>();
  std::size_t bytes = 0;
  const auto wait = [&] {  // who writes may take long, or never come
    do {
      stop_if_asked(context);
    } while (!reader.is_ready(100));
    return true;
  };
  for (LinePair pair; wait() && reader.next(pair);) {
    bytes += pair.source.size() + pair.target.size() + sizeof(LinePair);
    if (bytes > kMostHeld) {
      fail(ErrorKind::kLimit, reader.name(), " can be read only once and has more than ", kMostHeld,
           " bytes: store it in a file");
    }
    held->push_back(pair);
  }
  return
      [held, name = reader.name(), report = reader.report()] { return std::make_unique<PairList>(held, name, report); };
}

TokenizerPair build_tokenizers(const OpenPairs& open, const TokenizerSettings& settings, const Context& context) {
  check(settings.dictionary.empty() || settings.kind == "words", "a dictionary is for words, not for ", settings.kind);
  enum class Side { kSource, kTarget, kBoth };
  const auto texts = [&](Side side) -> EachText {
    return [&open, &context, side](const std::function<void(std::string_view)>& use) {
      const std::unique_ptr<PairStream> pairs = open();
      for (LinePair pair; pairs->next(pair);) {
        if (pair.line % 1024 == 0) stop_if_asked(context);
        if (side != Side::kTarget) use(pair.source);
        if (side != Side::kSource) use(pair.target);
      }
    };
  };
  std::vector<UserWord> user;  // read once: it may be a pipe
  if (!settings.dictionary.empty()) user = read_user_words(settings.dictionary);
  if (settings.joint) {
    const auto both = build(texts(Side::kBoth), settings, user, false);
    return {both, both};
  }
  auto source = build(texts(Side::kSource), settings, user, false);
  return {std::move(source), build(texts(Side::kTarget), settings, user, true)};
}

double SideSurvey::mean() const {
  const std::uint64_t count = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
  return count == 0 ? 0 : static_cast<double>(tokens) / static_cast<double>(count);
}

std::uint64_t SideSurvey::quantile(double share) const {
  const std::uint64_t count = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0});
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    seen += lengths[i];
    if (static_cast<double>(seen) >= share * static_cast<double>(count)) return i;
  }
  return lengths.size() - 1;
}

Survey survey_pairs(PairStream& pairs, const Tokenizer& source, const Tokenizer& target, std::size_t longest,
                    const Context& context) {
  Survey out;
  Counter sources(source), targets(target);
  std::vector<LinePair> block(kBlock);
  std::vector<std::vector<Token>> source_tokens(kBlock), target_tokens(kBlock);
  for (std::size_t count = kBlock; count == kBlock;) {
    stop_if_asked(context);
    count = 0;
    while (count < kBlock && pairs.next(block[count])) ++count;
    parallel(count, [&](std::size_t i) {
      source_tokens[i] = source.encode(block[i].source);
      target_tokens[i] = target.encode(block[i].target);
    });
    for (std::size_t i = 0; i < count; ++i) {
      ++out.pairs;
      sources.add(block[i].source, source_tokens[i], block[i].line);
      targets.add(block[i].target, target_tokens[i], block[i].line);
      const std::size_t x = source_tokens[i].size(), y = target_tokens[i].size();
      ++out.both[std::min(y, Survey::kSide - 1) * Survey::kSide + std::min(x, Survey::kSide - 1)];
      if (std::max(x, y) > longest && out.too_long++ == 0) out.first_too_long = block[i].line;
      if (std::max(x, y) >= 10 && std::max(x, y) > 3 * std::min(x, y) && out.uneven++ == 0) {
        out.first_uneven = block[i].line;
      }
    }
  }
  out.source = sources.finish();
  out.target = targets.finish();
  return out;
}

}  // namespace regard
