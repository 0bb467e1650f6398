#include "attention/random_call.h"

#include <cmath>
#include <numeric>
#include <set>

#include "base/check.h"

namespace regard::random_call {

std::string name_of(std::size_t part) {
  constexpr const char* kNames[] = {"context", "dq", "dk", "dv", "d bias"};
  return part < kLearned ? kNames[part] : text("d learned ", part - kLearned);
}

Outcome run(const Call& call, Weights asked, DType type) {
  static Tape tape;
  tape.reset();
  const auto variable = [&](const Tensor& x) {
    return x.defined() ? tape.variable(type == DType::kF32 ? x : x.to(type)) : Var();
  };
  const Var q = variable(call.q), k = variable(call.k), v = variable(call.v);
  const Var bias = variable(call.bias);
  std::vector<Var> inputs = {q, k, v, bias};
  for (const Tensor& x : call.learned) inputs.push_back(variable(x));
  AttendOptions options;
  if (call.lengths) options.lengths = *call.lengths;
  options.documents = call.documents;
  options.mask = call.mask;
  options.first_query = call.first_query;
  if (!call.learned.empty()) options.theta = inputs[kLearned - 1];
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
  result.parts.resize(1 + inputs.size());
  for (std::size_t part = 1; part < result.parts.size(); ++part) {
    const Var x = inputs[part - 1];
    if (!x.defined()) continue;
    const Tensor& gradient = tape.gradient(x);
    result.parts[part] = gradient.defined() ? gradient.clone() : Tensor::zeros(x.shape(), type);
  }
  return result;
}

bool is_known(const Stage& scope) {
  const std::set<std::string> known = {"alibi",   "causal",  "documents", "global",
                                       "lengths", "local_m", "mask",      "window"};
  return known.contains(scope.name);
}

std::vector<std::int32_t> bias_places(const Case& c) {
  if (!c.clean.bias.defined()) return {};
  const Tensor places = Tensor::empty(c.clean.bias.shape(), DType::kI32);
  std::iota(places.data<std::int32_t>(), places.data<std::int32_t>() + places.size(), 0);
  const Tensor spread = places.expand({c.batch, c.heads, c.queries, c.keys}).clone();
  return {spread.data<std::int32_t>(), spread.data<std::int32_t>() + spread.size()};
}

namespace {

Mechanism mechanism_of(const Stage& score, const std::vector<Stage>& scopes, const Stage& align) {
  const auto term = [](const Stage& stage) {
    Term made{.name = stage.name};
    for (const auto& [key, value] : stage.values) {
      if (key.empty()) made.arguments.numbers.push_back(value);
      if (!key.empty()) made.arguments.settings[key] = text(value);
    }
    return made;
  };
  std::vector<Term> terms;
  for (const Stage& scope : scopes) terms.push_back(term(scope));
  return Mechanism(term(score), terms, term(align));
}

// Of a stage that is not known here: without arguments, or with a number.
template <class Family>
Stage drawn_stage(Draw& draw, std::string name = "") {
  if (name.empty()) {
    std::vector<std::string> names;
    for (const auto& [each, entry] : Registry<Family>::all()) names.push_back(each);
    name = draw.pick(names);
  }
  if (name == "window" || name == "local_m") {
    return {name, {{"", draw.pick<double>({0, 1, 2, 5, 17, 59, 60, 100, 127, 128, 300, 1e15})}}};
  }
  if (name == "softmax" && draw.chance(0.4)) return {name, {{"temperature", draw.pick<double>({0.1, 0.5, 2, 10})}}};
  if (name == "cosine" && draw.chance(0.6)) return {name, {{"beta", draw.pick<double>({0.5, 5, 20, -1})}}};
  if (name == "scaled_dot" && draw.chance(0.4)) return {name, {{"scale", draw.pick<double>({0.125, 1, 2, -0.5})}}};
  try {
    Registry<Family>::make({.name = name}, "stage");
  } catch (const Error&) {
    return {name, {{"", 3}}};
  }
  return {name, {}};
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
    uniform.mechanism = mechanism_of(c.score, c.scopes, {"uniform", {}});
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
    for (const Stage& scope : c.scopes) {
      if (scope.name == "causal") seen &= distance <= 0;
      if (scope.name == "window" || scope.name == "local_m") {
        seen &= static_cast<double>(std::abs(distance)) <= scope.value("", 0);
      }
    }
    if (!oracle.empty()) seen &= oracle[size(at / c.keys / c.queries)].data<float>()[at % (c.queries * c.keys)] > 0;
    c.visible[size(at)] = seen;
  }
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
    const float what = draw.pick<float>({kNan, kNan, kInfinity, -kInfinity, 3e38f});
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
      c.dirty.bias.data<float>()[at] = draw.pick<float>({kNan, kInfinity, 3e38f});
      c.poisoned = true;
    }
  }
  for (std::size_t row = 0; row < c.bad_queries.size() && !few; ++row) {
    if (draw.chance(0.01)) poison(c.dirty.q, c.bad_queries, row);
    if (draw.chance(0.01)) poison(c.dirty.dy, c.bad_gradient, row);
  }
}

}  // namespace

