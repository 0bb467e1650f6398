// Makes up meanings: a length to aim at, clauses that go with each other, and what may be added to them while there is
// room. Verbs and adjectives know what they go with, so that nobody drinks a chair.
#include "data/grammar/make.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

namespace regard::grammar {
namespace {

using Kind = Clause::Kind;
using Question = Clause::Question;
using Gap = Clause::Gap;

enum class Frame { kPast, kHabit, kNow, kFuture };

class Maker {
 public:
  explicit Maker(RandomKey key) : key_(key) {}

  Meaning meaning() {
    const int length = wanted_length();
    Meaning out;
    out.end_node = node();
    if (length <= 12) {
      const int kind = below(100);
      if (kind < 24) {
        out.parts.push_back({.clause = question(length)});
        return out;
      }
      if (kind < 32) {
        out.please = chance(35);
        if (out.please) out.please_node = node();
        out.parts.push_back({.clause = command(length)});
        return out;
      }
      out.parts.push_back({.clause = statement(any_frame(), length, {})});
      return out;
    }
    const int parts = std::clamp(length / (7 + below(4)), length > 15 ? 2 : 1, 7);
    const int each = length / parts;
    Frame frame = any_frame();
    if (parts >= 2 && chance(38)) return opened(std::move(out), parts, each);
    for (int i = 0; i < parts; ++i) add_part(out, frame, each);
    return out;
  }

  Meaning they_are_watching() {
    Meaning out;
    out.end_node = node();
    Clause clause;
    clause.subject = pronoun(Pronoun::kThey);
    clause.verb = &verb("watch", "看");
    clause.verb_node = node();
    clause.tense = Tense::kProgressive;
    clause.tense_node = node();
    out.parts.push_back({.clause = std::move(clause)});
    return out;
  }

