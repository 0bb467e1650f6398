// The row of attend: every score with every scope and every alignment of the registries, then shapes around tiles. The
// formulas are written out once more from the papers; a stage that has none here is held against its own f64 reference.
#include <algorithm>
#include <map>
#include <numeric>

#include "attention/mechanism.h"
#include "base/check.h"
#include "kernels/dropout.h"
#include "verify/table.h"

namespace regard::verify {
namespace {

constexpr RandomKey kDropoutKey(77);

struct Setup {
  std::string score = "scaled_dot", align = "softmax", read = "";
  std::vector<std::string> scopes = {"global"};
  std::int64_t batch = 2, heads = 2, groups = 1, queries = 5, keys = 5, width = 2, values = 2;
  std::int64_t offset = 0;
  float dropout = 0;
  std::vector<std::int64_t> bias = {};  // sizes; a first size of `batch` is the items'
  std::int64_t tokens = 3, hidden = 2;
  bool draws = false;  // hard attention: a choice has no finite differences, what it expects has

  std::string line() const {
    std::string all = score + " | ";
    for (std::size_t i = 0; i < scopes.size(); ++i) all += (i == 0 ? "" : " & ") + scopes[i];
    return all + " | " + align + (read.empty() ? "" : " | " + read);
  }
};

// A case, taken apart: what its inputs are and where they stand.
struct Made {
  explicit Made(const Setup& s) : setup(s), mechanism(s.line()), line(parse_line(s.line())), needs(mechanism.needs()) {
    sizes = {.heads = s.heads,
             .groups = s.groups,
             .width = needs.rows ? s.width : 0,
             .values = pointer() ? 0 : s.values,
             .query_token = needs.query_tokens ? s.tokens : 0,
             .key_token = needs.key_tokens ? s.tokens : 0,
             .hidden = s.hidden};
    learned = mechanism.learned(sizes);
    std::size_t next = 0;
    if (needs.rows) {
      q = next++;
      k = next++;
    }
    if (needs.query_tokens) query_tokens = next++;
    if (needs.key_tokens) key_tokens = next++;
    if (!pointer()) v = next++;
    first_learned = next;
    bias = next + learned.size();
  }
  bool pointer() const { return line.read.name == "pointer"; }
  bool has(const char* scope) const {
    return std::any_of(line.scopes.begin(), line.scopes.end(), [&](const Term& each) { return each.name == scope; });
  }

  Setup setup;
  Mechanism mechanism;
  Line line;
  Needs needs;
  AttendSizes sizes;
  std::vector<Learned> learned;
  static constexpr std::size_t kNone = 99;
  std::size_t q = kNone, k = kNone, query_tokens = kNone, key_tokens = kNone, v = kNone, first_learned = 0, bias = 0;
};

std::int32_t length_of(const Made& m, std::int64_t item) {
  const std::int64_t keys = m.setup.keys;
  if (!m.has("lengths")) return static_cast<std::int32_t>(keys);
  return static_cast<std::int32_t>(item % 3 == 0 ? keys - keys / 3 : item % 3 == 1 ? keys : 0);
}
std::int32_t document_of(const Setup& s, std::int64_t item, std::int64_t place) {  // the last place is of none
  if (place == s.keys - 1 && item % 2 == 1) return -1;
  return static_cast<std::int32_t>(place / std::max<std::int64_t>(2, s.keys / 2));
}
bool mask_of(std::int64_t head, std::int64_t i, std::int64_t j) { return (i * 7 + j * 5 + head) % 3 != 0; }

// The keys of the sequence that the query is in.
Range sequence_of(const Made& m, std::int64_t item, std::int64_t i) {
  const std::int64_t length = length_of(m, item);
  if (!m.has("documents")) return {0, length};
  const std::int32_t own = document_of(m.setup, item, i);
  if (own < 0) return {0, 0};
  Range range{i, i + 1};
  while (range.begin > 0 && document_of(m.setup, item, range.begin - 1) == own) --range.begin;
  while (range.end < m.setup.keys && document_of(m.setup, item, range.end) == own) ++range.end;
  return {range.begin, std::clamp(length, range.begin, range.end)};
}

// `centre`: of local_p.
bool is_visible(const Made& m, std::int64_t item, std::int64_t head, std::int64_t i, std::int64_t j, double centre) {
  const std::int64_t place = i + m.setup.offset;
  const Range sequence = sequence_of(m, item, i);
  if (j < sequence.begin || j >= sequence.end) return false;
  for (const Term& scope : m.line.scopes) {
    if (scope.name == "causal" && j > place) return false;
    if (scope.name == "window" && static_cast<double>(std::abs(j - place)) > *number_of(scope, "distance"))
      return false;
    if (scope.name == "mask" && !mask_of(head, i, j)) return false;
    if (scope.name == "local_p" && std::abs(static_cast<double>(j) - centre) > *number_of(scope, "distance")) {
      return false;
    }
  }
  return true;
}

Attention call(const Made& m, Tape& tape, std::span<const Var> x, Items items) {
  const Setup& s = m.setup;
  const std::int64_t count = items.count();
  const auto at = [&](std::size_t place) { return place == Made::kNone ? Var() : x[place]; };
  std::vector<std::int32_t> lengths;
  std::vector<std::uint64_t> ids;
  AttendOptions options;
  options.dropout = s.dropout;
  options.key = kDropoutKey;
  options.heads = s.heads;
  options.hidden = s.hidden;
  options.draws = s.draws;
  options.learned = x.subspan(m.first_learned, m.learned.size());
  options.query_tokens = at(m.query_tokens);
  options.key_tokens = at(m.key_tokens);
  if (s.offset != 0 || s.queries != s.keys) options.first_query = s.offset;
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    lengths.push_back(length_of(m, item));
    ids.push_back(static_cast<std::uint64_t>(item));
  }
  if (m.has("lengths")) options.lengths = lengths;
  options.ids = ids;
  if (m.has("documents")) {
    options.documents = Tensor::empty({count, s.keys}, DType::kI32);
    for (std::int64_t i = 0; i < count * s.keys; ++i) {
      options.documents.data<std::int32_t>()[i] = document_of(s, items.begin + i / s.keys, i % s.keys);
    }
  }
  if (m.has("mask")) {
    options.mask = Tensor::empty({1, s.heads, s.queries, s.keys}, DType::kI8);
    for (std::int64_t i = 0; i < options.mask.size(); ++i) {
      options.mask.data<std::int8_t>()[i] = mask_of(i / s.keys / s.queries, i / s.keys % s.queries, i % s.keys) ? 1 : 0;
    }
  }
  if (!s.bias.empty()) options.bias = x[m.bias];
  Var q = at(m.q), k = at(m.k);
  const DType type = x[m.first_learned == 0 ? 0 : m.first_learned - 1].dtype();
  if (!m.needs.rows && !m.needs.query_tokens) q = blank(tape, {count, s.heads, s.queries, 1}, type);  // how many, alone
  if (!m.needs.rows && !m.needs.key_tokens) k = blank(tape, {count, s.groups, s.keys, 1}, type);
  return attend(m.mechanism, q, k, at(m.v), options);
}

// One pair of one head of one item, as a formula sees it.
struct Pair {
  const Made* m;
  std::span<const Numbers> x;
  std::int64_t item, head, i, j, first_item;

