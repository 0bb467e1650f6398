// Hard: keys drawn from p = softmax(e), and the mean of their values (Xu et al. 2015). Rows have peak and τ of softmax;
// what is done with p after that is in attention/choices.h. Who does not draw may read as softmax does, with its
// gradient: ds = p·(dp − Σ p·dp).
#include "attention/mechanism.h"

namespace regard {
namespace {

class Hard : public Align {
 public:
  explicit Hard(const Choosing& choosing) : choosing_(choosing) {}

  void solve(Tile s, float* peak, float* tau) const override { softmax_solve(s, 1.0f, peak, tau); }
  void solve(RowsOf<double> s, double* peak, double* tau) const override { softmax_solve(s, 1.0, peak, tau); }
  void weigh(Tile s, const float* peak, const float* tau) const override { softmax_weigh(s, 1.0f, peak, tau); }
  void weigh(RowsOf<double> s, const double* peak, const double* tau) const override {
    softmax_weigh(s, 1.0, peak, tau);
  }
  void pullback(Tile s, const float* peak, const float* tau, const float*, Tile dp) const override {
    pull(s, peak, tau, dp);
  }
  void pullback(RowsOf<double> s, const double* peak, const double* tau, const double*,
                RowsOf<double> dp) const override {
    pull(s, peak, tau, dp);
  }
  const Choosing* choosing() const override { return &choosing_; }

 private:
  template <class T>
  void pull(RowsOf<T> s, const T* peak, const T* tau, RowsOf<T> dp) const {
    weigh(s, peak, tau);
    for (std::size_t i = 0; i < s.count; ++i) {
      const T* p = s.row(i);
      T* const row = dp.row(i);
      double delta = 0;
      for (std::size_t j = 0; j < s.width; ++j) {
        if (p[j] != 0) delta += static_cast<double>(p[j]) * static_cast<double>(row[j]);
      }
      for (std::size_t j = 0; j < s.width; ++j) row[j] = p[j] == 0 ? T(0) : p[j] * (row[j] - static_cast<T>(delta));
    }
  }

  Choosing choosing_;
};

const Registry<Align>::Add add(
    {.name = "hard",
     .formula = "keys drawn from softmax(e)",
     .paper = "Xu et al. 2015",
     .kernel = "whole rows",
     .arguments = {{.key = "samples",
                    .kind = Argument::Kind::kWhole,
                    .least = 1,
                    .most = 1024,
                    .usual = 1,
                    .meaning = "how many keys are drawn; the query reads their mean"},
                   {.key = "estimator",
                    .kind = Argument::Kind::kWord,
                    .words = {"reinforce", "gumbel"},
                    .meaning = "where the gradient comes from"},
                   {.key = "inference",
                    .kind = Argument::Kind::kWord,
                    .words = {"largest", "expected"},
                    .meaning = "outside training: the likeliest key, or softmax"},
                   {.key = "temperature",
                    .kind = Argument::Kind::kReal,
                    .least = kLeastReal,
                    .most = kMostReal,
                    .usual = 1,
                    .meaning = "of gumbel's softmax, which stands in for a choice in the gradient"}}},
    [](const Term& term) -> std::unique_ptr<Align> {
      using Estimator = Choosing::Estimator;
      return std::make_unique<Hard>(
          Choosing{.samples = static_cast<std::int64_t>(number_of(term, "samples").value()),
                   .estimator = word_of(term, "estimator") == "gumbel" ? Estimator::kGumbel : Estimator::kReinforce,
                   .largest = word_of(term, "inference") == "largest",
                   .temperature = number_of(term, "temperature").value()});
    });

}  // namespace
}  // namespace regard
