// Ten thousand random calls of attend: mechanism × shape × mask × poison. Every call is compared with formulas in f64,
// with its own weights, and bit for bit with calls that have to give the same: one query at a time, a prefix of the
// keys, one item alone, other threads, another target, more padding, documents apart, stage after stage.
//
//     test_attention --gtest_filter='Property.*' --cases=100000
//     test_attention --gtest_filter='Property.*' --seed=4711 --cases=1          // repeats what a failure names
//
// Case n has the seed --seed + n. Stages come from the registries: a new one takes part without an edit here, as long
// as it needs no arguments or those that `drawn_term` tries.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string_view>

#include "attention/mechanism.h"
#include "base/pool.h"
#include "kernels/dropout.h"
#include "kernels/target.h"
#include "support/cases.h"
#include "verify/checks.h"

namespace regard {
namespace {

std::uint64_t first_seed = 1;
int asked_cases = 0;  // 0: as many as usual

constexpr double kBound = verify::kKernelBound;
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr RandomKey kDropoutKey(11);
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::size_t size(std::int64_t x) { return static_cast<std::size_t>(x); }

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(RandomKey(seed).value()) {}
  std::uint64_t bits() { return state_ = RandomKey(state_).at(0).value(); }
  std::int64_t below(std::int64_t count) { return static_cast<std::int64_t>(bits() >> 33) % count; }
  double real() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  bool chance(double probability) { return real() < probability; }
  template <class T>
  T pick(const std::vector<T>& from) {
    return from[size(below(static_cast<std::int64_t>(from.size())))];
  }

 private:
  std::uint64_t state_;
};

// Everything that one call is given.
struct Call {
  std::optional<Mechanism> mechanism;
  Tensor q, k, v, theta, bias, dy, documents, mask;
  std::optional<std::vector<std::int32_t>> lengths;
  std::optional<std::int64_t> first_query;
  float dropout = 0;
  std::vector<std::uint64_t> ids;
  bool staged = false;

  std::int64_t place() const { return first_query.value_or(0); }
};

// Everything that comes out of it; what was not asked for is not defined.
struct Outcome {
  Tensor parts[6];
  std::vector<Tensor> weights;  // by item and head
};
enum Part { kContext, kQueries, kKeys, kValues, kTheta, kBias };
constexpr const char* kPartNames[] = {"context", "dq", "dk", "dv", "d theta", "d bias"};

enum class Weights { kNone, kPlain, kDropped };

Outcome run(const Call& call, Weights asked = Weights::kNone, DType type = DType::kF32) {
  static Tape tape;
  tape.reset();
  const auto variable = [&](const Tensor& x) {
    return x.defined() ? tape.variable(type == DType::kF32 ? x : x.to(type)) : Var();
  };
  const Var q = variable(call.q), k = variable(call.k), v = variable(call.v);
  const Var theta = variable(call.theta), bias = variable(call.bias);
  AttendOptions options;
  if (call.lengths) options.lengths = *call.lengths;
  options.documents = call.documents;
  options.mask = call.mask;
  options.first_query = call.first_query;
  options.theta = theta;
  options.bias = bias;
  options.dropout = call.dropout;
  options.key = kDropoutKey;
  options.ids = call.ids;
  options.staged = call.staged;
  const Attention made = attend(*call.mechanism, q, k, v, options);
  Outcome result;
  for (std::int64_t map = 0; map < q[0] * q[1] && asked != Weights::kNone; ++map) {
    result.weights.push_back(
        made.trace.weights({.item = map / q[1], .head = map % q[1], .dropped = asked == Weights::kDropped}));
  }
  result.parts[kContext] = made.context.value().clone();
  tape.backward(made.context, type == DType::kF32 ? call.dy : call.dy.to(type));
  int part = kQueries;
  for (const Var x : {q, k, v, theta, bias}) {
    if (x.defined()) {
      const Tensor& gradient = tape.gradient(x);
      result.parts[part] = gradient.defined() ? gradient.clone() : Tensor::zeros(x.shape(), type);
    }
    ++part;
  }
  return result;
}

// A case: the call with ordinary numbers, the same with poison in some rows, and what its parts are.
struct Case {
  Draw draw;
  std::string text;
  Term score, align;
  std::vector<Term> scopes;
  std::int64_t batch, heads, groups, queries, keys, width, values;
  Call clean, dirty;
  bool poisoned = false;
  std::vector<bool> visible;                              // [batch, heads, queries, keys]
  std::vector<bool> bad_queries, bad_keys, bad_gradient;  // rows with poison: [batch, heads or groups, rows]
  double temperature = 1, scale = 1;                      // of the alignment, and the factor of the scores

  explicit Case(std::uint64_t seed) : draw(seed) {}
  bool has(std::string_view name) const {
    return std::any_of(scopes.begin(), scopes.end(), [&](const Term& each) { return each.name == name; });
  }
  std::int64_t group(std::int64_t head) const { return head / (heads / groups); }
  bool sees(std::int64_t item, std::int64_t head, std::int64_t i, std::int64_t j) const {
    return visible[size(((item * heads + head) * queries + i) * keys + j)];
  }
};

// ---------------------------------------------------------------------------------------------------- drawing a case

template <class Family>
std::string drawn_name(Draw& draw) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : Registry<Family>::all()) names.push_back(name);
  return draw.pick(names);
}

template <class Family>
Term drawn_term(Draw& draw, const std::string& name) {
  Term term{.name = name};
  if (name == "window" || name == "local_m") {
    term.arguments.numbers = {draw.pick<double>({0, 1, 2, 5, 17, 59, 60, 100, 127, 128, 300, 1e15})};
  } else if (name == "softmax" && draw.chance(0.4)) {
    term.arguments.settings["temperature"] = draw.pick<const char*>({"0.1", "0.5", "2", "10"});
  } else if (name == "cosine" && draw.chance(0.6)) {
    term.arguments.settings["beta"] = draw.pick<const char*>({"0.5", "5", "20", "-1"});
  } else if (name == "scaled_dot" && draw.chance(0.4)) {
    term.arguments.settings["scale"] = draw.pick<const char*>({"0.125", "1", "2", "-0.5"});
  }
  // Of a stage that is not known here: without arguments, or with a number.
  for (const std::vector<double>& numbers : std::vector<std::vector<double>>{term.arguments.numbers, {3}, {3, 2}}) {
    term.arguments.numbers = numbers;
    try {
      Registry<Family>::make(term, "stage");
      break;
    } catch (const Error&) {
    }
  }
  return term;
}

std::string to_text(const Term& term) {
  std::string made = term.name;
  for (const double number : term.arguments.numbers) made += text(':', number);
  for (const auto& [key, value] : term.arguments.settings) made += text(':', key, '=', value);
  return made;
}

Tensor drawn(Draw& draw, const Shape& shape, double scale, double zeros = 0) {
  const Tensor made = Tensor::empty(shape);
  for (std::int64_t i = 0; i < made.size(); ++i) {
    const double x = 2 * draw.real() - 1;
    made.data<float>()[i] = static_cast<float>(zeros > 0 && draw.chance(zeros) ? std::copysign(0.0, x) : scale * x);
  }
  return made;
}

std::int64_t drawn_length(Draw& draw, bool keys) {
  if (draw.chance(0.02)) return draw.pick<std::int64_t>({0, 1});
  if (keys && draw.chance(0.015)) return draw.pick<std::int64_t>({1000, 1021, 1025, 1153});
  if (draw.chance(0.5)) return draw.pick<std::int64_t>({1, 2, 3, 5, 7, 11, 13, 15, 16, 17, 23, 31, 32, 33});
  if (draw.chance(0.6)) return draw.pick<std::int64_t>({47, 59, 60, 61, 64, 67});
  if (!keys || draw.chance(0.4)) return draw.pick<std::int64_t>({119, 120, 121, 127, 128, 129, 131});
  return draw.pick<std::int64_t>({180, 241, 255, 256, 257, 263, 384, 389});
}

