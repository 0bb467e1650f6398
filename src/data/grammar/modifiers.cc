// Adjectives, adverbs, times, numbers and other small words of the built-in corpus.
#include "data/grammar/lexicon.h"

namespace regard::grammar {
namespace {

constexpr Classes kHandy = kGoods | kTool | kFurniture | kVehicle | kRide;
constexpr Classes kColoured = kClothes | kWorn | kTool | kVehicle | kFragile | kToy;
constexpr Classes kTexts = kReadable | kShow | kSong;
constexpr Classes kBig = kAnimal | kPlace | kBuilt | kPlant | kFurniture | kFruit;

// clang-format off
constexpr Adjective kAdjectives[] = {
    {"big", "grand", "grande", "大", kBig | kRide, kBefore | kBare, "", "bigger"},
    {"small", "petit", "petite", "小", kBig | kGoods, kBefore | kBare},
    {"new", "nouveau", "nouvelle", "新", kHandy | kClothes | kWorn | kShow | kBuilt, kBefore | kBare, "nouvel"},
    {"old", "vieux", "vieille", "旧", kHandy | kClothes, kBefore | kBare, "vieil"},
    {"beautiful", "beau", "belle", "漂亮", kClothes | kSight | kBuilt | kPlant | kPicture | kFragile, kBefore, "bel"},
    {"young", "jeune", "jeune", "年轻", kProfession | kFriend, kBefore},
    {"good", "bon", "bonne", "好", kTexts, kBefore | kBare, "", "better"},
    {"pretty", "joli", "jolie", "好看", kClothes | kWorn | kPlant | kPicture, kBefore},
    {"red", "rouge", "rouge", "红", kColoured, kBare | kAlone},
    {"blue", "bleu", "bleue", "蓝", kColoured, kBare | kAlone},
    {"green", "vert", "verte", "绿", kColoured, kBare | kAlone},
    {"white", "blanc", "blanche", "白", kColoured | kPet, kBare | kAlone},
    {"black", "noir", "noire", "黑", kColoured | kPet, kBare | kAlone},
    {"yellow", "jaune", "jaune", "黄", kColoured, kBare | kAlone},
    {"expensive", "cher", "chère", "贵", kGoods | kClothes, kPredicate},
    {"cheap", "bon marché", "bon marché", "便宜", kGoods | kClothes, kPredicate | kAlone},
    {"interesting", "intéressant", "intéressante", "有意思", kTexts | kSight},
    {"boring", "ennuyeux", "ennuyeuse", "无聊", kTexts},
    {"long", "long", "longue", "长", kWritten, kBefore | kBare},
    {"difficult", "difficile", "difficile", "难", kReadable, kPredicate},
    {"famous", "célèbre", "célèbre", "出名", kProfession | kSight | kPicture | kTexts},
    {"delicious", "délicieux", "délicieuse", "好吃", kFood},
    {"fresh", "frais", "fraîche", "新鲜", kFruit},
    {"tall", "grand", "grande", "高", kPersons, kPredicate},
    {"happy", "heureux", "heureuse", "高兴", kPersons, kPredicate | kFeeling},
    {"tired", "fatigué", "fatiguée", "累", kPersons | kAnimal, kPredicate | kFeeling},
    {"sad", "triste", "triste", "难过", kPersons, kPredicate | kFeeling},
    {"busy", "occupé", "occupée", "忙", kPersons, kPredicate | kFeeling},
    {"angry", "en colère", "en colère", "生气", kPersons, kPredicate | kAlone | kFeeling},
    {"nervous", "nerveux", "nerveuse", "紧张", kPersons, kPredicate | kFeeling},
    {"surprised", "surpris", "surprise", "惊讶", kPersons, kPredicate | kAlone | kFeeling},
    {"kind", "gentil", "gentille", "善良", kProfession | kFriend, kBefore},
    {"clever", "intelligent", "intelligente", "聪明", kPersons | kAnimal},
    {"polite", "poli", "polie", "有礼貌", kPersons},
    {"lazy", "paresseux", "paresseuse", "懒", kPersons | kAnimal, kPredicate},
    {"strong", "fort", "forte", "强壮", kPersons | kAnimal, kPredicate},
    {"rich", "riche", "riche", "富有", kProfession | kFriend},
    {"patient", "patient", "patiente", "耐心", kPersons, kPredicate},
    {"quiet", "calme", "calme", "安静", kSight | kIndoors | kAnimal},
    {"clean", "propre", "propre", "干净", kClothes | kIndoors | kFragile},
    {"dirty", "sale", "sale", "脏", kClothes | kIndoors | kVehicle, kBare},
    {"heavy", "lourd", "lourde", "重", kFurniture, kPredicate},
    {"modern", "moderne", "moderne", "现代", kBuilt | kDevice},
    {"useful", "utile", "utile", "有用", kTool | kDevice},
    {"comfortable", "confortable", "confortable", "舒服", kFurniture | kClothes},
    {"strange", "étrange", "étrange", "奇怪", kShow | kWritten | kPicture},
    {"funny", "drôle", "drôle", "滑稽", kShow | kToy},
    {"hungry", "affamé", "affamée", "饿", kPersons | kAnimal, kPredicate | kAlone | kFeeling},
    {"curious", "curieux", "curieuse", "好奇", kPersons | kAnimal, kPredicate | kFeeling},
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
    {"last year", "l' année dernière", "去年"},
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
    {"next year", "l' année prochaine", "明年"},
    {"next/1 Saturday/2", "samedi/2 prochain/1", "下个/1 星期六/2"},
    {"next/1 summer/2", "l'/2 été/2 prochain/1", "明年/1 夏天/2"},
    {"the day after tomorrow", "après-demain", "后天"},
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
