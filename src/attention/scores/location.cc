// location: e_i = W q_i, one number a position, Luong et al. 2015: the rows of W are the keys, whatever the sequence
// is.
#include "attention/scores/product.h"

namespace regard {
namespace {

class Location : public ProductScore {
 public:
  explicit Location(const Term& term) : longest_(static_cast<std::int64_t>(*number_of(term, "length"))) {}

  Needs needs() const override { return {.query_tokens = true}; }
  std::vector<Learned> learned(const AttendSizes& sizes) const override {
    return {{.name = "location", .shape = {sizes.heads, longest_, sizes.query_token}}};
  }
  Widths widths(const AttendSizes& sizes) const override { return {sizes.query_token, sizes.query_token, 0}; }
  Longest longest() const override { return {.keys = longest_}; }
  Var lower_queries(const Inputs& in) const override { return tokens_for_all(in.query_tokens, in.sizes.heads); }
  Var lower_keys(const Inputs& in) const override { return cut_table(in.learned[0], 0, in.keys); }

 private:
  std::int64_t longest_;
};

const Registry<Score>::Add add({.name = "location",
                                .formula = "e_i = W q_i, one number a position; keys are not looked at",
                                .paper = "Luong et al. 2015",
                                .kernel = "product tiles",
                                .arguments = {longest()}},
                               [](const Term& term) -> std::unique_ptr<Score> {
                                 return std::make_unique<Location>(term);
                               });

}  // namespace
}  // namespace regard