void draw_shape(Case& c) {
  Draw& draw = c.draw;
  c.batch = draw.pick<std::int64_t>({1, 1, 2, 2, 3});
  c.groups = draw.pick<std::int64_t>({1, 1, 1, 2, 3});
  c.heads = c.groups * draw.pick<std::int64_t>({1, 1, 2, 3});
  c.queries = drawn_length(draw, false);
  c.keys = drawn_length(draw, true);
  c.width = draw.pick<std::int64_t>({1, 2, 3, 4, 7, 8, 8, 8, 13, 16, 17, 31});
  c.values = draw.pick<std::int64_t>({1, 2, 3, 4, 5, 8, 8, 8, 15, 16, 17, 33});
  if (draw.chance(0.5) || c.has("documents")) c.queries = c.keys;
  // So that ten thousand of them take half a minute: seldom large ones, and these of few heads.
  const double most = draw.chance(0.04) ? 2e6 : draw.chance(0.25) ? 3e5 : 6e4;
  const auto work = [&] {
    return static_cast<double>(c.batch * c.heads * c.queries * c.keys) *
           static_cast<double>((c.score.name == "additive" ? 8 : 1) * c.width + c.values);
  };
  if (work() > most) c.batch = std::min<std::int64_t>(c.batch, 2);
  if (work() > most) c.heads = c.groups = draw.pick<std::int64_t>({1, 1, 2});
  if (work() > most) c.batch = 1;
  while (work() > most && (c.width > 2 || c.values > 2)) {
    c.width = (c.width + 1) / 2;
    c.values = (c.values + 1) / 2;
  }
  while (work() > most && c.queries > 1 && c.queries != c.keys) c.queries = (c.queries + 1) / 2;
  while (work() > most && c.queries > 1) c.queries = c.keys = (2 * c.keys + 2) / 3;
  if (draw.chance(0.02)) {
    std::int64_t* const sizes[] = {&c.batch, &c.width, &c.values, &c.queries};
    *sizes[c.has("documents") ? draw.below(3) : draw.below(4)] = 0;
  }
  if (draw.chance(0.005)) c.heads = c.groups = 0;
}

Shape drawn_spread(Draw& draw, const Shape& all, bool short_rank) {
  const int rank = short_rank ? 1 + static_cast<int>(draw.below(4)) : 4;
  Shape made;
  for (int i = 4 - rank; i < 4; ++i) made = made.plus(draw.chance(i < 2 ? 0.5 : 0.25) ? 1 : all[i]);
  return made;
}

void draw_given(Case& c) {
  Draw& draw = c.draw;
  Call& call = c.clean;
  const Shape all = {c.batch, c.heads, c.queries, c.keys};
  if (c.has("documents") || (c.queries == c.keys && draw.chance(0.15))) {
    call.documents = Tensor::empty({c.batch, c.keys}, DType::kI32);
    for (std::int64_t item = 0; item < c.batch; ++item) {
      const std::int64_t typical = 1 + draw.below(draw.pick<std::int64_t>({5, 40, 200}));
      for (std::int64_t begin = 0, end, id = draw.below(3); begin < c.keys; begin = end, id += 1 + draw.below(2)) {
        end = std::min(c.keys, begin + 1 + draw.below(2 * typical));
        const bool none = draw.chance(0.15);
        for (std::int64_t i = begin; i < end; ++i) {
          call.documents.data<std::int32_t>()[item * c.keys + i] = none ? -1 : static_cast<std::int32_t>(id);
        }
      }
    }
  }
  if (c.has("lengths") || draw.chance(0.25)) {
    call.lengths.emplace();
    for (std::int64_t item = 0; item < c.batch; ++item) {
      const std::int64_t length = draw.chance(0.1) ? 0 : draw.chance(0.3) ? c.keys : draw.below(c.keys + 1);
      call.lengths->push_back(static_cast<std::int32_t>(length));
    }
  }
  if (!call.documents.defined() && (c.queries != c.keys || draw.chance(0.2))) {
    // Behind a cache, at the beginning, anywhere; also where there are no keys.
    call.first_query = draw.chance(0.5)   ? std::max<std::int64_t>(0, c.keys - c.queries)
                       : draw.chance(0.4) ? 0
                                          : draw.below(c.keys + 8) - 4;
  }
  if (c.has("mask") || draw.chance(0.15)) {
    call.mask = Tensor::empty(drawn_spread(draw, all, false), DType::kI8);
    const double density = draw.pick<double>({0, 0.02, 0.5, 0.9, 1});
    const std::int64_t block = draw.pick<std::int64_t>({1, 1, 60, 128});  // alike over so many places
    const std::uint64_t pattern = draw.bits();
    for (std::int64_t i = 0; i < call.mask.size(); ++i) {
      call.mask.data<std::int8_t>()[i] = Draw(pattern + static_cast<std::uint64_t>(i / block)).chance(density) ? 1 : 0;
    }
  }
  if (draw.chance(0.3)) {
    call.bias = drawn(draw, drawn_spread(draw, all, true), draw.pick<double>({0.1, 1, 5}));
    if (draw.chance(0.3)) {
      const float offset = draw.chance(0.5) ? 1e4f : -1e4f;
      for (std::int64_t i = 0; i < call.bias.size(); ++i) call.bias.data<float>()[i] += offset;
    }
  }
  if (draw.chance(0.2)) call.dropout = draw.pick<float>({0.1f, 0.25f, 0.5f, 0.9f});
  for (std::int64_t item = 0; item < c.batch; ++item) call.ids.push_back(draw.bits() >> draw.below(60));
}

bool is_known(const Term& scope) {
  const std::set<std::string> known = {"alibi",   "causal",  "documents", "global",
                                       "lengths", "local_m", "mask",      "window"};
  return known.contains(scope.name);
}

// The names that are known here are written down once more; of others only the calls themselves can say what they hide.
void find_visible(Case& c) {
  const Call& call = c.clean;
  const Shape all = {c.batch, c.heads, c.queries, c.keys};
  c.visible.assign(size(all.size()), true);
  Tensor spread;
  if (call.mask.defined()) spread = call.mask.expand(all).clone();
  std::vector<Tensor> oracle;
  if (!std::all_of(c.scopes.begin(), c.scopes.end(), is_known)) {
    Call uniform = call;
    uniform.mechanism = Mechanism(c.score, c.scopes, {.name = "uniform"});
    oracle = run(uniform, Weights::kPlain).weights;
  }
  for (std::int64_t at = 0; at < all.size(); ++at) {
    const std::int64_t j = at % c.keys, i = at / c.keys % c.queries, item = at / c.keys / c.queries / c.heads;
    const std::int64_t distance = j - i - call.place();
    bool seen = !call.lengths || j < (*call.lengths)[size(item)];
    if (call.documents.defined()) {
      const std::int32_t* documents = call.documents.data<std::int32_t>() + item * c.keys;
      seen &= documents[i] >= 0 && documents[i] == documents[j];
    }
    if (call.mask.defined()) seen &= spread.data<std::int8_t>()[at] != 0;
    for (const Term& scope : c.scopes) {
      if (scope.name == "causal") seen &= distance <= 0;
      if (scope.name == "window" || scope.name == "local_m") {
        seen &= static_cast<double>(std::abs(distance)) <= scope.arguments.numbers[0];
      }
    }
    if (!oracle.empty()) seen &= oracle[size(at / c.keys / c.queries)].data<float>()[at % (c.queries * c.keys)] > 0;
    c.visible[size(at)] = seen;
  }
}

