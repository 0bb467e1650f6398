// Where the tokens of a target come from, as an aligner says that learned from the training pairs alone
// (tasks/word_aligner.h): what attention is told with `--guide` (models/guide.h).
//
//     const TokenGuide guide = TokenGuide::learn(open, tokenizers, 100, context);
//     guide.add_to(pairs);
#pragma once

#include <cstdint>
#include <vector>

#include "data/prepare.h"
#include "models/batch.h"
#include "tasks/word_aligner.h"

namespace regard {

class TokenGuide {
 public:
  // The aligner takes tokens for the same whose first letters are, whatever their case: endings tell little about what
  // belongs together, and words that are rare are less rare without them.
  static constexpr std::size_t kLetters = 6;

  // Pairs with more tokens than `longest` on a side are left out.
  static TokenGuide learn(const OpenPairs& open, const TokenizerPair& tokenizers, std::int64_t longest,
                          const Context& context);

  // Sources have their end; what comes from no token is there.
  void add_to(std::vector<SequencePair>& pairs) const;

 private:
  struct Classes {
    std::vector<std::int32_t> source, target;  // of every token
    WordPair words(const SequencePair& pair) const;
  };
  TokenGuide(Classes classes, WordAligner aligner) : classes_(std::move(classes)), aligner_(std::move(aligner)) {}

  Classes classes_;
  WordAligner aligner_;
};

}  // namespace regard
