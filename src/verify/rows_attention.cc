// The row of attend: every score with every scope and every alignment of the registries, then shapes around tiles.
#include <algorithm>
#include <numeric>

#include "attention/mechanism.h"
#include "base/check.h"
#include "kernels/dropout.h"
#include "verify/table.h"

namespace regard::verify {
namespace {

constexpr std::int64_t kWindow = 2;
constexpr RandomKey kDropoutKey(77);

struct Setup {
  std::string score, align;
  std::vector<std::string> scopes = {"global"};
  std::int64_t batch = 2, heads = 2, groups = 1, queries = 5, keys = 5, width = 2, values = 2;
  std::int64_t offset = 0;
  std::int64_t window = kWindow;
  float dropout = 0;
  double temperature = 1;
  std::vector<std::int64_t> bias = {};  // sizes; a first size of `batch` is the items'
  bool theta_by_head = false;

  bool has(const char* scope) const { return std::find(scopes.begin(), scopes.end(), scope) != scopes.end(); }
};

std::int32_t length_of(const Setup& s, std::int64_t item) {
  if (!s.has("lengths")) return static_cast<std::int32_t>(s.keys);
  return static_cast<std::int32_t>(item % 3 == 0 ? s.keys - s.keys / 3 : item % 3 == 1 ? s.keys : 0);
}
std::int32_t document_of(const Setup& s, std::int64_t item, std::int64_t place) {  // the last place is of none
  if (place == s.keys - 1 && item % 2 == 1) return -1;
  return static_cast<std::int32_t>(place / std::max<std::int64_t>(2, s.keys / 2));
}
bool mask_of(std::int64_t head, std::int64_t i, std::int64_t j) { return (i * 7 + j * 5 + head) % 3 != 0; }

bool is_visible(const Setup& s, std::int64_t item, std::int64_t head, std::int64_t i, std::int64_t j) {
  const std::int64_t place = i + s.offset;
  if (j >= length_of(s, item)) return false;
  if (s.has("causal") && j > place) return false;
  if ((s.has("window") || s.has("local_m")) && std::abs(j - place) > s.window) return false;
  if (s.has("mask") && !mask_of(head, i, j)) return false;
  if (!s.has("documents")) return true;
  return document_of(s, item, j) >= 0 && document_of(s, item, i) == document_of(s, item, j);
}

Mechanism mechanism_of(const Setup& s) {
  std::vector<Term> scopes;
  for (const std::string& name : s.scopes) {
    scopes.push_back({.name = name});
    if (name == "window" || name == "local_m") {
      scopes.back().arguments.numbers = {static_cast<double>(s.window)};
    }
  }
  Term align{.name = s.align};
  if (s.temperature != 1) align.arguments.settings["temperature"] = text(s.temperature);
  return Mechanism({.name = s.score}, scopes, align);
}

Attention call(const Setup& s, const Mechanism& mechanism, std::span<const Var> x, Items items) {
  const std::int64_t count = items.count();
  std::vector<std::int32_t> lengths;
  std::vector<std::uint64_t> ids;
  AttendOptions options;
  options.dropout = s.dropout;
  options.key = kDropoutKey;
  if (s.offset != 0 || s.queries != s.keys) options.first_query = s.offset;
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    lengths.push_back(length_of(s, item));
    ids.push_back(static_cast<std::uint64_t>(item));
  }
  if (s.has("lengths")) options.lengths = lengths;
  options.ids = ids;
  if (s.has("documents")) {
    options.documents = Tensor::empty({count, s.keys}, DType::kI32);
    for (std::int64_t i = 0; i < count * s.keys; ++i) {
      options.documents.data<std::int32_t>()[i] = document_of(s, items.begin + i / s.keys, i % s.keys);
    }
  }
  if (s.has("mask")) {
    options.mask = Tensor::empty({1, s.heads, s.queries, s.keys}, DType::kI8);
    for (std::int64_t i = 0; i < options.mask.size(); ++i) {
      options.mask.data<std::int8_t>()[i] = mask_of(i / s.keys / s.queries, i / s.keys % s.queries, i % s.keys) ? 1 : 0;
    }
  }
  std::size_t next = 3;
  if (s.score == "additive") options.theta = x[next++];
  if (!s.bias.empty()) options.bias = x[next];
  return attend(mechanism, x[0], x[1], x[2], options);
}

Scalar score_of(const Setup& s, std::span<const Scalar> q, std::span<const Scalar> k, std::span<const Scalar> theta) {
  Scalar sum(0), q_square(0), k_square(0);
  for (std::size_t c = 0; c < q.size(); ++c) {
    sum += s.score == "additive" ? theta[c] * tanh(q[c] + k[c]) : q[c] * k[c];
    q_square += q[c] * q[c];
    k_square += k[c] * k[c];
  }
  if (s.score == "scaled_dot" && !q.empty()) return sum * Scalar(1 / std::sqrt(static_cast<double>(q.size())));
  if (s.score == "cosine" && !q.empty()) return sum / (sqrt(q_square) * sqrt(k_square));
  return sum;
}

// How many of the largest scores have a weight, from their sorted values: Martins and Astudillo 2016, Peters et al.
// 2019.
std::size_t support_of(const std::string& align, std::vector<double> scores) {
  std::sort(scores.rbegin(), scores.rend());
  std::size_t support = 0;
  double sum = 0, squares = 0;
  for (std::size_t n = 1; n <= scores.size(); ++n) {
    const double x = align == "sparsemax" ? scores[n - 1] : scores[n - 1] / 2, count = static_cast<double>(n);
    sum += x;
    squares += x * x;
    const double spread = squares - sum * sum / count;
    const double tau = align == "sparsemax" ? (sum - 1) / count
                       : spread > 1         ? x + 1
                                            : sum / count - std::sqrt((1 - spread) / count);
    if (tau < x) support = n;
  }
  return support;
}

std::vector<Scalar> align_of(const Setup& s, const std::vector<Scalar>& scores) {
  const std::size_t count = scores.size();
  std::vector<Scalar> p;
  if (count == 0) return p;
  Scalar peak = without_gradient(scores[0]);
  for (const Scalar& each : scores) {
    if (each.value > peak.value) peak = without_gradient(each);
  }
  if (s.align == "uniform") return std::vector<Scalar>(count, Scalar(1.0 / static_cast<double>(count)));
  if (s.align == "softmax") {
    Scalar mass(0);
    for (const Scalar& each : scores) mass += exp((each - peak) * Scalar(1 / s.temperature));
    for (const Scalar& each : scores) p.push_back(exp((each - peak) * Scalar(1 / s.temperature)) / mass);
    return p;
  }
  for (const Scalar& each : scores) {
    if (std::isnan(each.value)) return std::vector<Scalar>(count, each);  // nobody can say who is the largest
  }
  const Scalar share(s.align == "sparsemax" ? 1 : 0.5);
  std::vector<double> values;
  std::vector<Scalar> x;
  for (const Scalar& each : scores) {
    values.push_back(each.value);
    x.push_back((each - peak) * share);
  }
  const std::size_t support = support_of(s.align, values);
  std::sort(values.rbegin(), values.rend());
  const double least = values[support - 1];
  const Scalar size(static_cast<double>(support));
  Scalar sum(0), spread(0);
  for (std::size_t j = 0; j < count; ++j) sum += scores[j].value >= least ? x[j] : Scalar(0);
  const Scalar mean = sum / size;
  for (std::size_t j = 0; j < count; ++j) {
    spread += scores[j].value >= least ? (x[j] - mean) * (x[j] - mean) : Scalar(0);
  }
  const Scalar tau = s.align == "sparsemax" ? (sum - Scalar(1)) / size : mean - sqrt((Scalar(1) - spread) / size);
  for (std::size_t j = 0; j < count; ++j) {
    const Scalar above = x[j] - tau;
    p.push_back(scores[j].value < least ? Scalar(0) : s.align == "sparsemax" ? above : above * above);
  }
  return p;
}

std::vector<Scalar> formula(const Setup& s, std::span<const Numbers> x, Items items) {
  std::vector<Scalar> y;
  const auto part = [](const Numbers& from, std::int64_t row, std::int64_t width) {
    return std::span<const Scalar>(from.all).subspan(static_cast<std::size_t>(row * width),
                                                     static_cast<std::size_t>(width));
  };
  const std::size_t bias_at = s.score == "additive" ? 4 : 3;
  std::vector<std::int64_t> steps(4, 0);  // of the bias
  for (std::size_t i = s.bias.size(), step = 1; i-- > 0; step *= static_cast<std::size_t>(s.bias[i])) {
    if (s.bias[i] != 1) steps[i + 4 - s.bias.size()] = static_cast<std::int64_t>(step);
  }
  for (std::int64_t item = 0; item < items.count(); ++item) {
    for (std::int64_t head = 0; head < s.heads; ++head) {
      const std::int64_t group = head / (s.heads / s.groups);
      for (std::int64_t i = 0; i < s.queries; ++i) {
        std::vector<Scalar> scores;
        std::vector<std::int64_t> seen;
        for (std::int64_t j = 0; j < s.keys; ++j) {
          if (!is_visible(s, items.begin + item, head, i, j)) continue;
          seen.push_back(j);
          scores.push_back(score_of(
              s, part(x[0], (item * s.heads + head) * s.queries + i, s.width),
              part(x[1], (item * s.groups + group) * s.keys + j, s.width),
              s.score == "additive" ? part(x[3], s.theta_by_head ? head : 0, s.width) : std::span<const Scalar>()));
          if (!s.bias.empty()) {
            scores.back() += x[bias_at][item * steps[0] + head * steps[1] + i * steps[2] + j * steps[3]];
          }
          if (s.has("alibi")) {
            const double slope = std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(s.heads));
            scores.back() += Scalar(-slope * static_cast<double>(std::abs(i + s.offset - j)));
          }
        }
        const std::vector<Scalar> p = align_of(s, scores);
        for (std::int64_t c = 0; c < s.values; ++c) {
          Scalar sum(0);
          // A softmax of NaN is NaN whatever is dropped: the sum of its values is divided by the mass.
          if (s.align == "softmax" && !p.empty() && std::isnan(p[0].value)) sum += p[0];
          for (std::size_t at = 0; at < seen.size(); ++at) {
            const RandomKey key = kDropoutKey.at(static_cast<std::uint64_t>(items.begin + item))
                                      .at(static_cast<std::uint64_t>(head))
                                      .at(static_cast<std::uint64_t>(i + s.offset));
            const bool stays = s.dropout == 0 ||
                               random_bits(key, static_cast<std::uint64_t>(seen[at])) >= dropout_threshold(s.dropout);
            const bool unread = p[at].place < 0 && p[at].value == 0;  // what has no weight is not read
            if (!stays || unread) continue;
            sum += p[at] * Scalar(1 / (1 - static_cast<double>(s.dropout))) *
                   x[2][((item * s.groups + group) * s.keys + seen[at]) * s.values + c];
          }
          y.push_back(sum);
        }
      }
    }
  }
  return y;
}

