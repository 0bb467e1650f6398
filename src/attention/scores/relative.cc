// relative: s = q·(k_j + a_r)/√d, r = clip(j − i, ±distance), Shaw et al. 2018: a product, and beside it a smaller one
// with the rows of a table, of which each pair picks one. Its read is relative_sum.
#include "attention/relative_rows.h"
#include "attention/scores/product.h"

namespace regard {
namespace {

class Relative : public ScaledProductScore {
 public:
  explicit Relative(const Term& term) : most_(static_cast<std::int64_t>(*number_of(term, "distance"))) {}

  std::vector<Learned> learned(const AttendSizes& sizes) const override {
    return {{.name = "relative_keys", .shape = {sizes.heads, 2 * most_ + 1, sizes.width}}};
  }
  Widths widths(const AttendSizes& sizes) const override {
    return {sizes.width, sizes.width, (2 * most_ + 1) * sizes.width};
  }
  Var lower_theta(const Inputs& in) const override {
    const Var table = in.learned[0];
    return reshape(table, {table[0], table[1] * table[2]});
  }

  void forward(const Place& place, Rows q, const KeysOf<float>& k, const float* theta, Tile s) const override {
    ProductScore::forward(place, q, k, theta, s);
    add_distances(place, q, theta, s);
  }
  void forward(const Place& place, RowsOf<const double> q, const KeysOf<double>& k, const double* theta,
               RowsOf<double> s) const override {
    ProductScore::forward(place, q, k, theta, s);
    add_distances(place, q, theta, s);
  }
  void backward(const Place& place, Rows q, bool q_finite, const KeysOf<float>& k, const float* theta, Rows ds,
                const ScoreGradients<float>& to) const override {
    ProductScore::backward(place, q, q_finite, k, theta, ds, to);
    spread_distances(place, q, q_finite, theta, ds, to);
  }
  void backward(const Place& place, RowsOf<const double> q, bool q_finite, const KeysOf<double>& k, const double* theta,
                RowsOf<const double> ds, const ScoreGradients<double>& to) const override {
    ProductScore::backward(place, q, q_finite, k, theta, ds, to);
    spread_distances(place, q, q_finite, theta, ds, to);
  }

 private:
  template <class T>
  void add_distances(const Place& place, RowsOf<const T> q, const T* theta, RowsOf<T> s) const {
    RelativeRows<T> rows(place, most_);
    gemm(as_matrix(q), as_matrix(rows.of(theta, place.sizes->width)).transposed(), as_matrix(rows.numbers()));
    rows.spread(s);
  }
  template <class T>
  void spread_distances(const Place& place, RowsOf<const T> q, bool q_finite, const T* theta, RowsOf<const T> ds,
                        const ScoreGradients<T>& to) const {
    RelativeRows<T> rows(place, most_);
    rows.add_up(ds);
    const MatrixOf<const T> d = as_matrix(RowsOf<const T>(rows.numbers()));
    const RowsOf<const T> table = rows.of(theta, place.sizes->width);
    selected_product(d, table, all_finite(table), to.queries);
    selected_product(d.transposed(), q, q_finite, rows.of(to.theta, place.sizes->width));
  }

  std::int64_t most_;
};

const Registry<Score>::Add add({.name = "relative",
                                .formula = "qᵀ(k_j + a_r)/√d, r = clip(j − i, ±distance); reads v_j + b_r",
                                .paper = "Shaw et al. 2018",
                                .kernel = "product tiles",
                                .arguments = {positions("distance", "from here on all distances are one")}},
                               [](const Term& term) -> std::unique_ptr<Score> {
                                 return std::make_unique<Relative>(term);
                               });

}  // namespace
}  // namespace regard
