// Says a meaning in Chinese: measure words, what describes a noun before it, time and place before the verb, aspect.
#include "data/grammar/words.h"

namespace regard::grammar {
namespace {

using Question = Clause::Question;
using Gap = Clause::Gap;

class Speaker {
 public:
  Words out;

  void clause(const Clause& c) {
    if (c.time && c.time_first) out.say(c.time->chinese, c.time_node);
    if (c.kind == Clause::Kind::kThere) {
      place(c.place, false);
      if (c.negative) out.say("没", c.not_node);
      out.say("有", c.verb_node);
      entity(*c.object);
      if (c.question == Question::kYesNo) out.say("吗", c.question_node);
      return;
    }
    if (c.command) {
      if (c.negative) out.say("不要", c.not_node);
    } else if (c.gap != Gap::kSubject) {
      entity(c.subject);
    }
    if (c.time && !c.time_first && c.question != Question::kWhen) out.say(c.time->chinese, c.time_node);
    if (c.question == Question::kWhen) out.say("什么时候", c.question_node);
    if (c.question == Question::kWhy) out.say("为什么", c.question_node);
    if (c.then_node) out.say("就", c.then_node);
    if (c.kind != Clause::Kind::kThought && c.subject.kind == Entity::Kind::kNoun && c.gap != Gap::kSubject &&
        c.subject.determiner == Determiner::kEvery)
      out.say("都", c.subject.determiner_node);
    if (c.frequency) out.say(c.frequency->chinese, c.frequency_node);
    switch (c.kind) {
      case Clause::Kind::kEvent:
        event(c);
        break;
      case Clause::Kind::kQuality:
        if (c.tense == Tense::kFuture) {
          if (c.negative) out.say("不", c.not_node);
          out.say("会", c.tense_node);
          if (!c.negative && !c.very_node) out.say("很", c.verb_node);
        } else if (c.negative) {
          out.say(c.adjective->chinese.starts_with("有") ? "没" : "不", c.not_node);  // 没有礼貌
        } else if (!c.very_node && c.question == Question::kNone) {
          out.say("很", c.verb_node);
        }
        if (c.very_node) out.say("非常", c.very_node);
        out.say(c.adjective->chinese, c.adjective_node);
        break;
      case Clause::Kind::kCompare:
        out.say("比", c.to_node, c.very_node);
        entity(*c.object);
        out.say(c.adjective->chinese, c.adjective_node);
        break;
      case Clause::Kind::kRole:
        if (c.negative) out.say("不", c.not_node);
        out.say("是", c.verb_node);
        entity(*c.object);
        break;
      case Clause::Kind::kPosition:
        if (c.negative) out.say("不", c.not_node);
        if (c.question == Question::kWhere) {
          out.say("在", c.verb_node);
          out.say("哪里", c.question_node);
        } else {
          place(c.place, true, c.verb_node);
        }
        break;
      case Clause::Kind::kWeather:
        if (c.negative) {
          out.say(c.tense == Tense::kFuture || c.tense == Tense::kHabit ? "不" : "没", c.not_node);
          if (c.tense == Tense::kPast) out.all.back().nodes.push_back(c.tense_node);
        }
        if (c.tense == Tense::kFuture) out.say("会", c.tense_node);
        if (c.tense == Tense::kProgressive || c.tense == Tense::kPastProgressive) out.say("在", c.tense_node);
        out.say(c.weather->chinese, c.verb_node);
        if (c.tense == Tense::kPast && !c.negative) out.help("了", c.tense_node);
        break;
      case Clause::Kind::kThought:
        out.say(c.verb->chinese, c.verb_node);
        clause(*c.thought);
        break;
      case Clause::Kind::kThere:
        break;
    }
    if (c.question == Question::kYesNo) out.say("吗", c.question_node);
  }

  void entity(const Entity& e) {
    switch (e.kind) {
      case Entity::Kind::kPronoun:
        out.say(pronoun(e.pronoun), e.node);
        break;
      case Entity::Kind::kName:
        out.say(e.name->chinese, e.node);
        break;
      case Entity::Kind::kWho:
        out.say("谁", e.node);
        break;
      case Entity::Kind::kWhat:
        out.say("什么", e.node);
        break;
      case Entity::Kind::kIt:
        break;
      case Entity::Kind::kList:
        for (std::size_t i = 0; i < e.list.size(); ++i) {
          if (i > 0 && i + 1 < e.list.size()) out.say("、", e.and_node + 1);
          if (i > 0 && i + 1 == e.list.size()) out.say("和", e.and_node);
          entity(e.list[i]);
        }
        break;
      case Entity::Kind::kNoun:
        noun(e);
        break;
    }
  }

 private:
  static std::string_view pronoun(Pronoun which) {
    static constexpr std::string_view kAll[] = {"我", "你", "他", "她", "我们", "你们", "他们", "她们"};
    return kAll[static_cast<int>(which)];
  }

