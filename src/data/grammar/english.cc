// Says a meaning in English.
#include <algorithm>

#include "data/grammar/words.h"

namespace regard::grammar {
namespace {

using Question = Clause::Question;
using Gap = Clause::Gap;

bool vowel(std::string_view word) {
  if (word.starts_with("uni") || word.starts_with("use")) return false;
  return std::string_view("aeiou").find(word[0]) != std::string_view::npos;
}

bool vowel_letter(char letter) { return std::string_view("aeiou").find(letter) != std::string_view::npos; }

bool ends_in_consonant_y(std::string_view word) {
  return word.size() > 1 && word.ends_with('y') && !vowel_letter(word[word.size() - 2]);
}

// book → books, box → boxes, story → stories; also for verbs: watches, tries
std::string with_s(std::string_view word) {
  if (ends_in_consonant_y(word)) return std::string(word.substr(0, word.size() - 1)) + "ies";
  for (const char* hissing : {"s", "x", "ch", "sh"})
    if (word.ends_with(hissing)) return std::string(word) + "es";
  return std::string(word) + "s";
}

std::string plural(std::string_view noun) {
  for (const Plural& each : english_plurals())
    if (each.one == noun) return std::string(each.many);
  return with_s(noun);
}

const EnglishForms* irregular(std::string_view verb) {
  for (const EnglishForms& each : english_verbs())
    if (each.verb == verb) return &each;
  return nullptr;
}

std::string with_ed(std::string_view verb) {
  if (verb.ends_with('e')) return std::string(verb) + "d";
  if (ends_in_consonant_y(verb)) return std::string(verb.substr(0, verb.size() - 1)) + "ied";
  return std::string(verb) + "ed";
}
std::string past(std::string_view verb) {
  const EnglishForms* forms = irregular(verb);
  return forms ? std::string(forms->past) : with_ed(verb);
}
std::string participle(std::string_view verb) {
  const EnglishForms* forms = irregular(verb);
  return forms ? std::string(forms->participle) : with_ed(verb);
}
std::string with_ing(std::string_view verb) {
  const EnglishForms* forms = irregular(verb);
  if (forms && !forms->ing.empty()) return std::string(forms->ing);
  if (verb.ends_with('e') && !verb.ends_with("ee")) return std::string(verb.substr(0, verb.size() - 1)) + "ing";
  return std::string(verb) + "ing";
}
std::string third_person(std::string_view verb) {
  if (verb == "have") return "has";
  if (verb == "go" || verb == "do") return std::string(verb) + "es";
  if (const std::size_t blank = verb.find(' '); blank != std::string_view::npos)  // gets up
    return with_s(verb.substr(0, blank)) + std::string(verb.substr(blank));
  return with_s(verb);
}

const char* be(const Agreement& who, bool past) {
  if (past) return who.plural || who.person == 2 ? "were" : "was";
  if (who.plural || who.person == 2) return "are";
  return who.person == 1 ? "am" : "is";
}

std::string comparative(const Adjective& adjective) {
  if (!adjective.comparative.empty()) return std::string(adjective.comparative);
  const std::string_view word = adjective.english;
  const auto vowels = std::count_if(word.begin(), word.end(), vowel_letter);
  if (ends_in_consonant_y(word)) return std::string(word.substr(0, word.size() - 1)) + "ier";
  if (vowels > 1 && !word.ends_with('e') && word != "cheap" && word != "clean" && word != "quiet")
    return "more " + std::string(word);
  if (vowels > 2) return "more " + std::string(word);
  if (word == "sad") return "sadder";
  return std::string(word) + (word.ends_with('e') ? "r" : "er");
}

class Speaker {
 public:
  Words out;

