// cosine: s = β·q·k/(‖q‖·‖k‖), Graves et al. 2014. A row of length 0 has score 0 with everything, and no gradient.
#include "attention/scores/product.h"

namespace regard {
namespace {

class Cosine : public ProductScore {
 public:
  explicit Cosine(double beta) : beta_(beta) {}

  bool prepares_keys() const override { return true; }
  void prepare_queries(const AttendSizes&, Rows q, Tile to) const override {
    normalise_rows(q, static_cast<float>(beta_), to);
  }
  void prepare_queries(const AttendSizes&, RowsOf<const double> q, RowsOf<double> to) const override {
    normalise_rows(q, beta_, to);
  }
  void prepare_keys(const AttendSizes&, Rows k, Tile to) const override { normalise_rows(k, 1, to); }
  void prepare_keys(const AttendSizes&, RowsOf<const double> k, RowsOf<double> to) const override {
    normalise_rows(k, 1, to);
  }
  void finish_queries(const AttendSizes&, Rows q, Rows d_prepared, Tile dq) const override {
    normalise_rows_backward(q, d_prepared, static_cast<float>(beta_), dq);
  }
  void finish_queries(const AttendSizes&, RowsOf<const double> q, RowsOf<const double> d_prepared,
                      RowsOf<double> dq) const override {
    normalise_rows_backward(q, d_prepared, beta_, dq);
  }
  void finish_keys(const AttendSizes&, Rows k, Rows d_prepared, Tile dk) const override {
    normalise_rows_backward(k, d_prepared, 1, dk);
  }
  void finish_keys(const AttendSizes&, RowsOf<const double> k, RowsOf<const double> d_prepared,
                   RowsOf<double> dk) const override {
    normalise_rows_backward(k, d_prepared, 1, dk);
  }

 private:
  double beta_;
};

const Registry<Score>::Add add({.name = "cosine",
                                .formula = "β·qᵀk/(‖q‖‖k‖)",
                                .paper = "Graves et al. 2014",
                                .kernel = "product tiles",
                                .arguments = {{.key = "beta",
                                               .kind = Argument::Kind::kReal,
                                               .least = kLeastReal,
                                               .most = kMostReal,
                                               .usual = 1,
                                               .meaning = "β, how sharply it looks"}}},
                               [](const Term& term) -> std::unique_ptr<Score> {
                                 return std::make_unique<Cosine>(number_of(term, "beta").value());
                               });

}  // namespace
}  // namespace regard
