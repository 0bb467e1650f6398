// Scores that are products of prepared rows, s_ij = q̂_i·k̂_j: one matrix product a tile, keys packed once a head.
#pragma once

#include <cmath>
#include <optional>

#include "attention/mechanism.h"

namespace regard {

struct ProductScore : TileScore<ProductScore> {
  bool is_product() const override { return true; }

  template <class T>
  void tile(const Place&, RowsOf<const T> q, const KeysOf<T>& k, const T*, RowsOf<T> s) const {
    if constexpr (std::is_same_v<T, float>) {
      if (k.packed.panels != nullptr) return product_tile(q, k.packed, s, k.ahead);
    }
    gemm(as_matrix(q), as_matrix(k.rows).transposed(), as_matrix(s));
  }
  template <class T>
  void spread(const Place&, RowsOf<const T> q, bool q_finite, const KeysOf<T>& k, const T*, RowsOf<const T> ds,
              const ScoreGradients<T>& to) const {
    selected_product(as_matrix(ds), k.rows, k.finite, to.queries);
    selected_product(as_matrix(ds).transposed(), q, q_finite, to.keys);
  }
};

// The same with q̂ = q/√width.
class ScaledProductScore : public ProductScore {
 public:
  explicit ScaledProductScore(std::optional<double> scale = {}) : scale_(scale) {}

  void prepare_queries(const AttendSizes&, Rows q, Tile to) const override { scale(q, to); }
  void prepare_queries(const AttendSizes&, RowsOf<const double> q, RowsOf<double> to) const override { scale(q, to); }
  void finish_queries(const AttendSizes&, Rows, Rows d_prepared, Tile dq) const override { add_scaled(d_prepared, dq); }
  void finish_queries(const AttendSizes&, RowsOf<const double>, RowsOf<const double> d_prepared,
                      RowsOf<double> dq) const override {
    add_scaled(d_prepared, dq);
  }

 private:
  template <class T>
  T factor(std::size_t width) const {  // no width: every score is 0 anyhow
    return static_cast<T>(scale_ ? *scale_ : width == 0 ? 1 : 1 / std::sqrt(static_cast<double>(width)));
  }
  template <class T>
  void scale(RowsOf<const T> q, RowsOf<T> to) const {
    scaled_copy(q, factor<T>(q.width), to);
  }
  template <class T>
  void add_scaled(RowsOf<const T> d_prepared, RowsOf<T> dq) const {
    add_scaled_copy(d_prepared, factor<T>(dq.width), dq);
  }

  std::optional<double> scale_;  // none: 1/√width
};

}  // namespace regard