// Which element of the bias is added to which score.
std::vector<std::int32_t> bias_places(const Case& c) {
  if (!c.clean.bias.defined()) return {};
  const Tensor places = Tensor::empty(c.clean.bias.shape(), DType::kI32);
  std::iota(places.data<std::int32_t>(), places.data<std::int32_t>() + places.size(), 0);
  const Tensor spread = places.expand({c.batch, c.heads, c.queries, c.keys}).clone();
  return {spread.data<std::int32_t>(), spread.data<std::int32_t>() + spread.size()};
}

// NaN, ∞ and huge numbers in some rows. Keys are best hidden from all or from some: of these most are chosen.
void draw_poison(Case& c) {
  Draw& draw = c.draw;
  c.dirty = c.clean;
  c.bad_queries.assign(size(c.batch * c.heads * c.queries), false);
  c.bad_gradient = c.bad_queries;
  c.bad_keys.assign(size(c.batch * c.groups * c.keys), false);
  if (!draw.chance(0.5)) return;
  const auto poison = [&](Tensor& x, std::vector<bool>& bad, std::size_t row) {
    if (x[3] == 0) return;
    float* const at = x.data<float>() + static_cast<std::int64_t>(row) * x[3];
    const float what =
        draw.pick<float>({kNan, kNan, static_cast<float>(kInfinite), -static_cast<float>(kInfinite), 3e38f});
    if (draw.chance(0.5)) {
      std::fill_n(at, x[3], what);
    } else {
      at[draw.below(x[3])] = what;
    }
    bad[row] = c.poisoned = true;
  };
  c.dirty.k = c.clean.k.clone();
  c.dirty.v = c.clean.v.clone();
  c.dirty.q = c.clean.q.clone();
  c.dirty.dy = c.clean.dy.clone();
  const bool few = draw.chance(0.5);
  for (std::size_t row = 0; row < c.bad_keys.size(); ++row) {
    const std::int64_t j = static_cast<std::int64_t>(row) % c.keys, group = static_cast<std::int64_t>(row) / c.keys;
    std::int64_t seeing = 0;
    for (std::int64_t head = 0; head < c.heads / c.groups; ++head) {
      for (std::int64_t i = 0; i < c.queries; ++i) {
        seeing += c.sees(group / c.groups, group % c.groups * (c.heads / c.groups) + head, i, j) ? 1 : 0;
      }
    }
    const bool all = seeing == c.heads / c.groups * c.queries;
    if (!draw.chance(seeing == 0 ? 0.5 : all ? 0.0005 : few ? 0.01 : 0.1)) continue;
    const std::int64_t which = draw.below(3);
    if (which != 0) poison(c.dirty.k, c.bad_keys, row);
    if (which != 1) poison(c.dirty.v, c.bad_keys, row);
  }
  if (c.clean.bias.defined()) {  // hidden from all
    std::vector<bool> unseen(size(c.clean.bias.size()), true);
    const std::vector<std::int32_t> places = bias_places(c);
    for (std::size_t at = 0; at < c.visible.size(); ++at) {
      if (c.visible[at]) unseen[size(places[at])] = false;
    }
    c.dirty.bias = c.clean.bias.clone();
    for (std::size_t at = 0; at < unseen.size(); ++at) {
      if (!unseen[at] || !draw.chance(0.3)) continue;
      c.dirty.bias.data<float>()[at] = draw.pick<float>({kNan, static_cast<float>(kInfinite), 3e38f});
      c.poisoned = true;
    }
  }
  for (std::size_t row = 0; row < c.bad_queries.size() && !few; ++row) {
    if (draw.chance(0.01)) poison(c.dirty.q, c.bad_queries, row);
    if (draw.chance(0.01)) poison(c.dirty.dy, c.bad_gradient, row);
  }
}

Case drawn_case(std::uint64_t seed) {
  Case c(seed);
  Draw& draw = c.draw;
  c.score = drawn_term<Score>(draw, drawn_name<Score>(draw));
  c.align = drawn_term<Align>(draw, draw.chance(0.3) ? "softmax" : drawn_name<Align>(draw));
  for (std::int64_t left = 1 + draw.below(3); left > 0; --left) {
    c.scopes.push_back(drawn_term<Scope>(draw, draw.chance(0.2) ? "causal" : drawn_name<Scope>(draw)));
  }
  draw_shape(c);
  draw_given(c);
  Call& call = c.clean;
  call.mechanism = Mechanism(c.score, c.scopes, c.align);
  const double sharp = draw.pick<double>({1, 1, 1, 0.1, 4, 30}), zeros = draw.pick<double>({0, 0, 0, 0.5});
  call.q = drawn(draw, {c.batch, c.heads, c.queries, c.width}, sharp, zeros);
  call.k = drawn(draw, {c.batch, c.groups, c.keys, c.width}, draw.pick<double>({1, 1, 1, 8}), zeros);
  if (draw.chance(0.2)) {  // scores that grow or fade from tile to tile
    const bool grow = draw.chance(0.5);
    for (std::int64_t i = 0; i < call.k.size(); ++i) {
      const std::int64_t j = i / c.width % c.keys;
      if ((j < c.keys / 2) == grow) call.k.data<float>()[i] *= 0.01f;
    }
  }
  // Products of tiny numbers fade away to 0 and −0.
  call.v = drawn(draw, {c.batch, c.groups, c.keys, c.values}, draw.pick<double>({1, 1, 1, 1, 1, 100, 100, 5e-38}),
                 draw.pick<double>({0, 0, 0.5, 0.95}));
  call.dy = drawn(draw, {c.batch, c.heads, c.queries, c.values}, draw.pick<double>({1, 1, 1, 1, 1, 1, 1, 5e-38}),
                  draw.pick<double>({0, 0, 0, 0.5}));
  if (call.mechanism->stages().score->takes_theta()) {
    call.theta = drawn(draw, draw.chance(0.5) ? Shape{c.width} : Shape{c.heads, c.width}, draw.pick<double>({1, 8}));
  }
  for (const auto& [key, value] : c.align.arguments.settings) {
    if (key == "temperature") c.temperature = std::stod(value);
  }
  if (c.score.name == "scaled_dot" && c.width > 0) c.scale = 1 / std::sqrt(static_cast<double>(c.width));
  for (const auto& [key, value] : c.score.arguments.settings) c.scale = std::stod(value);
  find_visible(c);
  draw_poison(c);

  c.text = to_text(c.score) + " |";
  for (const Term& scope : c.scopes) c.text += " " + to_text(scope);
  c.text += text(" | ", to_text(c.align), ", batch ", c.batch, ", heads ", c.heads, "/", c.groups, ", queries ",
                 c.queries, ", keys ", c.keys, ", width ", c.width, ", values ", c.values);
  if (call.first_query) c.text += text(", first query ", *call.first_query);
  if (call.lengths) c.text += ", lengths";
  if (call.documents.defined()) c.text += ", documents";
  if (call.mask.defined()) c.text += text(", mask ", call.mask.shape());
  if (call.bias.defined()) c.text += text(", bias ", call.bias.shape());
  if (call.dropout > 0) c.text += text(", dropout ", call.dropout);
  if (c.poisoned) c.text += ", poison";
  return c;
}

// ------------------------------------------------------------------------------------------------ the same, plainly

// p of the scores of a row, and f′ at them.
struct Aligned {
  std::vector<double> weights, slopes;
};

