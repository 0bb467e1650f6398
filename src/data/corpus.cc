#include "data/corpus.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/check.h"
#include "data/grammar/make.h"
#include "data/grammar/words.h"
#include "regard/random.h"

namespace regard {
namespace {

using Said = std::array<grammar::Sentence, 3>;  // in the order of Corpus::Language

// FNV-1a, then the finaliser that RandomKey has: the same on every machine.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return RandomKey(hash).value();
}

std::size_t words_without_marks(const grammar::Sentence& sentence) {
  std::size_t count = 0;
  for (const grammar::Sentence::Span& span : sentence.words) {
    const std::string_view word = std::string_view(sentence.text).substr(span.begin, span.end - span.begin);
    count += word != "," && word != "." && word != "?" && word != "!" && word != "'s";
  }
  return count;
}

Said draw(std::uint64_t seed, std::uint64_t line, Corpus::Split split) {
  const bool test = split == Corpus::Split::kTest;
  Said said;
  auto& [chinese, english, french] = said;
  if (line == 0 && !test) {
    const grammar::Meaning meaning = grammar::they_are_watching();
    return {grammar::chinese(meaning), grammar::english(meaning), grammar::french(meaning)};
  }
  const RandomKey key = RandomKey(seed).at(test).at(line);
  for (std::uint64_t attempt = 0;; ++attempt) {
    const grammar::Meaning meaning = grammar::make_meaning(key.at(attempt));
    english = grammar::english(meaning);
    if (Corpus::reserved(english.text) != test) continue;
    const std::size_t words = words_without_marks(english);
    if (words < Corpus::kLeastWords || words > Corpus::kMostWords) continue;
    chinese = grammar::chinese(meaning);
    if (Corpus::reserved(chinese.text) != test) continue;
    french = grammar::french(meaning);
    if (Corpus::reserved(french.text) == test) return said;
  }
}

Corpus::Sentence sentence(const grammar::Sentence& said) {
  Corpus::Sentence out{.text = said.text, .words = {}};
  for (const grammar::Sentence::Span& span : said.words) out.words.push_back({span.begin, span.end});
  return out;
}

}  // namespace

// A sentence belongs to the test if its texts in all languages are reserved, to training if none is; what is in between
// belongs to neither. So the two have no text in common in any language.
bool Corpus::reserved(std::string_view text) { return hash_of(text) % 3 == 1; }

std::string Corpus::Sentence::segmented() const {
  std::string out;
  for (const Span& span : words) {
    if (!out.empty()) out += ' ';
    out += text.substr(span.begin, span.end - span.begin);
  }
  return out;
}

bool Corpus::Example::is_sure(const Link& link) const {
  return !std::binary_search(possible.begin(), possible.end(), link);
}

std::string Corpus::Example::pharaoh() const {
  std::string out;
  for (const Link& link : alignment) {
    if (!out.empty()) out += ' ';
    out += std::to_string(link.first) + (is_sure(link) ? '-' : 'p') + std::to_string(link.second);
  }
  return out;
}

Corpus::Language Corpus::language(std::string_view name, std::string_view pair) {
  if (name == "zh") return Language::kChinese;
  if (name == "en") return Language::kEnglish;
  if (name == "fr") return Language::kFrench;
  fail(ErrorKind::kInput, "corpus: unknown pair '", pair, "', expected zh-en, en-zh, en-fr, fr-en, zh-fr or fr-zh");
}

Corpus::Corpus(std::string_view pair, std::uint64_t seed, Split split) : seed_(seed), split_(split) {
  const std::size_t dash = std::min(pair.find('-'), pair.size());
  source_ = language(pair.substr(0, dash), pair);
  target_ = language(pair.substr(std::min(dash + 1, pair.size())), pair);
  check(source_ != target_, "corpus: '", pair,
        "' has one language, expected zh-en, en-zh, en-fr, fr-en, zh-fr or fr-zh");
}

Corpus::Example Corpus::at(std::uint64_t line) const {
  const Said said = draw(seed_, line, split_);
  const grammar::Sentence &source = said[static_cast<std::size_t>(source_)],
                          &target = said[static_cast<std::size_t>(target_)];
  Example out{.source = sentence(source), .target = sentence(target), .alignment = {}, .possible = {}};
  for (std::size_t i = 0; i < source.nodes.size(); ++i) {
    for (std::size_t j = 0; j < target.nodes.size(); ++j) {
      const auto expressed = [&](grammar::Node node) {
        return std::find(target.nodes[j].begin(), target.nodes[j].end(), node) != target.nodes[j].end();
      };
      if (std::none_of(source.nodes[i].begin(), source.nodes[i].end(), expressed)) continue;
      const Example::Link link(i, j);
      out.alignment.push_back(link);
      if (source.helps[i] || target.helps[j]) out.possible.push_back(link);
    }
  }
  return out;
}

Corpus::Triple Corpus::triple(std::uint64_t line) const {
  const Said said = draw(seed_, line, split_);
  return {sentence(said[0]), sentence(said[1]), sentence(said[2])};
}

}  // namespace regard
