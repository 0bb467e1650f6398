// From text to what a model is trained on: vocabularies, and what one should know of the data before.
//
//     const TokenizerPair made = build_tokenizers(open_pairs(files), {.kind = "pieces", .size = 8000});
//     const Survey survey = survey_pairs(*open_pairs(files)(), *made.source, *made.target);
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/lines.h"
#include "data/tokenizer.h"
#include "data/train_pieces.h"
#include "regard/context.h"

namespace regard {

struct TokenizerSettings {
  std::string kind = "pieces";    // pieces (byte pairs), unigram (pieces too), words, characters
  std::int64_t size = 8000;       // of each vocabulary, at most
  bool joint = false;             // one for both sides
  bool lower = false;             // lower case
  bool byte_fallback = false;     // pieces: spell the unknown in bytes
  std::uint64_t least_count = 1;  // words seen less often are unknown
  std::string dictionary = {};    // words: a file with words of the user, see segment.h
  std::uint64_t most_bytes = PieceSettings{}.most_bytes;  // pieces: of the text that is learned from
};

struct TokenizerPair {
  std::shared_ptr<const Tokenizer> source, target;  // the same one if joint
};

// Every call starts from the first pair.
using OpenPairs = std::function<std::unique_ptr<PairStream>()>;
// What can be read only once (the standard input, a pipe) is read at once and held, up to 1 GiB.
OpenPairs open_pairs(const PairFiles& files, const Context& context = {});

TokenizerPair build_tokenizers(const OpenPairs& open, const TokenizerSettings& settings, const Context& context = {});

struct SideSurvey {
  static constexpr std::size_t kLongest = 1000;
  std::vector<std::uint64_t> lengths = std::vector<std::uint64_t>(kLongest + 1, 0);  // the last: as long or longer
  std::uint64_t tokens = 0, unknown = 0, longest = 0, longest_line = 0;
  std::uint64_t used = 0;                                     // ids that occur
  std::vector<std::pair<std::string, std::uint64_t>> missed;  // the most frequent unknown texts

  double mean() const;
  std::uint64_t quantile(double share) const;  // so many tokens or fewer have that share of the sentences
};

struct Survey {
  static constexpr std::size_t kSide = 256;
  std::uint64_t pairs = 0;
  std::uint64_t too_long = 0, first_too_long = 0;  // a side has more than `longest` tokens; the line of the first
  SideSurvey source, target;
  std::vector<std::uint64_t> both =
      std::vector<std::uint64_t>(kSide * kSide, 0);  // [target length, source length], cut
  std::uint64_t uneven = 0, first_uneven = 0;  // one side has more than three times as many tokens, and 10 at least
};

Survey survey_pairs(PairStream& pairs, const Tokenizer& source, const Tokenizer& target, std::size_t longest = 256,
                    const Context& context = {});

}  // namespace regard