Aligned aligned(const Case& c, const std::vector<double>& scores) {
  const std::size_t count = scores.size();
  Aligned made{std::vector<double>(count), std::vector<double>(count)};
  if (count == 0) return made;
  std::vector<double> sorted = scores;
  std::sort(sorted.rbegin(), sorted.rend());
  const double peak = sorted[0], half = c.align.name == "entmax15" ? 0.5 : 1;
  double sum = 0, squares = 0, tau = 0, mass = 0;
  for (std::size_t n = 1; n <= count; ++n) {  // Martins and Astudillo 2016; Peters, Niculae and Martins 2019
    const double x = (sorted[n - 1] - peak) * half, number = static_cast<double>(n);
    sum += x;
    squares += x * x;
    mass += std::exp((sorted[n - 1] - peak) / c.temperature);
    const double spread = squares - sum * sum / number;
    const double root = c.align.name == "entmax15" ? sum / number - std::sqrt(std::max(0.0, (1 - spread) / number))
                                                   : (sum - 1) / number;
    if (root <= x) tau = root;
  }
  for (std::size_t j = 0; j < count; ++j) {
    const double x = (scores[j] - peak) * half, above = std::max(0.0, x - tau);
    double &p = made.weights[j], &slope = made.slopes[j];
    if (c.align.name == "softmax") {
      p = std::exp(x / c.temperature) / mass;
      slope = p / c.temperature;
    } else if (c.align.name == "uniform") {
      p = 1 / static_cast<double>(count);
    } else if (c.align.name == "sparsemax") {
      p = above;
      slope = above > 0 ? 1 : 0;
    } else {
      p = above * above;
      slope = above;
    }
  }
  return made;
}

// s = score(q, k); then with ds its gradients, added.
double plain_score(const Case& c, const double* q, const double* k, const double* theta) {
  double sum = 0, q_square = 0, k_square = 0;
  for (std::int64_t x = 0; x < c.width; ++x) {
    sum += theta != nullptr ? theta[x] * std::tanh(q[x] + k[x]) : q[x] * k[x];
    q_square += q[x] * q[x];
    k_square += k[x] * k[x];
  }
  const double lengths = std::sqrt(q_square) * std::sqrt(k_square);
  return c.score.name != "cosine" ? c.scale * sum : lengths == 0 ? 0 : c.scale * sum / lengths;
}
void plain_backward(const Case& c, const double* q, const double* k, const double* theta, double ds, double* dq,
                    double* dk, double* d_theta) {
  double q_square = 0, k_square = 0, cosine = 0;
  for (std::int64_t x = 0; x < c.width; ++x) {
    q_square += q[x] * q[x];
    k_square += k[x] * k[x];
    cosine += q[x] * k[x];
  }
  const double q_length = std::sqrt(q_square), k_length = std::sqrt(k_square);
  if (c.score.name == "cosine" && q_length * k_length == 0) return;
  cosine /= q_length * k_length;
  for (std::int64_t x = 0; x < c.width; ++x) {
    if (theta != nullptr) {
      const double t = std::tanh(q[x] + k[x]), g = ds * theta[x] * (1 - t * t);
      dq[x] += g;
      dk[x] += g;
      d_theta[x] += ds * t;
    } else if (c.score.name == "cosine") {
      const double u = q[x] / q_length, w = k[x] / k_length;
      dq[x] += ds * c.scale * (w - u * cosine) / q_length;
      dk[x] += ds * c.scale * (u - w * cosine) / k_length;
    } else {
      dq[x] += ds * c.scale * k[x];
      dk[x] += ds * c.scale * q[x];
    }
  }
}

// The whole call in f64, a formula a pair. Of names that are not known here: attend itself in f64.
Outcome plain_run(const Case& c) {
  const std::set<std::string> scores = {"additive", "cosine", "dot", "scaled_dot"};
  const std::set<std::string> aligns = {"entmax15", "softmax", "sparsemax", "uniform"};
  if (!scores.contains(c.score.name) || !aligns.contains(c.align.name) ||
      !std::all_of(c.scopes.begin(), c.scopes.end(), is_known)) {
    return run(c.clean, Weights::kPlain, DType::kF64);
  }
  const Call& call = c.clean;
  Outcome made;
  const Tensor inputs[] = {call.dy, call.q, call.k, call.v, call.theta, call.bias};
  const double* from[6] = {};
  double* to[6] = {};
  Tensor held[6];
  for (int part = 0; part < 6; ++part) {
    if (!inputs[part].defined()) continue;
    held[part] = inputs[part].to(DType::kF64);
    made.parts[part] = Tensor::zeros(inputs[part].shape(), DType::kF64);
    from[part] = held[part].data<double>();
    to[part] = made.parts[part].data<double>();
  }
  const std::vector<std::int32_t> places = bias_places(c);
  const std::int64_t alibis =
      std::count_if(c.scopes.begin(), c.scopes.end(), [](const Term& each) { return each.name == "alibi"; });
  for (std::int64_t map = 0; map < c.batch * c.heads; ++map) {
    made.weights.push_back(Tensor::zeros({c.queries, c.keys}, DType::kF64));
    const std::int64_t item = map / c.heads, head = map % c.heads;
    const std::int64_t first_key = (item * c.groups + c.group(head)) * c.keys;
    const std::int64_t theta_at = call.theta.defined() && call.theta.rank() == 2 ? head * c.width : 0;
    const double* theta = call.theta.defined() ? from[kTheta] + theta_at : nullptr;
    const double slope = std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(c.heads));
    for (std::int64_t i = 0; i < c.queries; ++i) {
      const std::int64_t row = map * c.queries + i;
      const double *q = from[kQueries] + row * c.width, *dy = from[kContext] + row * c.values;
      std::vector<std::int64_t> seen;
      std::vector<double> s;
      for (std::int64_t j = 0; j < c.keys; ++j) {
        if (!c.sees(item, head, i, j)) continue;
        seen.push_back(j);
        const double distance = static_cast<double>(std::abs(i + call.place() - j));
        s.push_back(plain_score(c, q, from[kKeys] + (first_key + j) * c.width, theta) -
                    static_cast<double>(alibis) * slope * distance);
        if (!places.empty()) s.back() += from[kBias][places[size(row * c.keys + j)]];
      }
      const Aligned p = aligned(c, s);
      std::vector<double> kept(seen.size(), 1), dp(seen.size());
      double share = 0, slopes = 0;
      const RandomKey key = kDropoutKey.at(call.ids[size(item)])
                                .at(static_cast<std::uint64_t>(head))
                                .at(static_cast<std::uint64_t>(i + call.place()));
      for (std::size_t at = 0; at < seen.size(); ++at) {
        const std::int64_t value = (first_key + seen[at]) * c.values;
        if (call.dropout > 0) {
          const bool stays = random_bits(key, static_cast<std::uint64_t>(seen[at])) >= dropout_threshold(call.dropout);
          kept[at] = stays ? 1 / (1 - static_cast<double>(call.dropout)) : 0;
        }
        made.weights.back().data<double>()[i * c.keys + seen[at]] = p.weights[at];
        for (std::int64_t x = 0; x < c.values; ++x) {
          to[kContext][row * c.values + x] += p.weights[at] * kept[at] * from[kValues][value + x];
          to[kValues][value + x] += p.weights[at] * kept[at] * dy[x];
          dp[at] += kept[at] * dy[x] * from[kValues][value + x];
        }
        share += p.slopes[at] * dp[at];
        slopes += p.slopes[at];
      }
      for (std::size_t at = 0; at < seen.size(); ++at) {
        if (p.slopes[at] == 0) continue;
        const double ds = p.slopes[at] * (dp[at] - share / slopes);
        const std::int64_t j = seen[at], of_key = (first_key + j) * c.width;
        plain_backward(c, q, from[kKeys] + of_key, theta, ds, to[kQueries] + row * c.width, to[kKeys] + of_key,
                       to[kTheta] == nullptr ? nullptr : to[kTheta] + theta_at);
        if (!places.empty()) to[kBias][places[size(row * c.keys + j)]] += ds;
      }
    }
  }
  return made;
}

