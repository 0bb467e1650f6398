// general: s = qᵀWk, Luong et al. 2015: the query is mapped once, then it is a product. Queries and keys may differ in
// width; every head has a W of its own.
#include "attention/scores/product.h"

namespace regard {
namespace {

class General : public ProductScore {
 public:
  std::vector<Learned> learned(const AttendSizes& sizes) const override {
    return {{.name = "general", .shape = {sizes.heads, sizes.width, sizes.key_width}}};
  }
  Widths widths(const AttendSizes& sizes) const override { return {sizes.key_width, sizes.key_width, 0}; }
  Var lower_queries(const Inputs& in) const override {
    const Var w = in.learned[0];
    if (w[0] == 1) return matmul(in.q, reshape(w, {w[1], w[2]}));
    const Var by_head = reshape(transpose(in.q, 0, 1), {in.q[1], in.q[0] * in.q[2], in.q[3]});
    return transpose(reshape(matmul(by_head, w), {in.q[1], in.q[0], in.q[2], w[2]}), 0, 1);
  }
};

const Registry<Score>::Add add(
    {.name = "general", .formula = "qᵀWk", .paper = "Luong et al. 2015", .kernel = "product tiles"},
    [](const Term&) -> std::unique_ptr<Score> { return std::make_unique<General>(); });

}  // namespace
}  // namespace regard
