#include "tasks/token_guide.h"

#include <algorithm>

#include "base/utf8.h"
#include "tasks/translation_pairs.h"

namespace regard {
namespace {

std::vector<std::int32_t> classes_of(const Tokenizer& tokenizer) {
  WordNumbers numbers;
  std::vector<std::int32_t> made;
  for (std::int32_t id = 0; id < tokenizer.size(); ++id) {
    const std::string text = tokenizer.decode({&id, 1});
    std::size_t at = 0;
    for (std::size_t letter = 0; letter < TokenGuide::kLetters && at < text.size(); ++letter) {
      at += utf8::read(text, at).length;
    }
    made.push_back(numbers.number(std::string_view(text).substr(0, at)));
  }
  return made;
}

}  // namespace

WordPair TokenGuide::Classes::words(const SequencePair& pair) const {
  WordPair made;
  for (std::size_t i = 0; i + 1 < pair.source.size(); ++i) {  // without the end
    made.source.push_back(source[static_cast<std::size_t>(pair.source[i])]);
  }
  for (const std::int32_t id : pair.target) made.target.push_back(target[static_cast<std::size_t>(id)]);
  return made;
}

TokenGuide TokenGuide::learn(const OpenPairs& open, const TokenizerPair& tokenizers, std::int64_t longest,
                             const Context& context) {
  Classes classes{.source = classes_of(*tokenizers.source), .target = classes_of(*tokenizers.target)};
  WordAligner aligner = WordAligner::learn(
      [&](const std::function<void(const WordPair&)>& use) {
        const std::unique_ptr<PairStream> stream = open();
        const auto most = static_cast<std::size_t>(longest);
        for (LinePair pair; stream->next(pair);) {
          const WordPair words = classes.words(
              {.source = source_ids(*tokenizers.source, pair.source), .target = tokenizers.target->ids(pair.target)});
          if (words.source.size() <= most && words.target.size() <= most) use(words);
        }
      },
      {}, context);
  return {std::move(classes), std::move(aligner)};
}

void TokenGuide::add_to(std::vector<SequencePair>& pairs) const {
  for (SequencePair& pair : pairs) {
    const WordPair words = classes_.words(pair);
    const std::vector<double> weights = aligner_.forward().weights(words, true);
    const std::size_t sources = words.source.size();
    pair.guide.clear();
    for (std::size_t t = 0; t < words.target.size(); ++t) {
      double rest = 1;
      for (std::size_t s = 0; s < sources; ++s) {
        pair.guide.push_back(static_cast<float>(weights[t * sources + s]));
        rest -= weights[t * sources + s];
      }
      pair.guide.push_back(static_cast<float>(std::max(0.0, rest)));
    }
  }
}

}  // namespace regard
