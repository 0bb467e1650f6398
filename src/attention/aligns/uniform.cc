// Uniform: p = 1/visible. Equal weights whatever the scores are; what every other alignment has to beat.
#include "attention/mechanism.h"

namespace regard {
namespace {

// τ holds the number of visible keys.
class Uniform : public Align {
 public:
  void solve(Tile s, float* peak, float* tau) const override { count(s, peak, tau); }
  void solve(RowsOf<double> s, double* peak, double* tau) const override { count(s, peak, tau); }
  void weigh(Tile s, const float*, const float* tau) const override { share(s, tau); }
  void weigh(RowsOf<double> s, const double*, const double* tau) const override { share(s, tau); }
  void pullback(Tile s, const float*, const float* tau, const float*, Tile dp) const override {
    share(s, tau);
    clear(dp);
  }
  void pullback(RowsOf<double> s, const double*, const double* tau, const double*, RowsOf<double> dp) const override {
    share(s, tau);
    clear(dp);
  }

 private:
  template <class T>
  static void count(RowsOf<T> s, T* peak, T* tau) {
    for (std::size_t i = 0; i < s.count; ++i) {
      std::size_t visible = 0;
      for (std::size_t j = 0; j < s.width; ++j) visible += s.row(i)[j] == kHidden<T> ? 0 : 1;
      peak[i] = 0;
      tau[i] = static_cast<T>(visible);
    }
  }
  template <class T>
  static void share(RowsOf<T> s, const T* tau) {
    for (std::size_t i = 0; i < s.count; ++i) {
      for (std::size_t j = 0; j < s.width; ++j) s.row(i)[j] = s.row(i)[j] == kHidden<T> ? T(0) : 1 / tau[i];
    }
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