 private:
  // ---- chance
  int below(int count) { return static_cast<int>(random_below(key_, drawn_++, static_cast<std::uint32_t>(count))); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& any(std::span<const T> all) {
    return all[static_cast<std::size_t>(below(static_cast<int>(all.size())))];
  }
  template <class T>
  T any(std::initializer_list<T> all) {
    return all.begin()[below(static_cast<int>(all.size()))];
  }
  template <class T, class Fits>
  const T* any_that(std::span<const T> all, Fits fits) {
    const auto count = std::count_if(all.begin(), all.end(), fits);
    if (count == 0) return nullptr;
    int left = below(static_cast<int>(count));
    for (const T& each : all)
      if (fits(each) && left-- == 0) return &each;
    return nullptr;
  }
  Node node() { return nodes_ += kSubnodes; }

  int wanted_length() {
    const int kind = below(100);
    if (kind < 24) return 3 + below(7);
    if (kind < 50) return 9 + below(9);
    if (kind < 70) return 17 + below(16);
    return 33 + below(27);
  }
  Frame any_frame() { return any({Frame::kPast, Frame::kPast, Frame::kHabit, Frame::kNow, Frame::kFuture}); }

  // ---- sentences
  void add_part(Meaning& out, Frame frame, int length) {
    if (out.parts.empty()) {
      out.parts.push_back({.clause = statement(frame, length, {})});
      return;
    }
    timeless_ = chance(88);  // the first part has said when
    const Clause& before = out.parts.back().clause;
    const Link last_link = out.parts.back().link;
    Meaning::Part part;
    const bool events = before.kind == Kind::kEvent && !before.negative && !before.modal &&
                        (frame == Frame::kPast || frame == Frame::kFuture);
    if (events && last_link != Link::kThen && last_link != Link::kBecause && chance(35)) {
      part.link = Link::kThen;
    } else {
      do part.link = any({Link::kAnd, Link::kAnd, Link::kBut, Link::kSo, Link::kBecause, Link::kBecause});
      while (part.link == last_link || (last_link == Link::kBecause && part.link == Link::kSo));
    }
    part.link_node = node();
    std::optional<Entity> subject;
    if (refers(before) && (part.link == Link::kThen || chance(55))) subject = reference(before.subject);
    switch (part.link) {
      case Link::kNone:
        break;
      case Link::kThen:
        part.clause = event(frame, length, subject, {.positive = true});
        break;
      case Link::kBecause:
        part.clause = reason(frame, length, subject);
        break;
      case Link::kSo:
        part.clause = frame != Frame::kPast && chance(40) ? modal(length, subject) : event(frame, length, subject, {});
        break;
      case Link::kAnd:
      case Link::kBut:
        part.clause = statement(frame, length, subject);
        break;
    }
    if (part.clause.kind == before.kind && before.kind != Kind::kEvent) part.clause = event(frame, length, subject, {});
    timeless_ = false;
    out.parts.push_back(std::move(part));
  }

  static void place_time_last(Clause& c) {
    if (c.time && c.time_first && c.object && c.object->relative) c.time = nullptr;
    c.time_first = false;
  }

  // Whether the subject of a clause can be taken up by a pronoun.
  static bool refers(const Clause& c) {
    if (c.kind == Kind::kThere || c.kind == Kind::kWeather || !is_person(c.subject)) return false;
    return c.subject.kind != Entity::Kind::kNoun || c.subject.determiner != Determiner::kEvery;
  }

  Clause reason(Frame frame, int length, const std::optional<Entity>& subject) {
    const int kind = below(100);
    if (kind < 40) return feeling(frame, length, subject);
    if (kind < 45) return weather(frame);
    if (kind < 70) return state(frame, length, subject);
    if (kind < 82 && frame != Frame::kPast) return modal(length, subject);
    if (kind < 88) return thought(frame, length, subject);
    return event(frame, length, subject, {});
  }

  Meaning opened(Meaning out, int parts, int each) {
    out.opening = any({Opening::kWhen, Opening::kIf, Opening::kAlthough});
    out.opening_node = node();
    Frame rest = Frame::kPast;
    Clause first, second;
    switch (out.opening) {
      case Opening::kNone:
        break;
      case Opening::kWhen: {
        first = event(Frame::kPast, each, {}, {.positive = true, .rare = true, .no_time = true});
        const std::optional<Entity> same =
            refers(first) && chance(20) ? std::optional(reference(first.subject)) : std::nullopt;
        if (chance(60)) {
          second = event(Frame::kNow, each, same, {.positive = true, .no_time = true});
          if (second.tense == Tense::kProgressive) second.tense = Tense::kPastProgressive;
        } else {
          second = event(Frame::kPast, each, same, {.positive = true, .no_time = true});
        }
        first.during = true;
        break;
      }
      case Opening::kIf: {
        first = chance(40) ? weather(Frame::kFuture) : event(Frame::kFuture, each, {}, {});
        first.tense = Tense::kHabit;
        place_time_last(first);
        const bool same = refers(first) && chance(50);
        second = event(Frame::kFuture, each, same ? std::optional(reference(first.subject)) : std::nullopt,
                       {.no_time = true});
        second.then_node = out.opening_node;
        place_time_last(second);
        rest = Frame::kFuture;
        break;
      }
      case Opening::kAlthough: {
        rest = any({Frame::kPast, Frame::kPast, Frame::kNow, Frame::kHabit});
        first = chance(55) ? feeling(rest, each, {}) : chance(40) ? weather(rest) : state(rest, each, {});
        timeless_ = first.time != nullptr;
        second =
            event(rest, each, refers(first) && chance(65) ? std::optional(reference(first.subject)) : std::nullopt, {});
        place_time_last(first);
        place_time_last(second);
        timeless_ = false;
        break;
      }
    }
    out.parts.push_back({.clause = std::move(first)});
    out.parts.push_back({.clause = std::move(second)});
    for (int i = 2; i < parts; ++i) add_part(out, rest, each);
    return out;
  }

  Clause statement(Frame frame, int length, const std::optional<Entity>& subject) {
    const int kind = below(100);
    const bool present = frame == Frame::kNow || frame == Frame::kHabit;
    if (kind < 10) return present ? quality(length, subject) : feeling(frame, length, subject);
    if (kind < 18 && length > 8) return thought(frame, length, subject);
    if (kind < 26 && frame != Frame::kPast) return modal(length, subject);
    if (kind == 26 && frame != Frame::kHabit && length > 4 && !subject) return weather(frame);
    if (present && kind >= 27) {
      if (kind < 31) return role(subject);
      if (kind < 37) return experience(length, subject);
      if (kind < 48) return state(frame, length, subject);
      if (kind < 53 && !subject) return compare(length);
      if (kind < 57 && !subject) return position(length);
      if (kind < 62 && !subject) return there(length);
    }
    return event(frame, length, subject, {});
  }

  // ---- who
  Entity pronoun(Pronoun which) { return {.kind = Entity::Kind::kPronoun, .node = node(), .pronoun = which}; }

  static bool is_person(const Entity& e) {
    if (e.kind == Entity::Kind::kNoun) return e.noun->classes & kPersons;
    if (e.kind == Entity::Kind::kList) return is_person(e.list[0]);
    return e.kind == Entity::Kind::kPronoun || e.kind == Entity::Kind::kName || e.kind == Entity::Kind::kWho;
  }

  // Somebody who was named before, as a pronoun.
  Entity reference(const Entity& to) { return pronoun(pronoun_for(to)); }
  static Pronoun pronoun_for(const Entity& to) {
    const Agreement a = agreement(to);
    if (a.person == 1) return a.plural ? Pronoun::kWe : Pronoun::kI;
    if (a.person == 2) return a.plural ? Pronoun::kYouAll : Pronoun::kYou;
    if (a.plural) return a.gender == Gender::kFeminine ? Pronoun::kTheyWomen : Pronoun::kThey;
    return a.gender == Gender::kFeminine ? Pronoun::kShe : Pronoun::kHe;
  }

  Entity name() { return {.kind = Entity::Kind::kName, .node = node(), .name = &any(names())}; }

  Entity noun_phrase(const Noun& noun, Determiner determiner) {
    Entity e{.kind = Entity::Kind::kNoun, .node = node(), .noun = &noun, .determiner = determiner};
    e.determiner_node = node();
    if (determiner == Determiner::kNumber) e.count = some_count();
    e.with_that = determiner == Determiner::kThe && (noun.classes & kFolk);
    return e;
  }
  int some_count() { return 2 + (chance(75) ? below(4) : below(static_cast<int>(numbers().size()))); }
  const Noun& noun_of(Wanted wanted) {
    const Noun* found = any_that(nouns(), [&](const Noun& each) { return wanted.takes(each.classes); });
    return found ? *found : nouns()[0];
  }

  // Somebody who does something; `length` is what there is room for.
  Entity person(int length) {
    const int kind = below(100);
    if (kind < 34 || length < 4) {
      if (chance(3)) return pronoun(Pronoun::kYouAll);
      return pronoun(
          any({Pronoun::kI, Pronoun::kI, Pronoun::kYou, Pronoun::kHe, Pronoun::kShe, Pronoun::kWe, Pronoun::kThey}));
    }
    if (kind < 52) return name();
    if (kind < 72) return kin(std::nullopt);
    if (kind < 78 && length > 7) {
      Entity both{.kind = Entity::Kind::kList};
      both.and_node = node();
      both.list.push_back(chance(50) ? name() : kin(std::nullopt));
      Entity second = chance(50) ? name() : kin(std::nullopt);
      if (second.kind == both.list[0].kind && (second.name == both.list[0].name && second.noun == both.list[0].noun))
        second = pronoun(Pronoun::kI);
      both.list.push_back(std::move(second));
      return both;
    }
    const Noun& noun = noun_of(kPeople);
    Entity e = noun.classes & kFriend
                   ? friend_of(noun, std::nullopt)
                   : noun_phrase(noun, any({Determiner::kThe, Determiner::kThe, Determiner::kThe, Determiner::kThis,
                                            Determiner::kThese, Determiner::kNumber, Determiner::kEvery}));
    decorate(e, length / 3, true);
    return e;
  }

  Entity kin(const std::optional<Pronoun>& possessor) {
    Entity e = noun_phrase(noun_of(kKin), Determiner::kPossessive);
    e.possessor = possessor ? *possessor : any({Pronoun::kI, Pronoun::kI, Pronoun::kI, Pronoun::kYou, Pronoun::kWe});
    if (!possessor && chance(15)) {
      e.determiner = Determiner::kOwner;
      e.owner = name();
    }
    return e;
  }
  Entity friend_of(const Noun& noun, const std::optional<Pronoun>& possessor) {
    Entity e = noun_phrase(noun, Determiner::kPossessive);
    e.possessor = possessor ? *possessor : any({Pronoun::kI, Pronoun::kI, Pronoun::kYou, Pronoun::kWe});
    if (chance(30)) e.count = 2;
    return e;
  }

  // ---- what
  struct ObjectNeeds {
    bool definite = false;  // under negation, in commands
    bool made = false;      // not definite
    bool general = false;   // of a kind
    bool negated_have = false;
    bool no_clause = false;  // something follows it
    std::optional<Pronoun> subject = {};
  };

  Entity object(Wanted wanted, int& length, const ObjectNeeds& needs) {
    Classes classes = wanted.any;
    // First the kind of thing, so that the many people do not crowd out the rest.
    if ((classes & kPersons) && (!(classes & ~kPersons) || chance(50)))
      classes &= kPersons;
    else if (classes & ~kPersons)
      classes &= ~kPersons;
    const Noun& noun = noun_of({classes, wanted.none});
    if (!needs.definite && !needs.made && !needs.general && length >= 4 && chance(length >= 6 ? 25 : 12) &&
        !(noun.classes & (kPersons | kMeal))) {
      Entity list{.kind = Entity::Kind::kList};
      list.and_node = node();
      const int count = 2 + (length >= 6 ? below(3) : 0);
      for (int i = 0; i < count; ++i) {
        const Noun* each = &noun;
        for (int tries = 0; tries < 8 && i > 0; ++tries) {
          each = any_that(nouns(), [&](const Noun& one) {
            return Wanted(classes, wanted.none | kPersons | kMeal).takes(one.classes);
          });
          if (!listed(list, each)) break;
        }
        if (listed(list, each)) break;
        list.list.push_back(one_object(*each, needs, false));
        length -= 3;
        if (chance(30)) add_adjective(list.list.back());
      }
      return list.list.size() == 1 ? list.list[0] : list;
    }
    Entity e = one_object(noun, needs, true);
    length -= 2;
    // A clause wants something definite: "the book that I bought yesterday".
    const bool some = e.determiner == Determiner::kA || e.determiner == Determiner::kNumber ||
                      e.determiner == Determiner::kSome || e.determiner == Determiner::kSeveral;
    if (some && length >= 2 && !needs.made && !needs.no_clause && depth_ == 0 && chance(45)) {
      e.determiner = Determiner::kThe;
      e.count = 1;
      e.with_that = noun.classes & kFolk;
    }
    if (e.kind == Entity::Kind::kNoun) decorate(e, length, !needs.made && !needs.general, !needs.no_clause);
    return e;
  }

  static bool listed(const Entity& list, const Noun* noun) {
    return std::any_of(list.list.begin(), list.list.end(), [&](const Entity& each) { return each.noun == noun; });
  }

  Entity one_object(const Noun& noun, const ObjectNeeds& needs, bool with_owner) {
    const Pronoun own = needs.subject.value_or(Pronoun::kI);
    if (noun.classes & kKin) return kin(needs.subject);
    if ((noun.classes & kFriend) && needs.made)
      return noun_phrase(noun, any({Determiner::kA, Determiner::kNumber, Determiner::kSeveral, Determiner::kMany}));
    if ((noun.classes & kFriend) && !needs.negated_have) return friend_of(noun, needs.subject);
    if (noun.classes & kMeal) return noun_phrase(noun, Determiner::kKind);
    const bool mass = !noun.container.empty();
    if (needs.general && chance(75)) return noun_phrase(noun, Determiner::kKind);
    if (mass) {
      if (needs.general) return noun_phrase(noun, Determiner::kKind);
      if (needs.definite || chance(45)) return noun_phrase(noun, Determiner::kMass);
      Entity e = noun_phrase(noun, Determiner::kVessel);
      e.vessel = any_that(containers(), [&](const Container& each) { return each.english == noun.container; });
      e.vessel_node = node();
      e.of_node = node();
      e.count = chance(65) ? 1 : 2 + below(2);
      return e;
    }
    if (needs.negated_have) return noun_phrase(noun, Determiner::kA);
    Determiner determiner;
    if (needs.made) {
      determiner = any({Determiner::kA, Determiner::kA, Determiner::kA, Determiner::kNumber, Determiner::kSome,
                        Determiner::kSeveral});
    } else if (needs.definite || needs.general) {
      determiner = any({Determiner::kThe, Determiner::kThe, Determiner::kThis, Determiner::kThat, Determiner::kThese,
                        Determiner::kPossessive, Determiner::kOwner});
    } else if (noun.classes & (kProfession | kFolk)) {
      determiner = any({Determiner::kThe, Determiner::kThe, Determiner::kA, Determiner::kA, Determiner::kThis,
                        Determiner::kNumber, Determiner::kSeveral});
    } else {
      determiner = any({Determiner::kA, Determiner::kA, Determiner::kA, Determiner::kA, Determiner::kThe,
                        Determiner::kThe, Determiner::kThis, Determiner::kThat, Determiner::kThese, Determiner::kNumber,
                        Determiner::kNumber, Determiner::kSome, Determiner::kSeveral, Determiner::kMany,
                        Determiner::kPossessive, Determiner::kPossessive, Determiner::kPossessive, Determiner::kOwner});
    }
    if ((noun.classes & kRide) && determiner != Determiner::kThis && determiner != Determiner::kA)
      determiner = Determiner::kThe;
    const bool owned = determiner == Determiner::kPossessive || determiner == Determiner::kOwner;
    if (owned && (noun.classes & (kPlace | kRide | kBuilt | kShow | kProfession | kFolk | kSight) || !with_owner ||
                  ((noun.classes & kAnimal) && !(noun.classes & kPet))))
      determiner = Determiner::kThe;
    if (determiner == Determiner::kThat && (noun.classes & kFolk)) determiner = Determiner::kThis;
    Entity e = noun_phrase(noun, determiner);
    if (determiner == Determiner::kPossessive) e.possessor = own;
    if (determiner == Determiner::kOwner) e.owner = chance(60) ? name() : kin(Pronoun::kI);
    return e;
  }

  void add_adjective(Entity& e) {
    if (e.kind != Entity::Kind::kNoun || e.adjective || e.determiner == Determiner::kThat ||
        e.determiner == Determiner::kMass || e.determiner == Determiner::kVessel || e.determiner == Determiner::kRole ||
        (e.noun->classes & (kKin | kMeal)))
      return;
    // 我的新书, but not 我的有趣的书.
    const bool owned = e.determiner == Determiner::kPossessive || e.determiner == Determiner::kOwner;
    e.adjective = any_that(adjectives(), [&](const Adjective& each) {
      return !each.is(kPredicate) && (each.is(kBare) || !owned) && (each.classes & e.noun->classes) != 0;
    });
    if (e.adjective) e.adjective_node = node();
  }

  // What a noun may have besides: an adjective, where it is, a clause.
  void decorate(Entity& e, int& length, bool definite, bool clauses = true) {
    if (length >= 1 && chance(45)) {
      add_adjective(e);
      if (e.adjective) --length;
    }
    const bool the = e.determiner == Determiner::kThe || e.determiner == Determiner::kThese;
    if (!definite || !the || depth_ > 0 || !clauses) return;
    const bool thing = (e.noun->classes & (kGoods | kPet)) && !(e.noun->classes & (kFurniture | kVehicle));
    if (length >= 2 && chance(70)) {
      relative(e);
      if (e.relative) length -= 5;
    } else if (length >= 2 && thing && chance(60)) {
      e.relation = &any(relations());
      e.relation_node = node();
      const auto determiner = any({Determiner::kThe, Determiner::kThis});  // compilers order arguments as they like
      e.ground = noun_phrase(noun_of(e.relation->english == "on" ? kFurniture : kFurniture | kPlant), determiner);
      length -= 3;
    }
  }
  void decorate(Entity& e, int&& length, bool definite) { decorate(e, length, definite); }

  void relative(Entity& e) {
    const Classes classes = e.noun->classes;
    const bool person = classes & kPersons;
    Clause c;
    ++depth_;
    if ((person && chance(75)) || ((classes & kAnimal) && chance(50))) {
      c = event(any({Frame::kNow, Frame::kNow, Frame::kPast, Frame::kHabit}), 5, e, {.positive = true, .alone = true});
      c.gap = Gap::kSubject;
    } else {
      const Verb* found = any_that(verbs(), [&](const Verb& each) {
        return each.objects.takes(classes) && !(each.flags & (kGives | kMotion | kLasting)) &&
               !(each.flags & kGeneral) && each.chinese != "有" && &each != main_;
      });
      if (found) {
        c.gap = Gap::kObject;
        c.subject = person_simple();
        c.verb = found;
        c.verb_node = node();
        c.tense_node = node();
        c.object = Entity{.kind = Entity::Kind::kWhat};
        if (found->flags & kState) {
          c.tense = Tense::kHabit;
        } else if ((found->flags & kOngoing) && chance(25)) {
          c.tense = Tense::kProgressive;
        } else {
          c.tense = Tense::kPast;
          c.time = &any(past_times());
          c.time_node = node();
        }
      }
    }
    --depth_;
    if (!c.verb) return;
    if (c.time) c.time_first = false;
    c.antecedent = agreement(e);
    e.relative_node = node();
    if (c.gap == Gap::kSubject && person) e.with_that = e.determiner == Determiner::kThe;
    e.relative = std::move(c);
  }
  Entity person_simple() {
    const int kind = below(3);
    if (kind == 0) return name();
    if (kind == 1) return kin(std::nullopt);
    return pronoun(
        any({Pronoun::kI, Pronoun::kI, Pronoun::kYou, Pronoun::kHe, Pronoun::kShe, Pronoun::kWe, Pronoun::kThey}));
  }

  // ---- where and when
  Place place_for(Scenes scenes) {
    Place place{.node = node()};
    const Site* site = any_that(sites(), [&](const Site& each) { return (each.scenes & scenes) != 0; });
    const Noun* noun = any_that(nouns(), [&](const Noun& each) { return (each.scenes & scenes) != 0; });
    if (site && (!noun || chance(scenes & kCity ? 70 : 18))) {
      place.site = site;
    } else if (noun) {
      place.ground = noun_phrase(*noun, chance(88) ? Determiner::kThe : Determiner::kThis);
    }
    return place;
  }
  Place spot(const Noun* thing) {  // on the table, under the tree, in front of the school
    Place place{.node = node()};
    place.relation = &any(relations());
    const bool on = place.relation->english == "on", under = place.relation->english == "under";
    const Classes large =
        thing && (thing->classes & (kVehicle | kRide | kPersons)) ? kBuilt : kFurniture | kPlant | kBuilt;
    if (thing && large == kBuilt && (on || under)) place.relation = &relations()[2];
    const bool low = place.relation->english == "on" || place.relation->english == "under";
    Classes grounds = low ? kFurniture : large;
    place.ground = noun_phrase(noun_of(grounds), Determiner::kThe);
    if (place.ground->noun->english == "flower") place.ground->noun = &noun("tree");
    return place;
  }
  void add_time(Clause& c, std::span<const Phrase> times, bool may_be_first) {
    c.time = &any(times);
    c.time_node = node();
    c.time_first = may_be_first && chance(30);
  }

  // ---- clauses
  struct EventNeeds {
    bool positive = false;
    bool rare = false;     // something that happens once
    bool no_time = false;  // said elsewhere
    bool alone = false;    // the subject is given and stays unsaid
    bool commanded = false;
    bool no_state = true;
  };

  Clause event(Frame frame, int length, const std::optional<Entity>& subject, const EventNeeds& needs) {
    Clause c;
    const bool beast = subject ? !is_person(*subject) : chance(7);
    const Verb* found = nullptr;
    const bool bare = length <= 5 && chance(35) && !needs.commanded;
    for (int tries = 0; tries < 20 && !found; ++tries) {
      found = any_that(verbs(), [&](const Verb& each) {
        if (each.flags & kState) return false;
        if (beast && !(each.flags & kBeasts)) return false;
        if (frame == Frame::kNow && !(each.flags & kOngoing)) return false;
        if (frame == Frame::kHabit && (each.flags & kRare)) return false;
        if (frame == Frame::kFuture && (each.flags & kChance)) return false;
        if (needs.commanded && !(each.flags & kCommand)) return false;
        if (bare && (each.objects || (each.flags & (kMotion | kStays)))) return false;
        if (depth_ > 0 && (each.flags & kGives)) return false;
        return true;
      });
    }
    if (!found) found = &verb("watch", "看");
    c.verb = found;
    main_ = found;
    const VerbFlags flags = found->flags;
    if (subject) {
      c.subject = *subject;
    } else if (beast) {
      const auto determiner = any({Determiner::kThe, Determiner::kThe, Determiner::kThis, Determiner::kNumber,
                                   Determiner::kThese, Determiner::kPossessive});
      c.subject = noun_phrase(noun_of(kAnimal), determiner);
      if (c.subject.determiner == Determiner::kPossessive && !(c.subject.noun->classes & kPet))
        c.subject.determiner = Determiner::kThe;
      if (chance(30)) add_adjective(c.subject);
    } else {
      c.subject = person(length);
    }
    length -= 3;
    c.verb_node = node();
    c.tense_node = node();
    const bool every = c.subject.kind == Entity::Kind::kNoun && c.subject.determiner == Determiner::kEvery;
    switch (frame) {
      case Frame::kPast:
        c.tense = Tense::kPast;
        break;
      case Frame::kHabit:
        c.tense = Tense::kHabit;
        break;
      case Frame::kNow:
        c.tense = Tense::kProgressive;
        break;
      case Frame::kFuture:
        c.tense = Tense::kFuture;
        break;
    }
    if (!needs.positive && !every && !(flags & kLasting) && chance(frame == Frame::kNow ? 8 : 18)) {
      c.negative = true;
      c.not_node = node();
      if (frame == Frame::kHabit && !(flags & kStays)) c.never = chance(50);
    }
    // What is needed.
    const Pronoun own = pronoun_for(c.subject);
    const bool self_known = is_person(c.subject) && !every;
    if (!found->english_tail.empty()) c.tail_node = node();
    if (found->objects) {
      c.object = object(found->objects, length,
                        {.definite = c.negative || needs.commanded,
                         .made = static_cast<bool>(flags & kMade) && !c.negative && !needs.commanded,
                         .no_clause = static_cast<bool>(flags & (kGives | kMotion)),
                         .subject = needs.commanded ? std::optional(any({Pronoun::kYou, Pronoun::kI}))
                                    : self_known    ? std::optional(own)
                                                    : std::nullopt});
    }
    if ((flags & kMade) && c.object->adjective && c.object->adjective->english == "old")
      c.object->adjective = nullptr;  // nobody writes an old novel
    if (flags & kGives) {
      c.recipient = recipient(self_known ? std::optional(own) : std::nullopt);
      c.to_node = node();
      length -= 3;
    }
    if (flags & kMotion) {
      c.place = place_for(static_cast<Scenes>(0xffff));
      for (int tries = 0; tries < 50 && !leads(*found, c.place); ++tries)
        c.place = place_for(found->english == "return" ? kHome | kCity | kWork | kStudy : static_cast<Scenes>(0xffff));
      length -= 2;
    } else if (flags & kStays) {
      c.place = place_for(found->scenes);
      length -= 3;
    }
    // What makes it true for French and Chinese: a habit needs to be called one.
    const bool first_allowed = !needs.alone && depth_ == 0;
    if (frame == Frame::kHabit && !c.negative) {
      if (chance(50) || timeless_) {
        c.frequency = &any(every ? frequencies().first(2) : frequencies());
        c.frequency_node = node();
        length -= 1;
      } else {
        add_time(c, habit_times(), first_allowed);
        length -= 2;
      }
    }
    const Scenes scenes =
        beast ? static_cast<Scenes>(found->scenes & (kOutside | kWater | kBeds | kLeisure)) : found->scenes;
    // What there is room for, in any order.
    for (int round = 0; round < 6 && length > 0; ++round) {
      switch (below(4)) {
        case 0:
          if (!c.time && !needs.no_time && !timeless_ && !c.frequency && length >= 1) {
            if (frame == Frame::kPast) add_time(c, past_times(), first_allowed);
            if (frame == Frame::kFuture) add_time(c, future_times(), first_allowed);
            if (frame == Frame::kNow && depth_ == 0 && !(flags & kLasting)) add_time(c, now_times(), first_allowed);
            if (c.time) length -= 2;
          }
          break;
        case 1:
          if (c.place.node == 0 && scenes && length >= 2 && !(c.negative && frame == Frame::kNow) && !needs.commanded) {
            c.place = place_for(scenes);
            length -= 3;
          }
          break;
        case 2:
          if (!c.manner && found->manners && !c.negative && !c.frequency && length >= 1 && !beast) {
            c.manner = any_that(manners(), [&](const Phrase& each) { return (each.manners & found->manners) != 0; });
            if (c.manner) {
              c.manner_node = node();
              length -= 1;
            }
          }
          break;
        case 3:
          if (!c.companion && (flags & kTogether) && length >= 3 && !beast && !every && depth_ == 0) {
            c.companion = companion(own, c.subject);
            c.with_node = node();
            length -= 3;
          }
          break;
      }
    }
    // Behind a clause that belongs to the object nothing else would find its place.
    if (c.object && c.object->relative) {
      if (c.time && !first_allowed) c.time = nullptr;
      if (c.time) c.time_first = true;
      c.manner = nullptr;
      c.companion = {};
      c.place = {};
      if (frame == Frame::kHabit && !c.time && !c.frequency && !c.negative) {
        c.frequency = &any(frequencies());
        c.frequency_node = node();
      }
    }
    return c;
  }

  static bool leads(const Verb& verb, const Place& place) {
    const bool home = place.site && place.site->english_to == "home";
    if (home) return verb.english == "return";
    if (place.ground && (place.ground->noun->scenes & kWater) && place.ground->noun->english != "swimming pool")
      return false;
    return true;
  }

  Entity recipient(const std::optional<Pronoun>& own) {
    const int kind = below(3);
    if (kind == 0) return name();
    if (kind == 1) return kin(own);
    const Noun& noun = noun_of(kPeople);
    if (noun.classes & kFriend) return friend_of(noun, own);
    return noun_phrase(noun, any({Determiner::kThe, Determiner::kThe, Determiner::kThis}));
  }
  Entity companion(Pronoun own, const Entity& subject) {
    const int kind = below(3);
    if (kind == 0) {
      Entity e = name();
      if (subject.kind != Entity::Kind::kName) return e;
    }
    Entity e = kind == 1 ? kin(own) : friend_of(noun_of(kFriend), own);
    return e.noun == subject.noun ? name() : e;
  }

  Clause state(Frame frame, int length, const std::optional<Entity>& subject) {
    Clause c;
    const bool beast = subject && !is_person(*subject);
    const Verb* found = any_that(
        verbs(), [&](const Verb& each) { return (each.flags & kState) && (!beast || (each.flags & kBeasts)); });
    c.verb = found;
    main_ = found;
    c.subject = subject ? *subject : person(length);
    length -= 3;
    c.verb_node = node();
    c.tense_node = node();
    const bool every = c.subject.kind == Entity::Kind::kNoun && c.subject.determiner == Determiner::kEvery;
    c.tense = frame == Frame::kPast ? Tense::kPastState : Tense::kHabit;
    c.negative = !every && found->english != "prefer" && chance(22);
    if (c.negative) c.not_node = node();
    if (!found->english_tail.empty()) c.tail_node = node();
    if (found->objects) {
      const bool self_known = is_person(c.subject) && !every;
      c.object = object(found->objects, length,
                        {.definite = c.negative || !(found->chinese == "有"),
                         .general = static_cast<bool>(found->flags & kGeneral),
                         .negated_have = c.negative && found->chinese == "有",
                         .subject = self_known ? std::optional(pronoun_for(c.subject)) : std::nullopt});
      if (found->chinese == "有" && !c.negative) {
        int room = length;
        c.object = object(found->objects, room, {.made = true});
      }
    }
    if (found->flags & kStays) c.place = place_for(found->scenes);
    return c;
  }

  Clause modal(int length, const std::optional<Entity>& subject) {
    Clause c;
    do {
      c = event(Frame::kFuture, length - 1, subject, {.positive = true});
    } while (c.verb->flags & kStays && c.place.node == 0);
    c.modal = &any(modals());
    c.modal_node = node();
    c.tense = Tense::kHabit;
    const bool every = c.subject.kind == Entity::Kind::kNoun && c.subject.determiner == Determiner::kEvery;
    if (c.modal->negates && !every && definite(c) && chance(25)) {
      c.negative = true;
      c.not_node = node();
      c.manner = nullptr;
    }
    return c;
  }
  static bool definite(const Clause& c) {
    if (!c.object) return true;
    if (c.object->kind != Entity::Kind::kNoun) return false;
    switch (c.object->determiner) {
      case Determiner::kThe:
      case Determiner::kThis:
      case Determiner::kThat:
      case Determiner::kThese:
      case Determiner::kPossessive:
      case Determiner::kOwner:
      case Determiner::kMass:
        return true;
      default:
        return c.object->noun->classes & kMeal;
    }
  }

  Clause experience(int length, const std::optional<Entity>& subject) {
    Clause c;
    for (int tries = 0; tries < 30; ++tries) {
      c = event(Frame::kPast, length, subject, {.positive = true, .no_time = true});
      if ((c.verb->flags & (kStays | kReflexive | kLasting)) == 0 && definite(c)) break;
    }
    if (c.verb->flags & (kStays | kReflexive | kLasting) || !definite(c)) return c;
    c.tense = Tense::kExperience;
    c.manner = nullptr;
    const bool every = c.subject.kind == Entity::Kind::kNoun && c.subject.determiner == Determiner::kEvery;
    if (!every && chance(50)) {
      c.negative = true;
      c.never = chance(65);
      c.not_node = node();
    }
    return c;
  }

  // The classes by which an adjective for somebody or something is chosen.
  static Classes classes_of(const Entity& e) { return e.kind == Entity::Kind::kNoun ? e.noun->classes : kKin; }

  Clause being(Entity subject, const Adjective* adjective, Tense tense) {
    Clause c;
    c.kind = Kind::kQuality;
    c.verb_node = node();
    c.tense_node = node();
    c.subject = std::move(subject);
    c.adjective = adjective ? adjective : &adjectives()[1];
    c.adjective_node = node();
    c.tense = tense;
    const bool every = c.subject.kind == Entity::Kind::kNoun && c.subject.determiner == Determiner::kEvery;
    if (!every && chance(18)) {
      c.negative = true;
      c.not_node = node();
    } else if (chance(30)) {
      c.very_node = node();
    }
    return c;
  }

  // How somebody or something is.
  Clause quality(int length, const std::optional<Entity>& subject) {
    Entity who = subject ? *subject : chance(40) ? person(length - 2) : subject_thing(length - 3);
    const bool person = is_person(who);
    const Classes classes = person ? kKin | classes_of(who) : classes_of(who);
    const Adjective* adjective = any_that(adjectives(), [&](const Adjective& each) {
      return &each != who.adjective && (!each.is(kAlone) || each.is(kPredicate)) && (each.classes & classes) != 0;
    });
    return being(std::move(who), adjective, Tense::kHabit);
  }

  // How somebody is at the moment: happy, tired.
  Clause feeling(Frame frame, int length, const std::optional<Entity>& subject) {
    Entity who = subject ? *subject : person(length - 2);
    const Adjective* adjective = any_that(adjectives(), [](const Adjective& each) { return each.is(kFeeling); });
    Clause c = being(std::move(who), adjective, frame == Frame::kPast ? Tense::kPastState : Tense::kHabit);
    if (frame == Frame::kPast && !timeless_ && chance(60)) add_time(c, past_times().first(4), true);
    if (frame == Frame::kNow && !timeless_ && chance(35)) {
      c.time = &now_times()[2];
      c.time_node = node();
    }
    return c;
  }

  Entity subject_thing(int length) {
    const Classes kinds =
        any<Classes>({kGoods, kReadable, kShow, kFood, kClothes, kSight, kAnimal, kFurniture, kPicture, kSong});
    Entity e = one_object(noun_of(kinds), {.definite = true}, true);
    if (e.kind == Entity::Kind::kNoun) decorate(e, length, true);
    return e;
  }

  Clause compare(int length) {
    Clause c;
    c.kind = Kind::kCompare;
    c.verb_node = node();
    c.tense_node = node();
    if (chance(50)) {
      c.subject = chance(50) ? name() : kin(std::nullopt);
      Entity other = chance(40) ? name() : kin(std::nullopt);
      for (int tries = 0; tries < 10 && other.name == c.subject.name && other.noun == c.subject.noun; ++tries)
        other = chance(40) ? name() : kin(std::nullopt);
      c.object = std::move(other);
    } else {
      c.subject = subject_thing(length - 6);
      const Noun* same = any_that(nouns(), [&](const Noun& each) {
        return &each != c.subject.noun && (each.classes & c.subject.noun->classes) == c.subject.noun->classes;
      });
      if (same) {
        c.object = one_object(*same, {.definite = true}, true);
      } else {  // this one and that one
        c.subject = noun_phrase(*c.subject.noun, Determiner::kThis);
        c.object = noun_phrase(*c.subject.noun, Determiner::kThat);
      }
    }
    const Classes classes = classes_of(c.subject) & classes_of(*c.object);
    c.adjective = any_that(adjectives(), [&](const Adjective& each) {
      return !each.is(kAlone) && each.english != "good" && &each != c.subject.adjective &&
             (each.classes & classes) != 0;
    });
    if (!c.adjective) c.adjective = &adjectives()[1];
    c.adjective_node = node();
    c.very_node = node();
    c.to_node = node();
    return c;
  }

  Clause role(const std::optional<Entity>& subject) {
    Clause c;
    c.kind = Kind::kRole;
    c.verb_node = node();
    if (subject) {
      c.subject = *subject;
    } else {
      c.subject = person_simple();
    }
    const Agreement who = agreement(c.subject);
    const Noun* found = any_that(nouns(), [&](const Noun& each) {
      return (each.classes & kProfession) && each.gender == who.gender && &each != c.subject.noun;
    });
    Entity what = noun_phrase(*found, Determiner::kRole);
    if (who.plural) what.count = 2;
    c.object = std::move(what);
    if (chance(25)) {
      c.negative = true;
      c.not_node = node();
    }
    return c;
  }

  Clause position(int length) {
    Clause c;
    c.kind = Kind::kPosition;
    c.verb_node = node();
    const Noun& noun = noun_of(any({kAnimal, kGoods & ~(kFurniture | kVehicle), kTool}));
    c.subject = one_object(noun, {.definite = true}, true);
    int room = length - 5;
    if (c.subject.kind == Entity::Kind::kNoun) decorate(c.subject, room, true);
    c.place = chance(65) ? spot(&noun) : place_for(kHome);
    if (chance(15)) {
      c.negative = true;
      c.not_node = node();
    }
    return c;
  }

  Clause there(int length) {
    Clause c;
    c.kind = Kind::kThere;
    c.verb_node = node();
    const Noun& noun = noun_of(any({kAnimal, kGoods, kFood, kFolk, kSight}));
    Entity what = noun_phrase(noun, any({Determiner::kA, Determiner::kNumber, Determiner::kNumber, Determiner::kSeveral,
                                         Determiner::kMany, Determiner::kSome}));
    if (length > 5 && chance(50)) add_adjective(what);
    c.object = std::move(what);
    if (noun.classes & kSight) {
      c.place = chance(50) ? spot(&noun) : place_for(kCity);
      if (c.place.relation && c.place.ground && !(c.place.ground->noun->classes & kBuilt)) c.place = place_for(kCity);
    } else {
      c.place = (noun.classes & (kVehicle | kFolk)) ? place_for(kOutside) : chance(60) ? spot(&noun) : place_for(kHome);
    }
    return c;
  }

  Clause weather(Frame frame) {
    Clause c;
    c.kind = Kind::kWeather;
    c.subject.kind = Entity::Kind::kIt;
    c.subject.node = node();
    c.weather = &any(weathers());
    c.verb_node = node();
    c.tense_node = node();
    c.tense = frame == Frame::kPast ? Tense::kPast : frame == Frame::kFuture ? Tense::kFuture : Tense::kProgressive;
    if (frame == Frame::kPast && !timeless_) add_time(c, past_times().first(5), true);
    if (frame == Frame::kFuture && !timeless_ && chance(70)) add_time(c, future_times().first(5), false);
    if (frame == Frame::kNow && !timeless_ && chance(40)) {
      c.time = &now_times()[0];
      c.time_node = node();
    }
    if (chance(15)) {
      c.negative = true;
      c.not_node = node();
    }
    return c;
  }

  Clause thought(Frame frame, int length, const std::optional<Entity>& subject) {
    Clause c;
    c.kind = Kind::kThought;
    c.verb = &any(thoughts());
    c.verb_node = node();
    c.tense_node = node();
    c.that_node = node();
    c.subject = subject ? *subject : person(3);
    const Frame inner = c.verb->english == "hope" ? Frame::kFuture : frame;
    Clause inside;
    do {
      inside = inner == Frame::kFuture ? event(inner, length - 3, {}, {}) : statement(inner, length - 3, {});
    } while (inside.kind == Kind::kThought);
    place_time_last(inside);
    c.thought = std::move(inside);
    return c;
  }

  Clause command(int length) {
    Clause c = event(Frame::kFuture, length, pronoun(Pronoun::kYou), {.positive = true, .commanded = true});
    c.command = true;
    c.tense = Tense::kHabit;
    c.time = nullptr;
    if (chance(35)) {
      c.negative = true;
      c.not_node = node();
      c.manner = nullptr;
    }
    return c;
  }

  Clause question(int length) {
    Clause c;
    const int kind = below(100);
    const Entity asked = chance(60)
                             ? pronoun(any({Pronoun::kYou, Pronoun::kYou, Pronoun::kHe, Pronoun::kShe, Pronoun::kThey}))
                         : chance(50) ? name()
                                      : kin(std::nullopt);
    const Frame frame = any_frame();
    if (kind < 40) {
      const int what = below(10);
      if (what < 4) {
        c = event(frame, length, asked, {.positive = true});
      } else if (what == 4) {
        c = quality(length, asked);
      } else if (what == 5) {
        c = role(asked);
      } else if (what == 6) {
        c = there(length);
      } else if (what == 7) {
        c = state(Frame::kHabit, length, asked);
      } else if (what == 8) {
        c = experience(length, asked);
      } else {
        do c = modal(length, asked);
        while (!c.modal->negates);
      }
      c.negative = c.never = false;
      c.question = Question::kYesNo;
    } else if (kind < 58) {  // what
      for (int tries = 0; tries < 60; ++tries) {
        c = event(frame, length, asked, {.positive = true});
        if (c.object && !(c.verb->objects.any & (kPersons | kRide | kMeal)) && !(c.verb->flags & kGives)) break;
      }
      if (!c.object || (c.verb->objects.any & (kPersons | kRide | kMeal)) || (c.verb->flags & kGives))
        return question(length);
      c.object = {};
      c.question = Question::kWhat;
    } else if (kind < 72) {  // who
      Entity who{.kind = Entity::Kind::kWho, .node = node()};
      c = event(frame, length, who, {.positive = true});
      c.question = Question::kWho;
      c.question_node = c.subject.node;
      place_time_last(c);
      return c;
    } else if (kind < 84) {  // where
      if (chance(40)) {
        c = position(3);
        c.negative = false;
      } else {
        const Frame now = any({Frame::kHabit, Frame::kNow, Frame::kFuture});
        for (int tries = 0; tries < 60; ++tries) {
          c = event(now, length, asked, {.positive = true});
          if (c.verb->flags & kMotion || c.verb->scenes) break;
        }
        if (!(c.verb->flags & kMotion)) c.place = {};
        if (!(c.verb->flags & kMotion) && !c.verb->scenes) return question(length);
      }
      c.question = Question::kWhere;
    } else if (kind < 92) {  // when
      c = event(Frame::kFuture, length, asked, {.positive = true, .no_time = true});
      c.question = Question::kWhen;
    } else {
      c = event(frame, length, asked, {});
      c.question = Question::kWhy;
    }
    place_time_last(c);
    c.question_node = node();
    return c;
  }

  RandomKey key_;
  std::uint64_t drawn_ = 0;
  Node nodes_ = 0;
  int depth_ = 0;
  const Verb* main_ = nullptr;
  bool timeless_ = false;  // when has been said already
};

}  // namespace

Meaning make_meaning(RandomKey key) { return Maker(key).meaning(); }
Meaning they_are_watching() { return Maker(RandomKey(0)).they_are_watching(); }

}  // namespace regard::grammar
