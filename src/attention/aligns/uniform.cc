// Uniform: p = 1/visible. Equal weights whatever the scores are; what every other alignment has to beat.
#include "attention/mechanism.h"

namespace regard {
namespace {

// τ holds the number of visible keys.
class Uniform : public Align {
 public:
  bool needs_scores() const override { return false; }
  void solve(Tile s, float* peak, float* tau) const override { count(s, peak, tau); }
  void solve(RowsOf<double> s, double* peak, double* tau) const override { count(s, peak, tau); }
  void weigh(Tile s, const float*, const float* tau) const override { share_visible(s, tau); }
  void weigh(RowsOf<double> s, const double*, const double* tau) const override { share_visible(s, tau); }
  void pullback(Tile s, const float*, const float* tau, const float*, Tile dp) const override {
    share_visible(s, tau);
    clear(dp);
  }
  void pullback(RowsOf<double> s, const double*, const double* tau, const double*, RowsOf<double> dp) const override {
    share_visible(s, tau);
    clear(dp);
  }

 private:
  template <class T>
  static void count(RowsOf<T> s, T* peak, T* tau) {
    std::fill_n(peak, s.count, T(0));
    count_visible(RowsOf<const T>(s), tau);
  }
  template <class T>
  static void clear(RowsOf<T> x) {
    for (std::size_t i = 0; i < x.count; ++i) std::fill_n(x.row(i), x.width, T(0));
  }
};

const Registry<Align>::Add add({.name = "uniform", .formula = "p = 1/visible keys", .kernel = "whole rows"},
                               [](const Term&) -> std::unique_ptr<Align> { return std::make_unique<Uniform>(); });

}  // namespace
}  // namespace regard
