// Says a meaning in French: genders, agreement, elision (l', d', qu') and contraction (au, du, des).
#include <algorithm>
#include <array>

#include "data/grammar/words.h"

namespace regard::grammar {
namespace {

using Question = Clause::Question;
using Gap = Clause::Gap;

bool vowel(std::string_view word) {
  for (const char* aspirated : {"hibou", "huit"})
    if (word.starts_with(aspirated)) return false;
  if (word == "y") return true;
  for (const char* start : {"a", "e", "i", "o", "u", "h", "A", "E", "I", "é", "è", "ê", "à", "â", "î", "ô", "œ"})
    if (word.starts_with(start)) return true;
  return false;
}

std::string with_s(std::string_view word) {
  for (const char* silent : {"s", "x", "z"})
    if (word.ends_with(silent)) return std::string(word);
  for (const char* end : {"eau", "eu"})
    if (word.ends_with(end) && word != "bleu") return std::string(word) + "x";
  return std::string(word) + "s";
}

std::string plural(std::string_view noun) {
  for (const Plural& each : french_plurals())
    if (each.one == noun) return std::string(each.many);
  return with_s(noun);
}

std::string adjective(const Adjective& adjective, const Agreement& of) {
  const bool feminine = of.gender == Gender::kFeminine;
  const std::string_view one = feminine ? adjective.feminine : adjective.french;
  return of.plural && one.find(' ') == std::string_view::npos ? with_s(one) : std::string(one);
}

int person(const Agreement& who) { return who.person - 1 + (who.plural ? 3 : 0); }

struct Verbs {
  std::array<std::string, 6> present;
  std::string participle, future;
};

Verbs conjugate(std::string_view verb) {
  Verbs out;
  for (const FrenchForms& each : french_verbs()) {
    if (each.verb != verb) continue;
    std::string_view rest = each.present;
    for (std::string& form : out.present) {
      form = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(form.size() + 1, rest.size()));
    }
    out.participle = each.participle;
    out.future = each.future;
    return out;
  }
  const std::string stem(verb.substr(0, verb.size() - 2));  // a regular verb in -er
  const std::string soft = stem.ends_with('g') ? stem + "e" : stem;
  out.present = {stem + "e", stem + "es", stem + "e", soft + "ons", stem + "ez", stem + "ent"};
  out.participle = stem + "é";
  out.future = verb;
  return out;
}

constexpr std::string_view kFutureEnds[] = {"ai", "as", "a", "ons", "ez", "ont"};
constexpr std::string_view kImperfectEnds[] = {"ais", "ais", "ait", "ions", "iez", "aient"};

std::string imperfect(std::string_view verb, int person) {
  std::string stem = verb == "être" ? "ét" : conjugate(verb).present[3];
  if (verb != "être") stem.resize(stem.size() - 3);
  const std::string_view end = kImperfectEnds[person];
  if (stem.ends_with("ge") && end.starts_with('i')) stem.pop_back();
  return stem + std::string(end);
}

std::string agreeing(std::string participle, const Agreement& with) {
  if (with.gender == Gender::kFeminine) participle += 'e';
  return with.plural ? with_s(participle) : participle;
}

class Speaker {
 public:
  Words out;

