// The words of the built-in corpus: one row a concept, with its English, French and Chinese forms.
//
// A text of several words may say which of them belong together in the three languages: "last/1 week/2",
// "la/2 semaine/2 dernière/1", "上个/1 星期/2". Words without a number express the concept as a whole. Regular forms
// are made by rules (english.cc, french.cc); the irregular ones are in tables of their own.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace regard::grammar {

enum class Gender : std::uint8_t { kMasculine, kFeminine };

// What a noun may be used for: verbs and adjectives name the classes that they go with.
using Classes = std::uint32_t;
inline constexpr Classes kProfession = 1 << 0, kFriend = 1 << 1, kKin = 1 << 2, kFolk = 1 << 3, kAnimal = 1 << 4,
                         kReadable = 1 << 5, kWritten = 1 << 6, kShow = 1 << 7, kSong = 1 << 8, kFood = 1 << 9,
                         kDish = 1 << 10, kMeal = 1 << 11, kDrink = 1 << 12, kClothes = 1 << 13, kWorn = 1 << 14,
                         kGoods = 1 << 15, kDevice = 1 << 16, kVehicle = 1 << 17, kFurniture = 1 << 18,
                         kOpens = 1 << 19, kPlant = 1 << 20, kPlace = 1 << 21, kIndoors = 1 << 22, kOutdoors = 1 << 23,
                         kSight = 1 << 24, kTool = 1 << 25, kRide = 1 << 26, kBuilt = 1 << 27, kFruit = 1 << 28,
                         kPicture = 1 << 29, kToy = 1 << 30, kFragile = 1u << 31;
inline constexpr Classes kPeople = kProfession | kFriend | kFolk;
inline constexpr Classes kPersons = kPeople | kKin;

// Where things happen: a place has one or more of these, a verb says at which of them it happens.
using Scenes = std::uint16_t;
inline constexpr Scenes kHome = 1, kStudy = 2, kOutside = 4, kShop = 8, kEat = 16, kStation = 32, kCity = 64,
                        kLeisure = 128, kWork = 256, kWater = 512, kStage = 1024;
inline constexpr Scenes kAnywhere = kHome | kStudy | kOutside | kCity | kLeisure | kWork;

struct Noun {
  std::string_view english, french;
  Gender gender;
  std::string_view chinese, measure;
  Classes classes = 0;
  std::string_view container = {};  // of what is not counted: the English word of a container, see containers()
  // of a place: where one is ("at", "à"), what follows the Chinese noun (里), when one goes there
  std::string_view english_at = {}, french_at = {}, chinese_in = {};
  Scenes scenes = 0;
};

// A city or a country; also "home".
struct Site {
  std::string_view english_at, english_to, french_at, chinese_at, chinese_to;
  Scenes scenes;
};

struct Container {
  std::string_view english, french;
  Gender gender;
  std::string_view chinese;
};

struct Name {
  std::string_view english, french, chinese;
  Gender gender;
};

// Ways of doing something, by what they go with.
using Manners = std::uint16_t;
inline constexpr Manners kSpeed = 1, kCare = 2, kQuiet = 4, kLoud = 8, kJoy = 16, kPatience = 32;

using VerbFlags = std::uint16_t;
inline constexpr VerbFlags kOngoing = 1;      // may be going on: "is reading"
inline constexpr VerbFlags kState = 2;        // no event: "likes"; in the past French has the imparfait, Chinese no 了
inline constexpr VerbFlags kMotion = 4;       // its object is where it leads
inline constexpr VerbFlags kBeasts = 8;       // animals do it, too
inline constexpr VerbFlags kStays = 16;       // needs a place, which follows the verb in Chinese: 住 在 北京
inline constexpr VerbFlags kCommand = 32;     // may be asked for: "Open the window!"
inline constexpr VerbFlags kGives = 64;       // to somebody
inline constexpr VerbFlags kGeneral = 128;    // of a kind rather than of one thing: "likes apples"
inline constexpr VerbFlags kReflexive = 256;  // in French
inline constexpr VerbFlags kLasting = 512;    // Chinese has V着 where others have 在V
inline constexpr VerbFlags kMade = 1024;      // what it makes is not there before: no definite object
inline constexpr VerbFlags kTogether = 2048;  // often done with somebody
inline constexpr VerbFlags kRare = 4096;      // happens now and then: no habit of every day
inline constexpr VerbFlags kChance = 8192;    // happens to one: neither wanted nor planned

struct Verb {
  std::string_view english, english_after;  // "listen", "to"
  std::string_view french, french_after;    // "jouer", "à"
  std::string_view chinese;
  Classes objects = 0;
  VerbFlags flags = 0;
  Scenes scenes = 0;
  Manners manners = 0;
  std::string_view english_tail = {}, french_tail = {}, chinese_tail = {};  // "football", "au football", "足球"
};

struct Adjective {
  std::string_view english;
  std::string_view french, feminine;  // masculine and feminine singular
  bool before = false;                // in French before the noun
  std::string_view chinese;
  Classes classes = 0;
  bool predicate = false;          // only after "is"
  bool bare = false;               // in Chinese without 的 before a noun
  std::string_view vowel = {};     // masculine before a vowel: bel, nouvel, vieil
  bool compares = true;            // "bigger than"
  std::string_view comparative{};  // irregular English comparative
};

// A word or a phrase that looks the same everywhere.
struct Phrase {
  std::string_view english, french, chinese;
  Manners manners = 0;
};

struct Relation {
  std::string_view english, french, chinese;  // "on", "sur", "上": the Chinese word follows the noun
};

struct Modal {
  std::string_view english;  // "can", or "want to", which is a verb of its own
  bool auxiliary;
  std::string_view french, chinese;
  bool negates;
};

struct Weather {
  std::string_view english, french, chinese;
};

struct EnglishForms {
  std::string_view verb, past, participle, ing = {};
};
struct FrenchForms {
  std::string_view verb, present, participle, future;  // six forms of the present, the stem of the future
};
struct Plural {
  std::string_view one, many;
};

std::span<const Noun> nouns();
std::span<const Site> sites();
std::span<const Container> containers();
std::span<const Name> names();
std::span<const Verb> verbs();
std::span<const Adjective> adjectives();
std::span<const Relation> relations();
std::span<const Modal> modals();
std::span<const Weather> weathers();
std::span<const Verb> thoughts();  // verbs that are followed by "that"
std::span<const Phrase> past_times();
std::span<const Phrase> future_times();
std::span<const Phrase> habit_times();
std::span<const Phrase> now_times();
std::span<const Phrase> frequencies();
std::span<const Phrase> manners();
std::span<const Phrase> numbers();  // from two on

std::span<const EnglishForms> english_verbs();
std::span<const Plural> english_plurals();
std::span<const FrenchForms> french_verbs();
std::span<const Plural> french_plurals();

const Noun& noun(std::string_view english);
const Verb& verb(std::string_view english, std::string_view chinese);

}  // namespace regard::grammar
