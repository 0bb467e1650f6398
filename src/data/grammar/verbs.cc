// Verbs of the built-in corpus, and the forms that follow no rule.
#include <cassert>

#include "data/grammar/lexicon.h"

namespace regard::grammar {
namespace {

constexpr Classes kSaleable = kGoods | kFood, kThings = kGoods | kTool;

// clang-format off
constexpr Verb kVerbs[] = {
    // with an object
    {"read", "", "lire", "", "看", kReadable, kOngoing | kCommand, kHome | kStudy | kOutside, kCare | kQuiet},
    {"write", "", "écrire", "", "写", kWritten, kOngoing | kMade, kHome | kStudy, kCare | kSpeed},
    {"buy", "", "acheter", "", "买", kSaleable, kRare, kShop | kCity, 0},
    {"sell", "", "vendre", "", "卖", kSaleable, kRare, kShop, 0},
    {"eat", "", "manger", "", "吃", kFood | kDish | kMeal, kOngoing | kBeasts | kTogether, kHome | kEat, kSpeed},
    {"drink", "", "boire", "", "喝", kDrink, kOngoing | kBeasts | kTogether, kHome | kEat | kWork, kSpeed},
    {"prepare", "", "préparer", "", "准备", kMeal, kOngoing | kCommand, kHome, kCare},
    {"wear", "", "porter", "", "穿", kClothes, kOngoing | kLasting, 0, 0},
    {"wear", "", "porter", "", "戴", kWorn, kOngoing | kLasting, 0, 0},
    {"see", "", "voir", "", "看见", kPersons | kAnimal | kVehicle, kChance | kRare, kOutside | kCity, 0},
    {"watch", "", "regarder", "", "看", kShow, kOngoing | kTogether, kHome | kStage, kQuiet},
    {"watch", "", "regarder", "", "看", kAnimal | kPicture, kOngoing | kBeasts, kOutside, kCare | kQuiet},
    {"find", "", "trouver", "", "找到", kThings, kChance | kRare, kHome | kOutside | kWork, 0},
    {"look", "for", "chercher", "", "找", kThings | kPersons | kAnimal, kOngoing, kHome | kOutside, kPatience},
    {"lose", "", "perdre", "", "丢", kThings & ~kDevice, kChance | kRare, kOutside | kStation, 0},
    {"open", "", "ouvrir", "", "打开", kOpens, kCommand | kRare, 0, kCare},
    {"close", "", "fermer", "", "关", kOpens & ~kReadable, kCommand | kRare, 0, kCare},
    {"wash", "", "laver", "", "洗", kClothes | kVehicle | kFruit | kFragile, kOngoing | kCommand, kHome, kCare | kSpeed},
    {"clean", "", "nettoyer", "", "打扫", kIndoors, kOngoing | kCommand, 0, kCare | kSpeed},
    {"repair", "", "réparer", "", "修", kDevice | kFurniture, kOngoing | kCommand | kRare, kHome | kWork, kCare},
    {"draw", "", "dessiner", "", "画", kAnimal | kPlant | kBuilt, kOngoing | kMade, kHome | kStudy | kOutside, kCare | kQuiet},
    {"sing", "", "chanter", "", "唱", kSong & ~kGoods, kOngoing | kTogether, kHome | kOutside | kStage, kLoud | kJoy},
    {"listen", "to", "écouter", "", "听", kSong, kOngoing, kHome, kQuiet | kCare},
    {"visit", "", "visiter", "", "参观", kSight, kRare | kTogether, kCity, 0},
    {"help", "", "aider", "", "帮助", kPersons, kCommand, kHome | kWork | kStudy, kPatience},
    {"meet", "", "rencontrer", "", "遇见", kPersons, kChance | kRare, kOutside | kCity | kStation | kStudy, 0},
    {"wait", "for", "attendre", "", "等", kPersons | kRide, kOngoing, kStation | kOutside, kPatience | kQuiet},
    {"thank", "", "remercier", "", "感谢", kPersons, kCommand | kRare, 0, 0},
    {"invite", "", "inviter", "", "邀请", kPersons, kCommand | kRare, 0, 0},
    {"greet", "", "saluer", "", "问候", kPersons, kCommand, kOutside, kJoy},
    {"use", "", "utiliser", "", "用", kTool, 0, kHome | kWork | kStudy, kCare},
    {"drive", "", "conduire", "", "开", kVehicle, kOngoing, kCity, kCare | kSpeed},
    {"take", "", "prendre", "", "坐", kRide, kRare, kCity, 0},
    {"bring", "", "apporter", "", "带来", kGoods & ~(kFurniture | kVehicle), kRare, 0, 0},
    {"choose", "", "choisir", "", "选", kGoods, kRare, kShop, kCare},
    {"build", "", "construire", "", "建造", kBuilt, kOngoing | kMade | kRare, kCity, 0},
    {"break", "", "casser", "", "打破", kFragile, kChance | kRare, kHome, 0},
    {"cut", "", "couper", "", "切", (kFood & ~kFruit) | kDish | kFruit, kOngoing | kCommand, kHome, kCare},
    {"plant", "", "planter", "", "种", kPlant, kOngoing | kRare, kHome, kCare},
    {"feed", "", "nourrir", "", "喂", kAnimal, kOngoing | kCommand, kHome, kPatience},
    {"translate", "", "traduire", "", "翻译", kReadable & ~kGoods, kOngoing | kCommand | kRare, kStudy, kCare},
    {"borrow", "", "emprunter", "", "借", kReadable & kGoods, kRare, kStudy, 0},
    {"borrow", "", "emprunter", "", "借", kTool, kRare, 0, 0},
    {"check", "", "vérifier", "", "检查", kDevice | kWritten, kOngoing | kCommand, kWork, kCare},
    {"follow", "", "suivre", "", "跟着", kPersons | kAnimal, kBeasts | kLasting | kState, 0, 0},
    {"protect", "", "protéger", "", "保护", kAnimal | kPlant, kState, 0, 0},
    {"admire", "", "admirer", "", "欣赏", kPicture, kOngoing | kTogether, kLeisure, kQuiet},
    {"taste", "", "goûter", "", "尝", kFood | kDish, kCommand | kRare, kEat | kHome, 0},
    {"receive", "", "recevoir", "", "收到", kWritten | (kGoods & ~(kFurniture | kVehicle)), kChance | kRare, 0, 0},
    {"photograph", "", "photographier", "", "拍", kAnimal | kSight | kPlant, kOngoing, kOutside, kCare},
    {"chase", "", "poursuivre", "", "追", kAnimal, kOngoing | kBeasts, kOutside, 0},
    {"describe", "", "décrire", "", "描述", kPersons | kSight | kPicture, kCommand | kRare, 0, kCare},
    {"hide", "", "cacher", "", "藏", kGoods & ~(kFurniture | kVehicle), kRare, kHome, kCare},
    // states
    {"like", "", "aimer", "", "喜欢", kFood | kDish | kDrink | kAnimal | kShow | kSong | kReadable | kPlant, kState | kGeneral | kBeasts, 0, 0},
    {"like", "", "aimer", "", "喜欢", kSight | kClothes | kToy | kPicture | kVehicle, kState, 0, 0},
    {"hate", "", "détester", "", "讨厌", kFood | kDish | kDrink | kAnimal | kShow, kState | kGeneral, 0, 0},
    {"know", "", "connaître", "", "认识", kPersons, kState, 0, 0},
    {"understand", "", "comprendre", "", "明白", kReadable & ~kGoods, kState, 0, 0},
    {"have", "", "avoir", "", "有", kAnimal | kGoods | kTool | kFriend, kState, 0, 0},
    {"prefer", "", "préférer", "", "更喜欢", kFood | kDish | kDrink | kSong | kAnimal, kState | kGeneral, 0, 0},
    // to somebody
    {"give", "to", "donner", "à", "给", kGoods & ~kFurniture, kGives | kCommand, 0, 0},
    {"lend", "to", "prêter", "à", "借给", (kReadable & kGoods) | kTool | kVehicle, kGives | kCommand | kRare, 0, 0},
    {"send", "to", "envoyer", "à", "寄给", kWritten | kPicture | (kReadable & kGoods), kGives | kCommand, 0, 0},
    {"sell", "to", "vendre", "à", "卖给", kGoods, kGives | kRare, 0, 0},
    {"show", "to", "montrer", "à", "展示给", kPicture | kToy | kClothes | kWritten, kGives | kCommand, 0, 0},
    // without an object
    {"watch", "", "regarder", "", "看", 0, kOngoing | kBeasts, kOutside | kHome, kCare | kQuiet},
    {"wait", "", "attendre", "", "等", 0, kOngoing | kCommand, kStation | kOutside | kHome, kPatience | kQuiet},
    {"sleep", "", "dormir", "", "睡觉", 0, kOngoing | kBeasts, kHome | kOutside, kQuiet},
    {"work", "", "travailler", "", "工作", 0, kOngoing | kTogether, kWork | kHome | kCity, kPatience | kCare | kSpeed},
    {"study", "", "étudier", "", "学习", 0, kOngoing | kTogether, kStudy | kHome | kCity, kCare | kQuiet},
    {"sing", "", "chanter", "", "唱歌", 0, kOngoing | kTogether, kOutside | kHome | kStage, kLoud | kJoy},
    {"dance", "", "danser", "", "跳舞", 0, kOngoing | kTogether, kOutside | kHome | kStage, kJoy},
    {"swim", "", "nager", "", "游泳", 0, kOngoing | kTogether | kBeasts, kWater, kSpeed | kJoy},
    {"run", "", "courir", "", "跑步", 0, kOngoing | kTogether, kOutside, kSpeed},
    {"rest", "", "se reposer", "", "休息", 0, kOngoing | kReflexive | kBeasts, kHome | kOutside | kLeisure, kQuiet},
    {"walk", "", "se promener", "", "散步", 0, kOngoing | kReflexive | kTogether, kOutside, kQuiet},
    {"get up", "", "se lever", "", "起床", 0, kReflexive, 0, kSpeed},
    {"cry", "", "pleurer", "", "哭", 0, kOngoing, kHome | kOutside, kQuiet | kLoud},
    {"laugh", "", "rire", "", "笑", 0, kOngoing, kHome | kOutside | kStudy, kLoud | kJoy},
    {"smile", "", "sourire", "", "微笑", 0, kOngoing, 0, 0},
    {"chat", "", "bavarder", "", "聊天", 0, kOngoing | kTogether, kHome | kOutside | kEat | kStudy, kJoy | kLoud},
    {"cook", "", "cuisiner", "", "做饭", 0, kOngoing | kTogether, kHome, kCare | kJoy},
    {"travel", "", "voyager", "", "旅行", 0, kOngoing | kTogether, kCity, 0},
    {"play", "", "jouer", "", "玩", 0, kOngoing | kTogether | kBeasts, kOutside | kHome | kLeisure, kJoy | kQuiet},
    {"think", "", "réfléchir", "", "思考", 0, kOngoing, kHome | kStudy, kQuiet | kCare},
    {"smoke", "", "fumer", "", "抽烟", 0, kOngoing, kOutside | kHome, 0},
    {"live", "", "habiter", "", "住", 0, kState | kStays, kCity, 0},
    {"stay", "", "rester", "", "待", 0, kStays, kHome | kCity | kEat, 0},
    // with what they always have
    {"play", "", "jouer", "", "踢", 0, kOngoing | kTogether, kOutside, kJoy, "football", "au football", "足球"},
    {"play", "", "jouer", "", "打", 0, kOngoing | kTogether, kOutside | kStudy, kJoy, "basketball", "au basket", "篮球"},
    {"play", "", "jouer", "", "打", 0, kOngoing | kTogether, kOutside, kJoy, "tennis", "au tennis", "网球"},
    {"play", "", "jouer", "", "下", 0, kOngoing | kTogether, kHome | kOutside, kQuiet | kPatience, "chess", "aux échecs", "国际象棋"},
    {"play", "", "jouer", "", "弹", 0, kOngoing, kHome | kStage, kQuiet | kJoy, "the piano", "du piano", "钢琴"},
    {"play", "", "jouer", "", "弹", 0, kOngoing, kHome | kOutside, kQuiet | kJoy, "the guitar", "de la guitare", "吉他"},
    {"play", "", "jouer", "", "拉", 0, kOngoing, kHome | kStage, kQuiet, "the violin", "du violon", "小提琴"},
    {"watch", "", "regarder", "", "看", 0, kOngoing | kTogether, kHome, kQuiet, "television", "la télévision", "电视"},
    {"listen", "to", "écouter", "", "听", 0, kOngoing | kTogether, kHome | kOutside, kQuiet, "music", "de la musique", "音乐"},
    {"listen", "to", "écouter", "", "听", 0, kOngoing, kHome, kQuiet | kCare, "the news", "les informations", "新闻"},
    {"learn", "", "apprendre", "", "学", 0, kOngoing | kTogether, kStudy | kHome | kCity, kPatience, "Chinese", "le chinois", "中文"},
    {"learn", "", "apprendre", "", "学", 0, kOngoing | kTogether, kStudy | kHome | kCity, kPatience, "French", "le français", "法语"},
    {"learn", "", "apprendre", "", "学", 0, kOngoing | kTogether, kStudy | kHome | kCity, kPatience, "English", "l' anglais", "英语"},
    {"study", "", "étudier", "", "学习", 0, kOngoing, kStudy | kCity, kPatience, "history", "l' histoire", "历史"},
    {"study", "", "étudier", "", "学习", 0, kOngoing, kStudy | kCity, kPatience, "mathematics", "les mathématiques", "数学"},
    {"teach", "", "enseigner", "", "教", 0, kOngoing, kStudy | kCity, kPatience, "music", "la musique", "音乐"},
    {"teach", "", "enseigner", "", "教", 0, kOngoing, kStudy | kCity, kPatience, "Chinese", "le chinois", "中文"},
    {"speak", "", "parler", "", "说", 0, kState, 0, 0, "French", "français", "法语"},
    {"speak", "", "parler", "", "说", 0, kState, 0, 0, "Chinese", "chinois", "中文"},
    {"take", "", "prendre", "", "洗", 0, kOngoing, 0, kSpeed, "a shower", "une douche", "澡"},
    {"take", "", "prendre", "", "拍", 0, kOngoing | kTogether, kOutside | kCity, kJoy, "photos", "des photos", "照片"},
    {"do", "", "faire", "", "做", 0, kOngoing | kTogether, kOutside, kPatience, "sport", "du sport", "运动"},
    {"tell", "", "raconter", "", "讲", 0, kOngoing, kHome, kPatience, "stories", "des histoires", "故事"},
    {"grow", "", "cultiver", "", "种", 0, kOngoing, kHome, kPatience, "vegetables", "des légumes", "蔬菜"},
    {"earn", "", "gagner", "", "挣", 0, kOngoing | kRare, kCity, 0, "money", "de l' argent", "钱"},
    {"drink", "", "boire", "", "喝", 0, kOngoing | kTogether, kHome | kEat, 0, "tea", "du thé", "茶"},
    {"read", "", "lire", "", "看", 0, kOngoing, kHome | kStudy, kQuiet, "the newspaper", "le journal", "报纸"},
    // to places
    {"go", "to", "aller", "", "去", 0, kMotion | kTogether, 0, 0},
    {"come", "to", "venir", "", "来", 0, kMotion | kTogether | kRare, 0, 0},
    {"return", "to", "retourner", "", "回", 0, kMotion | kRare, 0, 0},
    {"arrive", "at", "arriver", "", "到", 0, kMotion | kRare, 0, 0},
};

// Followed by "that". What is hoped lies in the future.
constexpr Verb kThoughts[] = {
    {"think", "", "penser", "", "觉得", 0, kState, 0, 0},
    {"know", "", "savoir", "", "知道", 0, kState, 0, 0},
    {"say", "", "dire", "", "说", 0, kState, 0, 0},
    {"believe", "", "croire", "", "相信", 0, kState, 0, 0},
    {"hope", "", "espérer", "", "希望", 0, kState, 0, 0},
};

constexpr EnglishForms kEnglish[] = {
    {"read", "read", "read"}, {"write", "wrote", "written"}, {"buy", "bought", "bought"}, {"sell", "sold", "sold"},
    {"eat", "ate", "eaten"}, {"drink", "drank", "drunk"}, {"wear", "wore", "worn"}, {"see", "saw", "seen"},
    {"find", "found", "found"}, {"lose", "lost", "lost"}, {"draw", "drew", "drawn"}, {"sing", "sang", "sung"},
    {"meet", "met", "met"}, {"drive", "drove", "driven"}, {"take", "took", "taken"}, {"bring", "brought", "brought"},
    {"choose", "chose", "chosen"}, {"build", "built", "built"}, {"break", "broke", "broken"},
    {"cut", "cut", "cut", "cutting"}, {"feed", "fed", "fed"}, {"know", "knew", "known"},
    {"understand", "understood", "understood"}, {"have", "had", "had"}, {"give", "gave", "given"},
    {"lend", "lent", "lent"}, {"send", "sent", "sent"}, {"show", "showed", "shown"}, {"sleep", "slept", "slept"},
    {"swim", "swam", "swum", "swimming"}, {"run", "ran", "run", "running"}, {"think", "thought", "thought"},
    {"get up", "got up", "got up", "getting up"}, {"chat", "chatted", "chatted", "chatting"},
    {"plan", "planned", "planned", "planning"}, {"prefer", "preferred", "preferred", "preferring"},
    {"teach", "taught", "taught"}, {"speak", "spoke", "spoken"}, {"tell", "told", "told"}, {"grow", "grew", "grown"},
    {"go", "went", "gone"}, {"come", "came", "come"}, {"do", "did", "done"}, {"say", "said", "said"},
    {"travel", "travelled", "travelled", "travelling"}, {"hide", "hid", "hidden"},
};

constexpr FrenchForms kFrench[] = {
    {"être", "suis es est sommes êtes sont", "été", "ser"},
    {"avoir", "ai as a avons avez ont", "eu", "aur"},
    {"aller", "vais vas va allons allez vont", "allé", "ir"},
    {"venir", "viens viens vient venons venez viennent", "venu", "viendr"},
    {"faire", "fais fais fait faisons faites font", "fait", "fer"},
    {"dire", "dis dis dit disons dites disent", "dit", "dir"},
    {"lire", "lis lis lit lisons lisez lisent", "lu", "lir"},
    {"rire", "ris ris rit rions riez rient", "ri", "rir"},
    {"sourire", "souris souris sourit sourions souriez sourient", "souri", "sourir"},
    {"écrire", "écris écris écrit écrivons écrivez écrivent", "écrit", "écrir"},
    {"décrire", "décris décris décrit décrivons décrivez décrivent", "décrit", "décrir"},
    {"boire", "bois bois boit buvons buvez boivent", "bu", "boir"},
    {"croire", "crois crois croit croyons croyez croient", "cru", "croir"},
    {"voir", "vois vois voit voyons voyez voient", "vu", "verr"},
    {"savoir", "sais sais sait savons savez savent", "su", "saur"},
    {"pouvoir", "peux peux peut pouvons pouvez peuvent", "pu", "pourr"},
    {"vouloir", "veux veux veut voulons voulez veulent", "voulu", "voudr"},
    {"devoir", "dois dois doit devons devez doivent", "dû", "devr"},
    {"recevoir", "reçois reçois reçoit recevons recevez reçoivent", "reçu", "recevr"},
    {"vendre", "vends vends vend vendons vendez vendent", "vendu", "vendr"},
    {"perdre", "perds perds perd perdons perdez perdent", "perdu", "perdr"},
    {"attendre", "attends attends attend attendons attendez attendent", "attendu", "attendr"},
    {"prendre", "prends prends prend prenons prenez prennent", "pris", "prendr"},
    {"apprendre", "apprends apprends apprend apprenons apprenez apprennent", "appris", "apprendr"},
    {"comprendre", "comprends comprends comprend comprenons comprenez comprennent", "compris", "comprendr"},
    {"connaître", "connais connais connaît connaissons connaissez connaissent", "connu", "connaîtr"},
    {"conduire", "conduis conduis conduit conduisons conduisez conduisent", "conduit", "conduir"},
    {"construire", "construis construis construit construisons construisez construisent", "construit", "construir"},
    {"traduire", "traduis traduis traduit traduisons traduisez traduisent", "traduit", "traduir"},
    {"suivre", "suis suis suit suivons suivez suivent", "suivi", "suivr"},
    {"poursuivre", "poursuis poursuis poursuit poursuivons poursuivez poursuivent", "poursuivi", "poursuivr"},
    {"ouvrir", "ouvre ouvres ouvre ouvrons ouvrez ouvrent", "ouvert", "ouvrir"},
    {"choisir", "choisis choisis choisit choisissons choisissez choisissent", "choisi", "choisir"},
    {"nourrir", "nourris nourris nourrit nourrissons nourrissez nourrissent", "nourri", "nourrir"},
    {"réfléchir", "réfléchis réfléchis réfléchit réfléchissons réfléchissez réfléchissent", "réfléchi", "réfléchir"},
    {"dormir", "dors dors dort dormons dormez dorment", "dormi", "dormir"},
    {"courir", "cours cours court courons courez courent", "couru", "courr"},
    {"acheter", "achète achètes achète achetons achetez achètent", "acheté", "achèter"},
    {"lever", "lève lèves lève levons levez lèvent", "levé", "lèver"},
    {"promener", "promène promènes promène promenons promenez promènent", "promené", "promèner"},
    {"préférer", "préfère préfères préfère préférons préférez préfèrent", "préféré", "préférer"},
    {"espérer", "espère espères espère espérons espérez espèrent", "espéré", "espérer"},
    {"protéger", "protège protèges protège protégeons protégez protègent", "protégé", "protéger"},
    {"nettoyer", "nettoie nettoies nettoie nettoyons nettoyez nettoient", "nettoyé", "nettoier"},
    {"envoyer", "envoie envoies envoie envoyons envoyez envoient", "envoyé", "enverr"},
    {"pleuvoir", "pleut pleut pleut pleuvons pleuvez pleuvent", "plu", "pleuvr"},
};
// clang-format on

}  // namespace

std::span<const Verb> verbs() { return kVerbs; }
std::span<const Verb> thoughts() { return kThoughts; }
std::span<const EnglishForms> english_verbs() { return kEnglish; }
std::span<const FrenchForms> french_verbs() { return kFrench; }

const Verb& verb(std::string_view english, std::string_view chinese) {
  for (const Verb& each : kVerbs)
    if (each.english == english && each.chinese == chinese && each.objects == 0) return each;
  assert(false);
  return kVerbs[0];
}

}  // namespace regard::grammar
