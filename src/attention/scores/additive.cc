// additive: s = θᵀ tanh(q + k), Bahdanau et al. 2015. q and k arrive projected: once a row instead of once a pair.
#include "attention/mechanism.h"

namespace regard {
namespace {

class Additive : public Score {
 public:
  bool takes_theta() const override { return true; }
  void forward(Rows q, const KeysOf<float>& k, const float* theta, Tile s) const override {
    additive_tile(q, k.rows, theta, s);
  }
  void forward(RowsOf<const double> q, const KeysOf<double>& k, const double* theta, RowsOf<double> s) const override {
    additive_tile(q, k.rows, theta, s);
  }
  void backward(Rows q, bool, const KeysOf<float>& k, const float* theta, Rows ds,
                const ScoreGradients<float>& to) const override {
    additive_tile_backward(q, k.rows, theta, ds, to.queries, to.keys, to.theta);
  }
  void backward(RowsOf<const double> q, bool, const KeysOf<double>& k, const double* theta, RowsOf<const double> ds,
                const ScoreGradients<double>& to) const override {
    additive_tile_backward(q, k.rows, theta, ds, to.queries, to.keys, to.theta);
  }
};

const Registry<Score>::Add add({.name = "additive", .formula = "θᵀ tanh(q + k)", .paper = "Bahdanau et al. 2015"},
                               [](const Arguments& arguments) -> std::unique_ptr<Score> {
                                 check_arguments("additive", arguments, {});
                                 return std::make_unique<Additive>();
                               });

}  // namespace
}  // namespace regard
