// bench attention: product attention forward, and forward with backward, under the usual masks, with and without
// dropout; what a look at the weights of a head costs. bench mechanisms: every score, align and scope at one middle
// size. bench additive: the attention of a translation model with recurrent layers.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "attention/mechanism.h"
#include "base/check.h"
#include "cli/bench.h"
#include "regard/attention/attend.h"
#include "regard/attention/mechanism.h"

namespace regard::cli {
namespace {

constexpr std::int64_t kHeads = 8, kWidth = 64, kDistance = 256;

enum class Hide { kNothing, kCausal, kPadding, kWindow };
constexpr std::array<const char*, 4> kHideNames = {"none", "causal", "padding", "window"};

struct Size {
  std::int64_t batch = 1, heads = kHeads, queries = 0, keys = 0, width = kWidth;
};

struct Way {
  std::string line;
  bool padding = false;
  float dropout = 0;
};

// Evenly spread over a quarter … all of the keys, as a uniform draw would be on average: with one or two sequences a
// draw would measure its luck. In no order.
std::vector<std::int32_t> lengths_of(const Size& size) {
  std::vector<std::int32_t> lengths;
  const std::int64_t least = size.keys / 4;
  for (std::int64_t i = 0; i < size.batch; ++i) {
    lengths.push_back(static_cast<std::int32_t>(least + (2 * i + 1) * (size.keys - least) / (2 * size.batch)));
  }
  for (std::size_t i = lengths.size(); i > 1; --i) {
    std::swap(lengths[i - 1], lengths[random_below(RandomKey(9), i, static_cast<std::uint32_t>(i))]);
  }
  return lengths;
}

Tensor draw(const Shape& shape, std::uint64_t seed) {
  const auto numbers = random_numbers(static_cast<std::size_t>(shape.size()), seed);
  Tensor drawn = Tensor::empty(shape);
  std::copy(numbers->begin(), numbers->end(), drawn.data<float>());
  return drawn;
}

std::span<const float> numbers_of(const Tensor& x) { return {x.data<float>(), static_cast<std::size_t>(x.size())}; }

// A call of attend, and what it leaves.
struct State {
  State(const Size& s, const Way& w)
      : size(s),
        way(w),
        mechanism(w.line),
        q(draw({s.batch, s.heads, s.queries, s.width}, 1)),
        k(draw({s.batch, s.heads, s.keys, s.width}, 2)),
        v(draw({s.batch, s.heads, s.keys, s.width}, 3)),
        dy(draw({s.batch, s.heads, s.queries, s.width}, 4)),
        lengths(lengths_of(s)) {
    const Needs needs = mechanism.needs();
    const std::int64_t tokens = s.heads * s.width;  // a model's width is that of all its heads
    AttendSizes sizes{.heads = s.heads, .groups = s.heads, .values = s.width, .hidden = s.width};
    if (needs.rows) sizes.width = s.width;
    if (needs.query_tokens) query_tokens = draw({s.batch, s.queries, sizes.query_token = tokens}, 5);
    if (needs.key_tokens) key_tokens = draw({s.batch, s.keys, sizes.key_token = tokens}, 6);
    for (const Learned& each : mechanism.learned(sizes)) {  // small, so that scores are of the usual size
      learned.push_back(draw(each.shape, 10 + learned.size()));
      for (std::int64_t i = 0; i < learned.back().size(); ++i) learned.back().data<float>()[i] /= 8;
    }
    for (const std::int32_t length : lengths) length_numbers.push_back(static_cast<float>(length));
  }

