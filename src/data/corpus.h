// A corpus that needs no download: pairs of sentences made up by a grammar that says one meaning in Chinese, English
// and French, so that it is known which words translate which.
//
//     const Corpus corpus("zh-en", 1, Corpus::Split::kTrain);
//     const Corpus::Example example = corpus.at(7);       // example.source.text, example.target.text
//
// Line `number` is a function of (seed, number). Whether a sentence is for training or for the test is decided by its
// own text in all three languages: no sentence of the test occurs in training in any language, whatever the seeds.
// The first line of training is always "They are watching."
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace regard {

class Corpus {
 public:
  enum class Split : std::uint8_t { kTrain, kTest };
  struct Span {
    std::size_t begin, end;  // bytes of the text
  };
  struct Sentence {
    std::string text;
    std::vector<Span> words;        // punctuation marks are words, too
    std::string segmented() const;  // a blank between all words
  };
  struct Example {
    Sentence source, target;
    using Link = std::pair<std::int32_t, std::int32_t>;  // (source word, target word)
    std::vector<Link> alignment;                         // all, sorted
    std::vector<Link> possible;  // those of them that may as well be left out: of 了, measure words and most 的
    bool is_sure(const Link& link) const;
    std::string pharaoh() const;  // "0-0 1p2 2-1"
  };
  // One meaning in every language, as the golden file has it.
  struct Triple {
    Sentence chinese, english, french;
  };

  static constexpr std::size_t kLeastWords = 3, kMostWords = 60;  // of the English sentence, without marks

  // `pair`: zh-en, en-zh, en-fr, fr-en, zh-fr or fr-zh.
  Corpus(std::string_view pair, std::uint64_t seed, Split split);
  Example at(std::uint64_t line) const;
  Triple triple(std::uint64_t line) const;
  static bool reserved(std::string_view text);  // a third of all texts: training has none of them, the test no other

 private:
  enum class Language : std::uint8_t { kChinese, kEnglish, kFrench };
  static Language language(std::string_view name, std::string_view pair);

  Language source_, target_;
  std::uint64_t seed_;
  Split split_;
};

}  // namespace regard