  // In place of a subject or an object; behind a preposition pronouns have forms of their own.
  void entity(const Entity& entity, bool subject, bool negated = false) {
    switch (entity.kind) {
      case Entity::Kind::kPronoun: {
        static constexpr std::string_view kSubjects[] = {"je", "tu", "il", "elle", "nous", "vous", "ils"};
        static constexpr std::string_view kOthers[] = {"moi", "toi", "lui", "elle", "nous", "vous", "eux"};
        out.say((subject ? kSubjects : kOthers)[static_cast<int>(entity.pronoun)], entity.node);
        if (subject && entity.pronoun == Pronoun::kI) out.all.back().before_vowel = "j'";
        break;
      }
      case Entity::Kind::kName:
        out.say(entity.name->french, entity.node);
        break;
      case Entity::Kind::kWho:
        out.say("qui", entity.node);
        break;
      case Entity::Kind::kWhat:
        break;  // said by the question
      case Entity::Kind::kIt:
        out.say("il", 0);
        break;
      case Entity::Kind::kList:
        for (std::size_t i = 0; i < entity.list.size(); ++i) {
          if (i > 0 && i + 1 < entity.list.size()) out.mark(",", entity.and_node + 1);
          if (i > 0 && i + 1 == entity.list.size()) out.say("et", entity.and_node);
          this->entity(entity.list[i], false, negated);
        }
        break;
      case Entity::Kind::kNoun:
        noun(entity, negated);
        break;
    }
  }

  void clause(const Clause& c) {
    const Agreement who = c.gap == Gap::kSubject ? c.antecedent : agreement(c.subject);
    if (c.time && c.time_first) {
      out.say(c.time->french, c.time_node);
      out.mark(",", c.time_node + 3);
    }
    switch (c.question) {
      case Question::kNone:
      case Question::kWho:
        break;
      case Question::kWhat:
        out.say("qu'", c.question_node);
        break;
      case Question::kWhere:
        out.say("où", c.question_node);
        break;
      case Question::kWhen:
        out.say("quand", c.question_node);
        break;
      case Question::kWhy:
        out.say("pourquoi", c.question_node);
        break;
      case Question::kYesNo:
        break;
    }
    if (c.question == Question::kWhere && c.kind == Clause::Kind::kPosition) {
      out.say(conjugate("être").present[static_cast<std::size_t>(person(who))], c.verb_node);
      entity(c.subject, true);
      return;
    }
    if (c.question != Question::kNone && c.question != Question::kWho) {
      out.say("est-ce", c.question_node);
      out.say_before_vowel("que", "qu'", c.question_node);
    }
    if (c.kind == Clause::Kind::kThere) {
      out.say("il", c.verb_node);
      if (c.negative) out.say_before_vowel("ne", "n'", c.not_node);
      out.say("y a", c.verb_node);
      if (c.negative) out.say("pas", c.not_node);
      entity(*c.object, false, c.negative);
      place(c.place, false);
      return;
    }
    if (c.gap != Gap::kSubject && !c.command) entity(c.subject, true);
    verb_group(c, who);
    complements(c, who);
  }

 private:
  void article(const Agreement& of, Node node) {
    if (of.plural) {
      out.say("les", node);
    } else {
      out.say_before_vowel(of.gender == Gender::kFeminine ? "la" : "le", "l'", node);
    }
  }
  void of(Node node) { out.say_before_vowel("de", "d'", node); }

  void possessive(Pronoun possessor, const Agreement& of, Node node) {
    static constexpr std::string_view kMasculine[] = {"mon", "ton", "son", "son", "notre", "votre", "leur"};
    static constexpr std::string_view kFeminine[] = {"ma", "ta", "sa", "sa", "notre", "votre", "leur"};
    static constexpr std::string_view kPlural[] = {"mes", "tes", "ses", "ses", "nos", "vos", "leurs"};
    const int which = static_cast<int>(possessor);
    const std::string_view one = (of.gender == Gender::kFeminine ? kFeminine : kMasculine)[which];
    out.say_before_vowel(of.plural ? kPlural[which] : one, of.plural ? kPlural[which] : kMasculine[which], node);
  }

