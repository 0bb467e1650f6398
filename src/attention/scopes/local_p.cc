// local_p:D: the query says where to look. p_i = S·σ(v_pᵀ tanh(W_p x_i)), S the length of its own sequence; keys within
// D of p_i are seen, and each weight is multiplied by exp(−(j − p_i)²/2σ²), σ = D/2. Not normalised again, so weights
// sum to at most one.    Luong et al. 2015
#include <cmath>

#include "attention/mechanism.h"
#include "kernels/elementwise.h"

namespace regard {
namespace {

class LocalPredictive : public Scope {
 public:
  explicit LocalPredictive(const Term& term)
      : term_(term), distance_(static_cast<std::int64_t>(*number_of(term, "distance"))) {}

  Needs needs() const override { return {.query_tokens = true}; }
  std::vector<Learned> learned(const AttendSizes& sizes) const override {
    const std::int64_t hidden = hidden_of(term_, sizes);
    return {{.name = "place", .shape = {sizes.query_token, sizes.heads * hidden}},
            {.name = "place_theta",
             .shape = {sizes.heads, hidden},
             .start = Learned::Start::kUniform,
             .size = std::sqrt(3.0 / static_cast<double>(std::max<std::int64_t>(1, hidden)))}};
  }
  Var lower(const Inputs& in) const override {  // p_i/S
    const Var inner = to_heads(tanh(matmul(in.query_tokens, in.learned[0])), in.sizes.heads);
    const Var theta = in.learned[1];
    return sigmoid(sum(inner * reshape(theta, {1, theta[0], 1, theta[1]}), -1));
  }

  Range visible(const Place& block) const override {
    Range all{block.keys.end, block.keys.begin};
    for (std::int64_t i = 0; i < block.queries.count(); ++i) {
      const Range own = seen(block, static_cast<std::size_t>(i));
      if (own.count() == 0) continue;
      all = {std::min(all.begin, own.begin), std::max(all.end, own.end)};
    }
    return all;
  }
  bool sees_by_place() const override { return false; }
  Cover cover(const Place& place) const override { return visible(place).count() == 0 ? Cover::kNone : Cover::kSome; }
  void add(const Place& place, Tile s) const override { select(place, s); }
  void add(const Place& place, RowsOf<double> s) const override { select(place, s); }

  bool gates() const override { return true; }
  void gate(const Place& place, Tile p) const override { narrow(place, p); }
  void gate(const Place& place, RowsOf<double> p) const override { narrow(place, p); }
  void centre_gradient(const Place& place, Rows p, Rows du, float* to) const override { pull(place, p, du, to); }
  void centre_gradient(const Place& place, RowsOf<const double> p, RowsOf<const double> du, double* to) const override {
    pull(place, p, du, to);
  }

 private:
  static double centre(const Place& place, std::size_t i) {
    return static_cast<double>(place.sequence.begin) + static_cast<double>(place.sequence.count()) * place.centre(i);
  }
  // Of the keys of the place. Who does not know where to look (NaN) sees all, and NaN is what comes out.
  Range seen(const Place& place, std::size_t i) const {
    const double at = centre(place, i), reach = static_cast<double>(distance_);
    if (std::isnan(at)) return place.keys;
    return {std::max(place.keys.begin, static_cast<std::int64_t>(std::ceil(at - reach))),
            std::min(place.keys.end, static_cast<std::int64_t>(std::floor(at + reach)) + 1)};
  }
  double spread() const { return static_cast<double>(distance_) / 2; }  // σ
  template <class T>
  void select(const Place& place, RowsOf<T> s) const {
    for (std::size_t i = 0; i < s.count; ++i) {
      const Range own = seen(place, i);
      for (std::int64_t j = place.keys.begin; j < place.keys.end; ++j) {
        if (j < own.begin || j >= own.end) s.row(i)[j - place.keys.begin] = kHidden<T>;
      }
    }
  }
  template <class T>
  void narrow(const Place& place, RowsOf<T> p) const {
    T gates[kKeyTile];
    for (std::size_t i = 0; i < p.count; ++i) {
      const double at = centre(place, i);
      for (std::size_t j = 0; j < p.width; ++j) {
        const double z = (static_cast<double>(place.keys.begin) + static_cast<double>(j) - at) / spread();
        gates[j] = static_cast<T>(distance_ == 0 ? 0 * at : -z * z / 2);  // at distance 0 only p_i itself is seen
      }
      unary(Unary::kExp, gates, gates, p.width);
      for (std::size_t j = 0; j < p.width; ++j) {
        if (p.row(i)[j] != 0) p.row(i)[j] *= gates[j];
      }
    }
  }
  // ∂g/∂p_i = g·(j − p_i)/σ², and du = (gradient of p·g)·g.
  template <class T>
  void pull(const Place& place, RowsOf<const T> p, RowsOf<const T> du, T* to) const {
    if (distance_ == 0) return;
    for (std::size_t i = 0; i < p.count; ++i) {
      const double at = centre(place, i);
      double sum = 0;
      for (std::size_t j = 0; j < p.width; ++j) {
        if (p.row(i)[j] == 0) continue;
        const double z = static_cast<double>(place.keys.begin) + static_cast<double>(j) - at;
        sum += static_cast<double>(du.row(i)[j]) * static_cast<double>(p.row(i)[j]) * z;
      }
      to[i] += static_cast<T>(sum * static_cast<double>(place.sequence.count()) / (spread() * spread()));
    }
  }

  Term term_;
  std::int64_t distance_;
};

const Registry<Scope>::Add add(
    {.name = "local_p",
     .formula = "|j − p_i| ≤ D, p_i = S·σ(v_pᵀ tanh(W_p q_i)); weights·exp(−(j − p_i)²/2σ²), σ = D/2",
     .paper = "Luong et al. 2015",
     .kernel = "whole tiles skipped",
     .arguments = {{.key = "distance",
                    .required = true,
                    .least = 0,
                    .most = kMostPositions,
                    .meaning = "D, how far a query sees to either side of p_i"},
                   hidden()}},
    [](const Term& term) -> std::unique_ptr<Scope> { return std::make_unique<LocalPredictive>(term); });

}  // namespace
}  // namespace regard