  Attention call(Tape& on, Var query, Var key, Var value, std::int64_t first, std::span<const std::int32_t> visible,
                 std::span<const std::uint64_t> ids) const {
    AttendOptions options;
    if (way.padding) options.lengths = visible;
    options.first_query = first;
    options.dropout = way.dropout;
    options.ids = ids;
    options.heads = size.heads;
    options.hidden = size.width;
    const auto tokens = [&](const Tensor& x, Range range, std::int64_t item) {
      if (!x.defined()) return Var();
      const Tensor some = ids.empty() ? x : x.slice(0, item, item + 1).slice(1, range.begin, range.end);
      return on.variable(some.to(value.dtype()));
    };
    const std::int64_t item = size.batch - 1;
    options.query_tokens = tokens(query_tokens, {first, first + query[2]}, item);
    options.key_tokens = tokens(key_tokens, {0, size.keys}, item);
    std::vector<Var> maps;
    for (const Tensor& each : learned) maps.push_back(on.variable(each.to(value.dtype())));
    options.learned = maps;
    return attend(mechanism, query, key, value, options);
  }

  void run(bool backward) {
    tape.reset();
    inputs = {backward ? tape.variable(q) : tape.constant(q), backward ? tape.variable(k) : tape.constant(k),
              backward ? tape.variable(v) : tape.constant(v)};
    made = call(tape, inputs[0], inputs[1], inputs[2], 0, lengths, {});
    if (backward) tape.backward(made.context, dy);
  }

  // The last item in double: all of a short one; of a longer one head 0; of a long one some queries from its middle.
  double gap(bool backward) const {
    const bool all = size.queries * size.keys <= 512 * 512;
    const std::int64_t heads = size.queries * size.keys <= 256 * 256 || !learned.empty() ? size.heads : 1;
    const std::int64_t item = size.batch - 1, few = std::min<std::int64_t>(size.queries, 8);
    const Range range = all                ? Range{0, size.queries}
                        : way.dropout != 0 ? Range{0, few}
                                           : Range{size.queries / 2, size.queries / 2 + few};
    const auto pick = [&](const Tensor& x, bool of_queries) {
      const Tensor head = x.slice(0, item, item + 1).slice(1, 0, heads);
      return (of_queries ? head.slice(2, range.begin, range.end) : head).to(DType::kF64);
    };
    Tape exact;
    const Var eq = exact.variable(pick(q, true)), ek = exact.variable(pick(k, false)),
              ev = exact.variable(pick(v, false));
    const std::uint64_t id = static_cast<std::uint64_t>(item);
    const Attention good =
        call(exact, eq, ek, ev, range.begin, std::span(&lengths[static_cast<std::size_t>(item)], 1), std::span(&id, 1));
    double worst = 0;
    const auto compare = [&](const Tensor& got, const Tensor& wanted) {
      for (std::int64_t i = 0; i < wanted.size(); ++i) {
        const double apart = std::abs(got.data<double>()[i] - wanted.data<double>()[i]);
        const double share = apart / (2e-5 * (1 + std::abs(wanted.data<double>()[i])));
        if (!(share <= worst)) worst = share;
      }
    };
    compare(pick(made.context.value(), true), good.context.value());
    if (!backward) return worst;
    exact.backward(good.context, pick(dy, true));
    const auto compare_gradients = [&](Var got, Var wanted, bool of_queries) {  // who is not looked at has none
      if (exact.gradient(wanted).defined()) compare(pick(tape.gradient(got), of_queries), exact.gradient(wanted));
    };
    compare_gradients(inputs[0], eq, true);
    if (all) {
      compare_gradients(inputs[1], ek, false);
      compare(pick(tape.gradient(inputs[2]), false), exact.gradient(ev));
    }
    return worst;
  }

  // The context, then the gradients of queries, keys and values.
  std::span<const float> output(bool backward) {
    result.clear();
    const auto append = [&](const Tensor& x) {
      result.insert(result.end(), x.data<float>(), x.data<float>() + x.size());
    };
    append(made.context.value());
    for (std::size_t i = 0; i < inputs.size() && backward; ++i) {
      const Tensor gradient = tape.gradient(inputs[i]);
      append(gradient.defined() ? gradient : Tensor::zeros(inputs[i].shape()));
    }
    return result;
  }

