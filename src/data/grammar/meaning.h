// What a sentence says, before it is said in any language: who does what to whom, where, when and how. Everything that
// may be expressed by words has a node, a number; words of two languages that express the same node are aligned.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/grammar/lexicon.h"

namespace regard::grammar {

using Node = int;                     // 0: nothing
inline constexpr Node kSubnodes = 4;  // a node has room for the parts of a phrase: node, node + 1, …

// A value with a copy of its own: lets entities and clauses contain each other.
template <class T>
class Box {
 public:
  Box() = default;
  Box(T value) : value_(std::make_unique<T>(std::move(value))) {}
  Box(const Box& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
  Box(Box&&) noexcept = default;
  Box& operator=(Box other) noexcept {
    value_ = std::move(other.value_);
    return *this;
  }
  explicit operator bool() const { return value_ != nullptr; }
  T& operator*() const { return *value_; }
  T* operator->() const { return value_.get(); }

 private:
  std::unique_ptr<T> value_;
};

struct Clause;
struct Entity;

enum class Pronoun : std::uint8_t { kI, kYou, kHe, kShe, kWe, kYouAll, kThey };

enum class Determiner : std::uint8_t {
  kThe,         // the book      le livre       书
  kA,           // a book        un livre       一本书
  kThis,        // this book     ce livre       这本书
  kThat,        // that book     ce livre-là    那本书
  kThese,       // these books   ces livres     这些书
  kNumber,      // two books     deux livres    两本书
  kSome,        // some books    des livres     一些书
  kSeveral,     // several books plusieurs …    几本书
  kMany,        // many books    beaucoup de …  很多书
  kEvery,       // every book    chaque livre   每本书
  kPossessive,  // my book       mon livre      我的书
  kOwner,       // Paul's book   le livre de …  保罗的书
  kKind,        // books         les livres     书
  kMass,        // tea           du thé         茶
  kVessel,      // a cup of tea  une tasse de … 一杯茶
  kRole,        // (is) a cook   cuisinier      厨师
};

struct Entity {
  enum class Kind : std::uint8_t { kPronoun, kName, kNoun, kList, kWho, kWhat, kIt };
  Kind kind = Kind::kPronoun;
  Node node = 0;
  Pronoun pronoun = Pronoun::kI;
  const Name* name = nullptr;
  const Noun* noun = nullptr;
  Determiner determiner = Determiner::kThe;
  Node determiner_node = 0;
  int count = 1;                      // of kNumber and kVessel
  Pronoun possessor = Pronoun::kI;    // of kPossessive
  Box<Entity> owner = {};             // of kOwner
  const Container* vessel = nullptr;  // of kVessel
  Node vessel_node = 0, of_node = 0;
  const Adjective* adjective = nullptr;
  Node adjective_node = 0;
  const Relation* relation = nullptr;  // "the book on the table"
  Node relation_node = 0;
  Box<Entity> ground = {};
  Box<Clause> relative = {};  // "the book that I bought yesterday"
  Node relative_node = 0;
  std::vector<Entity> list = {};  // "a, b and c"
  Node and_node = 0;
  bool with_that = false;  // Chinese says 那 for "the": 那个女孩
};

struct Agreement {
  int person = 3;
  bool plural = false;
  Gender gender = Gender::kMasculine;
};
Agreement agreement(const Entity& entity);
bool is_plural(const Entity& noun);  // of kNoun

enum class Tense : std::uint8_t {
  kHabit,            // reads        lit         看
  kProgressive,      // is reading   lit         在看
  kPast,             // read         a lu        看了
  kPastProgressive,  // was reading  lisait      在看
  kPastState,        // liked        aimait      喜欢
  kExperience,       // has read     a déjà lu   看过
  kFuture,           // will read    lira        会看
};

struct Place {
  Node node = 0;
  const Site* site = nullptr;          // at home, in Paris; or
  const Relation* relation = nullptr;  // under the table; or
  Box<Entity> ground = {};             // in the park
};

struct Clause {
  enum class Kind : std::uint8_t { kEvent, kQuality, kRole, kPosition, kThere, kCompare, kWeather, kThought };
  enum class Question : std::uint8_t { kNone, kYesNo, kWhat, kWho, kWhere, kWhen, kWhy };
  enum class Gap : std::uint8_t { kNone, kSubject, kObject };
  Kind kind = Kind::kEvent;
  Question question = Question::kNone;
  Node question_node = 0;
  Gap gap = Gap::kNone;  // what is missing in a relative clause
  Agreement antecedent;  // what the relative clause belongs to
  bool command = false;
  Entity subject;
  const Verb* verb = nullptr;
  Node verb_node = 0, tail_node = 0, that_node = 0;
  const Weather* weather = nullptr;
  Tense tense = Tense::kHabit;
  Node tense_node = 0;
  bool negative = false;
  bool never = false;
  Node not_node = 0;
  const Modal* modal = nullptr;
  Node modal_node = 0;
  Box<Entity> object, recipient, companion;
  Node to_node = 0, with_node = 0;
  Place place;  // where it happens; of motion: where it leads; of kPosition, kThere: where it is
  const Phrase* time = nullptr;
  Node time_node = 0;
  bool time_first = false;
  const Phrase* frequency = nullptr;
  Node frequency_node = 0;
  const Phrase* manner = nullptr;
  Node manner_node = 0;
  const Adjective* adjective = nullptr;  // of kQuality, kCompare
  Node adjective_node = 0, very_node = 0;
  Box<Clause> thought;  // of kThought
  Node then_node = 0;   // Chinese has 就 behind the subject
};

enum class Link : std::uint8_t { kNone, kAnd, kBut, kSo, kBecause, kThen };
enum class Opening : std::uint8_t { kNone, kWhen, kIf, kAlthough };

struct Meaning {
  struct Part {
    Link link = Link::kNone;
    Node link_node = 0;
    Clause clause;
  };
  Opening opening = Opening::kNone;  // of the first part: "If it rains, …"
  Node opening_node = 0;
  std::vector<Part> parts;
  Node end_node = 0;
  bool please = false;
  Node please_node = 0;
};

}  // namespace regard::grammar
