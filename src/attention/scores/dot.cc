// dot: s = q·k (Luong et al. 2015). scaled_dot: s = q·k/√width, or times a scale of one's own (Vaswani et al. 2017).
#include "attention/scores/product.h"

namespace regard {
namespace {

const Registry<Score>::Add add_dot(
    {.name = "dot", .formula = "qᵀk", .paper = "Luong et al. 2015", .kernel = "product tiles"},
    [](const Term&) -> std::unique_ptr<Score> { return std::make_unique<ProductScore>(); });

const Registry<Score>::Add add_scaled_dot(
    {.name = "scaled_dot",
     .formula = "qᵀk/√d",
     .paper = "Vaswani et al. 2017",
     .kernel = "product tiles",
     .arguments = {{.key = "scale",
                    .kind = Argument::Kind::kReal,
                    .least = kLeastReal,
                    .most = kMostReal,
                    .meaning = "what the product is multiplied by; left out: 1/√d, d the width of a key"}}},
    [](const Term& term) -> std::unique_ptr<Score> {
      return std::make_unique<ScaledProductScore>(number_of(term, "scale"));
    });

}  // namespace
}  // namespace regard
