#include "tasks/align_pairs.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "base/check.h"
#include "tasks/translation_pairs.h"
#include "tasks/word_aligner.h"

namespace regard {
namespace {

constexpr std::size_t kTogether = 256;  // pairs whose weights are held at a time

using Pointers = std::vector<std::int32_t>;  // of every target unit its source unit; −1: none

Pointers pointers_of(const Links& links, std::size_t targets) {
  Pointers made(targets, -1);
  for (const Link& link : links) made[static_cast<std::size_t>(link.target)] = link.source;
  return made;
}

// Where a model looked in pairs; those that are too long are nothing at all.
std::vector<std::optional<Translator::Looked>> look(const Translator& translator, std::span<const TextPair> pairs,
                                                    bool backward, const AlignPairsSettings& settings,
                                                    const Context& context) {
  std::vector<std::string> lines;
  std::vector<Translator::Result> results;
  std::vector<std::size_t> numbers;
  const Room room = translator.room(settings.longest);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::string& source = backward ? pairs[i].target : pairs[i].source;
    const std::string& target = backward ? pairs[i].source : pairs[i].target;
    std::vector<Token> tokens = translator.target().encode(target);
    if (!has_room(room, translator.source().encode(source).size(), tokens.size())) continue;
    lines.push_back(source);
    results.push_back({.text = target, .tokens = std::move(tokens)});
    numbers.push_back(i);
  }
  std::vector<Translator::Looked> looked = translator.look(lines, results, settings.batch_tokens, context);
  std::vector<std::optional<Translator::Looked>> made(pairs.size());
  for (std::size_t i = 0; i < looked.size(); ++i) made[numbers[i]] = std::move(looked[i]);
  return made;
}

PairUnits turned(const PairUnits& units) { return {.source = units.target, .target = units.source}; }

// What every candidate of a model says about every pair.
class Candidates {
 public:
  explicit Candidates(const Translator& translator)
      : choices_(all_choices(translator.attention_shape())), said_(choices_.size()) {
    choice_of(translator);  // throws if it cannot look
  }
  void add(const Translator::Looked& looked, const PairUnits& units) {
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      said_[i].push_back(pointers_of(hard_links(unit_weights(looked, units, choices_[i])), units.target.size()));
    }
  }
  const std::vector<AlignmentChoice>& choices() const { return choices_; }
  const std::vector<Pointers>& said(std::size_t candidate) const { return said_[candidate]; }

 private:
  std::vector<AlignmentChoice> choices_;
  std::vector<std::vector<Pointers>> said_;
};

// F1 of links one way and the other way.
double agreement(const std::vector<Pointers>& forward, const std::vector<Pointers>& backward) {
  std::int64_t both = 0, all = 0;
  for (std::size_t i = 0; i < forward.size(); ++i) {
    for (const std::int32_t target : backward[i]) all += target >= 0;
    for (std::size_t t = 0; t < forward[i].size(); ++t) {
      const std::int32_t source = forward[i][t];
      if (source < 0) continue;
      ++all;
      both += backward[i][static_cast<std::size_t>(source)] == static_cast<std::int32_t>(t);
    }
  }
  return all == 0 ? 0 : 2 * static_cast<double>(both) / static_cast<double>(all);
}

void best_first(std::vector<ScoredChoice>& all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const ScoredChoice& a, const ScoredChoice& b) { return a.agreement > b.agreement; });
}

std::vector<ScoredChoice> unscored(const std::vector<AlignmentChoice>& choices) {
  std::vector<ScoredChoice> made;
  for (const AlignmentChoice& each : choices) made.push_back({.choice = each});
  return made;
}

// The words of all pairs, and what models of words that learned from them say in both directions.
class WordPairs {
 public:
  void add(const TextPair& texts, const PairUnits& units) {
    const auto one = [](const std::string& text, const std::vector<TextUnit>& words, WordNumbers& numbers) {
      std::vector<std::int32_t> made;
      for (const TextUnit& each : words) made.push_back(numbers.number(text.substr(each.begin, each.end - each.begin)));
      return made;
    };
    WordPair& pair = pairs_.emplace_back();
    pair.source = one(texts.source, units.source, sources_);
    pair.target = one(texts.target, units.target, targets_);
  }

  std::vector<Pointers> both_say() const {  // of every source word its target word
    const WordAligner aligner = WordAligner::learn(pairs_);
    std::vector<Pointers> both;
    for (const WordPair& pair : pairs_) both.push_back(aligner.agreed(pair));
    return both;
  }

 private:
  WordNumbers sources_, targets_;
  std::vector<WordPair> pairs_;
};

void check_join(const AlignPairsSettings& settings) {
  check(!settings.join || settings.alignment.level == AlignmentLevel::kWord,
        "align: words that are joined are aligned as words, not at another level");
}

struct Both {
  const TextPair& texts;  // as given
  PairUnits units;        // of what the models read
  PairUnits given;        // the same units in the texts as given
  const Translator::Looked* ahead;
  const Translator::Looked* back;  // null: there is no model of the other direction
};

