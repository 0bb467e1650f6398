// Ten thousand random calls of attend: mechanism × shape × mask × poison. Every call is compared with formulas in f64,
// with its own weights, and bit for bit with calls that have to give the same: one query at a time, a prefix of the
// keys, one item alone, other threads, another target, more padding, documents apart, stage after stage.
//
//     test_attention --gtest_filter='Property.*' --cases=100000
//     test_attention --gtest_filter='Property.*' --seed=4711 --cases=1          // repeats what a failure names
//
// Case n has the seed --seed + n.
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

#include "attention/random_call.h"
#include "base/pool.h"
#include "kernels/dropout.h"
#include "kernels/target.h"
#include "support/cases.h"
#include "verify/checks.h"

namespace regard::random_call {
namespace {

std::uint64_t first_seed = 1;
int asked_cases = 0;  // 0: as many as usual

constexpr double kBound = verify::kKernelBound;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

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
  const double peak = sorted[0], half = c.line.align.name == "entmax15" ? 0.5 : 1;
  double sum = 0, squares = 0, tau = 0, mass = 0;
  for (std::size_t n = 1; n <= count; ++n) {  // Martins and Astudillo 2016; Peters, Niculae and Martins 2019
    const double x = (sorted[n - 1] - peak) * half, number = static_cast<double>(n);
    sum += x;
    squares += x * x;
    mass += std::exp((sorted[n - 1] - peak) / c.temperature);
    const double spread = squares - sum * sum / number;
    const double root = c.line.align.name == "entmax15" ? sum / number - std::sqrt(std::max(0.0, (1 - spread) / number))
                                                        : (sum - 1) / number;
    if (root <= x) tau = root;
  }
  for (std::size_t j = 0; j < count; ++j) {
    const double x = (scores[j] - peak) * half, above = std::max(0.0, x - tau);
    double &p = made.weights[j], &slope = made.slopes[j];
    if (c.line.align.name == "softmax") {
      p = std::exp(x / c.temperature) / mass;
      slope = p / c.temperature;
    } else if (c.line.align.name == "uniform") {
      p = 1 / static_cast<double>(count);
    } else if (c.line.align.name == "sparsemax") {
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
double plain_score(const Case& c, const double* q, const double* k) {
  double sum = 0, q_square = 0, k_square = 0;
  for (std::int64_t x = 0; x < c.width; ++x) {
    sum += q[x] * k[x];
    q_square += q[x] * q[x];
    k_square += k[x] * k[x];
  }
  const double lengths = std::sqrt(q_square) * std::sqrt(k_square);
  return c.line.score.name != "cosine" ? c.scale * sum : lengths == 0 ? 0 : c.scale * sum / lengths;
}
void plain_backward(const Case& c, const double* q, const double* k, double ds, double* dq, double* dk) {
  double q_square = 0, k_square = 0, cosine = 0;
  for (std::int64_t x = 0; x < c.width; ++x) {
    q_square += q[x] * q[x];
    k_square += k[x] * k[x];
    cosine += q[x] * k[x];
  }
  const double q_length = std::sqrt(q_square), k_length = std::sqrt(k_square);
  if (c.line.score.name == "cosine" && q_length * k_length == 0) return;
  cosine /= q_length * k_length;
  for (std::int64_t x = 0; x < c.width; ++x) {
    if (c.line.score.name == "cosine") {
      const double u = q[x] / q_length, w = k[x] / k_length;
      dq[x] += ds * c.scale * (w - u * cosine) / q_length;
      dk[x] += ds * c.scale * (u - w * cosine) / k_length;
    } else {
      dq[x] += ds * c.scale * k[x];
      dk[x] += ds * c.scale * q[x];
    }
  }
}

bool is_plain(const Case& c) {
  const std::set<std::string> scores = {"cosine", "dot", "scaled_dot"};
  const std::set<std::string> aligns = {"entmax15", "softmax", "sparsemax", "uniform"};
  return scores.contains(c.line.score.name) && aligns.contains(c.line.align.name) && c.line.read.name == "sum" &&
         std::all_of(c.line.scopes.begin(), c.line.scopes.end(), is_known);
}

// Press, Smith and Lewis 2022: powers of 2^(−8/H); if H is no power of two, those of the power below, then every second
// one of the power above.
double alibi_slope(std::int64_t heads, std::int64_t head) {
  std::int64_t power = 1;
  while (2 * power <= heads) power *= 2;
  std::vector<double> slopes;
  for (std::int64_t i = 1; i <= power; ++i)
    slopes.push_back(std::pow(2.0, -8.0 * static_cast<double>(i) / static_cast<double>(power)));
  for (std::int64_t i = 1; i <= 2 * power; i += 2) {
    slopes.push_back(std::pow(2.0, -8.0 * static_cast<double>(i) / static_cast<double>(2 * power)));
  }
  return slopes[size(head)];
}

// The whole call in f64, a formula a pair. Of names that are not known here: attend itself in f64.
Outcome plain_run(const Case& c) {
  if (!is_plain(c)) return run(c.clean, Weights::kPlain, DType::kF64);
  const Call& call = c.clean;
  Outcome made;
  std::vector<Tensor> inputs = {call.dy, call.q, call.k, {}, {}, call.v, call.bias};
  made.parts.resize(inputs.size());
  std::vector<const double*> from(inputs.size());
  std::vector<double*> to(inputs.size());
  for (std::size_t part = 0; part < inputs.size(); ++part) {
    if (!inputs[part].defined()) continue;
    made.parts[part] = Tensor::zeros(inputs[part].shape(), DType::kF64);
    inputs[part] = inputs[part].to(DType::kF64);
    from[part] = inputs[part].data<double>();
    to[part] = made.parts[part].data<double>();
  }
  const std::vector<std::int32_t> places = bias_places(c);
  const std::int64_t alibis =
      std::count_if(c.line.scopes.begin(), c.line.scopes.end(), [](const Term& each) { return each.name == "alibi"; });
  for (std::int64_t map = 0; map < c.batch * c.heads; ++map) {
    made.weights.push_back(Tensor::zeros({c.queries, c.keys}, DType::kF64));
    const std::int64_t item = map / c.heads, head = map % c.heads;
    const std::int64_t first_key = (item * c.groups + c.group(head)) * c.keys;
    const double slope = alibi_slope(c.heads, head);
    for (std::int64_t i = 0; i < c.queries; ++i) {
      const std::int64_t row = map * c.queries + i;
      const double *q = from[kQueries] + row * c.width, *dy = from[kContext] + row * c.values;
      std::vector<std::int64_t> seen;
      std::vector<double> s;
      for (std::int64_t j = 0; j < c.keys; ++j) {
        if (!c.sees(item, head, i, j)) continue;
        seen.push_back(j);
        const double distance = static_cast<double>(std::abs(i + call.place() - j));
        s.push_back(plain_score(c, q, from[kKeys] + (first_key + j) * c.width) -
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
        plain_backward(c, q, from[kKeys] + of_key, ds, to[kQueries] + row * c.width, to[kKeys] + of_key);
        if (!places.empty()) to[kBias][places[size(row * c.keys + j)]] += ds;
      }
    }
  }
  return made;
}

// ------------------------------------------------------------------------------------------ what a call may differ by

// The sums of magnitudes that the results of f32 are measured by; ∞ where they are not compared.
struct Terms {
  std::vector<std::vector<double>> parts;
  std::vector<double> weights;
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
// Of scores that are not known here λ and the slopes of a score are what random numbers up to one rarely exceed.
Terms find_terms(const Case& c, const Outcome& exact, const Outcome& got) {
  constexpr double kUsualLambda = 200, kUsualSlope = 64;
  const Call& call = c.clean;
  const std::string& align = c.line.align.name;
  const bool plain = is_plain(c), cosine = c.line.score.name == "cosine", hard = align == "hard";
  const double keep = 1 / (1 - static_cast<double>(call.dropout)), sharp = 1 / c.temperature;
  const double gates = std::all_of(c.line.scopes.begin(), c.line.scopes.end(), is_known) ? 1 : 8;
  const auto alibis = static_cast<double>(c.has("alibi") ? 1 : 0);
  Terms terms;
  for (const Tensor& part : exact.parts) terms.parts.emplace_back(size(part.size()), 0.0);
  terms.weights.assign(c.visible.size(), 0.0);
  const std::vector<std::int32_t> places = bias_places(c);
  double most_learned = 0, all = 0;
  for (const Tensor& x : call.learned) most_learned = std::max(most_learned, largest(x.data<float>(), x.size()));
  const double most_bias = call.bias.defined() ? largest(call.bias.data<float>(), call.bias.size()) : 0;
  const auto spread = [&](Part part, std::int64_t row, double amount) {
    if (terms.parts[part].empty()) return;
    const std::size_t width = size(exact.parts[part][-1]);
    for (std::size_t x = 0; x < width; ++x) terms.parts[part][size(row) * width + x] += amount;
  };
  std::vector<double> slope(size(c.keys)), bend(size(c.keys)), reach(size(c.keys));
  for (std::int64_t row = 0; row < c.batch * c.heads * c.queries; ++row) {
    const std::int64_t map = row / c.queries, i = row % c.queries, item = map / c.heads, head = map % c.heads;
    const std::int64_t first_key = (item * c.groups + c.group(head)) * c.keys;
    const double* p = exact.weights[size(map)].data<double>() + i * c.keys;
    const float* p32 = got.weights[size(map)].data<float>() + i * c.keys;
    const float* dy = call.dy.data<float>() + row * c.values;
    const float* q = plain ? call.q.data<float>() + row * c.width : nullptr;
    const auto key = [&](std::int64_t j) { return call.k.data<float>() + (first_key + j) * c.width; };
    const auto value = [&](std::int64_t j) { return call.v.data<float>() + (first_key + j) * c.values; };
    bool any = false, kink = false;
    double lambda = 0;
    for (std::int64_t j = 0; j < c.keys; ++j) {
      const bool different =
          (p[j] == 0) != (p32[j] == 0) && (align != "softmax" || std::max<double>(p[j], p32[j]) > 1e-6);
      kink |= different || (hard && std::abs(p[j] - static_cast<double>(p32[j])) > 1e-3);  // another key was drawn
      if (!c.sees(item, head, i, j)) continue;
      any = true;
      double of_score = plain ? 0 : kUsualLambda;
      for (std::int64_t x = 0; x < c.width && plain && !cosine; ++x) {
        of_score += c.scale * std::abs(static_cast<double>(q[x]) * static_cast<double>(key(j)[x]));
      }
      if (plain && cosine) of_score = c.scale;
      of_score += alibis * static_cast<double>(std::abs(i + call.place() - j));
      lambda = std::max(lambda, of_score + most_bias);
    }
    terms.rows += any ? 1 : 0;
    terms.kinks += kink ? 1 : 0;

    double mean = 0, slopes = 0, doubt = 0, of_table = 0;
    for (std::int64_t x = 0; x < c.values && !plain; ++x)
      of_table += (1 + most_learned) * std::abs(static_cast<double>(dy[x]));
    for (std::int64_t j = 0; j < c.keys; ++j) {
      const bool some = p[j] != 0 || p32[j] != 0;
      const std::size_t at = size(j);
      slope[at] = gates * (align == "softmax"    ? p[j] * sharp
                           : align == "uniform"  ? 0
                           : align == "entmax15" ? std::sqrt(p[j])
                                                 : (some ? 1 : 0));
      bend[at] = gates * (align == "softmax"                           ? p[j] * sharp * sharp
                          : align == "uniform" || align == "sparsemax" ? 0
                                                                       : (some ? 1 : 0));
      if (gates > 1 && some) slope[at] += p[j] * kUsualSlope;  // where the gate stands
      terms.weights[size(row * c.keys + j)] = kink ? kInfinite : p[j] + 2 * lambda * slope[at];
      reach[at] = some ? keep * of_table : 0;
      for (std::int64_t x = 0; x < c.values && some && !call.pointer; ++x) {
        reach[at] += keep * std::abs(static_cast<double>(dy[x]) * static_cast<double>(value(j)[x]));
      }
      if (call.pointer) reach[at] = keep * std::abs(static_cast<double>(dy[j]));
      mean += slope[at] * reach[at];
      slopes += slope[at];
    }
    mean = slopes > 0 ? mean / slopes : 0;
    for (std::size_t at = 0; at < size(c.keys); ++at) doubt += 2 * lambda * bend[at] * (reach[at] + mean);
    doubt = slopes > 0 ? doubt / slopes : 0;
    for (std::int64_t j = 0; j < c.keys; ++j) {
      const std::size_t at = size(j);
      if (p[j] == 0 && p32[j] == 0) continue;
      double weight = keep * (p[j] + 2 * lambda * slope[at] + (kink ? 2 * lambda : 0));
      if (kink && (gates > 1 || hard)) weight = kInfinite;
      if (call.pointer) terms.parts[kContext][size(row * c.keys + j)] += weight;
      for (std::int64_t x = 0; x < c.values && !call.pointer; ++x) {
        terms.parts[kContext][size(row * c.values + x)] +=
            weight * (std::abs(static_cast<double>(value(j)[x])) + (plain ? 1e-300 : most_learned + 1e-300));
        terms.parts[kValues][size((first_key + j) * c.values + x)] +=
            weight * (std::abs(static_cast<double>(dy[x])) + 1e-300);
      }
      const double ds = kink ? kInfinite : (slope[at] + 2 * lambda * bend[at]) * (reach[at] + mean) + slope[at] * doubt;
      all += weight * std::max(of_table, 1e-300);
      if (ds == 0) continue;
      double to_q = kUsualSlope, to_k = kUsualSlope;
      if (plain) {
        to_q = cosine ? 2 * c.scale / std::max(length(q, c.width), 1e-30) : c.scale * largest(key(j), c.width) + 1e-300;
        to_k = cosine ? 2 * c.scale / std::max(length(key(j), c.width), 1e-30) : c.scale * largest(q, c.width) + 1e-300;
      }
      if (call.q.defined()) spread(kQueries, row, ds * to_q);
      if (call.k.defined()) spread(kKeys, first_key + j, ds * to_k);
      spread(kQueryTokens, item * c.queries + i, ds * kUsualSlope);
      spread(kKeyTokens, item * c.keys + j, ds * kUsualSlope);
      if (!places.empty()) terms.parts[kBias][size(places[size(row * c.keys + j)])] += ds;
      all += ds * kUsualSlope;
    }
  }
  for (std::size_t part = kLearned; part < terms.parts.size(); ++part) {
    std::fill(terms.parts[part].begin(), terms.parts[part].end(), all);
  }
  return terms;
}

template <class T>
double number(const Tensor& x, std::int64_t at) {
  return static_cast<double>(x.data<T>()[at]);
}

// "": within the bounds.
std::string compare(const Case& c, const Outcome& got, const Outcome& exact, const Terms& terms) {
  for (std::size_t part = 0; part < exact.parts.size(); ++part) {
    if (!exact.parts[part].defined()) continue;
    for (std::int64_t at = 0; at < exact.parts[part].size(); ++at) {
      const double x = number<float>(got.parts[part], at), y = number<double>(exact.parts[part], at);
      const double bound = kBound * (1 + terms.parts[part][size(at)]);
      if (std::abs(x - y) <= bound) continue;
      return text(name_of(part), '[', at, "] is ", x, ", in f64 ", y, ", bound ", bound);
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

// Zero, of any sign: what is turned or mapped before it comes here may be −0.
std::string not_zero(const std::string& what, const Tensor& x, const std::function<bool(std::int64_t)>& which = {}) {
  for (std::int64_t at = 0; at < x.size(); ++at) {
    if (x.data<float>()[at] == 0 || (which && !which(at / x.shape().row_width()))) continue;
    return text(what, '[', at, "] is ", x.data<float>()[at]);
  }
  return "";
}

std::string differ(const Outcome& a, const Outcome& b) {
  for (std::size_t part = 0; part < a.parts.size(); ++part) {
    const std::string trouble = differ(name_of(part), a.parts[part], b.parts[part]);
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
  return x.defined() ? x.slice(dimension, begin, end).clone() : x;
}

void cut_queries(Call& call, std::int64_t begin, std::int64_t end) {
  call.q = cut(call.q, 2, begin, end);
  call.query_tokens = cut(call.query_tokens, 1, begin, end);
  call.dy = cut(call.dy, 2, begin, end);
  call.mask = cut_spread(call.mask, 2, begin, end);
  call.bias = cut_spread(call.bias, 2, begin, end);
  call.first_query = call.place() + begin;
}
void cut_keys(Call& call, std::int64_t begin, std::int64_t end) {
  const std::int64_t full = call.v.defined() ? call.v[2] : call.dy[3];
  if (!call.lengths) call.lengths.emplace(size(call.dy[0]), static_cast<std::int32_t>(full));
  for (std::int32_t& each : *call.lengths) {
    each = static_cast<std::int32_t>(std::clamp<std::int64_t>(each, begin, end) - begin);
  }
  call.k = cut(call.k, 2, begin, end);
  call.key_tokens = cut(call.key_tokens, 1, begin, end);
  call.v = cut(call.v, 2, begin, end);
  if (call.pointer) call.dy = cut(call.dy, 3, begin, end);
  call.mask = cut_spread(call.mask, 3, begin, end);
  call.bias = cut_spread(call.bias, 3, begin, end);
  call.first_query = call.place() - begin;
}

// Which dimension of a part counts queries, and which keys; none: −1.
int query_dimension(std::size_t part) {
  return part == kContext || part == kQueries ? 2 : part == kQueryTokens ? 1 : -1;
}
int key_dimension(std::size_t part, bool pointer) {
  return part == kKeys || part == kValues ? 2 : part == kKeyTokens ? 1 : part == kContext && pointer ? 3 : -1;
}

struct Cut {
  std::optional<std::int64_t> item = {};
  std::optional<Range> queries = {}, keys = {};
};
Tensor cut_part(const Tensor& x, std::size_t part, bool pointer, const Cut& to) {
  if (!x.defined()) return x;
  Tensor made = x;
  const bool spread = part == kBias;
  const auto cut_to = [&](int dimension, const Range& range) {
    if (dimension < 0) return;
    made = spread ? cut_spread(made, dimension, range.begin, range.end) : cut(made, dimension, range.begin, range.end);
  };
  if (to.item) cut_to(0, {*to.item, *to.item + 1});
  if (to.queries) cut_to(spread ? 2 : query_dimension(part), *to.queries);
  if (to.keys) cut_to(spread ? 3 : key_dimension(part, pointer), *to.keys);
  return made;
}

// What came of a part of the call against that part of what came of all. Of a bias or something learned that others
// have a share in, nothing can be said.
std::string differ(const Outcome& got, const Outcome& whole, const std::vector<std::size_t>& parts, bool pointer,
                   const Cut& to) {
  for (const std::size_t part : parts) {
    const std::string trouble = differ(name_of(part), got.parts[part], cut_part(whole.parts[part], part, pointer, to));
    if (!trouble.empty()) return trouble;
  }
  return "";
}

void cut_item(Call& call, std::int64_t item) {
  for (Tensor* x : {&call.q, &call.k, &call.query_tokens, &call.key_tokens, &call.v, &call.dy, &call.documents}) {
    *x = cut(*x, 0, item, item + 1);
  }
  call.mask = cut_spread(call.mask, 0, item, item + 1);
  call.bias = cut_spread(call.bias, 0, item, item + 1);
  if (call.lengths) call.lengths = std::vector<std::int32_t>{(*call.lengths)[size(item)]};
  call.ids = {call.ids[size(item)]};
}

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
    if (c.has("causal") && !c.has("local_p") && c.draw.chance(0.5)) {  // as from a cache that holds nothing else yet
      keys = std::clamp<std::int64_t>(place + 1, 0, c.keys);
      cut_keys(one, 0, keys);
    }
    const Outcome alone = run(one, Weights::kPlain);
    const Cut to{.queries = Range{i, i + 1}, .keys = Range{0, keys}};
    std::string trouble = differ(alone, whole, {kContext, kQueries, kQueryTokens}, one.pointer, to);
    for (std::size_t map = 0; map < alone.weights.size() && trouble.empty(); ++map) {
      trouble = differ("weights", alone.weights[map], cut(cut(whole.weights[map], 0, i, i + 1), 1, 0, keys));
    }
    if (!trouble.empty()) return text("query ", i, " alone, ", keys, " keys: ", trouble);
  }
  return "";
}

// What can be compared with a call that has another number of keys. The gradient of what is learned is a sum over all
// rows, whose order depends on how many there are; so is that of a bias which is added to one that the score makes.
const std::vector<std::size_t> kOwnParts = {kContext, kQueries, kKeys, kQueryTokens, kKeyTokens, kValues};
std::vector<std::size_t> comparable_parts(const Case& c) {
  std::vector<std::size_t> parts = kOwnParts;
  if (!c.positional) parts.push_back(kBias);
  return parts;
}

std::string check_prefix(Case& c, const Outcome& whole) {
  if (!c.has("causal") || c.has("local_p") || c.dirty.documents.defined()) return "";
  const std::int64_t seen = std::clamp<std::int64_t>(c.dirty.place() + c.queries, 0, c.keys);
  if (seen == c.keys) return "";
  Call call = c.dirty;
  cut_keys(call, 0, seen);
  const std::string trouble = differ(run(call), whole, comparable_parts(c), call.pointer, {.keys = Range{0, seen}});
  return trouble.empty() ? "" : text("the first ", seen, " keys only: ", trouble);
}

std::string check_alone(Case& c, const Outcome& whole) {
  if (c.batch < 2) return "";
  const std::int64_t item = c.draw.below(c.batch);
  Call call = c.dirty;
  cut_item(call, item);
  std::vector<std::size_t> parts = kOwnParts;
  if (call.bias.defined() && call.bias.rank() == 4 && c.dirty.bias[0] == c.batch) parts.push_back(kBias);
  const std::string trouble = differ(run(call), whole, parts, call.pointer, {.item = item});
  return trouble.empty() ? "" : text("item ", item, " alone: ", trouble);
}

std::string check_threads(Case& c, const Outcome& whole) {
  const int count = c.draw.chance(0.5) ? 2 : 3;
  const ThreadLimit limit(count);
  const std::string trouble = differ(run(c.dirty, Weights::kPlain), whole);
  return trouble.empty() ? "" : text(count, " threads: ", trouble);
}

// `more` rows of anything behind a dimension.
Tensor longer(const Tensor& x, int dimension, std::int64_t more, float with) {
  if (!x.defined()) return x;
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
  const std::int64_t more =  // 0 + 1 would be spread
      c.draw.pick<std::int64_t>(c.positional ? std::vector<std::int64_t>{2, 3, 16}
                                             : std::vector<std::int64_t>{2, 3, 16, 70, 130});
  const float garbage = c.draw.pick<float>({kNan, 1e30f, -kInfinity});
  const auto stretch = [&](Tensor& x, int dimension) {
    const int own = x.defined() ? x.rank() - 4 + dimension : -1;
    if (own >= 0 && x[own] != 1) x = longer(x, own, more, garbage);
  };
  if (!call.lengths) call.lengths.emplace(size(c.batch), static_cast<std::int32_t>(c.keys));
  for (Tensor* x : {&call.k, &call.v}) *x = longer(*x, 2, more, garbage);
  call.key_tokens = longer(call.key_tokens, 1, more, 1e3f);
  if (call.pointer) call.dy = longer(call.dy, 3, more, 1);
  stretch(call.mask, 3);
  stretch(call.bias, 3);
  if (call.documents.defined()) {  // of which there are as many queries
    call.documents = longer(call.documents, 1, more, 0);
    for (Tensor* x : {&call.q, &call.dy}) *x = longer(*x, 2, more, garbage);
    call.query_tokens = longer(call.query_tokens, 1, more, 1e3f);
    stretch(call.mask, 2);
    stretch(call.bias, 2);
  }
  call.first_query = call.place();
  const Outcome got = run(call);
  for (const std::size_t part : comparable_parts(c)) {
    const Tensor own =
        cut_part(got.parts[part], part, call.pointer, {.queries = Range{0, c.queries}, .keys = Range{0, c.keys}});
    std::string trouble = differ(name_of(part), own, whole.parts[part]);
    const Tensor& all = got.parts[part];
    for (const int dimension : {query_dimension(part), key_dimension(part, call.pointer)}) {
      if (dimension < 0 || !trouble.empty() || !all.defined()) continue;
      const Tensor rest = cut(all, dimension, own[dimension], all[dimension]);
      trouble = not_zero(text(name_of(part), " of padding"), rest);
    }
    if (!trouble.empty()) return text(more, " more of ", garbage, ": ", trouble);
  }
  return "";
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
  cut_item(call, item);
  call.documents = Tensor();
  cut_queries(call, begin, end);
  cut_keys(call, begin, end);
  if (c.has("documents")) call.documents = Tensor::zeros({1, end - begin}, DType::kI32);
  const Outcome got = run(call);
  const Range range{begin, end};
  std::string trouble = differ(got, whole, kOwnParts, call.pointer, {.item = item, .queries = range, .keys = range});
  if (!trouble.empty()) return text("item ", item, ", document at ", begin, " to ", end, " apart: ", trouble);
  if (c.has("documents")) return "";
  const std::int64_t i = c.draw.below(end - begin);  // one query against its document
  Call one = call;
  cut_queries(one, i, i + 1);
  trouble = differ(run(one), got, {kContext, kQueries, kQueryTokens}, call.pointer, {.queries = Range{i, i + 1}});
  return trouble.empty() ? "" : text("query ", i, " of the document at ", begin, " alone: ", trouble);
}

std::string check_staged(Case& c, const Outcome& whole) {
  Call call = c.dirty;
  call.staged = true;
  Outcome got = run(call, Weights::kPlain);
  if (c.line.score.name == "mixture") {  // how much of each: summed over tiles as large as what is seen of them
    std::copy(whole.parts.begin() + kLearned, whole.parts.end(), got.parts.begin() + kLearned);
  }
  const std::string trouble = differ(got, whole);
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
  for (std::size_t part = 0; part < got.parts.size() && trouble.empty(); ++part) {
    trouble = differ(text("after asking for dropped weights: ", name_of(part)), dropped.parts[part], got.parts[part]);
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
    const bool gated = c.has("local_p") && sum >= 0 && sum <= 1 + kBound;
    if (!gated && !(std::abs(sum - (any ? 1 : 0)) <= (any ? kBound : 0))) return text(where(), "weights sum to ", sum);
    for (std::int64_t j = 0; j < c.keys && c.clean.pointer; ++j) {
      if (applied[j] == got.parts[kContext].data<float>()[row * c.keys + j]) continue;
      return text(where(), "weight ", applied[j], " of key ", j, " is not what the pointer gives");
    }
    if (c.line.read.name != "sum") continue;
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
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t map = row / c.queries, i = row % c.queries, item = map / c.heads, head = map % c.heads;
    const std::size_t first = size((item * c.groups + c.group(head)) * c.keys), at = size(row);
    forward[at] = c.bad_queries[at];
    if (c.bad_queries[at] && c.has("local_p")) nothing[at] = false;
    for (std::int64_t j = 0; j < c.keys; ++j) {
      if (!c.sees(item, head, i, j)) continue;
      nothing[at] = false;
      if (c.bad_keys[first + size(j)]) forward[at] = true;
    }
    backward[at] = forward[at] || c.bad_gradient[at];
    const bool lost = c.bad_queries[at] && c.has("local_p");  // it looks wherever NaN is
    for (std::int64_t j = 0; j < c.keys; ++j) {
      if (!c.sees(item, head, i, j) && !lost) continue;
      unseen[first + size(j)] = false;
      if (!backward[at]) continue;
      keys[first + size(j)] = true;
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
  const auto compare_rows = [&](std::size_t part, const Tensor& expected,
                                const std::function<bool(std::int64_t)>& which) {
    const Tensor& got = dirty.parts[part];
    if (!trouble.empty() || !got.defined()) return;
    trouble = expected.defined() ? differ(name_of(part), got, expected, which)
                                 : not_zero(name_of(part) + " of what sees nothing", got, which);
    for (std::int64_t i = 0; i < got.size() && trouble.empty(); ++i) {
      if (!which(i / got.shape().row_width()) || std::isfinite(got.data<float>()[i])) continue;
      trouble = text(name_of(part), '[', i, "] is ", got.data<float>()[i]);
    }
  };
  std::vector<bool> bad_queries(size(c.batch * c.queries)), idle_queries(bad_queries.size(), true);
  std::vector<bool> bad_tokens(size(c.batch * c.keys)), idle_tokens(bad_tokens.size(), true);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::size_t at = size(row / c.queries / c.heads * c.queries + row % c.queries);
    if (backward[size(row)]) bad_queries[at] = true;
    if (!nothing[size(row)]) idle_queries[at] = false;
  }
  for (std::int64_t row = 0; row < c.batch * c.groups * c.keys; ++row) {
    const std::size_t at = size(row / c.keys / c.groups * c.keys + row % c.keys);
    if (keys[size(row)]) bad_tokens[at] = true;
    if (!unseen[size(row)]) idle_tokens[at] = false;
  }
  compare_rows(kQueryTokens, clean.parts[kQueryTokens], outside(bad_queries));
  compare_rows(kKeyTokens, clean.parts[kKeyTokens], outside(bad_tokens));
  compare_rows(kQueryTokens, Tensor(), inside(idle_queries));
  compare_rows(kKeyTokens, Tensor(), inside(idle_tokens));
  compare_rows(kContext, clean.parts[kContext], outside(forward));
  compare_rows(kQueries, clean.parts[kQueries], outside(backward));
  for (const Part part : {kKeys, kValues}) compare_rows(part, clean.parts[part], outside(keys));
  for (const Part part : {kContext, kQueries}) compare_rows(part, Tensor(), inside(nothing));
  for (const Part part : {kKeys, kValues}) compare_rows(part, Tensor(), inside(unseen));
  // The gradient of what maps rows or tokens is a product of all of them, poisoned ones, too: nothing is said of it.
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
  finish(c);
  const Outcome clean = run(c.clean, Weights::kPlain);
  const Outcome exact = plain_run(c);
  const auto near = [&](const Outcome& got) {
    const Terms terms = find_terms(c, exact, got);
    if (c.line.align.name != "softmax") {
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
  for (int i = 0; i < count && failures < 8; ++i) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(i);
    Case c = drawn_case(seed);
    std::string trouble;
    try {
      trouble = trouble_of(c, tally);
    } catch (const Error& error) {
      trouble = text("refused: ", error.what());
    }
    if (trouble.empty()) {
      ++tally.stages[c.line.score.name];
      ++tally.stages[c.line.align.name];
      ++tally.stages[c.line.read.name];
      for (const Term& scope : c.line.scopes) ++tally.stages[scope.name];
      continue;
    }
    ADD_FAILURE() << "--seed=" << seed << " --cases=1: " << c.text << "\n  " << trouble;
    ++failures;
  }
  if (count < 1000 || failures > 0) return;
  EXPECT_LE(tally.kinks, tally.rows / 20) << "rows at a kink, of " << tally.rows;
  for (const std::string& name : card_names(kFamilies)) {
    if (!find_card(name)->same_as.empty()) continue;
    EXPECT_GE(tally.stages[name], count / 200) << name;
  }
}

}  // namespace
}  // namespace regard::random_call

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    const auto number_behind = [&](std::string_view name) {
      return argument.starts_with(name) ? std::strtoull(arguments[i] + name.size(), nullptr, 10) : 0;
    };
    if (argument.starts_with("--seed=")) regard::random_call::first_seed = number_behind("--seed=");
    if (argument.starts_with("--cases="))
      regard::random_call::asked_cases = static_cast<int>(number_behind("--cases="));
  }
  return RUN_ALL_TESTS();
}