// ------------------------------------------------------------------------------------------ what a call may differ by

// The sums of magnitudes that the results of f32 are measured by; ∞ where they are not compared.
struct Terms {
  std::vector<double> parts[6], weights;
  std::int64_t rows = 0, kinks = 0;
};

double largest(const float* x, std::int64_t count) {
  double most = 0;
  for (std::int64_t i = 0; i < count; ++i) most = std::max(most, std::abs(static_cast<double>(x[i])));
  return most;
}
double length(const float* x, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::sqrt(sum);
}

// A score that is off by δ moves a weight by slope·2δ and the slope by bend·2δ. With D = Σ|dy·v| and Δ its mean over
// the slopes, the gradient of a score is made of (slope + bend·2λ)·(D + Δ) and of what the mean is off by, λ being the
// size of what the scores of the row are added up from.
Terms find_terms(const Case& c, const Outcome& exact, const Outcome& got) {
  const Call& call = c.clean;
  const bool product = c.score.name == "dot" || c.score.name == "scaled_dot", cosine = c.score.name == "cosine";
  const bool additive = call.theta.defined();
  const double scale = std::abs(c.scale);
  const double keep = 1 / (1 - static_cast<double>(call.dropout)), sharp = 1 / c.temperature;
  const std::int64_t alibis = std::count_if(c.scopes.begin(), c.scopes.end(), [](const Term& each) {
    return each.name != "causal" && each.name != "window" && each.name != "local_m";
  });
  Terms terms;
  for (int part = 0; part < 6; ++part) {
    if (exact.parts[part].defined()) terms.parts[part].assign(size(exact.parts[part].size()), 0.0);
  }
  terms.weights.assign(c.visible.size(), 0.0);
  const std::vector<std::int32_t> places = bias_places(c);
  const double most_theta = additive ? largest(call.theta.data<float>(), call.theta.size()) : 0;
  const double most_bias = call.bias.defined() ? largest(call.bias.data<float>(), call.bias.size()) : 0;
  std::vector<double> slope(size(c.keys)), bend(size(c.keys)), reach(size(c.keys));
  for (std::int64_t row = 0; row < c.batch * c.heads * c.queries; ++row) {
    const std::int64_t map = row / c.queries, i = row % c.queries, item = map / c.heads, head = map % c.heads;
    const std::int64_t first_key = (item * c.groups + c.group(head)) * c.keys;
    const double* p = exact.weights[size(map)].data<double>() + i * c.keys;
    const float* p32 = got.weights[size(map)].data<float>() + i * c.keys;
    const float* q = call.q.data<float>() + row * c.width;
    const float* dy = call.dy.data<float>() + row * c.values;
    const double q_length = length(q, c.width), q_largest = largest(q, c.width);
    bool any = false, kink = false;
    double lambda = 0;
    for (std::int64_t j = 0; j < c.keys; ++j) {
      if (!c.sees(item, head, i, j)) continue;
      any = true;
      kink |= c.align.name != "softmax" && (p[j] == 0) != (p32[j] == 0);
      const float* k = call.k.data<float>() + (first_key + j) * c.width;
      double of_score = 0;
      for (std::int64_t x = 0; x < c.width && !cosine && !additive; ++x) {
        of_score += scale * std::abs(static_cast<double>(q[x]) * static_cast<double>(k[x]));
      }
      if (cosine) of_score = scale;
      if (additive) of_score = most_theta * static_cast<double>(c.width);
      if (!product && !cosine && !additive) of_score += q_length + length(k, c.width);
      of_score += static_cast<double>(alibis) * static_cast<double>(std::abs(i + call.place() - j));
      lambda = std::max(lambda, of_score + most_bias);
    }
    terms.rows += any ? 1 : 0;
    terms.kinks += kink ? 1 : 0;

    double mean = 0, slopes = 0, doubt = 0;
    for (std::int64_t j = 0; j < c.keys; ++j) {
      const bool some = p[j] != 0 || p32[j] != 0;
      const std::size_t at = size(j);
      slope[at] = c.align.name == "softmax"    ? p[j] * sharp
                  : c.align.name == "uniform"  ? 0
                  : c.align.name == "entmax15" ? std::sqrt(p[j])
                                               : (some ? 1 : 0);
      bend[at] = c.align.name == "softmax"                                  ? p[j] * sharp * sharp
                 : c.align.name == "uniform" || c.align.name == "sparsemax" ? 0
                                                                            : (some ? 1 : 0);
      terms.weights[size(row * c.keys + j)] = p[j] + 2 * lambda * slope[at];
      reach[at] = 0;
      const float* v = call.v.data<float>() + (first_key + j) * c.values;
      for (std::int64_t x = 0; x < c.values && some; ++x) {
        reach[at] += keep * std::abs(static_cast<double>(dy[x]) * static_cast<double>(v[x]));
      }
      mean += slope[at] * reach[at];
      slopes += slope[at];
    }
    mean = slopes > 0 ? mean / slopes : 0;
    for (std::size_t at = 0; at < size(c.keys); ++at) doubt += 2 * lambda * bend[at] * (reach[at] + mean);
    doubt = slopes > 0 ? doubt / slopes : 0;
    const double q_slope = cosine ? 2 * scale / std::max(q_length, 1e-30) : 0;
    for (std::int64_t j = 0; j < c.keys; ++j) {
      const std::size_t at = size(j);
      if (p[j] == 0 && p32[j] == 0) continue;
      const float* k = call.k.data<float>() + (first_key + j) * c.width;
      const float* v = call.v.data<float>() + (first_key + j) * c.values;
      const double weight = keep * (p[j] + 2 * lambda * slope[at] + (kink ? 2 * lambda : 0));
      for (std::int64_t x = 0; x < c.values; ++x) {
        terms.parts[kContext][size(row * c.values + x)] += weight * std::abs(static_cast<double>(v[x]));
        terms.parts[kValues][size((first_key + j) * c.values + x)] += weight * std::abs(static_cast<double>(dy[x]));
      }
      const double ds = kink ? kInfinite : (slope[at] + 2 * lambda * bend[at]) * (reach[at] + mean) + slope[at] * doubt;
      if (ds == 0) continue;
      const double k_length = length(k, c.width);
      double to_q = q_slope, to_k = cosine ? 2 * scale / std::max(k_length, 1e-30) : 0;
      if (!cosine && !additive) {
        to_q += scale * largest(k, c.width);
        to_k += scale * q_largest;
      }
      if (additive || !product) {
        to_q += most_theta * (1 + q_largest + largest(k, c.width));
        to_k += most_theta * (1 + q_largest + largest(k, c.width));
      }
      for (std::int64_t x = 0; x < c.width; ++x) {
        terms.parts[kQueries][size(row * c.width + x)] += ds * std::max(to_q, 1e-300);
        terms.parts[kKeys][size((first_key + j) * c.width + x)] += ds * std::max(to_k, 1e-300);
        if (additive) {
          terms.parts[kTheta][size((call.theta.rank() == 2 ? head * c.width : 0) + x)] +=
              ds * (1 + q_largest + largest(k, c.width));
        }
      }
      if (!places.empty()) terms.parts[kBias][size(places[size(row * c.keys + j)])] += ds;
    }
  }
  return terms;
}

template <class T>
double number(const Tensor& x, std::int64_t at) {
  return static_cast<double>(x.data<T>()[at]);
}