  void entity(const Entity& entity, bool object) {
    switch (entity.kind) {
      case Entity::Kind::kPronoun: {
        static constexpr std::string_view kSubjects[] = {"I", "you", "he", "she", "we", "you", "they"};
        static constexpr std::string_view kObjects[] = {"me", "you", "him", "her", "us", "you", "them"};
        out.say((object ? kObjects : kSubjects)[static_cast<int>(entity.pronoun)], entity.node);
        break;
      }
      case Entity::Kind::kName:
        out.say(entity.name->english, entity.node);
        break;
      case Entity::Kind::kWho:
        out.say("who", entity.node);
        break;
      case Entity::Kind::kWhat:
        out.say("what", entity.node);
        break;
      case Entity::Kind::kIt:
        out.say("it", 0);
        break;
      case Entity::Kind::kList:
        for (std::size_t i = 0; i < entity.list.size(); ++i) {
          if (i > 0 && i + 1 < entity.list.size()) out.mark(",", entity.and_node + 1);
          if (i > 0 && i + 1 == entity.list.size()) out.say("and", entity.and_node);
          this->entity(entity.list[i], object);
        }
        break;
      case Entity::Kind::kNoun:
        noun(entity);
        break;
    }
  }

  void place(const Place& place, const Verb* motion, Node verb_node) {
    if (place.site) {
      if (motion && place.site->english_to == "home") {
        out.say("home", place.node);
      } else if (motion && motion->english_after == "at") {
        out.say(place.site->english_at, place.node);
      } else {
        out.say(motion ? place.site->english_to : place.site->english_at, place.node);
      }
      return;
    }
    if (motion) {
      out.say(motion->english_after, verb_node);
    } else {
      out.say(place.relation ? place.relation->english : place.ground->noun->english_at, place.node);
    }
    entity(*place.ground, true);
  }

  void clause(const Clause& c) {
    const Agreement who = c.gap == Gap::kSubject ? c.antecedent : agreement(c.subject);
    const bool asks = c.question != Question::kNone && c.question != Question::kWho;
    if (c.time && c.time_first) {
      out.say(c.time->english, c.time_node);
      out.mark(",", c.time_node + 3);
    }
    static constexpr std::string_view kAsking[] = {"", "", "what", "", "where", "when", "why"};
    if (asks) out.say(kAsking[static_cast<int>(c.question)], c.question_node);
    if (c.kind == Clause::Kind::kThere) {
      there(c);
      return;
    }
    Words first, rest;  // the finite verb and what follows it; between them the subject of a question
    verb_group(c, who, asks, first, rest);
    Words subject;
    if (c.gap != Gap::kSubject && !c.command) {
      std::swap(out, subject);
      entity(c.subject, false);
      std::swap(out, subject);
    }
    if (asks) {
      out.append(first);
      out.append(subject);
    } else {
      out.append(subject);
      out.append(first);
    }
    out.append(rest);
    complements(c);
  }

 private:
  void noun(const Entity& e) {
    const bool many = is_plural(e);
    switch (e.determiner) {
      case Determiner::kThe:
        out.say("the", e.determiner_node);
        break;
      case Determiner::kA:
      case Determiner::kRole:
        if (!many) out.say_before_vowel("a", "an", e.determiner_node);
        break;
      case Determiner::kThis:
        out.say("this", e.determiner_node);
        break;
      case Determiner::kThat:
        out.say("that", e.determiner_node);
        break;
      case Determiner::kThese:
        out.say("these", e.determiner_node);
        break;
      case Determiner::kNumber:
        out.say(numbers()[static_cast<std::size_t>(e.count - 2)].english, e.determiner_node);
        break;
      case Determiner::kSome:
        out.say("some", e.determiner_node);
        break;
      case Determiner::kSeveral:
        out.say("several", e.determiner_node);
        break;
      case Determiner::kMany:
        out.say("many", e.determiner_node);
        break;
      case Determiner::kEvery:
        out.say("every", e.determiner_node);
        break;
      case Determiner::kPossessive: {
        static constexpr std::string_view kOf[] = {"my", "your", "his", "her", "our", "your", "their"};
        out.say(kOf[static_cast<int>(e.possessor)], e.determiner_node);
        break;
      }
      case Determiner::kOwner:
        entity(*e.owner, true);
        out.mark("'s", e.determiner_node);
        break;
      case Determiner::kVessel:
        if (e.count == 1) {
          out.say("a", e.determiner_node);
        } else {
          out.say(numbers()[static_cast<std::size_t>(e.count - 2)].english, e.determiner_node);
        }
        out.say(many ? plural(e.vessel->english) : std::string(e.vessel->english), e.vessel_node);
        out.say("of", e.of_node);
        break;
      case Determiner::kKind:
      case Determiner::kMass:
        break;
    }
    if (e.adjective) out.say(e.adjective->english, e.adjective_node);
    out.say(many && e.determiner != Determiner::kVessel ? plural(e.noun->english) : std::string(e.noun->english),
            e.node);
    if (e.relation) {
      out.say(e.relation->english, e.relation_node);
      entity(*e.ground, true);
    }
    if (e.relative) {
      const bool person = (e.noun->classes & kPersons) != 0;
      out.say(person && e.relative->gap == Gap::kSubject ? "who" : "that", e.relative_node);
      clause(*e.relative);
    }
  }