  std::span<const Scalar> rows(std::size_t input, std::int64_t row) const {
    const std::int64_t width = x[input].shape[-1];
    return std::span<const Scalar>(x[input].all)
        .subspan(static_cast<std::size_t>(row * width), static_cast<std::size_t>(width));
  }
  std::span<const Scalar> q() const { return rows(m->q, (item * m->setup.heads + head) * m->setup.queries + i); }
  std::span<const Scalar> k() const {
    const std::int64_t group = head / (m->setup.heads / m->setup.groups);
    return rows(m->k, (item * m->setup.groups + group) * m->setup.keys + j);
  }
  std::span<const Scalar> query_token() const { return rows(m->query_tokens, item * m->setup.queries + i); }
  std::span<const Scalar> key_token() const { return rows(m->key_tokens, item * m->setup.keys + j); }
};

// What a stage learned, taken one after another.
struct Taken {
  const Pair* pair;
  std::size_t next;
  const Numbers& take() { return pair->x[next++]; }
};

// Feature c of what a map makes of a token, for this head: Σ_a token_a·W[a, head·hidden + c] + b.
Scalar mapped(const Pair& pair, std::span<const Scalar> token, const Numbers& w, const Numbers* b, std::int64_t hidden,
              std::int64_t c) {
  const std::int64_t column = pair.head * hidden + c, columns = w.shape[1];
  Scalar sum = b == nullptr ? Scalar(0) : (*b)[column];
  for (std::size_t a = 0; a < token.size(); ++a) sum += token[a] * w[static_cast<std::int64_t>(a) * columns + column];
  return sum;
}

using ScoreFormula = Scalar (*)(const Term&, const Pair&, Taken&);
const std::map<std::string, ScoreFormula>& score_formulas();

Scalar product(std::span<const Scalar> a, std::span<const Scalar> b) {
  Scalar sum(0);
  for (std::size_t c = 0; c < a.size(); ++c) sum += a[c] * b[c];
  return sum;
}
Scalar scaled(const Scalar& x, std::size_t width) {
  return width == 0 ? x : x * Scalar(1 / std::sqrt(static_cast<double>(width)));
}
Scalar cosine(const Term& term, std::span<const Scalar> q, std::span<const Scalar> k) {
  const Scalar sum = product(q, k) * Scalar(*number_of(term, "beta"));
  return q.empty() ? sum : sum / (sqrt(product(q, q)) * sqrt(product(k, k)));
}
Scalar additive(const Term& term, const Pair& pair, Taken& learned, bool has_bias) {
  const Numbers &wq = learned.take(), &wk = learned.take(), &theta = learned.take();
  const Numbers* b = has_bias ? &learned.take() : nullptr;
  const std::int64_t hidden = hidden_of(term, pair.m->sizes);
  Scalar sum(0);
  for (std::int64_t c = 0; c < hidden; ++c) {
    sum += theta[pair.head * hidden + c] * tanh(mapped(pair, pair.query_token(), wq, nullptr, hidden, c) +
                                                mapped(pair, pair.key_token(), wk, b, hidden, c));
  }
  return sum;
}
std::vector<Scalar> projected(const Term& term, const Pair& pair, std::span<const Scalar> token, const Numbers& w) {
  std::vector<Scalar> all;
  const std::int64_t hidden = hidden_of(term, pair.m->sizes);
  for (std::int64_t c = 0; c < hidden; ++c) all.push_back(mapped(pair, token, w, nullptr, hidden, c));
  return all;
}
std::vector<Scalar> synthesizer_hidden(const Term& term, const Pair& pair, Taken& learned) {
  const Numbers &w = learned.take(), &b = learned.take();
  const std::int64_t hidden = hidden_of(term, pair.m->sizes);
  std::vector<Scalar> all;
  for (std::int64_t c = 0; c < hidden; ++c) {
    const Scalar x = mapped(pair, pair.query_token(), w, &b, hidden, c);
    all.push_back(x.value > 0 || std::isnan(x.value) ? x : Scalar(0));
  }
  return all;
}
std::vector<Scalar> turned(std::span<const Scalar> x, std::int64_t position, double base) {
  std::vector<Scalar> all(x.size());
  for (std::size_t c = 0; c < x.size(); c += 2) {
    const double angle =
        static_cast<double>(position) * std::pow(base, -static_cast<double>(c) / static_cast<double>(x.size()));
    all[c] = x[c] * Scalar(std::cos(angle)) - x[c + 1] * Scalar(std::sin(angle));
    all[c + 1] = x[c] * Scalar(std::sin(angle)) + x[c + 1] * Scalar(std::cos(angle));
  }
  return all;
}
std::int64_t distance_row(const Term& term, const Pair& pair) {
  const auto most = static_cast<std::int64_t>(*number_of(term, "distance"));
  return std::clamp(pair.j - pair.i - pair.m->setup.offset, -most, most) + most;
}
Scalar score_of(const Term& term, const Pair& pair, Taken& learned) {
  return score_formulas().at(term.name)(term, pair, learned);
}

const std::map<std::string, ScoreFormula>& score_formulas() {
  static const std::map<std::string, ScoreFormula> all = {
      {"dot", [](const Term&, const Pair& pair, Taken&) { return product(pair.q(), pair.k()); }},
      {"scaled_dot",
       [](const Term&, const Pair& pair, Taken&) { return scaled(product(pair.q(), pair.k()), pair.q().size()); }},
      {"cosine", [](const Term& term, const Pair& pair, Taken&) { return cosine(term, pair.q(), pair.k()); }},
      {"general",
       [](const Term&, const Pair& pair, Taken& learned) {
         const Numbers& w = learned.take();
         const auto q = pair.q(), k = pair.k();
         Scalar sum(0);
         for (std::size_t a = 0; a < q.size(); ++a) {
           for (std::size_t b = 0; b < k.size(); ++b) {
             sum += q[a] *
                    w[(pair.head * w.shape[1] + static_cast<std::int64_t>(a)) * w.shape[2] +
                      static_cast<std::int64_t>(b)] *
                    k[b];
           }
         }
         return sum;
       }},
      {"additive",
       [](const Term& term, const Pair& pair, Taken& learned) { return additive(term, pair, learned, true); }},
      {"concat",
       [](const Term& term, const Pair& pair, Taken& learned) { return additive(term, pair, learned, false); }},
      {"projected",
       [](const Term& term, const Pair& pair, Taken& learned) {
         const std::vector<Scalar> q = projected(term, pair, pair.query_token(), learned.take());
         const std::vector<Scalar> k = projected(term, pair, pair.key_token(), learned.take());
         return scaled(product(q, k), q.size());
       }},
      {"location",
       [](const Term&, const Pair& pair, Taken& learned) {
         const Numbers& w = learned.take();
         const auto token = pair.query_token();
         Scalar sum(0);
         for (std::size_t c = 0; c < token.size(); ++c) {
           sum += w[(pair.head * w.shape[1] + pair.j) * w.shape[2] + static_cast<std::int64_t>(c)] * token[c];
         }
         return sum;
       }},
      {"dense_synth",
       [](const Term& term, const Pair& pair, Taken& learned) {
         const std::vector<Scalar> hidden = synthesizer_hidden(term, pair, learned);
         const Numbers &w = learned.take(), &b = learned.take();
         Scalar sum = b[pair.head * b.shape[1] + pair.j];
         for (std::size_t c = 0; c < hidden.size(); ++c) {
           sum += hidden[c] * w[(pair.head * w.shape[1] + pair.j) * w.shape[2] + static_cast<std::int64_t>(c)];
         }
         return sum;
       }},
      {"random_synth",
       [](const Term&, const Pair& pair, Taken& learned) {
         const Numbers& r = learned.take();
         return r[(pair.head * r.shape[1] + pair.i + pair.m->setup.offset) * r.shape[2] + pair.j];
       }},
      {"factorized_random_synth",
       [](const Term&, const Pair& pair, Taken& learned) {
         const Numbers &rows = learned.take(), &columns = learned.take();
         const std::int64_t rank = rows.shape[2], i = pair.i + pair.m->setup.offset;
         Scalar sum(0);
         for (std::int64_t c = 0; c < rank; ++c) {
           sum += rows[(pair.head * rows.shape[1] + i) * rank + c] *
                  columns[(pair.head * columns.shape[1] + pair.j) * rank + c];
         }
         return sum;
       }},
      {"factorized_dense_synth",
       [](const Term& term, const Pair& pair, Taken& learned) {
         const std::vector<Scalar> hidden = synthesizer_hidden(term, pair, learned);
         const Numbers &w = learned.take(), &b = learned.take();
         const auto output = [&](std::int64_t column) {
           Scalar sum = b[pair.head * b.shape[2] + column];
           for (std::size_t c = 0; c < hidden.size(); ++c) {
             sum += hidden[c] * w[(pair.head * w.shape[1] + static_cast<std::int64_t>(c)) * w.shape[2] + column];
           }
           return sum;
         };
         const auto a = static_cast<std::int64_t>(*number_of(term, "a"));
         const auto count = static_cast<std::int64_t>(*number_of(term, "b"));
         return output(pair.j / count) * output(a + pair.j % count);
       }},
      {"relative",
       [](const Term& term, const Pair& pair, Taken& learned) {
         const Numbers& table = learned.take();
         const auto q = pair.q(), k = pair.k();
         const std::int64_t row = pair.head * table.shape[1] + distance_row(term, pair);
         Scalar sum(0);
         for (std::size_t c = 0; c < q.size(); ++c) {
           sum += q[c] * (k[c] + table[row * table.shape[2] + static_cast<std::int64_t>(c)]);
         }
         return scaled(sum, q.size());
       }},
      {"rotary",
       [](const Term& term, const Pair& pair, Taken& learned) {
         const Term& inner = term.inner.at(0);
         std::vector<Scalar> q(pair.m->needs.rows ? pair.q().begin() : pair.query_token().begin(),
                               pair.m->needs.rows ? pair.q().end() : pair.query_token().end());
         std::vector<Scalar> k(pair.m->needs.rows ? pair.k().begin() : pair.key_token().begin(),
                               pair.m->needs.rows ? pair.k().end() : pair.key_token().end());
         if (inner.name == "projected") {
           q = projected(inner, pair, q, learned.take());
           k = projected(inner, pair, k, learned.take());
         }
         const double base = *number_of(term, "base");
         const std::int64_t begin =
             pair.m->has("documents") ? sequence_of(*pair.m, pair.first_item + pair.item, pair.i).begin : 0;
         q = turned(q, pair.i + pair.m->setup.offset - begin, base);
         k = turned(k, pair.j - begin, base);
         if (inner.name == "cosine") return cosine(inner, q, k);
         return inner.name == "dot" ? product(q, k) : scaled(product(q, k), q.size());
       }},
      {"mixture",
       [](const Term& term, const Pair& pair, Taken& learned) {
         const Numbers& numbers = learned.take();
         const std::int64_t count = numbers.shape[1];
         Scalar mass(0), sum(0);
         for (std::int64_t m = 0; m < count; ++m) mass += exp(numbers[pair.head * count + m]);
         for (std::int64_t m = 0; m < count; ++m) {
           sum += exp(numbers[pair.head * count + m]) / mass *
                  score_of(term.inner.at(static_cast<std::size_t>(m)), pair, learned);
         }
         return sum;
       }},
  };
  return all;
}

// Where local_p looks: S·σ(v_pᵀ tanh(W_p x)).
Scalar centre_of(const Made& m, const Pair& pair, std::int64_t item) {
  for (const Term& scope : m.line.scopes) {
    if (scope.name != "local_p") continue;
    Taken learned{&pair, m.first_learned + m.mechanism.stages()
                                               .learned(completed(m.sizes))
                                               .scopes[static_cast<std::size_t>(&scope - m.line.scopes.data())]
                                               .begin};
    const Numbers &w = learned.take(), &theta = learned.take();
    const std::int64_t hidden = hidden_of(scope, m.sizes);
    Scalar sum(0);
    for (std::int64_t c = 0; c < hidden; ++c) {
      sum += theta[pair.head * hidden + c] * tanh(mapped(pair, pair.query_token(), w, nullptr, hidden, c));
    }
    const Range sequence = sequence_of(m, item, pair.i);
    return Scalar(static_cast<double>(sequence.begin)) +
           Scalar(static_cast<double>(sequence.count())) / (Scalar(1) + exp(-sum));
  }
  return Scalar(0);
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

std::vector<Scalar> align_of(const Term& align, const std::vector<Scalar>& scores) {
  const std::size_t count = scores.size();
  std::vector<Scalar> p;
  if (count == 0) return p;
  Scalar peak = without_gradient(scores[0]);
  for (const Scalar& each : scores) {
    if (each.value > peak.value) peak = without_gradient(each);
  }
  if (align.name == "uniform") return std::vector<Scalar>(count, Scalar(1.0 / static_cast<double>(count)));
  if (align.name == "softmax" || align.name == "hard") {  // what hard attention expects
    const Scalar sharpness(align.name == "hard" ? 1 : 1 / *number_of(align, "temperature"));
    Scalar mass(0);
    for (const Scalar& each : scores) mass += exp((each - peak) * sharpness);
    for (const Scalar& each : scores) p.push_back(exp((each - peak) * sharpness) / mass);
    return p;
  }
  for (const Scalar& each : scores) {
    if (std::isnan(each.value)) return std::vector<Scalar>(count, each);  // nobody can say who is the largest
  }
  const Scalar share(align.name == "sparsemax" ? 1 : 0.5);
  std::vector<double> values;
  std::vector<Scalar> x;
  for (const Scalar& each : scores) {
    values.push_back(each.value);
    x.push_back((each - peak) * share);
  }
  const std::size_t support = support_of(align.name, values);
  std::sort(values.rbegin(), values.rend());
  const double least = values[support - 1];
  const Scalar size(static_cast<double>(support));
  Scalar sum(0), spread(0);
  for (std::size_t j = 0; j < count; ++j) sum += scores[j].value >= least ? x[j] : Scalar(0);
  const Scalar mean = sum / size;
  for (std::size_t j = 0; j < count; ++j) {
    spread += scores[j].value >= least ? (x[j] - mean) * (x[j] - mean) : Scalar(0);
  }
  const Scalar tau = align.name == "sparsemax" ? (sum - Scalar(1)) / size : mean - sqrt((Scalar(1) - spread) / size);
  for (std::size_t j = 0; j < count; ++j) {
    const Scalar above = x[j] - tau;
    p.push_back(scores[j].value < least ? Scalar(0) : align.name == "sparsemax" ? above : above * above);
  }
  return p;
}

std::vector<Scalar> formula(const Made& m, std::span<const Numbers> x, Items items) {
  const Setup& s = m.setup;
  std::vector<Scalar> y;
  std::vector<std::int64_t> steps(4, 0);  // of the bias
  for (std::size_t i = s.bias.size(), step = 1; i-- > 0; step *= static_cast<std::size_t>(s.bias[i])) {
    if (s.bias[i] != 1) steps[i + 4 - s.bias.size()] = static_cast<std::int64_t>(step);
  }
  const std::size_t read_table = m.first_learned + m.mechanism.stages().learned(completed(m.sizes)).read.begin;
  for (std::int64_t item = 0; item < items.count(); ++item) {
    for (std::int64_t head = 0; head < s.heads; ++head) {
      const std::int64_t group = head / (s.heads / s.groups);
      for (std::int64_t i = 0; i < s.queries; ++i) {
        Pair pair{&m, x, item, head, i, 0, items.begin};
        const Scalar centre = centre_of(m, pair, items.begin + item);
        std::vector<Scalar> scores;
        std::vector<std::int64_t> seen;
        for (std::int64_t j = 0; j < s.keys; ++j) {
          if (!is_visible(m, items.begin + item, head, i, j, centre.value)) continue;
          pair.j = j;
          Taken learned{&pair, m.first_learned};
          seen.push_back(j);
          scores.push_back(score_of(m.line.score, pair, learned));
          if (!s.bias.empty()) {
            scores.back() += x[m.bias][item * steps[0] + head * steps[1] + i * steps[2] + j * steps[3]];
          }
          if (m.has("alibi")) {
            const double slope = s.heads == 3
                                     ? std::array{1.0 / 16, 1.0 / 256, 0.25}[static_cast<std::size_t>(head)]
                                     : std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(s.heads));
            scores.back() += Scalar(-slope * static_cast<double>(std::abs(i + s.offset - j)));
          }
        }
        std::vector<Scalar> p = align_of(m.line.align, scores);
        for (std::size_t at = 0; at < seen.size(); ++at) {
          for (const Term& scope : m.line.scopes) {
            const bool unread = p[at].place < 0 && p[at].value == 0;  // what has no weight gets none
            if (scope.name != "local_p" || unread) continue;
            const double reach = *number_of(scope, "distance");
            const Scalar z = reach == 0 ? without_gradient(centre) * Scalar(0)  // the only one seen is p_i itself
                                        : (Scalar(static_cast<double>(seen[at])) - centre) / Scalar(reach / 2);
            p[at] = p[at] * exp(-(z * z) * Scalar(0.5));
          }
        }
        const auto dropped = [&](std::size_t at) {
          const RandomKey key = kDropoutKey.at(static_cast<std::uint64_t>(items.begin + item))
                                    .at(static_cast<std::uint64_t>(head))
                                    .at(static_cast<std::uint64_t>(i + s.offset));
          return s.dropout != 0 &&
                 random_bits(key, static_cast<std::uint64_t>(seen[at])) < dropout_threshold(s.dropout);
        };
        const Scalar kept(1 / (1 - static_cast<double>(s.dropout)));
        if (m.pointer()) {
          const std::size_t first = y.size();
          y.resize(first + static_cast<std::size_t>(s.keys), Scalar(0));
          for (std::size_t at = 0; at < seen.size(); ++at) {
            if (!dropped(at)) y[first + static_cast<std::size_t>(seen[at])] = p[at] * kept;
          }
          continue;
        }
        for (std::int64_t c = 0; c < s.values; ++c) {
          Scalar sum(0);
          // A softmax of NaN is NaN whatever is dropped: the sum of its values is divided by the mass.
          if (m.line.align.name == "softmax" && !p.empty() && std::isnan(p[0].value)) sum += p[0];
          for (std::size_t at = 0; at < seen.size(); ++at) {
            const bool unread = p[at].place < 0 && p[at].value == 0;  // what has no weight is not read
            if (dropped(at) || unread) continue;
            Scalar value = x[m.v][((item * s.groups + group) * s.keys + seen[at]) * s.values + c];
            if (m.line.read.name == "relative_sum") {
              pair.j = seen[at];
              const Numbers& table = x[read_table];
              value = value + table[(head * table.shape[1] + distance_row(m.line.score, pair)) * s.values + c];
            }
            sum += p[at] * kept * value;
          }
          y.push_back(sum);
        }
      }
    }
  }
  return y;
}

// On which side of the kinks of a ReLU the hidden numbers of synthesizers lie, in f64.
void add_signs(const Term& term, const AttendSizes& sizes, Var tokens, std::span<const Var> learned,
               std::vector<bool>& to) {
  std::size_t at = term.name == "mixture" ? 1 : 0;
  for (const Term& each : term.inner) {
    const std::size_t count = make_stage<Score>(each)->learned(sizes).size();
    add_signs(each, sizes, tokens, learned.subspan(at, count), to);
    at += count;
  }
  if (term.name != "dense_synth" && term.name != "factorized_dense_synth") return;
  const Tensor hidden = matmul(tokens, learned[0], {.bias = learned[1]}).value();
  for (std::int64_t i = 0; i < hidden.size(); ++i) to.push_back(hidden.data<double>()[i] > 0);
}

bool has_formula(const Term& score) {
  return score_formulas().contains(score.name) &&
         std::all_of(score.inner.begin(), score.inner.end(), [](const Term& each) { return has_formula(each); });
}
bool has_formula(const Line& line) {
  const std::vector<std::string> scopes = {"alibi",   "bias",    "causal", "documents", "global",
                                           "lengths", "local_p", "mask",   "window"};
  const std::vector<std::string> aligns = {"entmax15", "hard", "softmax", "sparsemax", "uniform"};
  const std::vector<std::string> reads = {"pointer", "relative_sum", "sum"};
  const auto holds = [](const std::vector<std::string>& all, const std::string& name) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  return has_formula(line.score) && holds(aligns, line.align.name) && holds(reads, line.read.name) &&
         std::all_of(line.scopes.begin(), line.scopes.end(),
                     [&](const Term& each) { return holds(scopes, each.name); });
}

Case attention(const Setup& s) {
  const Made m(s);
  Case made;
  made.name = text("attend ", s.line(), ", ", s.batch, " × ", s.heads, '/', s.groups, " × ", s.queries, " × ", s.keys,
                   ", width ", s.width, ", values ", s.values);
  if (s.offset != 0) made.name += text(", offset ", s.offset);
  if (s.dropout > 0) made.name += ", dropout";
  if (s.draws) made.name += ", drawn";
  if (!s.bias.empty()) made.name += ", bias";
  for (const std::int64_t size : s.bias) made.name += text(' ', size);
  made.inputs.resize(m.first_learned);
  const auto input = [&](std::size_t place, const char* name, const Shape& shape) {
    if (place != Made::kNone) made.inputs[place] = {.name = name, .shape = shape, .batched = true};
  };
  input(m.q, "q", {s.batch, s.heads, s.queries, s.width});
  input(m.k, "k", {s.batch, s.groups, s.keys, s.width});
  input(m.query_tokens, "query_tokens", {s.batch, s.queries, s.tokens});
  input(m.key_tokens, "key_tokens", {s.batch, s.keys, s.tokens});
  input(m.v, "v", {s.batch, s.groups, s.keys, s.values});
  if (s.score.find("cosine") != std::string::npos) {  // away from rows of length 0
    made.inputs[0].low = made.inputs[1].low = 0.25;
  }
  for (const Learned& each : m.learned) made.inputs.push_back({.name = "learned", .shape = each.shape});
  if (!s.bias.empty()) {
    Shape shape;
    for (const std::int64_t size : s.bias) shape = shape.plus(size);
    made.inputs.push_back({.name = "bias", .shape = shape, .batched = s.bias.size() == 4 && s.bias[0] == s.batch});
  }
  made.build = [m](Tape& tape, std::span<const Var> x, Items items) { return call(m, tape, x, items).context; };
  if (has_formula(m.line) && !s.draws) {
    made.formula = [m](std::span<const Numbers> x, Items items) { return formula(m, x, items); };
  }
  const bool steps = m.line.align.name == "sparsemax" || m.line.align.name == "entmax15" || m.has("local_p");
  const bool bends = s.score.find("dense_synth") != std::string::npos;
  if (steps || bends) {  // a kink where a key gets or loses its weight, or where a ReLU begins
    made.pieces = [m, steps](Tape& tape, std::span<const Var> x, Items items) {
      std::vector<bool> pieces;
      if (m.query_tokens != Made::kNone) {
        add_signs(m.line.score, completed(m.sizes), x[m.query_tokens], x.subspan(m.first_learned, m.learned.size()),
                  pieces);
      }
      const AttendTrace trace = call(m, tape, x, items).trace;
      for (std::int64_t item = 0; item < items.count() && steps; ++item) {
        for (std::int64_t head = 0; head < m.setup.heads; ++head) {
          const Tensor weights = trace.weights({.item = item, .head = head});
          for (std::int64_t i = 0; i < weights.size(); ++i) pieces.push_back(weights.data<double>()[i] > 0);
        }
      }
      return pieces;
    };
  }
  bool any = m.has("local_p");
  for (std::int64_t item = 0; item < s.batch && !any; ++item) {
    for (std::int64_t i = 0; i < s.queries * s.keys * s.heads; ++i) {
      any |= is_visible(m, item, i / (s.queries * s.keys), i / s.keys % s.queries, i % s.keys, 0);
    }
  }
  made.flat = !any || (m.pointer() && s.align == "uniform" && !m.has("local_p"));
  return made;
}

template <class F>
std::vector<std::string> examples(std::int64_t longest) {
  std::vector<std::string> all;
  for (const auto& [name, make] : Registry<F>::all()) all.push_back(example_of(*find_card(name), longest));
  return all;
}

}  // namespace

