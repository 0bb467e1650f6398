// rotary(score): the score of queries and keys that are turned by their positions, so that it depends on how far apart
// they are.    Su et al. 2021
#include "attention/mechanism.h"

namespace regard {
namespace {

class Rotary : public Score {
 public:
  explicit Rotary(const Term& term)
      : inner_(make_stage<Score>(term.inner.at(0))), base_(number_of(term, "base").value()) {}

  const PairTiles& tiles() const override { return inner_->tiles(); }
  Needs needs() const override { return inner_->needs(); }
  std::vector<Learned> learned(const AttendSizes& sizes) const override { return inner_->learned(sizes); }
  Longest longest() const override { return inner_->longest(); }
  void check_call(const Inputs& in) const override {
    inner_->check_call(in);
    const std::int64_t width = inner_->widths(in.sizes).q;
    check(width % 2 == 0, "attend: rotary turns pairs, got rows of width ", width, ", expected an even number");
  }
  Widths widths(const AttendSizes& sizes) const override { return inner_->widths(sizes); }
  Var lower_queries(const Inputs& in) const override {
    return rotary(inner_->lower_queries(in), {.first = in.offset, .positions = in.places, .base = base_});
  }
  Var lower_keys(const Inputs& in) const override {
    return rotary(inner_->lower_keys(in), {.positions = in.places, .base = base_});
  }
  Var lower_theta(const Inputs& in) const override { return inner_->lower_theta(in); }
  Var lower_bias(const Inputs& in) const override { return inner_->lower_bias(in); }

 private:
  std::unique_ptr<Score> inner_;
  double base_;
};

const Registry<Score>::Add add({.name = "rotary",
                                .formula = "the score of q and k turned by their positions",
                                .paper = "Su et al. 2021",
                                .kernel = "as the score within",
                                .arguments = {{.key = "base",
                                               .kind = Argument::Kind::kReal,
                                               .least = 1,
                                               .most = 1e9,
                                               .usual = 10000,
                                               .meaning = "pair i of the features turns by position·base^(−2i/d)"}},
                                .least_inner = 1,
                                .most_inner = 1,
                                .inner = {"dot", "scaled_dot", "projected", "cosine"},
                                .inner_example = "scaled_dot"},
                               [](const Term& term) -> std::unique_ptr<Score> {
                                 return std::make_unique<Rotary>(term);
                               });

}  // namespace
}  // namespace regard