// "": within the bounds.
std::string compare(const Case& c, const Outcome& got, const Outcome& exact, const Terms& terms) {
  for (int part = 0; part < 6; ++part) {
    if (!exact.parts[part].defined()) continue;
    for (std::int64_t at = 0; at < exact.parts[part].size(); ++at) {
      const double x = number<float>(got.parts[part], at), y = number<double>(exact.parts[part], at);
      const double bound = kBound * (1 + terms.parts[part][size(at)]);
      if (std::abs(x - y) <= bound) continue;
      return text(kPartNames[part], '[', at, "] is ", x, ", in f64 ", y, ", bound ", bound);
    }
  }
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(terms.weights.size()); ++at) {
    const std::int64_t map = at / (c.queries * c.keys), inner = at % (c.queries * c.keys);
    const double x = number<float>(got.weights[size(map)], inner), y = number<double>(exact.weights[size(map)], inner);
    const double bound = kBound * (1 + terms.weights[size(at)]);
    if (std::abs(x - y) <= bound) continue;
    return text("weight[", at, "] is ", x, ", in f64 ", y, ", bound ", bound);
  }
  return "";
}

// ------------------------------------------------------------------------------------------------------- same bits

// The same bits; what is not a number has no bits to keep. `which` (of rows, if given) is compared, the rest is not.
std::string differ(const std::string& what, const Tensor& a, const Tensor& b,
                   const std::function<bool(std::int64_t)>& which = {}) {
  if (a.defined() != b.defined()) return what + ": only one of them exists";
  if (!a.defined()) return "";
  if (a.shape() != b.shape()) return text(what, ": ", a.shape(), " and ", b.shape());
  if (!which && verify::same_bits(a, b)) return "";
  const std::int64_t wide = a.shape().row_width();
  for (std::int64_t at = 0; at < a.size(); ++at) {
    const float x = a.data<float>()[at], y = b.data<float>()[at];
    if (std::memcmp(&x, &y, sizeof(x)) == 0 || (std::isnan(x) && std::isnan(y))) continue;
    if (which && !which(at / wide)) continue;
    return text(what, '[', at, "]: ", x, " and ", y);
  }
  return "";
}

std::string differ(const Outcome& a, const Outcome& b) {
  for (int part = 0; part < 6; ++part) {
    const std::string trouble = differ(kPartNames[part], a.parts[part], b.parts[part]);
    if (!trouble.empty()) return trouble;
  }
  for (std::size_t map = 0; map < std::min(a.weights.size(), b.weights.size()); ++map) {
    const std::string trouble = differ(text("weights ", map), a.weights[map], b.weights[map]);
    if (!trouble.empty()) return trouble;
  }
  return "";
}

// Of something that is spread to [batch, heads, queries, keys].
Tensor cut_spread(const Tensor& x, int dimension, std::int64_t begin, std::int64_t end) {
  const int own = x.defined() ? x.rank() - 4 + dimension : -1;
  if (own < 0 || x[own] == 1) return x;
  return x.slice(own, begin, end).clone();
}
Tensor cut(const Tensor& x, int dimension, std::int64_t begin, std::int64_t end) {
  return x.slice(dimension, begin, end).clone();
}

void cut_queries(Call& call, std::int64_t begin, std::int64_t end) {
  call.q = cut(call.q, 2, begin, end);
  call.dy = cut(call.dy, 2, begin, end);
  call.mask = cut_spread(call.mask, 2, begin, end);
  call.bias = cut_spread(call.bias, 2, begin, end);
  call.first_query = call.place() + begin;
}
void cut_keys(Call& call, std::int64_t begin, std::int64_t end) {
  const std::int32_t full = static_cast<std::int32_t>(call.k[2]);
  if (!call.lengths) call.lengths.emplace(size(call.k[0]), full);
  for (std::int32_t& each : *call.lengths) {
    each = static_cast<std::int32_t>(std::clamp<std::int64_t>(each, begin, end) - begin);
  }
  call.k = cut(call.k, 2, begin, end);
  call.v = cut(call.v, 2, begin, end);
  call.mask = cut_spread(call.mask, 3, begin, end);
  call.bias = cut_spread(call.bias, 3, begin, end);
  call.first_query = call.place() - begin;
}

bool needs_documents(const Case& c) { return c.has("documents"); }

// Every check says what is wrong, "" if nothing is.

std::string check_one_query(Case& c, const Outcome& whole) {
  if (c.queries == 0) return "";
  const std::int64_t last = c.queries - 1;
  for (const std::int64_t i : {c.draw.below(c.queries), c.draw.chance(0.5) ? last : std::min<std::int64_t>(60, last)}) {
    Call one = c.dirty;
    if (one.documents.defined()) return "";  // check_documents
    cut_queries(one, i, i + 1);
    const std::int64_t place = one.place();
    std::int64_t keys = c.keys;
    if (c.has("causal") && c.draw.chance(0.5)) {  // as from a cache that holds nothing else yet
      keys = std::clamp<std::int64_t>(place + 1, 0, c.keys);
      cut_keys(one, 0, keys);
    }
    const Outcome alone = run(one, Weights::kPlain);
    std::string trouble;
    for (const Part part : {kContext, kQueries}) {
      if (trouble.empty()) trouble = differ(kPartNames[part], alone.parts[part], cut(whole.parts[part], 2, i, i + 1));
    }
    for (std::size_t map = 0; map < alone.weights.size() && trouble.empty(); ++map) {
      trouble = differ("weights", alone.weights[map], cut(cut(whole.weights[map], 0, i, i + 1), 1, 0, keys));
    }
    if (!trouble.empty()) return text("query ", i, " alone, ", keys, " keys: ", trouble);
  }
  return "";
}

std::string check_prefix(Case& c, const Outcome& whole) {
  if (!c.has("causal") || c.dirty.documents.defined()) return "";
  const std::int64_t seen = std::clamp<std::int64_t>(c.dirty.place() + c.queries, 0, c.keys);
  if (seen == c.keys) return "";
  Call call = c.dirty;
  cut_keys(call, 0, seen);
  const Outcome got = run(call);
  const std::string of_bias = differ("d bias", got.parts[kBias], cut_spread(whole.parts[kBias], 3, 0, seen));
  if (!of_bias.empty()) return text("the first ", seen, " keys only: ", of_bias);
  for (const Part part : {kContext, kQueries, kKeys, kValues, kTheta}) {
    const bool keys = part == kKeys || part == kValues;
    const std::string trouble =
        differ(kPartNames[part], got.parts[part], keys ? cut(whole.parts[part], 2, 0, seen) : whole.parts[part]);
    if (!trouble.empty()) return text("the first ", seen, " keys only: ", trouble);
  }
  return "";
}

std::string check_alone(Case& c, const Outcome& whole) {
  if (c.batch < 2) return "";
  const std::int64_t item = c.draw.below(c.batch);
  Call call = c.dirty;
  for (Tensor* x : {&call.q, &call.k, &call.v, &call.dy}) *x = cut(*x, 0, item, item + 1);
  if (call.documents.defined()) call.documents = cut(call.documents, 0, item, item + 1);
  call.mask = cut_spread(call.mask, 0, item, item + 1);
  call.bias = cut_spread(call.bias, 0, item, item + 1);
  if (call.lengths) call.lengths = std::vector<std::int32_t>{(*call.lengths)[size(item)]};
  call.ids = {call.ids[size(item)]};
  const Outcome got = run(call);
  for (const Part part : {kContext, kQueries, kKeys, kValues}) {
    const std::string trouble = differ(kPartNames[part], got.parts[part], cut(whole.parts[part], 0, item, item + 1));
    if (!trouble.empty()) return text("item ", item, " alone: ", trouble);
  }
  if (call.bias.defined() && call.bias.rank() == 4 && c.dirty.bias[0] == c.batch) {
    const std::string trouble = differ("d bias", got.parts[kBias], cut(whole.parts[kBias], 0, item, item + 1));
    if (!trouble.empty()) return text("item ", item, " alone: ", trouble);
  }
  return "";
}

