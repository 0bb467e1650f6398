// What scores of translations count: runs of words or of characters, and the reading of lines that they are taken from
// (as Python reads them, since the scores to compare with are computed there).
//
//     Numbering words;
//     const GramCounts<4> counts = grams_of<4>(words.ids(split_at_blanks(letters_of("the cat"))));
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace regard {

inline bool is_blank(char32_t c) {  // as Python's str.split has it
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

inline std::u32string letters_of(std::string_view text) {
  std::u32string out;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::Letter letter = utf8::read(text, at);
    out += letter.code;
    at += letter.length;
  }
  return out;
}

inline std::string utf8_of(std::u32string_view text) {
  std::string out;
  for (const char32_t c : text) utf8::append(out, c);
  return out;
}

inline std::vector<std::u32string> split_at_blanks(std::u32string_view text) {
  std::vector<std::u32string> out;
  bool inside = false;
  for (const char32_t c : text) {
    if (is_blank(c)) {
      inside = false;
      continue;
    }
    if (!inside) out.emplace_back();
    inside = true;
    out.back() += c;
  }
  return out;
}

// Texts to numbers from 0, in the order in which they were seen.
template <class Text>
class Numbering {
 public:
  std::vector<std::int32_t> ids(const std::vector<Text>& words) {
    std::vector<std::int32_t> out;
    for (const Text& word : words) {
      out.push_back(ids_.try_emplace(word, static_cast<std::int32_t>(ids_.size())).first->second);
    }
    return out;
  }

 private:
  std::unordered_map<Text, std::int32_t> ids_;
};

template <std::size_t kMost>
using Gram = std::array<std::int32_t, kMost>;  // numbers, then −1
template <std::size_t kMost>
using GramCounts = std::vector<std::pair<Gram<kMost>, std::int64_t>>;  // sorted, with how often each occurs

template <std::size_t kMost>
GramCounts<kMost> grams_of(const std::vector<std::int32_t>& ids) {  // all orders from 1 to kMost
  std::vector<Gram<kMost>> all;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    Gram<kMost> gram;
    gram.fill(-1);
    for (std::size_t n = 0; n < kMost && i + n < ids.size(); ++n) {
      gram[n] = ids[i + n];
      all.push_back(gram);
    }
  }
  std::sort(all.begin(), all.end());
  GramCounts<kMost> out;
  for (const Gram<kMost>& gram : all) {
    if (out.empty() || out.back().first != gram) out.emplace_back(gram, 0);
    ++out.back().second;
  }
  return out;
}

template <std::size_t kMost>
std::size_t order_of(const Gram<kMost>& gram) {  // from 0
  return static_cast<std::size_t>(std::find(gram.begin(), gram.end(), -1) - gram.begin()) - 1;
}

template <std::size_t kMost>
std::int64_t count_in(const GramCounts<kMost>& grams, const Gram<kMost>& gram) {
  const auto found = std::lower_bound(grams.begin(), grams.end(), gram,
                                      [](const auto& entry, const auto& asked) { return entry.first < asked; });
  return found != grams.end() && found->first == gram ? found->second : 0;
}

// How many references each sentence has, as signatures tell it.
class ReferenceCount {
 public:
  void add(std::size_t count) {
    const auto number = static_cast<std::int64_t>(count);
    count_ = count_ == -1 || count_ == number ? number : 0;
  }
  std::string text() const { return count_ == 0 ? "var" : count_ == -1 ? "1" : std::to_string(count_); }

 private:
  std::int64_t count_ = -1;  // −1: no sentence yet; 0: not all the same
};

}  // namespace regard
