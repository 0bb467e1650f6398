// sum: Σ_j p_j·v_j. pointer: the weights themselves are the answer (Vinyals et al. 2015).
#include "attention/mechanism.h"

namespace regard {
namespace {

struct Pointer : Read {
  bool is_pointer() const override { return true; }
};

const Registry<Read>::Add add_sum({.name = "sum", .formula = "Σ_j p_j v_j", .kernel = "product tiles"},
                                  [](const Term&) -> std::unique_ptr<Read> { return std::make_unique<Read>(); });
const Registry<Read>::Add add_pointer({.name = "pointer",
                                       .formula = "p itself: the weights are the answer",
                                       .paper = "Vinyals et al. 2015",
                                       .kernel = "whole rows"},
                                      [](const Term&) -> std::unique_ptr<Read> { return std::make_unique<Pointer>(); });

}  // namespace
}  // namespace regard