  void noun(const Entity& e, bool negated) {
    const Agreement a = agreement(e);
    const bool feminine = a.gender == Gender::kFeminine;
    const bool before = e.adjective && e.adjective->before;
    bool many = a.plural;
    switch (e.determiner) {
      case Determiner::kThe:
      case Determiner::kKind:
      case Determiner::kOwner:
        article(a, e.determiner_node);
        break;
      case Determiner::kA:
        if (negated) {
          of(e.determiner_node);
        } else {
          out.say(feminine ? "une" : "un", e.determiner_node);
        }
        break;
      case Determiner::kThis:
      case Determiner::kThat:
        out.say_before_vowel(feminine ? "cette" : "ce", feminine ? "cette" : "cet", e.determiner_node);
        break;
      case Determiner::kThese:
        out.say("ces", e.determiner_node);
        break;
      case Determiner::kNumber:
        out.say(numbers()[static_cast<std::size_t>(e.count - 2)].french, e.determiner_node);
        break;
      case Determiner::kSome:
        if (negated || before) {
          of(e.determiner_node);
        } else {
          out.say("des", e.determiner_node);
        }
        break;
      case Determiner::kSeveral:
        out.say("plusieurs", e.determiner_node);
        break;
      case Determiner::kMany:
        out.say("beaucoup", e.determiner_node);
        of(e.determiner_node);
        break;
      case Determiner::kEvery:
        out.say("chaque", e.determiner_node);
        break;
      case Determiner::kPossessive:
        possessive(e.possessor, a, e.determiner_node);
        break;
      case Determiner::kMass:
        of(e.node);
        if (!negated) article({.gender = e.noun->gender}, e.node);
        break;
      case Determiner::kVessel:
        if (e.count == 1) {
          out.say(feminine ? "une" : "un", e.determiner_node);
        } else {
          out.say(numbers()[static_cast<std::size_t>(e.count - 2)].french, e.determiner_node);
        }
        out.say(many ? plural(e.vessel->french) : std::string(e.vessel->french), e.vessel_node);
        of(e.of_node);
        many = false;
        break;
      case Determiner::kRole:
        break;
    }
    if (before) {
      out.say(adjective(*e.adjective, a), e.adjective_node);
      if (!a.plural && !feminine && !e.adjective->vowel.empty()) out.all.back().before_vowel = e.adjective->vowel;
    }
    out.say(many ? plural(e.noun->french) : std::string(e.noun->french), e.node);
    if (e.determiner == Determiner::kThat) {
      out.mark("-là", e.determiner_node);
    }
    if (e.adjective && !before) out.say(adjective(*e.adjective, a), e.adjective_node);
    if (e.determiner == Determiner::kOwner) {
      of(e.determiner_node);
      entity(*e.owner, false);
    }
    if (e.relation) {
      relation(*e.relation, e.relation_node);
      entity(*e.ground, false);
    }
    if (e.relative) {
      if (e.relative->gap == Gap::kSubject) {
        out.say("qui", e.relative_node);
      } else {
        out.say_before_vowel("que", "qu'", e.relative_node);
      }
      clause(*e.relative);
    }
  }

  void relation(const Relation& relation, Node node) {
    out.say(relation.french, node);
    if (relation.french.ends_with(" de")) out.all.back().before_vowel = "d'";
  }

  void place(const Place& place, bool motion) {
    if (place.site) {
      out.say(place.site->french_at, place.node);
      return;
    }
    if (place.relation) {
      relation(*place.relation, place.node);
    } else {
      const Noun& noun = *place.ground->noun;
      const bool inside = (noun.classes & (kIndoors | kOutdoors)) || noun.scenes == kHome;
      const bool into = inside && noun.french_at == "dans" && !(noun.scenes & (kLeisure | kWater));
      out.say(!motion || into ? noun.french_at : "à", place.node);
    }
    entity(*place.ground, false);
  }

  void say_finite(std::string_view text, const Clause& c, Node node, Node second = 0) {
    if (c.negative) out.say_before_vowel("ne", "n'", c.not_node);
    if (c.verb && (c.verb->flags & kReflexive) && !c.modal) reflexive(c);
    out.say(text, node, second);
    if (c.negative) out.say(c.never ? "jamais" : "pas", c.not_node);
    if (c.frequency) out.say(c.frequency->french, c.frequency_node);
  }