Case attention(const Setup& s) {
  Case made;
  made.name = text("attend ", s.score, " |");
  for (const std::string& scope : s.scopes) made.name += text(' ', scope);
  made.name += text(" | ", s.align, ", ", s.batch, " × ", s.heads, '/', s.groups, " × ", s.queries, " × ", s.keys,
                    ", width ", s.width, ", values ", s.values);
  if (s.offset != 0) made.name += text(", offset ", s.offset);
  if (s.dropout > 0) made.name += ", dropout";
  if (s.temperature != 1) made.name += text(", temperature ", s.temperature);
  if (!s.bias.empty()) made.name += ", bias";
  for (const std::int64_t size : s.bias) made.name += text(' ', size);
  made.inputs = {{.name = "q", .shape = {s.batch, s.heads, s.queries, s.width}, .batched = true},
                 {.name = "k", .shape = {s.batch, s.groups, s.keys, s.width}, .batched = true},
                 {.name = "v", .shape = {s.batch, s.groups, s.keys, s.values}, .batched = true}};
  if (s.score == "cosine") {  // away from rows of length 0
    made.inputs[0].low = made.inputs[1].low = 0.25;
  }
  if (s.score == "additive") {
    made.inputs.push_back({.name = "theta", .shape = s.theta_by_head ? Shape{s.heads, s.width} : Shape{s.width}});
  }
  if (!s.bias.empty()) {
    Shape shape;
    for (const std::int64_t size : s.bias) shape = shape.plus(size);
    made.inputs.push_back({.name = "bias", .shape = shape, .batched = s.bias.size() == 4 && s.bias[0] == s.batch});
  }
  const Mechanism mechanism = mechanism_of(s);
  made.build = [s, mechanism](Tape&, std::span<const Var> x, Items items) {
    return call(s, mechanism, x, items).context;
  };
  made.formula = [s](std::span<const Numbers> x, Items items) { return formula(s, x, items); };
  if (s.align == "sparsemax" || s.align == "entmax15") {  // a kink where a key gets or loses its weight
    made.pieces = [s, mechanism](Tape&, std::span<const Var> x, Items items) {
      const AttendTrace trace = call(s, mechanism, x, items).trace;
      std::vector<bool> has_weight;
      for (std::int64_t item = 0; item < items.count(); ++item) {
        for (std::int64_t head = 0; head < s.heads; ++head) {
          const Tensor weights = trace.weights({.item = item, .head = head});
          for (std::int64_t i = 0; i < weights.size(); ++i) has_weight.push_back(weights.data<double>()[i] > 0);
        }
      }
      return has_weight;
    };
  }
  bool any = false;
  for (std::int64_t item = 0; item < s.batch; ++item) {
    for (std::int64_t i = 0; i < s.queries * s.keys * s.heads; ++i) {
      any |= is_visible(s, item, i / (s.queries * s.keys), i / s.keys % s.queries, i % s.keys);
    }
  }
  made.flat = !any;
  return made;
}

}  // namespace

