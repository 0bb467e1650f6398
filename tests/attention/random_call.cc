#include "attention/random_call.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <set>
#include <span>

#include "base/check.h"

namespace regard::random_call {

std::string name_of(std::size_t part) {
  constexpr const char* kNames[] = {"context", "dq", "dk", "d query tokens", "d key tokens", "dv", "d bias"};
  return part < kLearned ? kNames[part] : text("d learned ", part - kLearned);
}

namespace {

// b has the bits of a from `first` on; of what is not a number only that it is none.
void check_same(const Tensor& a, const Tensor& b, std::int64_t first, const std::string& what) {
  const auto compare = [&]<class T>(T) {
    for (std::int64_t i = 0; i < a.size(); ++i) {
      const T x = a.data<T>()[i], y = b.data<T>()[first + i];
      check((std::isnan(x) && std::isnan(y)) || std::memcmp(&x, &y, sizeof x) == 0, what, ": number ", i, " is ", y,
            ", by itself ", x);
    }
  };
  if (a.dtype() == DType::kF64) {
    compare(double{});
  } else {
    compare(float{});
  }
}

}  // namespace

Outcome run(const Call& call, Weights asked, DType type) {
  static Tape tape;
  tape.reset();
  const auto variable = [&](const Tensor& x) {
    return x.defined() ? tape.variable(type == DType::kF32 ? x : x.to(type)) : Var();
  };
  const Var q = variable(call.q), k = variable(call.k), v = variable(call.v);
  const Var query_tokens = variable(call.query_tokens), key_tokens = variable(call.key_tokens);
  const Var bias = variable(call.bias);
  std::vector<Var> inputs = {q, k, query_tokens, key_tokens, v, bias};
  for (const Tensor& x : call.learned) inputs.push_back(variable(x));
  AttendOptions options;
  if (call.lengths) options.lengths = *call.lengths;
  options.documents = call.documents;
  options.mask = call.mask;
  options.first_query = call.first_query;
  options.learned = std::span<const Var>(inputs).subspan(kLearned - 1);
  options.query_tokens = query_tokens;
  options.key_tokens = key_tokens;
  options.heads = call.heads;
  options.hidden = call.hidden;
  options.bias = bias;
  options.dropout = call.dropout;
  options.key = kDropoutKey;
  options.ids = call.ids;
  options.staged = call.staged;
  const Attention made = attend(*call.mechanism, q, k, v, options);
  Outcome result;
  const std::int64_t heads = made.context[1];
  for (std::int64_t map = 0; map < made.context[0] * heads && asked != Weights::kNone; ++map) {
    result.weights.push_back(
        made.trace.weights({.item = map / heads, .head = map % heads, .dropped = asked == Weights::kDropped}));
  }
  if (asked == Weights::kPlain) {  // made on the way or again, of one head or of all: the same bits
    options.weights = true;
    const Attention kept = attend(*call.mechanism, q, k, v, options);
    const Tensor again = made.trace.all_weights(), on_the_way = kept.trace.all_weights();
    for (std::size_t map = 0; map < result.weights.size(); ++map) {
      const Tensor& alone = result.weights[map];
      const std::int64_t first = static_cast<std::int64_t>(map) * alone.size();
      check_same(alone, again, first, text("all weights: map ", map));
      check_same(alone, on_the_way, first, text("weights made on the way: map ", map));
    }
    check_same(made.context.value(), kept.context.value(), 0, "the context of weights made on the way");
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

bool is_known(const Term& scope) {
  const std::set<std::string> known = {"alibi", "bias", "causal", "documents", "global", "lengths", "mask", "window"};
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

// A term of the line. Values of those that are known here; of others, what their card gives as an example.
std::string drawn_term(Draw& draw, const std::string& name, std::int64_t longest) {
  const auto valued = [&](const char* key, const std::vector<double>& values) {
    return text(name, ':', key, number_text(draw.pick(values)));
  };
  if (name == "window" || name == "local_m" || name == "local_p") {
    return valued("", {0, 1, 2, 5, 17, 59, 60, 100, 127, 128, 300, 1e6});
  }
  if (name == "relative") return valued("", {1, 3, 16, 130});
  if (name == "softmax" && draw.chance(0.4)) return valued("temperature=", {0.1, 0.5, 2, 10});
  if (name == "cosine" && draw.chance(0.6)) return valued("beta=", {0.5, 5, 20});
  if (name == "scaled_dot" && draw.chance(0.4)) return valued("scale=", {0.125, 2});
  return example_of(*find_card(name), longest);
}

std::string drawn_name(Draw& draw, Family family) { return draw.pick(card_names({&family, 1})); }

Tensor drawn(Draw& draw, const Shape& shape, double scale, double zeros = 0) {
  const Tensor made = Tensor::empty(shape);
  for (std::int64_t i = 0; i < made.size(); ++i) {
    const double x = 2 * draw.real() - 1;
    made.data<float>()[i] = static_cast<float>(zeros > 0 && draw.chance(zeros) ? std::copysign(0.0, x) : scale * x);
  }
  return made;
}

const std::set<std::string>& plain_scores() {
  static const std::set<std::string> all = {"cosine", "dot", "scaled_dot"};
  return all;
}

std::int64_t drawn_length(Draw& draw, bool keys) {
  if (draw.chance(0.02)) return draw.pick<std::int64_t>({0, 1});
  if (keys && draw.chance(0.015)) return draw.pick<std::int64_t>({1000, 1021, 1025, 1153});
  if (draw.chance(0.5)) return draw.pick<std::int64_t>({1, 2, 3, 5, 7, 11, 13, 15, 16, 17, 23, 31, 32, 33});
  if (draw.chance(0.6)) return draw.pick<std::int64_t>({47, 59, 60, 61, 64, 67});
  if (!keys || draw.chance(0.4)) return draw.pick<std::int64_t>({119, 120, 121, 127, 128, 129, 131});
  return draw.pick<std::int64_t>({180, 241, 255, 256, 257, 263, 384, 389});
}

void draw_shape(Case& c, const std::string& score, bool documents) {
  Draw& draw = c.draw;
  c.batch = draw.pick<std::int64_t>({1, 1, 2, 2, 3});
  c.groups = draw.pick<std::int64_t>({1, 1, 1, 2, 3});
  c.heads = c.groups * draw.pick<std::int64_t>({1, 1, 2, 3});
  c.queries = drawn_length(draw, false);
  c.keys = drawn_length(draw, true);
  c.width = draw.pick<std::int64_t>({1, 2, 3, 4, 7, 8, 8, 8, 13, 16, 17, 31});
  c.values = draw.pick<std::int64_t>({1, 2, 3, 4, 5, 8, 8, 8, 15, 16, 17, 33});
  if (draw.chance(0.5) || documents) c.queries = c.keys;
  // So that ten thousand of them take half a minute: seldom large ones, and these of few heads.
  const double most = draw.chance(0.04) ? 2e6 : draw.chance(0.25) ? 3e5 : 6e4;
  const auto work = [&] {
    return static_cast<double>(c.batch * c.heads * c.queries * c.keys) *
           static_cast<double>((score == "additive" || score == "concat" || score == "mixture" ? 8 : 1) * c.width +
                               c.values);
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
    *sizes[documents ? draw.below(3) : draw.below(4)] = 0;
  }
  if (!plain_scores().contains(score))
    c.width = 2 * std::clamp<std::int64_t>(c.width / 2, 1, 4);  // pairs, to be turned
  if (score == "mixture") c.groups = c.heads;
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
  if (c.has("documents") || (c.queries == c.keys && !c.positional && draw.chance(0.15))) {
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
                       : c.positional     ? draw.below(c.keys + 1)
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
  if (c.has("bias") || draw.chance(0.3)) {
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
  if (!std::all_of(c.line.scopes.begin(), c.line.scopes.end(), is_known)) {
    Call uniform = call;
    Line line = c.line;
    line.align = {.name = "uniform"};
    uniform.mechanism = Mechanism(to_text(line));
    uniform.dropout = 0;
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
    for (const Term& scope : c.line.scopes) {
      if (scope.name == "causal") seen &= distance <= 0;
      if (scope.name == "window") seen &= static_cast<double>(std::abs(distance)) <= *number_of(scope, "distance");
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
  if (!draw.chance(0.5) || c.heads == 0) return;
  const auto poison = [&](Tensor& x, std::int64_t row) {
    if (!x.defined() || x[-1] == 0) return false;
    float* const at = x.data<float>() + row * x[-1];
    const float what = draw.pick<float>({kNan, kNan, kInfinity, -kInfinity, 3e38f});
    if (draw.chance(0.5)) {
      std::fill_n(at, x[-1], what);
    } else {
      at[draw.below(x[-1])] = what;
    }
    return c.poisoned = true;
  };
  const auto mark = [&](std::vector<bool>& bad, std::int64_t row, bool poisoned) {
    if (poisoned) bad[size(row)] = true;
  };
  for (Tensor* x :
       {&c.dirty.q, &c.dirty.k, &c.dirty.query_tokens, &c.dirty.key_tokens, &c.dirty.v, &c.dirty.dy, &c.dirty.bias}) {
    if (x->defined()) *x = x->clone();
  }
  const bool few = draw.chance(0.5);
  const std::int64_t sharing = c.heads / c.groups;
  const auto seeing = [&](std::int64_t item, std::int64_t group, std::int64_t j) {
    std::int64_t count = 0;
    for (std::int64_t head = group * sharing; head < (group + 1) * sharing; ++head) {
      for (std::int64_t i = 0; i < c.queries; ++i) count += c.sees(item, head, i, j) ? 1 : 0;
    }
    return count;
  };
  const auto odds = [&](std::int64_t count, std::int64_t all) {
    return count == 0 ? 0.5 : count == all ? 0.0005 : few ? 0.01 : 0.1;
  };
  for (std::int64_t item = 0; item < c.batch; ++item) {
    for (std::int64_t j = 0; j < c.keys; ++j) {
      std::int64_t total = 0;
      for (std::int64_t group = 0; group < c.groups; ++group) {
        const std::int64_t row = (item * c.groups + group) * c.keys + j, count = seeing(item, group, j);
        total += count;
        if (!draw.chance(odds(count, sharing * c.queries))) continue;
        const std::int64_t which = draw.below(3);
        if (which != 0) mark(c.bad_keys, row, poison(c.dirty.k, row));
        if (which != 1) mark(c.bad_keys, row, poison(c.dirty.v, row));
      }
      if (!c.dirty.key_tokens.defined() || !draw.chance(odds(total, c.heads * c.queries))) continue;
      const bool bad = poison(c.dirty.key_tokens, item * c.keys + j);
      for (std::int64_t group = 0; group < c.groups; ++group) {
        mark(c.bad_keys, (item * c.groups + group) * c.keys + j, bad);
      }
    }
    for (std::int64_t i = 0; i < c.queries && !few; ++i) {
      const bool all =
          c.dirty.query_tokens.defined() && draw.chance(0.01) && poison(c.dirty.query_tokens, item * c.queries + i);
      for (std::int64_t head = 0; head < c.heads; ++head) {
        const std::int64_t row = (item * c.heads + head) * c.queries + i;
        mark(c.bad_queries, row, all);
        if (draw.chance(0.01)) mark(c.bad_queries, row, poison(c.dirty.q, row));
        if (draw.chance(0.01)) mark(c.bad_gradient, row, poison(c.dirty.dy, row));
      }
    }
  }
  if (c.clean.bias.defined()) {  // hidden from all
    std::vector<bool> unseen(size(c.clean.bias.size()), true);
    const std::vector<std::int32_t> places = bias_places(c);
    for (std::size_t at = 0; at < c.visible.size(); ++at) {
      if (c.visible[at]) unseen[size(places[at])] = false;
    }
    for (std::size_t at = 0; at < unseen.size(); ++at) {
      if (!unseen[at] || !draw.chance(0.3)) continue;
      c.dirty.bias.data<float>()[at] = draw.pick<float>({kNan, kInfinity, 3e38f});
      c.poisoned = true;
    }
  }
}

void draw_numbers(Case& c) {
  Draw& draw = c.draw;
  Call& call = c.clean;
  const bool plain = plain_scores().contains(c.line.score.name);
  const Needs needs = call.mechanism->needs();
  const double sharp = plain ? draw.pick<double>({1, 1, 1, 0.1, 4, 30}) : 1, zeros = draw.pick<double>({0, 0, 0, 0.5});
  // With one head the rows are the tokens.
  const std::int64_t tokens = c.heads == 1 && needs.rows ? c.width : draw.pick<std::int64_t>({1, 3, 6});
  if (needs.rows) {
    call.q = drawn(draw, {c.batch, c.heads, c.queries, c.width}, sharp, zeros);
    call.k = drawn(draw, {c.batch, c.groups, c.keys, c.width}, plain ? draw.pick<double>({1, 1, 1, 8}) : 1, zeros);
  } else {  // only to say how many
    c.width = 1;
    if (!needs.query_tokens) call.q = Tensor::zeros({c.batch, c.heads, c.queries, 1});
    if (!needs.key_tokens) call.k = Tensor::zeros({c.batch, c.groups, c.keys, 1});
  }
  if (needs.query_tokens) call.query_tokens = drawn(draw, {c.batch, c.queries, tokens}, 1, zeros);
  if (needs.key_tokens) call.key_tokens = drawn(draw, {c.batch, c.keys, tokens}, 1, zeros);
  if (plain && draw.chance(c.keys > 128 ? 0.4 : 0.1)) {  // scores that grow or fade from tile to tile
    const bool grow = draw.chance(0.5);
    const std::int64_t middle = c.keys > 128 ? 128 : c.keys / 2;
    const float strong = draw.pick<float>({1, 100}), weak = draw.pick<float>({0, 0.01f});
    for (std::int64_t i = 0; i < call.k.size(); ++i) {
      call.k.data<float>()[i] *= (i / c.width % c.keys < middle) == grow ? weak : strong;
    }
  }
  // Products of tiny numbers fade away to 0 and −0.
  if (!call.pointer) {
    call.v = drawn(draw, {c.batch, c.groups, c.keys, c.values}, draw.pick<double>({1, 1, 1, 1, 1, 100, 100, 5e-38}),
                   draw.pick<double>({0, 0, 0.5, 0.95}));
  }
  call.dy = drawn(draw, {c.batch, c.heads, c.queries, c.values}, draw.pick<double>({1, 1, 1, 1, 1, 1, 1, 5e-38}),
                  draw.pick<double>({0, 0, 0, 0.5}));
  call.heads = c.heads;
  call.hidden = draw.pick<std::int64_t>({2, 4, 6});
  AttendSizes sizes{.heads = c.heads, .groups = c.groups, .hidden = call.hidden};
  if (needs.rows) sizes.width = c.width;
  if (!call.pointer) sizes.values = c.values;
  if (needs.query_tokens) sizes.query_token = tokens;
  if (needs.key_tokens) sizes.key_token = tokens;
  if (c.heads == 1 && call.q.defined() && !needs.query_tokens) sizes.query_token = c.width;
  if (c.heads == 1 && call.k.defined() && !needs.key_tokens) sizes.key_token = c.width;
  for (const Learned& each : call.mechanism->learned(sizes)) {
    call.learned.push_back(drawn(draw, each.shape, draw.pick<double>({0.5, 1})));
  }
}

}  // namespace

Case drawn_case(std::uint64_t seed) {
  Case c(seed);
  Draw& draw = c.draw;
  const std::string score = drawn_name(draw, Family::kScore);
  const std::string align = draw.chance(0.3) ? "softmax" : drawn_name(draw, Family::kAlign);
  std::set<std::string> scopes;
  for (std::int64_t left = 1 + draw.below(3); left > 0; --left) {
    const std::string name = draw.chance(0.2) ? "causal" : drawn_name(draw, Family::kScope);
    if (!scopes.contains(std::string(find_card(name)->same_as))) scopes.insert(name);
    if (name == "window") scopes.erase("local_m");  // the same by another name
  }
  for (const Argument& each : find_card(score)->arguments) c.positional |= each.grows;
  if (c.positional) scopes.erase("documents");
  if (scopes.empty()) scopes.insert("global");
  draw_shape(c, score, scopes.contains("documents"));
  if (plain_scores().contains(score) && !scopes.contains("local_p") && draw.chance(0.01)) c.heads = c.groups = 0;
  std::string line = drawn_term(draw, score, c.keys + c.queries + 24) + " | ";
  for (const std::string& each : scopes) line += (each == *scopes.begin() ? "" : " & ") + drawn_term(draw, each, 0);
  line += " | " + drawn_term(draw, align, 0);
  if (draw.chance(0.2)) {
    const std::string read = " | " + drawn_term(draw, drawn_name(draw, Family::kRead), 0);
    try {
      parse_line(line + read);
      line += read;
    } catch (const Error&) {  // a read that belongs to another score
    }
  }
  c.line = parse_line(line);
  Call& call = c.clean;
  call.mechanism = Mechanism(line);
  call.pointer = c.line.read.name == "pointer";
  if (call.pointer) c.values = c.keys;
  draw_given(c);
  draw_numbers(c);
  if (c.line.align.name == "softmax") c.temperature = number_of(c.line.align, "temperature").value_or(1);
  if (c.line.score.name == "scaled_dot" && c.width > 0) {
    c.scale = number_of(c.line.score, "scale").value_or(1 / std::sqrt(static_cast<double>(c.width)));
  }
  if (c.line.score.name == "cosine") c.scale = *number_of(c.line.score, "beta");
  c.text = text(line, ", batch ", c.batch, ", heads ", c.heads, "/", c.groups, ", queries ", c.queries, ", keys ",
                c.keys, ", width ", c.width, ", values ", c.values);
  if (call.first_query) c.text += text(", first query ", *call.first_query);
  if (call.lengths) c.text += ", lengths";
  if (call.documents.defined()) c.text += ", documents";
  if (call.mask.defined()) c.text += text(", mask ", call.mask.shape());
  if (call.bias.defined()) c.text += text(", bias ", call.bias.shape());
  if (call.dropout > 0) c.text += text(", dropout ", call.dropout);
  return c;
}

void finish(Case& c) {
  find_visible(c);
  draw_poison(c);
  if (c.poisoned) c.text += ", poison";
}

}  // namespace regard::random_call
