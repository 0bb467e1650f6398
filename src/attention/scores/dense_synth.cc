// dense_synth: e_i = W₂ relu(W₁ x_i + b₁) + b₂, from the query's token alone, Tay et al. 2020: a product whose keys are
// the rows of W₂, and b₂ a bias that every query shares.
#include "attention/scores/product.h"

namespace regard {
namespace {

class DenseSynthesizer : public ProductScore {
 public:
  explicit DenseSynthesizer(Term term)
      : term_(std::move(term)), longest_(static_cast<std::int64_t>(*number_of(term_, "length"))) {}

  Needs needs() const override { return {.query_tokens = true}; }
  std::vector<Learned> learned(const AttendSizes& sizes) const override {
    const std::int64_t width = hidden_of(term_, sizes);
    return {{.name = "in", .shape = {sizes.query_token, sizes.heads * width}},
            {.name = "in_bias", .shape = {sizes.heads * width}, .start = Learned::Start::kZeros},
            {.name = "out", .shape = {sizes.heads, longest_, width}},
            {.name = "out_bias", .shape = {sizes.heads, longest_}, .start = Learned::Start::kZeros}};
  }
  Widths widths(const AttendSizes& sizes) const override {
    return {hidden_of(term_, sizes), hidden_of(term_, sizes), 0};
  }
  Longest longest() const override { return {.keys = longest_}; }
  Var lower_queries(const Inputs& in) const override {
    return to_heads(relu(matmul(in.query_tokens, in.learned[0], {.bias = in.learned[1]})), in.sizes.heads);
  }
  Var lower_keys(const Inputs& in) const override { return cut_table(in.learned[2], 0, in.keys); }
  Var lower_bias(const Inputs& in) const override {
    return reshape(slice(in.learned[3], 1, 0, in.keys), {1, in.sizes.heads, 1, in.keys});
  }

 private:
  Term term_;
  std::int64_t longest_;
};

const Registry<Score>::Add add({.name = "dense_synth",
                                .formula = "e_i = W₂ relu(W₁ x_i + b₁) + b₂, from the query's token alone",
                                .paper = "Tay et al. 2020",
                                .kernel = "product tiles",
                                .arguments = {longest(), hidden()}},
                               [](const Term& term) -> std::unique_ptr<Score> {
                                 return std::make_unique<DenseSynthesizer>(term);
                               });

}  // namespace
}  // namespace regard