  static Words said(std::string_view text, Node node, Node second = 0) {
    Words words;
    words.say(text, node, second);
    return words;
  }

  void there(const Clause& c) {
    const bool asks = c.question == Question::kYesNo;
    const char* finite = be(agreement(*c.object), false);
    if (asks) out.say(finite, c.verb_node);
    out.say("there", c.verb_node);
    if (!asks) out.say(finite, c.verb_node);
    if (c.negative) out.say("not", c.not_node);
    entity(*c.object, true);
    place(c.place, nullptr, 0);
  }

  void adverb(const Clause& c, Words& words) const {
    if (c.never) words.say("never", c.not_node);
    if (c.frequency) words.say(c.frequency->english, c.frequency_node);
  }

  void verb_group(const Clause& c, const Agreement& who, bool asks, Words& first, Words& rest) const {
    const bool third = !who.plural && who.person == 3;
    const bool negative = c.negative && !c.never;
    const bool event = c.kind == Clause::Kind::kEvent || c.kind == Clause::Kind::kThought;
    const std::string_view verb = c.kind == Clause::Kind::kWeather ? c.weather->english
                                  : event                          ? c.verb->english
                                                                   : "be";
    const auto negate = [&] {
      if (negative) rest.say("not", c.not_node);
    };
    if (c.command) {
      if (negative) {
        first.say("do", c.not_node);
        negate();
      }
      rest.say(verb, c.verb_node);
      return;
    }
    if (c.modal) {
      if (c.modal->auxiliary) {
        const std::string_view text = c.modal->english;
        first.say(text.substr(0, text.find(' ')), c.modal_node);
        negate();
        if (text.find(' ') != std::string_view::npos) rest.say(text.substr(text.find(' ') + 1), c.modal_node);
      } else {
        const bool past_time = c.tense == Tense::kPastState;
        if (negative || asks) {
          first.say(past_time ? "did" : third ? "does" : "do", negative ? c.not_node : c.question_node);
          negate();
          rest.say("want", c.modal_node);
        } else {
          rest.say(past_time ? "wanted" : third ? "wants" : "want", c.modal_node);
        }
        rest.say("to", c.modal_node);
      }
      rest.say(verb, c.verb_node);
      return;
    }
    if (verb == "be") {
      if (c.tense == Tense::kFuture) {
        first.say("will", c.tense_node);
        negate();
        adverb(c, rest);
        rest.say("be", c.verb_node);
      } else {
        first.say(be(who, c.tense == Tense::kPastState), c.verb_node);
        negate();
        adverb(c, rest);
      }
      return;
    }
    switch (c.tense) {
      case Tense::kProgressive:
      case Tense::kPastProgressive:
        first.say(be(who, c.tense == Tense::kPastProgressive), c.tense_node);
        negate();
        adverb(c, rest);
        rest.say(with_ing(verb), c.verb_node);
        break;
      case Tense::kFuture:
        first.say("will", c.tense_node);
        negate();
        adverb(c, rest);
        rest.say(verb, c.verb_node);
        break;
      case Tense::kExperience:
        first.say(third ? "has" : "have", c.tense_node);
        negate();
        adverb(c, rest);
        rest.say(verb == "go" ? "been" : participle(verb), c.verb_node);
        break;
      case Tense::kHabit:
      case Tense::kPast:
      case Tense::kPastState: {
        const bool past_time = c.tense != Tense::kHabit;
        if (negative || asks) {
          first.say(past_time ? "did" : third ? "does" : "do", negative ? c.not_node : c.question_node, c.tense_node);
          negate();
          adverb(c, rest);
          rest.say(verb, c.verb_node);
        } else {
          adverb(c, rest);
          rest.say(past_time ? past(verb) : third ? third_person(verb) : std::string(verb), c.verb_node, c.tense_node);
        }
        break;
      }
    }
  }