  Size size;
  Way way;
  Mechanism mechanism;
  Tensor q, k, v, dy, query_tokens, key_tokens;
  std::vector<Tensor> learned;
  std::vector<std::int32_t> lengths;
  Floats length_numbers, result;
  Tape tape;
  std::array<Var, 3> inputs;
  Attention made;
};

Job job(const Size& size, const Way& way, bool backward) {
  const auto state = std::make_shared<State>(size, way);
  Job made;
  made.run = [=] { state->run(backward); };
  made.gap = [=] { return state->gap(backward); };
  made.inputs = {{"q", numbers_of(state->q)},
                 {"k", numbers_of(state->k)},
                 {"v", numbers_of(state->v)},
                 {"dy", numbers_of(state->dy)},
                 {"lengths", state->length_numbers}};
  if (state->query_tokens.defined()) made.inputs.push_back({"query_tokens", numbers_of(state->query_tokens)});
  if (state->key_tokens.defined()) made.inputs.push_back({"key_tokens", numbers_of(state->key_tokens)});
  for (std::size_t i = 0; i < state->learned.size(); ++i) {
    made.inputs.push_back({text("learned", i), numbers_of(state->learned[i])});
  }
  made.output = [=] { return state->output(backward); };
  made.memory = {state};
  return made;
}

// Pairs of a query and a key that it sees, of one head of all items.
double visible_pairs(const Size& size, Hide hide) {
  const auto n = static_cast<double>(size.queries), m = static_cast<double>(size.keys);
  double pairs = 0;
  switch (hide) {
    case Hide::kNothing:
      return static_cast<double>(size.batch) * n * m;
    case Hide::kCausal:
      return static_cast<double>(size.batch) * n * (n + 1) / 2;
    case Hide::kPadding:
      for (const std::int32_t length : lengths_of(size)) pairs += n * static_cast<double>(length);
      return pairs;
    case Hide::kWindow:
      for (std::int64_t i = 0; i < size.queries; ++i) {
        pairs += static_cast<double>(std::min(size.keys, i + kDistance + 1) - std::max<std::int64_t>(0, i - kDistance));
      }
      return static_cast<double>(size.batch) * pairs;
  }
  return 0;
}

std::vector<std::pair<std::string, std::int64_t>> parameters_of(const Size& size) {
  return {{"batch", size.batch},  {"heads", size.heads}, {"queries", size.queries},
          {"keys", size.keys},    {"width", size.width}, {"all", size.heads * size.width},
          {"more", size.keys + 2}};
}

Case attention_case(std::int64_t length, Hide hide, bool dropout, bool backward) {
  const Size size{.batch = std::max<std::int64_t>(1, 4096 / length), .queries = length, .keys = length};
  Way way{.line = "scaled_dot"};
  if (hide == Hide::kCausal) way.line += " | causal";
  if (hide == Hide::kWindow) way.line += text(" | window:", kDistance);
  way.padding = hide == Hide::kPadding;
  way.dropout = dropout ? 0.1f : 0.0f;
  const char* const hidden = kHideNames[static_cast<std::size_t>(hide)];
  Case made{.name = text(backward ? "both_" : "forward_", length, "_", hidden, dropout ? "_dropout" : ""),
            .operation = text("attention_", hidden),
            .parameters = parameters_of(size),
            .flops = (backward ? 14.0 : 4.0) * visible_pairs(size, hide) * static_cast<double>(kHeads * kWidth),
            .limit = "limits/gemm",
            .peers = {"torch"},
            .tolerance = 1e-4,
            .compare = dropout ? "random" : "elements",
            .memory = length == 8192 && !dropout,
            .prepare = [=] { return job(size, way, backward); }};
  made.parameters.insert(
      made.parameters.end(),
      {{"window", kDistance}, {"backward", backward ? 1 : 0}, {"dropout", dropout ? 1 : 0}});  // tenths
  return made;
}

// The weights of one head, by the side of a forward pass of one head: as if both did the same work.
std::vector<Case> replay_cases() {
  std::vector<Case> made;
  for (const bool replay : {false, true}) {
    const Size size{.heads = 1, .queries = 1024, .keys = 1024};
    const Way way{.line = "scaled_dot"};
    made.push_back({.name = replay ? "weights_of_a_head" : "forward_of_a_head",
                    .operation = "attention_weights",
                    .flops = 4.0 * visible_pairs(size, Hide::kNothing) * kWidth,
                    .limit = replay ? "attention/forward_of_a_head" : "limits/gemm",
                    .prepare = [=] {
                      Job each = job(size, way, false);
                      if (!replay) return each;
                      const auto state = std::make_shared<State>(size, way);
                      const auto kept = std::make_shared<Tensor>();
                      state->run(false);
                      each.run = [=] { *kept = state->made.trace.weights(); };
                      each.gap = [=] {  // weights of a row sum to one
                        double worst = 0;
                        for (std::int64_t i = 0; i < (*kept)[0]; ++i) {
                          double sum = 0;
                          for (std::int64_t j = 0; j < (*kept)[1]; ++j) {
                            sum += static_cast<double>(kept->data<float>()[i * (*kept)[1] + j]);
                          }
                          worst = std::max(worst, std::abs(sum - 1) / 1e-5);
                        }
                        return worst;
                      };
                      each.inputs = {};
                      each.output = {};
                      return each;
                    }});
  }
  return made;
}

std::vector<Case> attention_cases() {
  std::vector<Case> made;
  for (const bool backward : {false, true}) {
    for (const bool dropout : {false, true}) {
      for (const Hide hide : {Hide::kNothing, Hide::kCausal, Hide::kPadding, Hide::kWindow}) {
        for (std::int64_t length = 64; length <= 8192; length *= 2) {
          if (hide == Hide::kWindow && length <= kDistance) continue;  // which is everything
          if (dropout && length > 2048) continue;                      // the peer would take 10 GB and more
          made.push_back(attention_case(length, hide, dropout, backward));
        }
      }
    }
  }
  for (Case& each : replay_cases()) made.push_back(std::move(each));
  return made;
}

// Every stage by itself, the others as usual: all that the registries hold. The peer has a plain formula for those it
// knows.
std::vector<Case> mechanism_cases() {
  const Size size{.batch = 4, .queries = 256, .keys = 256};
  std::vector<Case> made;
  const auto add = [&](const std::string& name, const std::string& line) {
    const std::vector<std::string> known = {"additive",
                                            "alibi",
                                            "causal",
                                            "concat",
                                            "cosine",
                                            "dense_synth",
                                            "dot",
                                            "entmax15",
                                            "factorized_dense_synth",
                                            "factorized_random_synth",
                                            "general",
                                            "local_p",
                                            "location",
                                            "mixture",
                                            "projected",
                                            "random_synth",
                                            "relative",
                                            "rotary",
                                            "scaled_dot",
                                            "softmax",
                                            "sparsemax",
                                            "uniform",
                                            "window"};
    const bool compared = std::find(known.begin(), known.end(), name) != known.end();
    made.push_back({.name = name,
                    .operation = "mechanism_" + name,
                    .parameters = parameters_of(size),
                    .flops = 14.0 * visible_pairs(size, name == "causal" ? Hide::kCausal : Hide::kNothing) *
                             static_cast<double>(kHeads * kWidth),
                    .limit = "limits/gemm",
                    .peers = compared ? std::vector<std::string>{"torch"} : std::vector<std::string>{},
                    .tolerance = 1e-4,
                    .prepare = [=] { return job(size, {.line = line}, true); }});
  };
  for (const Card* card : cards()) {
    const bool given = card->name == "documents" || card->name == "lengths" || card->name == "mask" ||
                       card->name == "bias";  // what a call has to give
    if (given || !card->module.empty() || !card->same_as.empty() || card->family == Family::kRead) continue;
    const std::string term = example_of(*card, size.keys);
    add(std::string(card->name), card->family == Family::kScore ? term : "scaled_dot | " + term);
  }
  return made;
}

// attend_additive: queries and keys arrive projected.
struct ProjectedState {
  explicit ProjectedState(const Size& s)
      : size(s),
        q(draw({s.batch, s.queries, s.width}, 1)),
        k(draw({s.batch, s.keys, s.width}, 2)),
        v(draw({s.batch, s.keys, s.width}, 3)),
        dy(draw({s.batch, s.queries, s.width}, 4)),
        theta(draw({s.width}, 5)),
        lengths(static_cast<std::size_t>(s.batch), static_cast<std::int32_t>(s.keys)) {}

