#include "attention/cards.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/check.h"
#include "base/suggest.h"

namespace regard {
namespace {

using Kind = Argument::Kind;

// Limits that no sensible request meets; they keep sizes that come from a line within what can be multiplied.
constexpr double kLongest = 1 << 20;  // positions
constexpr double kWidest = 1 << 16;   // features
constexpr double kSmall = 1e-6, kLarge = 1e6;
constexpr std::size_t kMostInner = 16;

Argument positions(std::string_view key, std::string_view meaning) {
  return {.key = key, .required = true, .least = 1, .most = kLongest, .meaning = meaning};
}

Argument longest() { return positions("length", "the longest sequence there will be; shorter ones see their part"); }

Argument learning() {
  return {.key = "learning",
          .kind = Kind::kWord,
          .words = {"trainable", "fixed"},
          .meaning = "whether the numbers are learned or stay as they were drawn"};
}

std::vector<Card> make_cards() {
  std::vector<Card> all;
  const auto score = [&](Card card) { all.push_back(std::move(card)); };
  const auto other = [&](Family family, Card card) {
    card.family = family;
    all.push_back(std::move(card));
  };

  score({.name = "dot", .formula = "qᵀk", .paper = "Luong et al. 2015"});
  score({.name = "scaled_dot",
         .formula = "qᵀk/√d",
         .paper = "Vaswani et al. 2017",
         .arguments = {{.key = "scale",
                        .kind = Kind::kReal,
                        .least = kSmall,
                        .most = kLarge,
                        .meaning = "what the product is multiplied by; left out: 1/√d, d the width of a key"}}});
  score({.name = "general", .formula = "qᵀWk", .paper = "Luong et al. 2015"});
  score({.name = "concat", .formula = "vᵀ tanh(W[q; k])", .paper = "Luong et al. 2015"});
  score({.name = "additive", .formula = "vᵀ tanh(W_q q + W_k k + b)", .paper = "Bahdanau et al. 2015"});
  score({.name = "projected", .formula = "(W_q q)ᵀ(W_k k)/√d, read from W_v v", .paper = "Vaswani et al. 2017"});
  score({.name = "cosine",
         .formula = "β·qᵀk/(‖q‖‖k‖)",
         .paper = "Graves et al. 2014",
         .arguments = {{.key = "beta",
                        .kind = Kind::kReal,
                        .least = kSmall,
                        .most = kLarge,
                        .usual = 1,
                        .meaning = "β, how sharply it looks"}}});
  score({.name = "location",
         .formula = "e_i = W q_i, one number a position; keys are not looked at",
         .paper = "Luong et al. 2015",
         .arguments = {longest()}});
  score({.name = "relative",
         .formula = "qᵀ(k_j + a_r)/√d, r = clip(j − i, ±distance); reads v_j + b_r",
         .paper = "Shaw et al. 2018",
         .arguments = {positions("distance", "from here on all distances are one")}});
  score({.name = "dense_synth",
         .formula = "e_i = W₂ relu(W₁ x_i + b₁) + b₂, from the query's token alone",
         .paper = "Tay et al. 2020",
         .arguments = {longest(),
                       {.key = "hidden",
                        .least = 1,
                        .most = kWidest,
                        .meaning = "the width between W₁ and W₂; left out: that of the token"}}});
  score({.name = "random_synth",
         .formula = "e = R, a matrix that no input changes",
         .paper = "Tay et al. 2020",
         .arguments = {longest(), learning()}});
  score({.name = "factorized_dense_synth",
         .formula = "e_i[j] = A(x_i)[j div b]·B(x_i)[j mod b]",
         .paper = "Tay et al. 2020",
         .arguments = {positions("a", "how many numbers A gives"),
                       positions("b", "how many numbers B gives; a·b is the longest sequence")}});
  score({.name = "factorized_random_synth",
         .formula = "e = R₁R₂ᵀ",
         .paper = "Tay et al. 2020",
         .arguments = {longest(),
                       {.key = "rank", .least = 1, .most = kWidest, .usual = 8, .meaning = "the width of R₁ and R₂"},
                       learning()}});
  score({.name = "mixture",
         .formula = "Σ_m α_m·score_m, α = softmax of learned numbers",
         .paper = "Tay et al. 2020",
         .least_inner = 2,
         .most_inner = kMostInner});
  score({.name = "rotary",
         .formula = "the score of q and k turned by their positions",
         .paper = "Su et al. 2021",
         .arguments = {{.key = "base",
                        .kind = Kind::kReal,
                        .least = 1,
                        .most = 1e9,
                        .usual = 10000,
                        .meaning = "pair i of the features turns by position·base^(−2i/d)"}},
         .least_inner = 1,
         .most_inner = 1,
         .inner = {"dot", "scaled_dot", "projected", "cosine"}});
  score({.name = "location_aware",
         .formula = "vᵀ tanh(Wq + Vk_j + U f_j + b), f = F ∗ the weights of the query before",
         .paper = "Chorowski et al. 2015",
         .module = "LocationAwareAttention"});
  score({.name = "coverage",
         .formula = "vᵀ tanh(Wq + Vk_j + w·c_j + b), c = Σ of the weights of all queries before",
         .paper = "See et al. 2017",
         .module = "CoverageAttention"});

  const Family scope = Family::kScope;
  other(scope, {.name = "global", .formula = "every key"});
  other(scope, {.name = "lengths", .formula = "j < the item's length, which the call gives"});
  other(scope, {.name = "causal", .formula = "j ≤ i"});
  other(scope, {.name = "window",
                .formula = "|j − i| ≤ distance",
                .arguments = {{.key = "distance",
                               .required = true,
                               .least = 0,
                               .most = kLongest,
                               .meaning = "how far a query sees to either side"}}});
  other(scope, {.name = "local_m",
                .formula = "|j − i| ≤ distance: window under its first name",
                .paper = "Luong et al. 2015",
                .arguments = {{.key = "distance",
                               .required = true,
                               .least = 0,
                               .most = kLongest,
                               .meaning = "how far a query sees to either side"}},
                .same_as = "window"});
  other(scope, {.name = "local_p",
                .formula = "|j − p_i| ≤ D, p_i = S·σ(v_pᵀ tanh(W_p q_i)); weights·exp(−(j − p_i)²/2σ²), σ = D/2",
                .paper = "Luong et al. 2015",
                .arguments = {positions("distance", "D, how far a query sees to either side of p_i")}});
  other(scope, {.name = "alibi", .formula = "−m_h·|i − j|, a slope m_h a head", .paper = "Press et al. 2022"});
  other(scope, {.name = "documents", .formula = "document of i = document of j, which the call gives"});
  other(scope, {.name = "mask", .formula = "where the mask that the call gives is true"});
  other(scope, {.name = "bias", .formula = "a tensor that the call gives, added to the scores"});

  const Family align = Family::kAlign;
  other(align, {.name = "softmax",
                .formula = "p = exp(e/T)/Σ exp(e/T)",
                .paper = "Bahdanau et al. 2015",
                .arguments = {{.key = "temperature",
                               .kind = Kind::kReal,
                               .least = kSmall,
                               .most = kLarge,
                               .usual = 1,
                               .meaning = "T; towards 0 the largest score takes all"}}});
  other(align, {.name = "uniform", .formula = "p = 1/visible keys"});
  other(align, {.name = "hard",
                .formula = "keys drawn from softmax(e)",
                .paper = "Xu et al. 2015",
                .arguments = {{.key = "samples",
                               .least = 1,
                               .most = 1024,
                               .usual = 1,
                               .meaning = "how many keys are drawn; the query reads their mean"},
                              {.key = "estimator",
                               .kind = Kind::kWord,
                               .words = {"reinforce", "gumbel"},
                               .meaning = "where the gradient comes from"},
                              {.key = "inference",
                               .kind = Kind::kWord,
                               .words = {"largest", "expected"},
                               .meaning = "outside training: the likeliest key, or softmax"}}});
  other(align, {.name = "sparsemax",
                .formula = "p = the point of the simplex nearest to e",
                .paper = "Martins and Astudillo 2016"});
  other(align, {.name = "entmax15", .formula = "p = max(e/2 − τ, 0)², Σp = 1", .paper = "Peters et al. 2019"});
  other(align, {.name = "multi_dimensional",
                .formula = "p[j, c] = softmax over j of e[j, c], a softmax a feature",
                .paper = "Shen et al. 2018",
                .module = "MultiDimensionalAttention"});

  const Family read = Family::kRead;
  other(read, {.name = "sum", .formula = "Σ_j p_j v_j"});
  other(read, {.name = "relative_sum",
               .formula = "Σ_j p_j (v_j + b_r), r = clip(j − i, ±distance); of the score relative",
               .paper = "Shaw et al. 2018"});
  other(read, {.name = "pointer", .formula = "p itself: the weights are the answer", .paper = "Vinyals et al. 2015"});
  return all;
}

}  // namespace

std::string_view name_of(Family family) {
  switch (family) {
    case Family::kScore:
      return "score";
    case Family::kScope:
      return "scope";
    case Family::kAlign:
      return "align";
    case Family::kRead:
      return "read";
  }
  return "?";
}

std::string_view meaning_of(Family family) {
  switch (family) {
    case Family::kScore:
      return "how well a query and a key fit";
    case Family::kScope:
      return "which keys a query sees, and which it likes less";
    case Family::kAlign:
      return "how the scores of the visible keys become weights";
    case Family::kRead:
      return "what is taken away with the weights";
  }
  return "?";
}

Family family_of(std::string_view name) {
  std::vector<std::string> known;
  for (const Family family : kFamilies) {
    if (name_of(family) == name) return family;
    known.emplace_back(name_of(family));
  }
  fail(ErrorKind::kInput, "unknown family '", name, '\'', did_you_mean(name, known),
       " (known: score, scope, align, read)");
}

const std::vector<Card>& cards() {
  static const std::vector<Card> all = make_cards();
  return all;
}

const Card* find_card(std::string_view name) {
  const auto found = std::find_if(cards().begin(), cards().end(), [&](const Card& each) { return each.name == name; });
  return found == cards().end() ? nullptr : &*found;
}

std::vector<std::string> card_names(std::span<const Family> families) {
  std::vector<std::string> names;
  for (const Card& each : cards()) {
    const bool asked = std::find(families.begin(), families.end(), each.family) != families.end();
    if (asked && each.module.empty()) names.emplace_back(each.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string number_text(double number) {
  std::array<char, 32> letters;
  // A whole number is written out: 1e+06 is no length that one would write.
  const bool whole = number < 1e15 && number > -1e15 && number == std::trunc(number);
  const auto end = whole ? std::to_chars(letters.data(), letters.data() + letters.size(), static_cast<long>(number))
                         : std::to_chars(letters.data(), letters.data() + letters.size(), number);
  return {letters.data(), end.ptr};
}

std::string values_of(const Argument& argument) {
  if (argument.kind == Kind::kWord) {
    std::string list;
    for (const std::string_view word : argument.words) list += (list.empty() ? "" : " or ") + std::string(word);
    return text(list, ", usually ", argument.words.front());
  }
  return text(argument.kind == Kind::kWhole ? "a whole number, " : "a number, ", number_text(argument.least), " to ",
              number_text(argument.most), argument.usual ? ", usually " + number_text(*argument.usual) : "");
}

std::string usage_of(const Card& card) {
  std::string out(card.name);
  char separator = ':';
  for (const Argument& each : card.arguments) {
    const bool word = each.kind == Kind::kWord;
    std::string value(each.key);
    if (word) {
      value = text(each.words[0], '|', each.words[1]);
    } else if (!each.required) {
      value += "=…";
    }
    out += each.required ? separator + value : text('[', separator, value, ']');
    separator = ',';
  }
  if (card.least_inner == 1) out += "(score)";
  if (card.least_inner > 1) out += "(score, score, …)";
  return out;
}

}  // namespace regard
