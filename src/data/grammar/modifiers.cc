// Adjectives, adverbs, times, numbers and other small words of the built-in corpus.
#include "data/grammar/lexicon.h"

namespace regard::grammar {
namespace {

constexpr Classes kHandy = kGoods | kTool | kFurniture | kVehicle | kRide;
constexpr Classes kColoured = kClothes | kWorn | kGoods;
constexpr Classes kTexts = kReadable | kShow | kSong;
constexpr Classes kBig = kAnimal | kPlace | kBuilt | kPlant | kFurniture | kFruit;

// clang-format off
constexpr Adjective kAdjectives[] = {
    {.english = "big", .french = "grand", .feminine = "grande", .before = true, .chinese = "大", .classes = kBig | kRide, .bare = true, .comparative = "bigger"},
    {.english = "small", .french = "petit", .feminine = "petite", .before = true, .chinese = "小", .classes = kBig | kGoods, .bare = true},
    {.english = "new", .french = "nouveau", .feminine = "nouvelle", .before = true, .chinese = "新", .classes = kHandy | kClothes | kWorn | kShow | kBuilt, .bare = true, .vowel = "nouvel"},
    {.english = "old", .french = "vieux", .feminine = "vieille", .before = true, .chinese = "旧", .classes = kHandy | kClothes, .bare = true, .vowel = "vieil"},
    {.english = "beautiful", .french = "beau", .feminine = "belle", .before = true, .chinese = "漂亮", .classes = kClothes | kSight | kBuilt | kPlant | kPicture | kFragile, .vowel = "bel"},
    {.english = "young", .french = "jeune", .feminine = "jeune", .before = true, .chinese = "年轻", .classes = kProfession | kFriend},
    {.english = "good", .french = "bon", .feminine = "bonne", .before = true, .chinese = "好", .classes = kTexts, .bare = true, .comparative = "better"},
    {.english = "pretty", .french = "joli", .feminine = "jolie", .before = true, .chinese = "好看", .classes = kClothes | kWorn | kPlant | kPicture},
    {.english = "red", .french = "rouge", .feminine = "rouge", .chinese = "红", .classes = kColoured, .bare = true, .compares = false},
    {.english = "blue", .french = "bleu", .feminine = "bleue", .chinese = "蓝", .classes = kColoured, .bare = true, .compares = false},
    {.english = "green", .french = "vert", .feminine = "verte", .chinese = "绿", .classes = kColoured, .bare = true, .compares = false},
    {.english = "white", .french = "blanc", .feminine = "blanche", .chinese = "白", .classes = kColoured | kAnimal, .bare = true, .compares = false},
    {.english = "black", .french = "noir", .feminine = "noire", .chinese = "黑", .classes = kColoured | kAnimal, .bare = true, .compares = false},
    {.english = "yellow", .french = "jaune", .feminine = "jaune", .chinese = "黄", .classes = kColoured, .bare = true, .compares = false},
    {.english = "expensive", .french = "cher", .feminine = "chère", .chinese = "贵", .classes = kGoods | kClothes, .predicate = true},
    {.english = "cheap", .french = "bon marché", .feminine = "bon marché", .chinese = "便宜", .classes = kGoods | kClothes, .predicate = true},
    {.english = "interesting", .french = "intéressant", .feminine = "intéressante", .chinese = "有趣", .classes = kTexts | kSight},
    {.english = "boring", .french = "ennuyeux", .feminine = "ennuyeuse", .chinese = "无聊", .classes = kTexts},
    {.english = "long", .french = "long", .feminine = "longue", .before = true, .chinese = "长", .classes = kWritten, .bare = true},
    {.english = "difficult", .french = "difficile", .feminine = "difficile", .chinese = "难", .classes = kReadable & ~kGoods, .predicate = true},
    {.english = "famous", .french = "célèbre", .feminine = "célèbre", .chinese = "有名", .classes = kProfession | kSight | kPicture | kTexts},
    {.english = "delicious", .french = "délicieux", .feminine = "délicieuse", .chinese = "好吃", .classes = kFood},
    {.english = "fresh", .french = "frais", .feminine = "fraîche", .chinese = "新鲜", .classes = kFruit},
    {.english = "tall", .french = "grand", .feminine = "grande", .chinese = "高", .classes = kPersons, .predicate = true},
    {.english = "happy", .french = "heureux", .feminine = "heureuse", .chinese = "高兴", .classes = kPersons, .predicate = true},
    {.english = "tired", .french = "fatigué", .feminine = "fatiguée", .chinese = "累", .classes = kPersons | kAnimal, .predicate = true},
    {.english = "sad", .french = "triste", .feminine = "triste", .chinese = "难过", .classes = kPersons, .predicate = true},
    {.english = "busy", .french = "occupé", .feminine = "occupée", .chinese = "忙", .classes = kPersons, .predicate = true},
    {.english = "angry", .french = "en colère", .feminine = "en colère", .chinese = "生气", .classes = kPersons, .predicate = true, .compares = false},
    {.english = "nervous", .french = "nerveux", .feminine = "nerveuse", .chinese = "紧张", .classes = kPersons, .predicate = true},
    {.english = "surprised", .french = "surpris", .feminine = "surprise", .chinese = "惊讶", .classes = kPersons, .predicate = true, .compares = false},
    {.english = "kind", .french = "gentil", .feminine = "gentille", .chinese = "善良", .classes = kProfession | kFriend},
    {.english = "clever", .french = "intelligent", .feminine = "intelligente", .chinese = "聪明", .classes = kPersons | kAnimal},
    {.english = "polite", .french = "poli", .feminine = "polie", .chinese = "有礼貌", .classes = kPersons},
    {.english = "lazy", .french = "paresseux", .feminine = "paresseuse", .chinese = "懒", .classes = kPersons | kAnimal, .predicate = true},
    {.english = "strong", .french = "fort", .feminine = "forte", .chinese = "强壮", .classes = kPersons | kAnimal, .predicate = true},
    {.english = "rich", .french = "riche", .feminine = "riche", .chinese = "有钱", .classes = kProfession | kFriend},
    {.english = "patient", .french = "patient", .feminine = "patiente", .chinese = "耐心", .classes = kPersons, .predicate = true},
    {.english = "quiet", .french = "calme", .feminine = "calme", .chinese = "安静", .classes = kSight | kIndoors | kAnimal},
    {.english = "clean", .french = "propre", .feminine = "propre", .chinese = "干净", .classes = kClothes | kIndoors | kFragile},
    {.english = "dirty", .french = "sale", .feminine = "sale", .chinese = "脏", .classes = kClothes | kIndoors | kVehicle, .bare = true},
    {.english = "heavy", .french = "lourd", .feminine = "lourde", .chinese = "重", .classes = kFurniture, .predicate = true},
    {.english = "modern", .french = "moderne", .feminine = "moderne", .chinese = "现代", .classes = kBuilt | kDevice},
    {.english = "useful", .french = "utile", .feminine = "utile", .chinese = "有用", .classes = kTool | kDevice},
    {.english = "comfortable", .french = "confortable", .feminine = "confortable", .chinese = "舒服", .classes = kFurniture | kClothes},
    {.english = "strange", .french = "étrange", .feminine = "étrange", .chinese = "奇怪", .classes = kShow | kWritten | kPicture},
    {.english = "funny", .french = "drôle", .feminine = "drôle", .chinese = "滑稽", .classes = kShow | kToy},
    {.english = "hungry", .french = "affamé", .feminine = "affamée", .chinese = "饿", .classes = kPersons | kAnimal, .predicate = true, .compares = false},
    {.english = "curious", .french = "curieux", .feminine = "curieuse", .chinese = "好奇", .classes = kPersons | kAnimal, .predicate = true},
};

constexpr Relation kRelations[] = {
    {"on", "sur", "上"},          {"under", "sous", "下面"}, {"behind", "derrière", "后面"},
    {"in front of", "devant", "前面"}, {"near", "près de", "附近"}, {"next to", "à côté de", "旁边"},
};

constexpr Modal kModals[] = {
    {"want/1 to/1", false, "vouloir", "想", true},
    {"can", true, "pouvoir", "能", true},
    {"must", true, "devoir", "必须", false},
    {"would like to", true, "vouloir", "想要", false},
};

constexpr Weather kWeathers[] = {{"rain", "pleuvoir", "下雨"}, {"snow", "neiger", "下雪"}};

constexpr Phrase kPast[] = {
    {"yesterday", "hier", "昨天"},
    {"last/1 night/2", "hier/1 soir/2", "昨天/1 晚上/2"},
    {"yesterday/1 morning/2", "hier/1 matin/2", "昨天/1 早上/2"},
    {"yesterday/1 afternoon/2", "hier/1 après-midi/2", "昨天/1 下午/2"},
    {"last/1 week/2", "la/2 semaine/2 dernière/1", "上个/1 星期/2"},
    {"last/1 month/2", "le/2 mois/2 dernier/1", "上个/1 月/2"},
    {"last/1 year/2", "l'/2 année/2 dernière/1", "去年"},
    {"last/1 Saturday/2", "samedi/2 dernier/1", "上个/1 星期六/2"},
    {"last/1 summer/2", "l'/2 été/2 dernier/1", "去年/1 夏天/2"},
    {"last/1 winter/2", "l'/2 hiver/2 dernier/1", "去年/1 冬天/2"},
    {"this/1 morning/2", "ce/1 matin/2", "今天/1 早上/2"},
    {"two/1 days/2 ago/3", "il/3 y/3 a/3 deux/1 jours/2", "两/1 天/2 前/3"},
    {"three/1 weeks/2 ago/3", "il/3 y/3 a/3 trois/1 semaines/2", "三/1 个/1 星期/2 前/3"},
    {"five/1 years/2 ago/3", "il/3 y/3 a/3 cinq/1 ans/2", "五/1 年/2 前/3"},
};
constexpr Phrase kFuture[] = {
    {"tomorrow", "demain", "明天"},
    {"tomorrow/1 morning/2", "demain/1 matin/2", "明天/1 早上/2"},
    {"tomorrow/1 evening/2", "demain/1 soir/2", "明天/1 晚上/2"},
    {"tonight", "ce soir", "今晚"},
    {"next/1 week/2", "la/2 semaine/2 prochaine/1", "下个/1 星期/2"},
    {"next/1 month/2", "le/2 mois/2 prochain/1", "下个/1 月/2"},
    {"next/1 year/2", "l'/2 année/2 prochaine/1", "明年"},
    {"next/1 Saturday/2", "samedi/2 prochain/1", "下个/1 星期六/2"},
    {"next/1 summer/2", "l'/2 été/2 prochain/1", "明年/1 夏天/2"},
    {"the/1 day/1 after/2 tomorrow/2", "après-demain", "后天"},
};
constexpr Phrase kHabit[] = {
    {"every/1 day/2", "tous/1 les/1 jours/2", "每/1 天/2"},
    {"every/1 morning/2", "tous/1 les/1 matins/2", "每/1 天/1 早上/2"},
    {"every/1 evening/2", "tous/1 les/1 soirs/2", "每/1 天/1 晚上/2"},
    {"every/1 week/2", "chaque/1 semaine/2", "每/1 个/1 星期/2"},
    {"every/1 Sunday/2", "tous/1 les/1 dimanches/2", "每/1 个/1 星期天/2"},
    {"every/1 year/2", "chaque/1 année/2", "每/1 年/2"},
    {"in/1 the/1 afternoon/2", "l'/1 après-midi/2", "下午/2"},
    {"at/1 the/1 weekend/2", "le/1 week-end/2", "周末/2"},
};
constexpr Phrase kNow[] = {
    {"now", "maintenant", "现在"},
    {"at/1 the/1 moment/2", "en/1 ce/1 moment/2", "此刻/2"},
    {"today", "aujourd'hui", "今天"},
};
constexpr Phrase kFrequencies[] = {
    {"often", "souvent", "经常"},      {"always", "toujours", "总是"}, {"sometimes", "parfois", "有时候"},
    {"rarely", "rarement", "很少"},
};
constexpr Phrase kManners[] = {
    {"slowly", "lentement", "慢慢地", kSpeed},
    {"quickly", "rapidement", "很快地", kSpeed},
    {"carefully", "soigneusement", "认真地", kCare},
    {"attentively", "attentivement", "仔细地", kCare},
    {"quietly", "tranquillement", "安静地", kQuiet},
    {"loudly", "bruyamment", "大声地", kLoud},
    {"happily", "joyeusement", "高兴地", kJoy},
    {"patiently", "patiemment", "耐心地", kPatience},
};
constexpr Phrase kNumbers[] = {
    {"two", "deux", "两"},  {"three", "trois", "三"}, {"four", "quatre", "四"}, {"five", "cinq", "五"},
    {"six", "six", "六"},   {"seven", "sept", "七"},  {"eight", "huit", "八"},  {"nine", "neuf", "九"},
    {"ten", "dix", "十"},   {"twelve", "douze", "十二"}, {"twenty", "vingt", "二十"},
};
// clang-format on

}  // namespace

std::span<const Adjective> adjectives() { return kAdjectives; }
std::span<const Relation> relations() { return kRelations; }
std::span<const Modal> modals() { return kModals; }
std::span<const Weather> weathers() { return kWeathers; }
std::span<const Phrase> past_times() { return kPast; }
std::span<const Phrase> future_times() { return kFuture; }
std::span<const Phrase> habit_times() { return kHabit; }
std::span<const Phrase> now_times() { return kNow; }
std::span<const Phrase> frequencies() { return kFrequencies; }
std::span<const Phrase> manners() { return kManners; }
std::span<const Phrase> numbers() { return kNumbers; }

}  // namespace regard::grammar