template <>
Row row<Op::attend>() {
  Row made{.op = Op::attend,
           .formula = "y_i = Σ_j p_ij·v_j, p_i = align(score(q_i, k_j) + scope(i, j))",
           .cases = {},
           .bad = {},
           .large = {}};
  for (const std::string& score : examples<Score>(5)) {
    for (const std::string& scope : examples<Scope>(5)) {
      for (const std::string& align : examples<Align>(5)) {
        const bool draws = make_stage<Align>(parse_line("dot | " + align).align)->draws();
        Setup s{.score = score, .align = align + (draws ? ":expected" : ""), .scopes = {scope}};
        if (scope == "bias") s.bias = {5};
        const bool positions = find_card(parse_line(score).score.name)->arguments.size() > 0 &&
                               find_card(parse_line(score).score.name)->arguments[0].grows;
        if (scope == "documents" && (positions || score.starts_with("factorized_dense"))) continue;  // refused
        made.cases.push_back(attention(s));
      }
    }
  }
  const auto add = [&](const Setup& s) { made.cases.push_back(attention(s)); };
  const auto large = [&](const Setup& s) { made.large.push_back(attention(s)); };
  const Setup plain;
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
  const Setup wide = scoped(plain, {"causal", "window:40"});
  add(sized(wide, 1, 1, 1, 260, 260, 2, 1));
  Setup behind = scoped(plain, {"causal", "alibi"});
  behind.offset = 126;
  add(sized(behind, 1, 2, 1, 5, 131, 3, 2));
  behind.dropout = 0.25f;
  add(sized(behind, 1, 2, 1, 5, 131, 3, 2));
  add(sized(scoped(plain, {"documents", "causal"}), 2, 2, 1, 37, 37, 3, 2));
  add(sized(scoped(plain, {"lengths", "mask", "window:2"}), 3, 2, 2, 7, 7, 3, 2));
  // Bias: of its own for everything, and spread over items, heads, queries or keys.
  for (const std::vector<std::int64_t>& sizes : std::vector<std::vector<std::int64_t>>{
           {2, 2, 5, 5}, {2, 5, 5}, {5, 5}, {2, 1, 5, 1}, {1, 2, 1, 5}, {5}, {1, 1, 1, 1}}) {
    Setup s = scoped(plain, {"causal"});
    s.bias = sizes;
    made.cases.push_back(attention(s));
  }
  Setup both{.score = "additive", .align = "entmax15", .scopes = {"causal"}};
  both.bias = {2, 5, 5};
  add(both);
  for (const char* align : {"softmax", "sparsemax", "entmax15", "uniform"}) {
    Setup s = scoped(plain, {"causal"});
    s.align = align;
    s.dropout = 0.25f;
    add(s);
  }
  Setup sharp = plain;
  sharp.align = "softmax:temperature=0.5";
  add(sharp);
  // The reads, and scores within scores.
  for (const char* line : {"pointer", "relative_sum"}) {
    for (const char* align : {"softmax", "sparsemax"}) {
      for (const char* scope : {"causal", "local_p:1"}) {
        Setup s{.score = "relative:1", .align = align, .read = line, .scopes = {scope, "lengths"}};
        add(s);
        s.dropout = 0.25f;
        add(s);
      }
    }
  }
  Setup pointing{.score = "random_synth:5", .align = "softmax", .read = "pointer"};
  add(pointing);
  for (const char* score : {"mixture(random_synth:7, dense_synth:9, cosine:beta=2)", "rotary(projected)",
                            "mixture(mixture(relative:1, additive), rotary:base=10(dot), factorized_dense_synth:3,2)",
                            "rotary:base=100(cosine)", "dense_synth:8,hidden=3", "factorized_random_synth:6,rank=2"}) {
    add({.score = score, .scopes = {"causal"}});
    add({.score = score, .align = "sparsemax", .scopes = {"lengths", "local_p:2"}});
  }
  // local_p at both borders.
  for (const std::int64_t keys : {1, 2, 20}) {
    for (const char* scope : {"local_p:0", "local_p:1", "local_p:5"}) {
      add(sized(scoped(plain, {scope}), 2, 1, 1, 3, keys, 2, 1));
      made.cases.back().flat = keys == 1 || std::string(scope) == "local_p:0";
    }
  }

  for (const char* align : {"softmax", "sparsemax", "entmax15"}) {
    for (const char* score : {"scaled_dot", "cosine", "additive"}) {
      Setup s{.score = score, .align = align, .scopes = {"causal", "lengths"}};
      s.dropout = 0.1f;
      s.bias = {1, 2, 1, 133};
      large(sized(s, 3, 2, 1, 133, 133, 19, 21));
    }
  }
  large(sized(scoped(plain, {"causal", "window:70"}), 1, 4, 2, 400, 400, 16, 33));
  for (const std::string& score : examples<Score>(133)) {
    Setup s{.score = score, .scopes = {"lengths", "local_p:20"}};
    large(sized(s, 2, 2, 1, 133, 133, 18, 21));
  }
  for (const char* align : {"hard:samples=3", "hard:samples=2,gumbel,temperature=0.5"}) {
    for (const bool draws : {true, false}) {
      Setup s{.align = align, .scopes = {"causal", "lengths"}};
      s.draws = draws;
      large(sized(s, 3, 2, 1, 133, 133, 19, 21));
    }
  }
  large(sized(scoped(plain, {"documents"}), 2, 2, 1, 301, 301, 8, 8));
  large(sized(plain, 1, 1, 1, 200, 0, 8, 8));

  const auto refuse = [&](const char* what, std::function<void(Tape&)> bad, std::vector<std::string> words) {
    words.emplace_back("attend");
    made.bad.push_back({what, std::move(bad), std::move(words)});
  };
  const Mechanism simple("scaled_dot"), causal("scaled_dot | causal");
  const auto shapes = [simple](const Shape& q, const Shape& k, const Shape& v, const AttendOptions& options = {}) {
    return [=](Tape& t) { attend(simple, blank(t, q), blank(t, k), blank(t, v), options); };
  };
  refuse("three dimensions", shapes({2, 3, 4}, {2, 3, 4}, {2, 3, 4}), {"[2, 3, 4]", "four"});
  refuse("batches differ", shapes({1, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 4}), {"[1, 2, 3, 4]", "[2, 2, 5, 4]"});
  refuse("widths differ", shapes({2, 2, 3, 4}, {2, 2, 5, 3}, {2, 2, 5, 4}), {"width", "[2, 2, 5, 3]"});
  refuse("lengths differ", shapes({2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 6, 4}), {"keys", "values", "5 and 6"});
  refuse("heads that do not divide", shapes({2, 3, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 4}), {"heads", "[2, 3, 3, 4]"});
  refuse("learned tensors for a score that learns nothing",
         [=](Tape& t) {
           const Var x = blank(t, {1, 1, 2, 3});
           const std::vector<Var> learned = {x};
           attend(simple, x, x, x, {.learned = learned});
         },
         {"1 learned", "learns 0"});
  refuse("too little that is learned",
         [=](Tape& t) {
           const Var x = blank(t, {1, 1, 2, 3});
           attend(Mechanism("additive"), x, x, x);
         },
         {"0 learned", "learns 4"});
  refuse("a learned tensor of another shape",
         [=](Tape& t) {
           const Var x = blank(t, {1, 1, 2, 3});
           const std::vector<Var> learned = {blank(t, {1, 3, 4})};
           attend(Mechanism("general"), x, x, x, {.learned = learned});
         },
         {"learned[0]", "'general'", "[1, 3, 4]", "[1, 3, 3]"});
  refuse("longer than it was made for",
         [=](Tape& t) {
           const Var x = blank(t, {1, 1, 5, 3});
           const std::vector<Var> learned = {blank(t, {1, 4, 3})};
           attend(Mechanism("location:4"), x, x, x, {.learned = learned});
         },
         {"location:4", "5 keys"});
  refuse("several heads without tokens",
         [=](Tape& t) {
           const Var x = blank(t, {1, 2, 5, 3});
           attend(Mechanism("additive"), x, x, x);
         },
         {"2 heads", "query_tokens"});
  refuse("an odd width to be turned",
         [=](Tape& t) {
           const Var x = blank(t, {1, 1, 5, 3});
           attend(Mechanism("rotary(dot)"), x, x, x);
         },
         {"width 3", "even"});
  refuse("causal without a first query",
         [=](Tape& t) {
           attend(causal, blank(t, {1, 1, 2, 3}), blank(t, {1, 1, 4, 3}), blank(t, {1, 1, 4, 3}));
         },
         {"causal", "2 queries", "4 keys", "first_query"});
  refuse("lengths that are not given",
         [=](Tape& t) {
           const Var x = blank(t, {1, 1, 2, 3});
           attend(Mechanism("scaled_dot | lengths"), x, x, x);
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
  refuse("an entropy of what is not drawn", shapes({1, 1, 2, 3}, {1, 1, 4, 3}, {1, 1, 4, 3}, {.entropy = 0.5f}),
         {"entropy 0.5", "softmax", "hard"});
  refuse("types differ",
         [=](Tape& t) {
           const Var x = blank(t, {1, 1, 2, 3});
           attend(simple, x, blank(t, {1, 1, 2, 3}, DType::kF64), x);
         },
         {"f32", "f64"});
  return made;
}

}  // namespace regard::verify