std::string check_threads(Case& c, const Outcome& whole) {
  const int count = c.draw.chance(0.5) ? 2 : 3;
  const ThreadLimit limit(count);
  const std::string trouble = differ(run(c.dirty, Weights::kPlain), whole);
  return trouble.empty() ? "" : text(count, " threads: ", trouble);
}

// `more` rows of anything behind a dimension.
Tensor longer(const Tensor& x, int dimension, std::int64_t more, float with) {
  const Tensor made = Tensor::empty(x.shape().with(dimension, x[dimension] + more), x.dtype());
  for (std::int64_t i = 0; i < made.size(); ++i) {
    if (x.dtype() == DType::kF32) made.data<float>()[i] = with;
    if (x.dtype() == DType::kI8) made.data<std::int8_t>()[i] = 1;
    if (x.dtype() == DType::kI32) made.data<std::int32_t>()[i] = -1;
  }
  made.slice(dimension, 0, x[dimension]).copy_from(x);
  return made;
}

std::string check_padding(Case& c, const Outcome& whole) {
  Call call = c.dirty;
  const std::int64_t more = c.draw.pick<std::int64_t>({2, 3, 16, 70, 130});  // 0 + 1 would be spread
  const float garbage = c.draw.pick<float>({kNan, 1e30f, -static_cast<float>(kInfinite)});
  const auto stretch = [&](Tensor& x, int dimension) {
    const int own = x.defined() ? x.rank() - 4 + dimension : -1;
    if (own >= 0 && x[own] != 1) x = longer(x, own, more, garbage);
  };
  if (!call.lengths) call.lengths.emplace(size(c.batch), static_cast<std::int32_t>(c.keys));
  for (Tensor* x : {&call.k, &call.v}) *x = longer(*x, 2, more, garbage);
  stretch(call.mask, 3);
  stretch(call.bias, 3);
  if (call.documents.defined()) {  // of which there are as many queries
    call.documents = longer(call.documents, 1, more, 0);
    for (Tensor* x : {&call.q, &call.dy}) *x = longer(*x, 2, more, garbage);
    stretch(call.mask, 2);
    stretch(call.bias, 2);
  }
  call.first_query = call.place();
  const Outcome got = run(call);
  for (const Part part : {kContext, kQueries, kKeys, kValues}) {
    const std::int64_t own = whole.parts[part][2], all = got.parts[part][2];
    std::string trouble = differ(kPartNames[part], cut(got.parts[part], 2, 0, own), whole.parts[part]);
    const Tensor rest = cut(got.parts[part], 2, own, all);
    if (trouble.empty()) trouble = differ(text(kPartNames[part], " of padding"), rest, Tensor::zeros(rest.shape()));
    if (!trouble.empty()) return text(more, " more of ", garbage, ": ", trouble);
  }
  std::string trouble = differ("d theta", got.parts[kTheta], whole.parts[kTheta]);
  if (trouble.empty()) {
    Tensor bias = cut_spread(got.parts[kBias], 3, 0, c.keys);
    if (call.documents.defined()) bias = cut_spread(bias, 2, 0, c.queries);
    trouble = differ("d bias", bias, whole.parts[kBias]);
  }
  return trouble.empty() ? "" : text(more, " more: ", trouble);
}

std::string check_documents(Case& c, const Outcome& whole) {
  if (!c.dirty.documents.defined() || c.batch == 0 || c.keys == 0 || c.dirty.dropout > 0) return "";
  const std::int64_t item = c.draw.below(c.batch), somewhere = c.draw.below(c.keys);
  const std::int32_t* ids = c.dirty.documents.data<std::int32_t>() + item * c.keys;
  if (ids[somewhere] < 0) return "";
  std::int64_t begin = somewhere, end = somewhere + 1;
  while (begin > 0 && ids[begin - 1] == ids[somewhere]) --begin;
  while (end < c.keys && ids[end] == ids[somewhere]) ++end;
  Call call = c.dirty;
  call.documents = Tensor();
  for (Tensor* x : {&call.q, &call.k, &call.v, &call.dy}) *x = cut(*x, 0, item, item + 1);
  call.mask = cut_spread(call.mask, 0, item, item + 1);
  call.bias = cut_spread(call.bias, 0, item, item + 1);
  if (call.lengths) call.lengths = std::vector<std::int32_t>{(*call.lengths)[size(item)]};
  call.ids = {call.ids[size(item)]};
  cut_queries(call, begin, end);
  cut_keys(call, begin, end);
  if (needs_documents(c)) call.documents = Tensor::zeros({1, end - begin}, DType::kI32);
  const Outcome got = run(call);
  for (const Part part : {kContext, kQueries, kKeys, kValues}) {
    const std::string trouble =
        differ(kPartNames[part], got.parts[part], cut(cut(whole.parts[part], 0, item, item + 1), 2, begin, end));
    if (!trouble.empty()) return text("item ", item, ", document at ", begin, " to ", end, " apart: ", trouble);
  }
  if (needs_documents(c)) return "";
  const std::int64_t i = c.draw.below(end - begin);  // one query against its document
  Call one = call;
  cut_queries(one, i, i + 1);
  const Outcome alone = run(one);
  for (const Part part : {kContext, kQueries}) {
    const std::string trouble = differ(kPartNames[part], alone.parts[part], cut(got.parts[part], 2, i, i + 1));
    if (!trouble.empty()) return text("query ", i, " of the document at ", begin, " alone: ", trouble);
  }
  return "";
}

std::string check_staged(Case& c, const Outcome& whole) {
  Call call = c.dirty;
  call.staged = true;
  const std::string trouble = differ(run(call, Weights::kPlain), whole);
  return trouble.empty() ? "" : "staged: " + trouble;
}

std::string check_unasked(Case& c, const Outcome& whole) {
  const std::string trouble = differ(run(c.dirty), whole);
  return trouble.empty() ? "" : "without asking for weights: " + trouble;
}

std::string check_target(Case& c, const Outcome& whole, const std::function<std::string(const Outcome&)>& near) {
  const std::vector<std::string> all = targets();
  if (all.size() < 2) return "";
  const std::string name = all[size(1 + c.draw.below(static_cast<std::int64_t>(all.size()) - 1))];
  const bool same = name.starts_with("avx");
  const TargetScope scope(name);
  const std::string trouble = same ? differ(run(c.dirty, Weights::kPlain), whole) : near(run(c.clean, Weights::kPlain));
  return trouble.empty() ? "" : text(name, ": ", trouble);
}

// ------------------------------------------------------------------------------------------------ weights and poison

