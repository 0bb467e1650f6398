#include "data/grammar/words.h"

namespace regard::grammar {

void Words::say(std::string_view phrase, Node node, Node second) {
  while (!phrase.empty()) {
    std::string_view word = phrase.substr(0, phrase.find(' '));
    phrase.remove_prefix(std::min(word.size() + 1, phrase.size()));
    Node each = node;
    if (word.size() > 2 && word[word.size() - 2] == '/') {
      if (node != 0) each += word.back() - '0';
      word.remove_suffix(2);
    }
    Word said{.text = std::string(word), .nodes = {}};
    if (each != 0) said.nodes.push_back(each);
    if (second != 0) said.nodes.push_back(second);
    all.push_back(std::move(said));
  }
}

void Words::say_before_vowel(std::string_view text, std::string_view before_vowel, Node node) {
  say(text, node);
  all.back().before_vowel = before_vowel;
}

void Words::mark(std::string_view text, Node node) {
  say(text, node);
  all.back().joins_last = true;
}

void Words::help(std::string_view text, Node node) {
  say(text, node);
  all.back().helps = true;
}

namespace {

// The small letters that sentences of the corpus begin with.
void capitalise(std::string& text) {
  if (text.empty()) return;
  if (text[0] >= 'a' && text[0] <= 'z') {
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  } else if (text.starts_with("à")) {
    text.replace(0, 2, "À");
  } else if (text.starts_with("é") || text.starts_with("ê")) {
    text[1] = static_cast<char>(text[1] - 0x20);  // U+00E9 → U+00C9 and so on: 32 apart
  }
}

}  // namespace

Sentence join(const Words& words, bool blanks) {
  Sentence out;
  bool joined = true;
  for (const Word& word : words.all) {
    if (blanks && !joined && !word.joins_last) out.text += ' ';
    std::string text = word.text;
    if (out.words.empty()) capitalise(text);
    out.words.push_back({out.text.size(), out.text.size() + text.size()});
    out.nodes.push_back(word.nodes);
    out.helps.push_back(word.helps);
    out.text += text;
    joined = text.ends_with('\'') && text != "'";
  }
  return out;
}

bool is_plural(const Entity& noun) {
  switch (noun.determiner) {
    case Determiner::kThese:
    case Determiner::kSome:
    case Determiner::kSeveral:
    case Determiner::kMany:
      return true;
    case Determiner::kKind:
      return (noun.noun->classes & kMeal) == 0 && noun.noun->container.empty();
    case Determiner::kNumber:
    case Determiner::kVessel:
    case Determiner::kPossessive:
    case Determiner::kOwner:
    case Determiner::kRole:
      return noun.count > 1;
    case Determiner::kThe:
    case Determiner::kA:
    case Determiner::kThis:
    case Determiner::kThat:
    case Determiner::kEvery:
    case Determiner::kMass:
      return false;
  }
  return false;
}

Agreement agreement(const Entity& entity) {
  switch (entity.kind) {
    case Entity::Kind::kPronoun:
      switch (entity.pronoun) {
        case Pronoun::kI:
          return {.person = 1};
        case Pronoun::kYou:
          return {.person = 2};
        case Pronoun::kHe:
          return {.person = 3};
        case Pronoun::kShe:
          return {.person = 3, .gender = Gender::kFeminine};
        case Pronoun::kWe:
          return {.person = 1, .plural = true};
        case Pronoun::kYouAll:
          return {.person = 2, .plural = true};
        case Pronoun::kThey:
          return {.person = 3, .plural = true};
        case Pronoun::kTheyWomen:
          return {.person = 3, .plural = true, .gender = Gender::kFeminine};
      }
      break;
    case Entity::Kind::kName:
      return {.gender = entity.name->gender};
    case Entity::Kind::kNoun:
      return {.plural = is_plural(entity),
              .gender = entity.determiner == Determiner::kVessel ? entity.vessel->gender : entity.noun->gender};
    case Entity::Kind::kList: {
      Agreement out{.plural = true, .gender = Gender::kFeminine};
      for (const Entity& each : entity.list) {
        const Agreement one = agreement(each);
        if (one.gender == Gender::kMasculine) out.gender = Gender::kMasculine;
        out.person = std::min(out.person, one.person);
      }
      return out;
    }
    case Entity::Kind::kWho:
    case Entity::Kind::kWhat:
    case Entity::Kind::kIt:
      return {};
  }
  return {};
}

}  // namespace regard::grammar
