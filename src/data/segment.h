// Words of a language that puts no blanks between them: the most likely way to cut a run of characters, each word by
// itself (a unigram model, best path by Viterbi):
//
//     argmax over cuts of Σ log p(word)        p(word) = count / Σ counts
//
// The words come from the text itself, from a user's list, or both. What counts as a word in text that nobody has cut:
// character sequences whose characters come together more often than by chance and whose neighbours vary (their
// branching entropy); counts then settle by cutting the text and counting anew a few times.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/bytes.h"
#include "data/tokenizer.h"

namespace regard {

struct UserWord {
  std::string word;
  std::uint64_t count = 0;  // 0: as many as it takes to be preferred to its parts
};
// "word" or "word count" a line; empty lines and those that start with # are skipped.
std::vector<UserWord> read_user_words(const std::string& path);

class Segmenter {
 public:
  static constexpr std::size_t kLongestWord = 32;  // characters

  // Where the words of a run end, in bytes; the last is run.size().
  std::vector<std::size_t> cut(std::string_view run) const;
  std::size_t size() const { return scores_.size(); }

  void write(ByteWriter& out) const;
  static Segmenter read(ByteReader& in);

 private:
  friend class SegmenterBuilder;
  // Logarithms in millionths: whole numbers, so that every machine cuts alike.
  void set(std::string word, std::int64_t score);
  std::unordered_map<std::string, std::int64_t, TextHash, std::equal_to<>> scores_;
  std::size_t longest_ = 1;             // characters
  std::int64_t unknown_ = -20'000'000;  // of a character that no word is made of
};

class SegmenterBuilder {
 public:
  static constexpr std::size_t kRuns = std::size_t{1} << 24;       // bytes of text that words are looked for in
  static constexpr std::size_t kSequences = std::size_t{1} << 20;  // different ones that are counted at a time

  void add(std::string_view run);  // beyond kRuns bytes nothing more is taken
  Segmenter build(const std::vector<UserWord>& user) const;
  bool empty() const { return runs_.empty(); }

 private:
  TextCounts candidates() const;
  TextCounts runs_;
  std::size_t bytes_ = 0;
};

}  // namespace regard