// Of every pair where the models looked; null: it is too long.
void for_each_looked(const Translator& forward, const Translator* backward, std::span<const TextPair> pairs,
                     const AlignPairsSettings& settings, const Context& context,
                     const std::function<void(const Both*)>& use) {
  for (std::size_t begin = 0; begin < pairs.size(); begin += kTogether) {
    const std::span<const TextPair> some = pairs.subspan(begin, std::min(kTogether, pairs.size() - begin));
    std::vector<TextPair> read(some.begin(), some.end());
    std::vector<PairUnits> words(some.size());
    if (settings.join) {
      for (std::size_t i = 0; i < some.size(); ++i) {
        JoinedText source = joined(some[i].source), target = joined(some[i].target);
        read[i] = {std::move(source.text), std::move(target.text)};
        words[i] = {std::move(source.words), std::move(target.words)};
      }
    }
    const auto ahead = look(forward, read, false, settings, context);
    std::vector<std::optional<Translator::Looked>> back;
    if (backward != nullptr) back = look(*backward, read, true, settings, context);
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (!ahead[i] || (backward != nullptr && !back[i])) {
        use(nullptr);
        continue;
      }
      PairUnits given{.source = {}, .target = {}};
      if (settings.join) {
        given = {words_of(some[i].source, WordCut::kBlanks), words_of(some[i].target, WordCut::kBlanks)};
      } else {
        given = units_of(forward, some[i], *ahead[i], settings.alignment.level, settings.alignment.words);
        words[i] = given;
      }
      const Both both{some[i], std::move(words[i]), std::move(given), &*ahead[i],
                      backward == nullptr ? nullptr : &*back[i]};
      use(&both);
    }
  }
}

}  // namespace

PairAligner::PairAligner(const Translator& forward, const Translator* backward, const AlignPairsSettings& settings)
    : forward_(forward), backward_(backward), settings_(settings) {
  check_join(settings);
  forward_choice_ = choice_of(forward, settings.alignment);
  if (backward == nullptr) return;
  backward_choice_ = choice_of(*backward, settings.alignment);
  check(settings.alignment.kind != AlignmentKind::kSoft || !settings.separate,
        "align: soft weights of two models cannot be separate, they are one table");
}

std::vector<PairAligner::Aligned> PairAligner::align(std::span<const TextPair> pairs, const Context& context) const {
  const AlignmentSettings& alignment = settings_.alignment;
  std::vector<Aligned> made;
  for_each_looked(forward_, backward_, pairs, settings_, context, [&](const Both* both) {
    Aligned& one = made.emplace_back();
    one.too_long = both == nullptr;
    if (both == nullptr) return;
    UnitWeights ahead = unit_weights(*both->ahead, both->units, forward_choice_), back;
    if (both->back != nullptr) {
      back = unit_weights(*both->back, turned(both->units), backward_choice_);
      if (!settings_.separate) {
        ahead = agreed(ahead, back);
        back = turned(ahead);
      }
    }
    if (alignment.kind == AlignmentKind::kSoft) {
      one.text = soft_text(ahead);
      return;
    }
    const double least = both->back == nullptr || settings_.separate ? 0 : kLeastAgreed;
    Links links = links_of(ahead, alignment, least);
    if (both->back != nullptr) links = symmetrized(settings_.symmetry, links, turned(links_of(back, alignment, least)));
    one.text = alignment.kind == AlignmentKind::kSpans ? span_text(links, both->given, both->texts) : pharaoh(links);
  });
  return made;
}

HeadChoice choose_heads(const Translator& forward, const Translator* backward, std::span<const TextPair> pairs,
                        const AlignPairsSettings& settings, const Context& context) {
  check_join(settings);
  Candidates ahead(forward), back(backward == nullptr ? forward : *backward);
  WordPairs words;
  for_each_looked(forward, backward, pairs, settings, context, [&](const Both* both) {
    if (both == nullptr) return;
    ahead.add(*both->ahead, both->units);
    if (both->back != nullptr) {
      back.add(*both->back, turned(both->units));
    } else {
      words.add(both->texts, both->given);
    }
  });
  HeadChoice made{.forward = unscored(ahead.choices()), .backward = {}};
  if (backward == nullptr) {
    const std::vector<Pointers> said = words.both_say();
    for (std::size_t f = 0; f < made.forward.size(); ++f) made.forward[f].agreement = agreement(ahead.said(f), said);
  } else {
    made.backward = unscored(back.choices());
    for (std::size_t f = 0; f < made.forward.size(); ++f) {
      stop_if_asked(context);
      for (std::size_t b = 0; b < made.backward.size(); ++b) {
        const double each = agreement(ahead.said(f), back.said(b));
        made.forward[f].agreement = std::max(made.forward[f].agreement, each);
        made.backward[b].agreement = std::max(made.backward[b].agreement, each);
      }
    }
  }
  best_first(made.forward);
  best_first(made.backward);
  return made;
}

}  // namespace regard