  void complements(const Clause& c) {
    switch (c.kind) {
      case Clause::Kind::kQuality:
        if (c.very_node) out.say("very", c.very_node);
        out.say(c.adjective->english, c.adjective_node);
        break;
      case Clause::Kind::kCompare: {
        const std::string more = comparative(*c.adjective);
        if (more.starts_with("more ")) {
          out.say("more", c.very_node);
          out.say(c.adjective->english, c.adjective_node);
        } else {
          out.say(more, c.adjective_node, c.very_node);
        }
        out.say("than", c.to_node);
        entity(*c.object, true);
        break;
      }
      case Clause::Kind::kRole:
        entity(*c.object, true);
        break;
      case Clause::Kind::kPosition:
        if (c.question != Question::kWhere) place(c.place, nullptr, 0);
        break;
      case Clause::Kind::kThought:
        out.say("that", c.that_node);
        clause(*c.thought);
        return;
      case Clause::Kind::kEvent:
      case Clause::Kind::kWeather:
      case Clause::Kind::kThere:
        break;
    }
    const bool event = c.kind == Clause::Kind::kEvent;
    if (event) {
      const bool gives = c.verb->flags & kGives;
      if (!gives && (c.object || c.gap == Gap::kObject || c.question == Question::kWhat || c.tail_node))
        out.say(c.verb->english_after, c.verb_node);
      if (c.tail_node) out.say(c.verb->english_tail, c.tail_node);
      if (c.object && c.gap != Gap::kObject && c.question != Question::kWhat) entity(*c.object, true);
      if (c.recipient) {
        out.say("to", c.to_node);
        entity(*c.recipient, true);
      }
      if (c.verb->flags & kMotion) {
        if (c.question != Question::kWhere) place(c.place, c.verb, c.verb_node);
      }
    }
    if (c.manner) out.say(c.manner->english, c.manner_node);
    if (event && !(c.verb->flags & kMotion) && c.place.node != 0 && c.question != Question::kWhere)
      place(c.place, nullptr, 0);
    if (c.companion) {
      out.say("with", c.with_node);
      entity(*c.companion, true);
    }
    if (c.time && !c.time_first && c.question != Question::kWhen) out.say(c.time->english, c.time_node);
  }
};

}  // namespace

Sentence english(const Meaning& meaning) {
  Speaker speaker;
  static constexpr std::string_view kOpenings[] = {"", "when", "if", "although"};
  speaker.out.say(kOpenings[static_cast<int>(meaning.opening)], meaning.opening_node);
  if (meaning.please) speaker.out.say("please", meaning.please_node);
  for (std::size_t i = 0; i < meaning.parts.size(); ++i) {
    const Meaning::Part& part = meaning.parts[i];
    if (part.link != Link::kNone && part.link != Link::kBecause) speaker.out.mark(",", part.link_node + 1);
    static constexpr std::string_view kLinks[] = {"", "and", "but", "so", "because", "and then"};
    speaker.out.say(kLinks[static_cast<int>(part.link)], part.link_node);
    speaker.clause(part.clause);
    if (i == 0 && meaning.opening != Opening::kNone) speaker.out.mark(",", meaning.opening_node + 1);
  }
  const Clause& first = meaning.parts[0].clause;
  speaker.out.mark(first.question != Question::kNone ? "?" : first.command ? "!" : ".", meaning.end_node);
  std::vector<Word>& words = speaker.out.all;
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (!words[i].before_vowel.empty() && vowel(words[i + 1].text)) words[i].text = words[i].before_vowel;
  return join(speaker.out, true);
}

}  // namespace regard::grammar