template <>
Row row<Op::attend>() {
  Row made{.op = Op::attend,
           .formula = "y_i = Σ_j p_ij·v_j, p_i = align(score(q_i, k_j) + scope(i, j))",
           .cases = {},
           .bad = {},
           .large = {}};
  for (const auto& [score, score_entry] : Registry<Score>::all()) {
    for (const auto& [scope, scope_entry] : Registry<Scope>::all()) {
      for (const auto& [align, align_entry] : Registry<Align>::all()) {
        made.cases.push_back(attention({.score = score, .align = align, .scopes = {scope}}));
      }
    }
  }
  const auto add = [&](const Setup& s) { made.cases.push_back(attention(s)); };
  const auto large = [&](const Setup& s) { made.large.push_back(attention(s)); };
  const Setup plain{.score = "scaled_dot", .align = "softmax"};
  const auto sized = [](Setup s, std::int64_t batch, std::int64_t heads, std::int64_t groups, std::int64_t queries,
                        std::int64_t keys, std::int64_t width, std::int64_t values) {
    s.batch = batch;
    s.heads = heads;
    s.groups = groups;
    s.queries = queries;
    s.keys = keys;
    s.width = width;
    s.values = values;
    return s;
  };
  const auto scoped = [](Setup s, std::vector<std::string> scopes) {
    s.scopes = std::move(scopes);
    return s;
  };
  for (const char* align : {"softmax", "sparsemax"}) {
    Setup s = plain;
    s.align = align;
    add(sized(s, 1, 1, 1, 1, 1, 1, 1));
    made.cases.back().flat = false;
    add(sized(s, 1, 2, 2, 2, 3, 0, 2));  // every score is 0
    add(sized(s, 1, 2, 1, 2, 3, 2, 0));
    add(sized(s, 1, 2, 1, 0, 3, 2, 2));
    add(sized(s, 2, 1, 1, 3, 0, 2, 2));
    made.cases.back().flat = true;
    add(sized(s, 0, 2, 1, 3, 4, 2, 2));
    add(sized(s, 1, 4, 2, 2, 17, 3, 2));
  }
  // Around tiles of 60 queries and 128 keys, and around vectors.
  add(sized(plain, 1, 1, 1, 61, 127, 5, 3));
  add(sized(scoped(plain, {"lengths"}), 2, 1, 1, 3, 129, 17, 15));
  add(sized(scoped(plain, {"causal"}), 1, 1, 1, 131, 131, 3, 2));
  Setup wide = scoped(plain, {"causal", "window"});
  wide.window = 40;
  add(sized(wide, 1, 1, 1, 260, 260, 2, 1));
  Setup behind = scoped(plain, {"causal", "alibi"});
  behind.offset = 126;
  add(sized(behind, 1, 2, 1, 5, 131, 3, 2));
  behind.dropout = 0.25f;
  add(sized(behind, 1, 2, 1, 5, 131, 3, 2));
  add(sized(scoped(plain, {"documents", "causal"}), 2, 2, 1, 37, 37, 3, 2));
  add(sized(scoped(plain, {"lengths", "mask", "window"}), 3, 2, 2, 7, 7, 3, 2));
  // Bias: of its own for everything, and spread over items, heads, queries or keys.
  for (const std::vector<std::int64_t>& sizes : std::vector<std::vector<std::int64_t>>{
           {2, 2, 5, 5}, {2, 5, 5}, {5, 5}, {2, 1, 5, 1}, {1, 2, 1, 5}, {5}, {1, 1, 1, 1}}) {
    Setup s = scoped(plain, {"causal"});
    s.bias = sizes;
    made.cases.push_back(attention(s));
  }
  Setup both{.score = "additive", .align = "entmax15", .scopes = {"causal"}};
  both.bias = {2, 5, 5};
  both.theta_by_head = true;
  add(both);
  for (const char* align : {"softmax", "sparsemax", "entmax15", "uniform"}) {
    Setup s = scoped(plain, {"causal"});
    s.align = align;
    s.dropout = 0.25f;
    add(s);
  }
  Setup sharp = plain;
  sharp.temperature = 0.5;
  add(sharp);

  for (const char* align : {"softmax", "sparsemax", "entmax15"}) {
    for (const char* score : {"scaled_dot", "cosine", "additive"}) {
      Setup s{.score = score, .align = align, .scopes = {"causal", "lengths"}};
      s.dropout = 0.1f;
      s.bias = {1, 2, 1, 133};
      large(sized(s, 3, 2, 1, 133, 133, 19, 21));
    }
  }
  wide.window = 70;
  large(sized(wide, 1, 4, 2, 400, 400, 16, 33));
  large(sized(scoped(plain, {"documents"}), 2, 2, 1, 301, 301, 8, 8));
  large(sized(plain, 1, 1, 1, 200, 0, 8, 8));

  const auto refuse = [&](const char* what, std::function<void(Tape&)> bad, std::vector<std::string> words) {
    words.emplace_back("attend");
    made.bad.push_back({what, std::move(bad), std::move(words)});
  };
  const Mechanism simple = mechanism_of(plain), causal = mechanism_of(scoped(plain, {"causal"}));
  const auto shapes = [simple](const Shape& q, const Shape& k, const Shape& v, const AttendOptions& options = {}) {
    return [=](Tape& t) { attend(simple, blank(t, q), blank(t, k), blank(t, v), options); };
  };
  refuse("three dimensions", shapes({2, 3, 4}, {2, 3, 4}, {2, 3, 4}), {"[2, 3, 4]", "four"});
  refuse("batches differ", shapes({1, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 4}), {"[1, 2, 3, 4]", "[2, 2, 5, 4]"});
  refuse("widths differ", shapes({2, 2, 3, 4}, {2, 2, 5, 3}, {2, 2, 5, 4}), {"width", "[2, 2, 5, 3]"});
  refuse("lengths differ", shapes({2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 6, 4}), {"keys", "values", "5 and 6"});
  refuse("heads that do not divide", shapes({2, 3, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 4}), {"heads", "[2, 3, 3, 4]"});
  refuse("theta without a score for it",
         [=](Tape& t) {
           const Var x = blank(t, {1, 1, 2, 3});
           attend(simple, x, x, x, {.theta = blank(t, {3})});
         },
         {"theta"});
  refuse("no theta",
         [=](Tape& t) {
           const Var x = blank(t, {1, 1, 2, 3});
           attend(Mechanism({.name = "additive"}), x, x, x);
         },
         {"theta", "missing", "[3]"});
  refuse("causal without a first query",
         [=](Tape& t) {
           attend(causal, blank(t, {1, 1, 2, 3}), blank(t, {1, 1, 4, 3}), blank(t, {1, 1, 4, 3}));
         },
         {"causal", "2 queries", "4 keys", "first_query"});
  refuse("lengths that are not given",
         [=](Tape& t) {
           const Var x = blank(t, {1, 1, 2, 3});
           attend(mechanism_of(scoped(plain, {"lengths"})), x, x, x);
         },
         {"lengths"});
  refuse("a length above the keys",
         [=](Tape& t) {
           const Var x = blank(t, {1, 1, 2, 3});
           attend(simple, x, x, x, {.lengths = std::vector<std::int32_t>{3}});
         },
         {"length 3", "0 to 2"});
  refuse("a mask of another shape",
         shapes({1, 1, 2, 3}, {1, 1, 4, 3}, {1, 1, 4, 3}, {.mask = Tensor::zeros({1, 1, 2, 3}, DType::kI8)}),
         {"mask", "[1, 1, 2, 3]"});
  refuse("documents that go back",
         shapes({1, 1, 3, 3}, {1, 1, 3, 3}, {1, 1, 3, 3}, {.documents = Tensor::of<std::int32_t>({1, 3}, {1, 0, 0})}),
         {"document 0", "behind 1"});
  refuse("dropout of one", shapes({1, 1, 2, 3}, {1, 1, 4, 3}, {1, 1, 4, 3}, {.dropout = 1}), {"dropout 1"});
  refuse("types differ",
         [=](Tape& t) {
           const Var x = blank(t, {1, 1, 2, 3});
           attend(simple, x, blank(t, {1, 1, 2, 3}, DType::kF64), x);
         },
         {"f32", "f64"});
  return made;
}

}  // namespace regard::verify
