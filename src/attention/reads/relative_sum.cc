// relative_sum: Σ_j p_j·(v_j + b_r), r = clip(j − i, ±distance), of the score `relative`, Shaw et al. 2018: the weights
// are added up by distance, and these sums read the table.
#include "attention/relative_rows.h"

namespace regard {
namespace {

class RelativeSum : public Read {
 public:
  explicit RelativeSum(const Term& term) : most_(static_cast<std::int64_t>(*number_of(term.inner.at(0), "distance"))) {}

  std::vector<Learned> learned(const AttendSizes& sizes) const override {
    return {{.name = "relative_values", .shape = {sizes.heads, 2 * most_ + 1, sizes.values}}};
  }
  Var lower(const Inputs& in) const override {
    const Var table = in.learned[0];
    return reshape(table, {table[0], table[1] * table[2]});
  }
  void forward(const Place& place, Rows p, const float* table, Tile out) const override { read(place, p, table, out); }
  void forward(const Place& place, RowsOf<const double> p, const double* table, RowsOf<double> out) const override {
    read(place, p, table, out);
  }
  void weight_gradient(const Place& place, Rows dy, const float* table, Tile dp) const override {
    to_weights(place, dy, table, dp);
  }
  void weight_gradient(const Place& place, RowsOf<const double> dy, const double* table,
                       RowsOf<double> dp) const override {
    to_weights(place, dy, table, dp);
  }
  void table_gradient(const Place& place, Rows p, Rows dy, float* to) const override { to_table(place, p, dy, to); }
  void table_gradient(const Place& place, RowsOf<const double> p, RowsOf<const double> dy, double* to) const override {
    to_table(place, p, dy, to);
  }

 private:
  template <class T>
  void read(const Place& place, RowsOf<const T> p, const T* table, RowsOf<T> out) const {
    RelativeRows<T> rows(place, most_);
    rows.add_up(p);
    const RowsOf<const T> some = rows.of(table, place.sizes->values);
    selected_product(as_matrix(RowsOf<const T>(rows.numbers())), some, all_finite(some), out);
  }
  template <class T>
  void to_weights(const Place& place, RowsOf<const T> dy, const T* table, RowsOf<T> dp) const {
    RelativeRows<T> rows(place, most_);
    gemm(as_matrix(dy), as_matrix(rows.of(table, place.sizes->values)).transposed(), as_matrix(rows.numbers()));
    rows.spread(dp);
  }
  template <class T>
  void to_table(const Place& place, RowsOf<const T> p, RowsOf<const T> dy, T* to) const {
    RelativeRows<T> rows(place, most_);
    rows.add_up(p);
    selected_product(as_matrix(RowsOf<const T>(rows.numbers())).transposed(), dy, all_finite(dy),
                     rows.of(to, place.sizes->values));
  }

  std::int64_t most_;
};

const Registry<Read>::Add add({.name = "relative_sum",
                               .formula = "Σ_j p_j (v_j + b_r), r = clip(j − i, ±distance); of the score relative",
                               .paper = "Shaw et al. 2018",
                               .kernel = "product tiles"},
                              [](const Term& term) -> std::unique_ptr<Read> {
                                return std::make_unique<RelativeSum>(term);
                              });

}  // namespace
}  // namespace regard
