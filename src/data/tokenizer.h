// Text to numbers and back.
//
//     const std::unique_ptr<Tokenizer> words = Tokenizer::from(bytes);
//     for (const Token& token : words->encode("They are watching.")) { … token.id, text[token.begin … token.end) … }
//     words->decode(ids)                                             // "They are watching."
//
// Three kinds: words (words.h), characters (characters.h), pieces (pieces.h). Each token says which bytes of the text
// it stands for. bytes() is what a model file stores; `from` takes bytes that a stranger may have made: they are read
// as they were written or refused with an Error.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "regard/random.h"

namespace regard {

struct Token {
  std::int32_t id = 0;
  std::uint32_t begin = 0, end = 0;  // bytes of the text
  friend bool operator==(const Token&, const Token&) = default;
};

std::vector<std::int32_t> ids_of(std::span<const Token> tokens);

struct SpecialIds {
  std::int32_t unknown = 0, begin = 1, end = 2, padding = 3;  // −1: there is none
};

class Tokenizer {
 public:
  static constexpr std::size_t kLongestText = std::size_t{1} << 28;  // bytes
  static constexpr std::size_t kLargest = std::size_t{1} << 28;      // bytes of a tokenizer
  static constexpr std::int64_t kMostIds = std::int64_t{1} << 24;

  virtual ~Tokenizer() = default;
  virtual std::vector<Token> encode(std::string_view text) const = 0;  // without begin and end
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  virtual std::int64_t size() const = 0;
  virtual std::string piece(std::int32_t id) const = 0;  // as one would show it
  virtual std::string_view kind() const = 0;             // "words", "characters", "pieces"
  virtual SpecialIds special() const { return {}; }

  std::vector<std::int32_t> ids(std::string_view text) const;
  // The same text cut in another way, drawn by `key`: what would be joined stays apart with probability `dropout`.
  // Words and characters have one way only.
  virtual std::vector<std::int32_t> cut_again(std::span<const std::int32_t> ids, double dropout, RandomKey key) const;
  // Where each of them stands in decode(ids): blanks before it left out, nothing if nothing is seen of it.
  std::vector<Token> places(std::span<const std::int32_t> ids) const;
  std::string bytes() const;
  static std::unique_ptr<Tokenizer> from(std::string_view bytes);

 protected:
  virtual std::string payload() const = 0;  // what `bytes` wraps
  void check_text(std::string_view text) const;
  void check_id(std::int32_t id) const;
};

// Calls its argument with every text there is; called again it does so again.
using EachText = std::function<void(const std::function<void(std::string_view)>&)>;

struct TextHash {  // so that a table of texts can be asked for a part of one
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

// Numbered texts, the first four of which are the special ones.
class Vocabulary {
 public:
  static constexpr std::size_t kSpecial = 4;
  Vocabulary();
  bool add(std::string_view text);                 // false: it is there already
  std::int32_t find(std::string_view text) const;  // −1: it is not there; never one of the special ones
  const std::string& text(std::int32_t id) const { return texts_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return texts_.size(); }

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> ids_;
};

using TextCounts = std::unordered_map<std::string, std::uint64_t, TextHash, std::equal_to<>>;

// The most frequent first; of equally frequent ones the smaller bytes first, so that order does not depend on a
// table's. The texts are the table's own.
std::vector<std::pair<std::string_view, std::uint64_t>> by_count(const TextCounts& counts);

}  // namespace regard