  void run() {
    tape.reset();
    in = {tape.variable(q), tape.variable(k), tape.variable(v), tape.variable(theta)};
    context = attend_additive(in[0], in[1], in[2], in[3], lengths).context;
    tape.backward(context, dy);
  }
  double gap() const {
    Tape exact;
    std::array<Var, 4> wide;
    const Tensor* const all[] = {&q, &k, &v, &theta};
    for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = exact.variable(all[i]->to(DType::kF64));
    const Var good = attend_additive(wide[0], wide[1], wide[2], wide[3], lengths).context;
    exact.backward(good, dy.to(DType::kF64));
    double worst = 0;
    const auto compare = [&](const Tensor& got, const Tensor& wanted) {
      for (std::int64_t i = 0; i < wanted.size(); ++i) {
        const double want = wanted.data<double>()[i];
        const double share = std::abs(static_cast<double>(got.data<float>()[i]) - want) / (2e-4 * (1 + std::abs(want)));
        if (!(share <= worst)) worst = share;
      }
    };
    compare(context.value(), good.value());
    for (std::size_t i = 0; i < in.size(); ++i) compare(tape.gradient(in[i]), exact.gradient(wide[i]));
    return worst;
  }
  std::span<const float> output() {
    result.clear();
    const auto append = [&](const Tensor& x) {
      result.insert(result.end(), x.data<float>(), x.data<float>() + x.size());
    };
    append(context.value());
    for (std::size_t i = 0; i < 3; ++i) append(tape.gradient(in[i]));
    return result;
  }

