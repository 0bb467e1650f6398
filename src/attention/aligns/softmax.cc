// Softmax: p = exp(z − τ), z = (s − peak)/temperature, τ = log Σ exp z. The one alignment that needs no whole rows:
// peak and mass so far are enough (Milakov and Gimelshein 2018).
#include "attention/mechanism.h"

namespace regard {
namespace {

class Softmax : public Align {
 public:
  explicit Softmax(double temperature) : sharpness_(1 / temperature) {}

  void solve(Tile s, float* peak, float* tau) const override { solve_rows(s, peak, tau); }
  void solve(RowsOf<double> s, double* peak, double* tau) const override { solve_rows(s, peak, tau); }
  void weigh(Tile s, const float* peak, const float* tau) const override {
    softmax_weigh(s, static_cast<float>(sharpness_), peak, tau);
  }
  void weigh(RowsOf<double> s, const double* peak, const double* tau) const override {
    softmax_weigh(s, sharpness_, peak, tau);
  }
  void pullback(Tile s, const float* peak, const float* tau, const float* delta, Tile dp) const override {
    softmax_pullback(s, static_cast<float>(sharpness_), peak, tau, delta, dp);
  }
  void pullback(RowsOf<double> s, const double* peak, const double* tau, const double* delta,
                RowsOf<double> dp) const override {
    softmax_pullback(s, sharpness_, peak, tau, delta, dp);
  }
  bool streams() const override { return true; }
  void absorb(Tile s, float* peak, float* mass, float* factor) const override {
    softmax_absorb(s, static_cast<float>(sharpness_), peak, mass, factor);
  }
  void absorb(RowsOf<double> s, double* peak, double* mass, double* factor) const override {
    softmax_absorb(s, sharpness_, peak, mass, factor);
  }
  void settle(std::size_t count, float* peak, float* mass, float* factor) const override {
    softmax_settle(count, peak, mass, factor);
  }
  void settle(std::size_t count, double* peak, double* mass, double* factor) const override {
    softmax_settle(count, peak, mass, factor);
  }

 private:
  template <class T>
  void solve_rows(RowsOf<T> s, T* peak, T* tau) const {
    for (std::size_t i = 0; i < s.count; ++i) {
      T factor;
      peak[i] = kHidden<T>;
      tau[i] = 0;
      absorb({s.row(i), 1, s.width, s.stride}, peak + i, tau + i, &factor);
      settle(1, peak + i, tau + i, &factor);
    }
  }

  double sharpness_;
};

const Registry<Align>::Add add({.name = "softmax",
                                .formula = "p = exp(e/T)/Σ exp(e/T)",
                                .paper = "Bahdanau et al. 2015",
                                .kernel = "tile after tile",
                                .arguments = {{.key = "temperature",
                                               .kind = Argument::Kind::kReal,
                                               .least = kLeastReal,
                                               .most = kMostReal,
                                               .usual = 1,
                                               .meaning = "T; towards 0 the largest score takes all"}}},
                               [](const Term& term) -> std::unique_ptr<Align> {
                                 return std::make_unique<Softmax>(number_of(term, "temperature").value());
                               });

}  // namespace
}  // namespace regard
