// The words of a sentence while it is being said, and the sentence that becomes of them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/grammar/meaning.h"

namespace regard::grammar {

struct Word {
  std::string text;
  std::vector<Node> nodes;        // what it expresses
  std::string before_vowel = {};  // what it is before a vowel: an, l', bel
  bool joins_last = false;        // no blank before it: 's and full stops
  bool helps = false;             // who aligns by hand mostly leaves it out: 了, 个, 的 behind an adjective
};

class Words {
 public:
  // A word, or several separated by blanks; "last/1 week/2" express node + 1 and node + 2.
  void say(std::string_view phrase, Node node, Node second = 0);
  void say_before_vowel(std::string_view text, std::string_view before_vowel, Node node);
  void mark(std::string_view text, Node node);  // a word that is joined to the one before
  void help(std::string_view text, Node node);  // a word that helps
  void append(const Words& other) { all.insert(all.end(), other.all.begin(), other.all.end()); }

  std::vector<Word> all;
};

struct Sentence {
  struct Span {
    std::size_t begin, end;  // bytes of the text
  };
  std::string text;
  std::vector<Span> words;
  std::vector<std::vector<Node>> nodes;  // of the words
  std::vector<bool> helps;
};

// Puts words together: a blank between them if `blanks`, except where they join; the first letter becomes a capital.
Sentence join(const Words& words, bool blanks);

Sentence english(const Meaning& meaning);
Sentence french(const Meaning& meaning);
Sentence chinese(const Meaning& meaning);

}  // namespace regard::grammar
