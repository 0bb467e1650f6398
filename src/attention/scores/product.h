// Scores that are products of prepared rows, s_ij = q̂_i·k̂_j: one matrix product a tile, keys packed once a head.
#pragma once

#include "attention/mechanism.h"

namespace regard {

struct ProductScore : Score {
  bool is_product() const override { return true; }
  void forward(Rows q, const KeysOf<float>& k, const float*, Tile s) const override {
    product_tile(q, k.packed, s, k.ahead);
  }
  void forward(RowsOf<const double> q, const KeysOf<double>& k, const double*, RowsOf<double> s) const override {
    gemm(as_matrix(q), as_matrix(k.rows).transposed(), as_matrix(s));
  }
  void backward(Rows q, bool q_finite, const KeysOf<float>& k, const float*, Rows ds,
                const ScoreGradients<float>& to) const override {
    spread(q, q_finite, k, ds, to);
  }
  void backward(RowsOf<const double> q, bool q_finite, const KeysOf<double>& k, const double*, RowsOf<const double> ds,
                const ScoreGradients<double>& to) const override {
    spread(q, q_finite, k, ds, to);
  }

 private:
  template <class T>
  static void spread(RowsOf<const T> q, bool q_finite, const KeysOf<T>& k, RowsOf<const T> ds,
                     const ScoreGradients<T>& to) {
    selected_product(as_matrix(ds), k.rows, k.finite, to.queries);
    selected_product(as_matrix(ds).transposed(), q, q_finite, to.keys);
  }
};

}  // namespace regard