  Size size;
  Tensor q, k, v, dy, theta;
  std::vector<std::int32_t> lengths;
  Floats result;
  Tape tape;
  std::array<Var, 4> in;
  Var context;
};

Job projected_job(const Size& size) {
  const auto state = std::make_shared<ProjectedState>(size);
  Job made;
  made.run = [=] { state->run(); };
  made.gap = [=] { return state->gap(); };
  made.inputs = {{"q", numbers_of(state->q)},
                 {"k", numbers_of(state->k)},
                 {"v", numbers_of(state->v)},
                 {"dy", numbers_of(state->dy)},
                 {"theta", numbers_of(state->theta)}};
  made.output = [=] { return state->output(); };
  made.memory = {state};
  return made;
}

std::vector<Case> additive_cases() {
  const Size size{.batch = 64, .heads = 1, .queries = 20, .keys = 40, .width = 512};
  return {{.name = "projected",
           .operation = "additive_projected",
           .parameters = parameters_of(size),
           .flops = 4.0 * static_cast<double>(size.batch * size.queries * size.keys * size.width),  // + and tanh
           .peers = {"torch"},
           .tolerance = 1e-3,
           .memory = true,
           .prepare = [=] { return projected_job(size); }},
          {.name = "additive",
           .operation = "mechanism_additive",
           .parameters = parameters_of(size),
           .flops = 4.0 * static_cast<double>(size.batch * size.queries * size.keys * size.width),  // + and tanh
           .peers = {"torch"},
           .tolerance = 1e-3,
           .memory = true,
           .prepare = [=] { return job(size, {.line = "additive"}, true); }}};
}

const AddBench add_attention({.name = "attention",
                              .summary = "q·k attention: masks, dropout, lengths 64 to 8192, forward and both ways",
                              .cases = attention_cases});
const AddBench add_mechanisms({.name = "mechanisms",
                               .summary = "every score, align and scope at one size, forward and backward",
                               .cases = mechanism_cases});
const AddBench add_additive({.name = "additive",
                             .summary = "additive attention of a recurrent translation model, forward and backward",
                             .cases = additive_cases});

}  // namespace
}  // namespace regard::cli