std::string check_weights(const Case& c, const Outcome& got) {
  const Outcome dropped = run(c.clean, Weights::kDropped);
  std::string trouble;
  for (int part = 0; part < 6 && trouble.empty(); ++part) {
    trouble =
        differ(text("after asking for dropped weights: ", kPartNames[part]), dropped.parts[part], got.parts[part]);
  }
  if (!trouble.empty()) return trouble;
  for (std::int64_t row = 0; row < c.batch * c.heads * c.queries; ++row) {
    const std::int64_t map = row / c.queries, i = row % c.queries, item = map / c.heads, head = map % c.heads;
    const float* p = got.weights[size(map)].data<float>() + i * c.keys;
    const float* applied = dropped.weights[size(map)].data<float>() + i * c.keys;
    const auto where = [&] { return text("item ", item, ", head ", head, ", query ", i, ": "); };
    bool any = false;
    double sum = 0;
    for (std::int64_t j = 0; j < c.keys; ++j) {
      const bool seen = c.sees(item, head, i, j);
      any |= seen;
      sum += static_cast<double>(p[j]);
      if (!(p[j] >= 0 && p[j] <= 1 + kBound)) return text(where(), "weight ", p[j], " of key ", j);
      if (!seen && p[j] != 0) return text(where(), "weight ", p[j], " of key ", j, ", which is hidden");
      const float kept = static_cast<float>(static_cast<double>(p[j]) / (1 - static_cast<double>(c.clean.dropout)));
      if (applied[j] != 0 && !(std::abs(applied[j] - kept) <= 1e-6f * kept)) {
        return text(where(), "weight ", p[j], " of key ", j, " is applied as ", applied[j]);
      }
      if (applied[j] == 0 && p[j] != 0 && c.clean.dropout == 0) return text(where(), "key ", j, " is dropped");
    }
    if (!(std::abs(sum - (any ? 1 : 0)) <= (any ? kBound : 0))) return text(where(), "weights sum to ", sum);
    for (std::int64_t x = 0; x < c.values; ++x) {
      double read = 0, read_terms = 0;
      for (std::int64_t j = 0; j < c.keys; ++j) {
        const std::int64_t key = (item * c.groups + c.group(head)) * c.keys + j;
        const double term = static_cast<double>(applied[j]) * number<float>(c.clean.v, key * c.values + x);
        read += term;
        read_terms += std::abs(term);
      }
      const double context = number<float>(got.parts[kContext], row * c.values + x);
      if (std::abs(read - context) <= kBound * (1 + read_terms)) continue;
      return text(where(), "context[", x, "] is ", context, ", its weights read ", read);
    }
  }
  return "";
}

// What may not see the poison has the bits that it has without; what sees nothing is zero.
std::string check_poison(const Case& c, const Outcome& dirty, const Outcome& clean) {
  const std::int64_t rows = c.batch * c.heads * c.queries;
  std::vector<bool> forward(size(rows)), backward(size(rows)), nothing(size(rows), true);
  std::vector<bool> keys(c.bad_keys.size()), unseen(c.bad_keys.size(), true);
  std::vector<bool> bias(size(c.clean.bias.size()));
  const std::vector<std::int32_t> places = bias_places(c);
  bool any = false;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t map = row / c.queries, i = row % c.queries, item = map / c.heads, head = map % c.heads;
    const std::size_t first = size((item * c.groups + c.group(head)) * c.keys), at = size(row);
    forward[at] = c.bad_queries[at];
    for (std::int64_t j = 0; j < c.keys; ++j) {
      if (!c.sees(item, head, i, j)) continue;
      nothing[at] = false;
      if (c.bad_keys[first + size(j)]) forward[at] = true;
    }
    backward[at] = forward[at] || c.bad_gradient[at];
    for (std::int64_t j = 0; j < c.keys; ++j) {
      if (!c.sees(item, head, i, j)) continue;
      unseen[first + size(j)] = false;
      if (!backward[at]) continue;
      any = keys[first + size(j)] = true;
      if (!places.empty()) bias[size(places[size(row * c.keys + j)])] = true;
    }
  }
  const auto outside = [](const std::vector<bool>& rows_of) {
    return [&rows_of](std::int64_t row) { return !rows_of[size(row)]; };
  };
  const auto inside = [](const std::vector<bool>& rows_of) {
    return [&rows_of](std::int64_t row) { return static_cast<bool>(rows_of[size(row)]); };
  };
  std::string trouble;
  const auto compare_rows = [&](Part part, const Tensor& expected, const std::function<bool(std::int64_t)>& which) {
    const Tensor& got = dirty.parts[part];
    if (!trouble.empty() || !got.defined()) return;
    trouble = differ(text(kPartNames[part], expected.defined() ? "" : " of what sees nothing"), got,
                     expected.defined() ? expected : Tensor::zeros(got.shape()), which);
    for (std::int64_t i = 0; i < got.size() && trouble.empty(); ++i) {
      if (!which(i / got.shape().row_width()) || std::isfinite(got.data<float>()[i])) continue;
      trouble = text(kPartNames[part], '[', i, "] is ", got.data<float>()[i]);
    }
  };
  compare_rows(kContext, clean.parts[kContext], outside(forward));
  compare_rows(kQueries, clean.parts[kQueries], outside(backward));
  for (const Part part : {kKeys, kValues}) compare_rows(part, clean.parts[part], outside(keys));
  for (const Part part : {kContext, kQueries}) compare_rows(part, Tensor(), inside(nothing));
  for (const Part part : {kKeys, kValues}) compare_rows(part, Tensor(), inside(unseen));
  if (!any) compare_rows(kTheta, clean.parts[kTheta], [](std::int64_t) { return true; });
  if (trouble.empty() && !bias.empty()) {
    const Tensor got = dirty.parts[kBias].reshape({c.clean.bias.size(), 1});
    trouble = differ("d bias", got, clean.parts[kBias].reshape(got.shape()), outside(bias));
  }
  return trouble.empty() ? "" : "poison: " + trouble;
}

// ------------------------------------------------------------------------------------------------------- the property

struct Tally {
  std::map<std::string, int> stages;
  std::int64_t rows = 0, kinks = 0;
};

std::string trouble_of(Case& c, Tally& tally) {
  const ThreadLimit limit(1);
  const Outcome clean = run(c.clean, Weights::kPlain);
  const Outcome exact = plain_run(c);
  const auto near = [&](const Outcome& got) {
    const Terms terms = find_terms(c, exact, got);
    if (c.align.name != "softmax") {
      tally.rows += terms.rows;
      tally.kinks += terms.kinks;
    }
    return compare(c, got, exact, terms);
  };
  std::string trouble = near(clean);
  if (!trouble.empty()) return trouble;
  if (trouble = check_weights(c, clean); !trouble.empty()) return trouble;
  const Outcome dirty = c.poisoned ? run(c.dirty, Weights::kPlain) : clean;
  if (trouble = check_poison(c, dirty, clean); !trouble.empty()) return trouble;
  for (const auto check : {check_one_query, check_prefix, check_alone, check_threads, check_padding, check_documents,
                           check_staged, check_unasked}) {
    if (trouble = check(c, dirty); !trouble.empty()) return trouble;
  }
  return check_target(c, dirty, near);
}

TEST(Property, RandomCallsAreRightAndHaveTheSameBitsHoweverTheyAreMade) {
  const int count = asked_cases > 0 ? asked_cases : cases(10000);
  Tally tally;
  int failures = 0;
  for (int i = 0; i < count && failures < 5; ++i) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(i);
    std::string trouble;
    Case c = drawn_case(seed);
    try {
      trouble = trouble_of(c, tally);
    } catch (const Error& error) {
      trouble = text("refused: ", error.what());
    }
    if (trouble.empty()) {
      ++tally.stages[c.score.name];
      ++tally.stages[c.align.name];
      for (const Term& scope : c.scopes) ++tally.stages[scope.name];
      continue;
    }
    ADD_FAILURE() << "--seed=" << seed << " --cases=1: " << c.text << "\n  " << trouble;
    ++failures;
  }
  if (count < 1000 || failures > 0) return;
  EXPECT_LE(tally.kinks, tally.rows / 20) << "rows at a kink, of " << tally.rows;
  const auto expect_all = [&](const auto& registry) {
    for (const auto& [name, entry] : registry) EXPECT_GE(tally.stages[name], count / 100) << name;
  };
  expect_all(Registry<Score>::all());
  expect_all(Registry<Scope>::all());
  expect_all(Registry<Align>::all());
}

}  // namespace
}  // namespace regard

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    const auto number_behind = [&](std::string_view name) {
      return argument.starts_with(name) ? std::strtoull(arguments[i] + name.size(), nullptr, 10) : 0;
    };
    if (argument.starts_with("--seed=")) regard::first_seed = number_behind("--seed=");
    if (argument.starts_with("--cases=")) regard::asked_cases = static_cast<int>(number_behind("--cases="));
  }
  return RUN_ALL_TESTS();
}