Case drawn_case(std::uint64_t seed) {
  Case c(seed);
  Draw& draw = c.draw;
  c.score = drawn_stage<Score>(draw);
  c.align = drawn_stage<Align>(draw, draw.chance(0.3) ? "softmax" : "");
  for (std::int64_t left = 1 + draw.below(3); left > 0; --left) {
    c.scopes.push_back(drawn_stage<Scope>(draw, draw.chance(0.2) ? "causal" : ""));
  }
  draw_shape(c);
  draw_given(c);
  Call& call = c.clean;
  call.mechanism = mechanism_of(c.score, c.scopes, c.align);
  const double sharp = draw.pick<double>({1, 1, 1, 0.1, 4, 30}), zeros = draw.pick<double>({0, 0, 0, 0.5});
  call.q = drawn(draw, {c.batch, c.heads, c.queries, c.width}, sharp, zeros);
  call.k = drawn(draw, {c.batch, c.groups, c.keys, c.width}, draw.pick<double>({1, 1, 1, 8}), zeros);
  if (draw.chance(c.keys > 128 ? 0.4 : 0.1)) {  // scores that grow or fade from tile to tile
    const bool grow = draw.chance(0.5);
    const std::int64_t middle = c.keys > 128 ? 128 : c.keys / 2;
    const float strong = draw.pick<float>({1, 100}), weak = draw.pick<float>({0, 0.01f});
    for (std::int64_t i = 0; i < call.k.size(); ++i) {
      call.k.data<float>()[i] *= (i / c.width % c.keys < middle) == grow ? weak : strong;
    }
  }
  // Products of tiny numbers fade away to 0 and −0.
  call.v = drawn(draw, {c.batch, c.groups, c.keys, c.values}, draw.pick<double>({1, 1, 1, 1, 1, 100, 100, 5e-38}),
                 draw.pick<double>({0, 0, 0.5, 0.95}));
  call.dy = drawn(draw, {c.batch, c.heads, c.queries, c.values}, draw.pick<double>({1, 1, 1, 1, 1, 1, 1, 5e-38}),
                  draw.pick<double>({0, 0, 0, 0.5}));
  if (call.mechanism->stages().score->takes_theta()) {
    call.learned = {
        drawn(draw, draw.chance(0.5) ? Shape{c.width} : Shape{c.heads, c.width}, draw.pick<double>({1, 8}))};
  }
  c.temperature = c.align.value("temperature", 1);
  if (c.score.name == "scaled_dot" && c.width > 0) {
    c.scale = c.score.value("scale", 1 / std::sqrt(static_cast<double>(c.width)));
  }
  if (c.score.name == "cosine") c.scale = c.score.value("beta", 1);
  find_visible(c);
  draw_poison(c);

  c.text = c.score.written() + " | ";
  for (const Stage& scope : c.scopes) c.text += (&scope == c.scopes.data() ? "" : " & ") + scope.written();
  c.text += text(" | ", c.align.written(), ", batch ", c.batch, ", heads ", c.heads, "/", c.groups, ", queries ",
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

}  // namespace regard::random_call
