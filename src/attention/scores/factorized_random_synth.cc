// factorized_random_synth: e = R₁R₂ᵀ, Tay et al. 2020: a product of two learned tables.
#include "attention/scores/product.h"

namespace regard {
namespace {

class FactorizedRandomSynthesizer : public ProductScore {
 public:
  explicit FactorizedRandomSynthesizer(const Term& term)
      : longest_(static_cast<std::int64_t>(*number_of(term, "length"))),
        rank_(static_cast<std::int64_t>(*number_of(term, "rank"))),
        trains_(word_of(term, "learning") == "trainable") {}

  Needs needs() const override { return {}; }
  std::vector<Learned> learned(const AttendSizes& sizes) const override {
    std::vector<Learned> all;
    for (const char* name : {"rows", "columns"}) {  // products of about 1
      all.push_back({.name = name,
                     .shape = {sizes.heads, longest_, rank_},
                     .start = Learned::Start::kNormal,
                     .size = std::pow(static_cast<double>(rank_), -0.25),
                     .trains = trains_});
    }
    return all;
  }
  Widths widths(const AttendSizes&) const override { return {rank_, rank_, 0}; }
  Longest longest() const override { return {longest_, longest_}; }
  Var lower_queries(const Inputs& in) const override { return cut_table(in.learned[0], in.offset, in.queries); }
  Var lower_keys(const Inputs& in) const override { return cut_table(in.learned[1], 0, in.keys); }

 private:
  std::int64_t longest_, rank_;
  bool trains_;
};

const Registry<Score>::Add add(
    {.name = "factorized_random_synth",
     .formula = "e = R₁R₂ᵀ",
     .paper = "Tay et al. 2020",
     .kernel = "product tiles",
     .arguments = {longest(),
                   {.key = "rank", .least = 1, .most = kMostFeatures, .usual = 8, .meaning = "the width of R₁ and R₂"},
                   learning()}},
    [](const Term& term) -> std::unique_ptr<Score> { return std::make_unique<FactorizedRandomSynthesizer>(term); });

}  // namespace
}  // namespace regard