  void reflexive(const Clause& c) {
    const Agreement who = c.gap == Gap::kSubject ? c.antecedent : agreement(c.subject);
    static constexpr std::string_view kSelf[] = {"me", "te", "se", "nous", "vous", "se"};
    static constexpr std::string_view kElided[] = {"m'", "t'", "s'", "nous", "vous", "s'"};
    out.say_before_vowel(kSelf[person(who)], kElided[person(who)], c.verb_node);
  }

  void verb_group(const Clause& c, const Agreement& who) {
    const bool event = c.kind == Clause::Kind::kEvent || c.kind == Clause::Kind::kThought;
    std::string_view verb = c.kind == Clause::Kind::kWeather ? c.weather->french : event ? c.verb->french : "être";
    if (verb.starts_with("se ")) verb.remove_prefix(3);
    const int p = person(who);
    const Verbs forms = conjugate(verb);
    if (c.command) {
      std::string form = forms.present[1];
      if (form.ends_with("es")) form.pop_back();
      say_finite(form, c, c.verb_node);
    } else if (c.modal) {
      const Verbs modal = conjugate(c.modal->french);
      const bool polite = c.modal->english.starts_with("would");
      say_finite(polite                         ? modal.future + std::string(kImperfectEnds[p])
                 : c.tense == Tense::kPastState ? imperfect(c.modal->french, p)
                                                : modal.present[static_cast<std::size_t>(p)],
                 c, c.modal_node);
      if (c.verb->flags & kReflexive) reflexive(c);
      out.say(verb, c.verb_node);
    } else {
      switch (c.tense) {
        case Tense::kHabit:
        case Tense::kProgressive:
          say_finite(forms.present[static_cast<std::size_t>(p)], c, c.verb_node, event ? c.tense_node : 0);
          break;
        case Tense::kPastProgressive:
        case Tense::kPastState:
          say_finite(imperfect(verb, p), c, c.verb_node, event ? c.tense_node : 0);
          break;
        case Tense::kFuture:
          say_finite(forms.future + std::string(kFutureEnds[p]), c, c.verb_node, c.tense_node);
          break;
        case Tense::kPast:
        case Tense::kExperience: {
          bool moves = c.verb && (c.verb->flags & kReflexive);
          for (const char* each : {"aller", "venir", "arriver", "retourner", "rester"}) moves = moves || verb == each;
          const std::size_t index = static_cast<std::size_t>(p);
          say_finite(conjugate(moves ? "être" : "avoir").present[index], c, c.tense_node);
          if (c.tense == Tense::kExperience && !c.negative) out.say("déjà", c.tense_node);
          const Agreement with = moves ? who : c.gap == Gap::kObject ? c.antecedent : Agreement{};
          out.say(agreeing(forms.participle, with), c.verb_node);
          break;
        }
      }
    }
    if (c.manner) out.say(c.manner->french, c.manner_node);
  }

  void complements(const Clause& c, const Agreement& who) {
    switch (c.kind) {
      case Clause::Kind::kQuality:
        if (c.very_node) out.say("très", c.very_node);
        out.say(adjective(*c.adjective, who), c.adjective_node);
        break;
      case Clause::Kind::kCompare:
        out.say("plus", c.very_node);
        out.say(adjective(*c.adjective, who), c.adjective_node);
        out.say_before_vowel("que", "qu'", c.to_node);
        entity(*c.object, false);
        break;
      case Clause::Kind::kRole:
        entity(*c.object, false);
        break;
      case Clause::Kind::kPosition:
        if (c.question != Question::kWhere) place(c.place, false);
        break;
      case Clause::Kind::kThought:
        out.say_before_vowel("que", "qu'", c.that_node);
        clause(*c.thought);
        return;
      case Clause::Kind::kEvent:
      case Clause::Kind::kWeather:
      case Clause::Kind::kThere:
        break;
    }
    if (c.kind == Clause::Kind::kEvent) {
      if (c.tail_node) {
        out.say(c.negative ? negated_tail(c.verb->french_tail) : std::string(c.verb->french_tail), c.tail_node);
      }
      if (c.object && c.gap != Gap::kObject && c.question != Question::kWhat) entity(*c.object, false, c.negative);
      if (c.recipient) {
        out.say("à", c.to_node);
        entity(*c.recipient, false);
      }
      if (c.place.node != 0 && c.question != Question::kWhere) place(c.place, c.verb->flags & kMotion);
    }
    if (c.companion) {
      out.say("avec", c.with_node);
      entity(*c.companion, false);
    }
    if (c.time && !c.time_first && c.question != Question::kWhen) out.say(c.time->french, c.time_node);
  }

