// projected: s = (W_q q)ᵀ(W_k k)/√d: what one head of Vaswani et al. 2017 does with its tokens. The values are mapped
// by who gives them.
#include "attention/scores/product.h"

namespace regard {
namespace {

class Projected : public ScaledProductScore {
 public:
  explicit Projected(Term term) : term_(std::move(term)) {}

  Needs needs() const override { return {.query_tokens = true, .key_tokens = true}; }
  std::vector<Learned> learned(const AttendSizes& sizes) const override {
    const std::int64_t width = sizes.heads * hidden_of(term_, sizes);
    return {{.name = "query", .shape = {sizes.query_token, width}}, {.name = "key", .shape = {sizes.key_token, width}}};
  }
  Widths widths(const AttendSizes& sizes) const override {
    return {hidden_of(term_, sizes), hidden_of(term_, sizes), 0};
  }
  Var lower_queries(const Inputs& in) const override {
    return to_heads(matmul(in.query_tokens, in.learned[0]), in.sizes.heads);
  }
  Var lower_keys(const Inputs& in) const override {
    return to_heads(matmul(in.key_tokens, in.learned[1]), in.sizes.heads);
  }

 private:
  Term term_;
};

const Registry<Score>::Add add({.name = "projected",
                                .formula = "(W_q q)ᵀ(W_k k)/√d",
                                .paper = "Vaswani et al. 2017",
                                .kernel = "product tiles",
                                .arguments = {hidden()}},
                               [](const Term& term) -> std::unique_ptr<Score> {
                                 return std::make_unique<Projected>(term);
                               });

}  // namespace
}  // namespace regard