  void noun(const Entity& e) {
    // 我昨天买的书, but 那个在看书的女孩: what is missing decides whether 那 or the clause comes first.
    const bool clause_first = e.relative && e.relative->gap == Gap::kObject;
    if (clause_first) relative(e);
    if (e.relation) {
      entity(*e.ground);
      out.say(e.relation->chinese, e.relation_node);
      out.help("的", e.relation_node);
    }
    const std::string_view measure = e.noun->measure;
    switch (e.determiner) {
      case Determiner::kThe:
        if (e.with_that) {
          out.say("那", e.determiner_node);
          out.help(measure, e.determiner_node);
        }
        break;
      case Determiner::kA:
        if (without_count_) break;
        out.say("一", e.determiner_node);
        out.help(measure, e.determiner_node);
        break;
      case Determiner::kThis:
        out.say("这", e.determiner_node);
        out.help(measure, e.determiner_node);
        break;
      case Determiner::kThat:
        out.say("那", e.determiner_node);
        out.help(measure, e.determiner_node);
        break;
      case Determiner::kThese:
        out.say("这些", e.determiner_node);
        break;
      case Determiner::kNumber:
        out.say(numbers()[static_cast<std::size_t>(e.count - 2)].chinese, e.determiner_node);
        out.help(measure, e.determiner_node);
        break;
      case Determiner::kSome:
        out.say("一些", e.determiner_node);
        break;
      case Determiner::kSeveral:
        out.say("几", e.determiner_node);
        out.help(measure, e.determiner_node);
        break;
      case Determiner::kMany:
        out.say("很多", e.determiner_node);
        break;
      case Determiner::kEvery:
        out.say("每", e.determiner_node);
        out.help(measure, e.determiner_node);
        break;
      case Determiner::kPossessive: {
        out.say(pronoun(e.possessor), e.determiner_node);
        const bool one = e.possessor <= Pronoun::kShe;
        if (!(e.noun->classes & kKin) || !one || e.adjective) out.help("的", e.determiner_node);
        break;
      }
      case Determiner::kOwner:
        entity(*e.owner);
        out.say("的", e.determiner_node);
        break;
      case Determiner::kVessel:
        out.say(e.count == 1 ? "一" : numbers()[static_cast<std::size_t>(e.count - 2)].chinese, e.determiner_node);
        out.say(e.vessel->chinese, e.vessel_node);
        break;
      case Determiner::kKind:
      case Determiner::kMass:
      case Determiner::kRole:
        break;
    }
    if (e.relative && !clause_first) relative(e);
    if (e.adjective) {
      out.say(e.adjective->chinese, e.adjective_node);
      if (!e.adjective->is(kBare)) out.help("的", e.adjective_node);
    }
    out.say(e.noun->chinese, e.node);
  }

  void relative(const Entity& e) {
    clause(*e.relative);
    out.help("的", e.relative_node);
  }

  void place(const Place& place, bool with_at, Node verb_node = 0, bool motion = false) {
    if (place.site) {
      const std::string_view at = place.site->chinese_at;
      out.say(with_at ? at : place.site->chinese_to, place.node);
      if (with_at && verb_node) out.all[out.all.size() - 2].nodes.push_back(verb_node);
      return;
    }
    if (with_at) {
      out.say("在", place.node, verb_node);
    }
    entity(*place.ground);
    const std::string_view in = place.relation ? place.relation->chinese : place.ground->noun->chinese_in;
    if (!motion || in != "里") out.say(in, place.node);
  }