  // Under negation "some" becomes "de": ne boit pas de thé. (But: ne joue pas du piano, whose "du" is a preposition.)
  static std::string negated_tail(std::string_view tail) {
    for (const char* some : {"du thé", "du sport", "des photos", "des histoires", "des légumes", "une douche"})
      if (tail == some) return "de" + std::string(tail.substr(tail.find(' ')));
    if (tail == "de l' argent") return "d' argent";
    if (tail == "de la musique") return "de musique";
    return std::string(tail);
  }
};

void merge(std::vector<Word>& words, std::size_t at, std::string_view text) {
  words[at].text = text;
  for (const Node node : words[at + 1].nodes)
    if (std::find(words[at].nodes.begin(), words[at].nodes.end(), node) == words[at].nodes.end())
      words[at].nodes.push_back(node);
  words.erase(words.begin() + static_cast<std::ptrdiff_t>(at) + 1);
}

}  // namespace

Sentence french(const Meaning& meaning) {
  Speaker speaker;
  Words& out = speaker.out;
  switch (meaning.opening) {
    case Opening::kNone:
      break;
    case Opening::kWhen:
      out.say("quand", meaning.opening_node);
      break;
    case Opening::kIf:
      out.say("si", meaning.opening_node);
      break;
    case Opening::kAlthough:
      out.say("même si", meaning.opening_node);
      break;
  }
  if (meaning.please) {
    out.say("s' il te plaît", meaning.please_node);
    out.mark(",", meaning.please_node + 1);
  }
  for (std::size_t i = 0; i < meaning.parts.size(); ++i) {
    const Meaning::Part& part = meaning.parts[i];
    if (part.link != Link::kNone && part.link != Link::kBecause && part.link != Link::kAnd)
      out.mark(",", part.link_node + 1);
    static constexpr std::string_view kLinks[] = {"", "et", "mais", "donc", "parce que", "puis"};
    out.say(kLinks[static_cast<int>(part.link)], part.link_node);
    if (part.link == Link::kBecause) out.all.back().before_vowel = "qu'";
    speaker.clause(part.clause);
    if (i == 0 && meaning.opening != Opening::kNone) out.mark(",", meaning.opening_node + 1);
  }
  const Clause& first = meaning.parts[0].clause;
  if (first.question != Question::kNone || first.command) {
    out.say(first.question != Question::kNone ? "?" : "!", meaning.end_node);
  } else {
    out.mark(".", meaning.end_node);
  }

  std::vector<Word>& words = out.all;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& next = words[i + 1].text;
    if (!words[i].before_vowel.empty() && vowel(next)) words[i].text = words[i].before_vowel;
    if (words[i].text == "si" && (next == "il" || next == "ils")) words[i].text = "s'";
  }
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string &here = words[i].text, &next = words[i + 1].text;
    if (here == "de" && next == "le") merge(words, i, "du");
    if (here == "de" && next == "les") merge(words, i, "des");
    if (here == "à" && next == "le") merge(words, i, "au");
    if (here == "à" && next == "les") merge(words, i, "aux");
  }
  return join(out, true);
}

}  // namespace regard::grammar