  void event(const Clause& c) {
    const VerbFlags flags = c.verb->flags;
    const bool past = c.tense == Tense::kPast, seen = c.tense == Tense::kExperience;
    const bool ongoing = c.tense == Tense::kProgressive || c.tense == Tense::kPastProgressive;
    const bool lasting = ongoing && (flags & kLasting);
    const bool stays = flags & kStays, moves = flags & kMotion;
    const bool has = c.verb->chinese == "有";
    const bool where = c.question == Question::kWhere;
    const bool place_before = !stays && !moves && (c.place.node != 0 || where);
    if (c.negative && !c.command) {
      if (c.never) out.say("从来", c.not_node);
      out.say(has || past || seen || ongoing ? "没" : "不", c.not_node);
      if (past) out.all.back().nodes.push_back(c.tense_node);
    }
    if (c.tense == Tense::kFuture) out.say("会", c.tense_node);
    if (c.modal) out.say(c.modal->chinese, c.modal_node);
    // With a place 在 stands already before the verb; 正 then says that it is going on.
    const bool asked = c.question != Question::kNone;
    if (ongoing && !lasting && !(place_before && asked))
      out.say(place_before ? "正" : c.gap != Gap::kNone ? "正在" : "在", c.tense_node);
    if (place_before) {
      if (where) {
        out.say("在", c.question_node, ongoing ? c.tense_node : 0);
        out.say("哪里", c.question_node);
      } else {
        place(c.place, true, ongoing && asked ? c.tense_node : 0);
      }
    }
    if (c.companion) {
      out.say("和", c.with_node);
      entity(*c.companion);
      out.say("一起", c.with_node);
    }
    if (c.manner) out.say(c.manner->chinese, c.manner_node);
    // What is known is taken first: 把 书 给 玛丽.
    const bool taken = c.recipient && c.object && c.object->kind == Entity::Kind::kNoun && known(c.object->determiner);
    if (taken) {
      out.say("把", c.to_node);
      entity(*c.object);
    }
    const std::size_t split = seen ? separable(c.verb->chinese) : 0;  // 跳过舞
    out.say(c.verb->chinese.substr(0, split ? split : c.verb->chinese.size()), c.verb_node);
    const bool followed = c.object || c.recipient || c.question == Question::kWhat || (moves && !goes_home(c));
    const bool plain_gap = c.gap == Gap::kObject;  // 我昨天买的书, without 了
    if (lasting) out.say("着", c.tense_node);
    const bool done = past && !c.negative && !stays && !c.during;
    if (done && followed && !plain_gap) out.help("了", c.tense_node);
    if (seen) out.say("过", c.tense_node);
    if (split) out.say(c.verb->chinese.substr(split), c.verb_node);
    if (stays || moves) {
      if (where) {
        if (stays) out.say("在", c.question_node);
        out.say("哪里", c.question_node);
      } else {
        place(c.place, stays, 0, moves);
      }
    }
    if (c.recipient) entity(*c.recipient);
    if (c.question == Question::kWhat) {
      out.say("什么", c.question_node);
    } else if (c.object && !plain_gap && !taken) {
      without_count_ = has && c.negative && c.object->determiner == Determiner::kA;  // 没有灯
      entity(*c.object);
      without_count_ = false;
    }
    if (c.tail_node) out.say(c.verb->chinese_tail, c.tail_node);
    if (done && !followed && c.gap == Gap::kNone) out.help("了", c.tense_node);
  }

  // Where a verb with an object inside is taken apart: 跳 | 舞; 0 if it is one piece.
  static std::size_t separable(std::string_view verb) {
    for (const char* each : {"睡觉", "唱歌", "跳舞", "游泳", "跑步", "散步", "聊天", "做饭"})
      if (verb == each) return 3;
    return 0;
  }
  static bool known(Determiner determiner) {
    return determiner == Determiner::kThe || determiner == Determiner::kThis || determiner == Determiner::kThat ||
           determiner == Determiner::kThese || determiner == Determiner::kPossessive ||
           determiner == Determiner::kOwner;
  }
  static bool goes_home(const Clause& c) { return c.place.site && c.place.site->english_to == "home"; }

  bool without_count_ = false;
};

}  // namespace

Sentence chinese(const Meaning& meaning) {
  Speaker speaker;
  Words& out = speaker.out;
  if (meaning.please) out.say("请", meaning.please_node);
  if (meaning.opening == Opening::kIf) out.say("如果", meaning.opening_node);
  if (meaning.opening == Opening::kAlthough) out.say("虽然", meaning.opening_node);
  for (std::size_t i = 0; i < meaning.parts.size(); ++i) {
    const Meaning::Part& part = meaning.parts[i];
    switch (part.link) {
      case Link::kNone:
        break;
      case Link::kAnd:
        out.say("，", part.link_node, part.link_node + 1);  // ", and" in one mark
        break;
      case Link::kBut:
        out.say("，", part.link_node + 1);
        out.say("但是", part.link_node);
        break;
      case Link::kSo:
        out.say("，", part.link_node + 1);
        out.say("所以", part.link_node);
        break;
      case Link::kBecause:
        out.say("，", part.link_node + 1);
        out.say("因为", part.link_node);
        break;
      case Link::kThen:
        out.say("，", part.link_node + 1);
        out.say("然后", part.link_node);
        break;
    }
    if (i == 1 && meaning.opening == Opening::kAlthough) out.say("但是", meaning.opening_node);
    speaker.clause(part.clause);
    if (i == 0 && meaning.opening == Opening::kWhen) out.say("的时候", meaning.opening_node);
    if (i == 0 && meaning.opening != Opening::kNone) out.say("，", meaning.opening_node + 1);
  }
  const Clause& first = meaning.parts[0].clause;
  out.say(first.question != Question::kNone ? "？" : first.command ? "！" : "。", meaning.end_node);
  if (first.question == Question::kYesNo) out.all[out.all.size() - 2].nodes.push_back(meaning.end_node);
  return join(out, false);
}

}  // namespace regard::grammar
