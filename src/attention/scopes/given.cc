// global sees every real key. lengths, documents, mask and bias see what the call says, and demand that it says it:
// what a call gives is respected under every scope.
#include "attention/mechanism.h"

namespace regard {
namespace {

class Demand : public Scope {
 public:
  Demand(std::string_view name, bool Given::*what) : name_(name), what_(what) {}
  void check_call(const Given& given) const override {
    check(given.*what_, "attend: the scope '", name_, "' needs ", name_, ", which the call does not give");
  }
  bool sees_by_place() const override { return what_ == &Given::bias; }

 private:
  std::string_view name_;
  bool Given::*what_;
};

template <bool Given::*what>
std::unique_ptr<Scope> make(const Term& term) {
  return std::make_unique<Demand>(find_card(term.name)->name, what);
}

const Registry<Scope>::Add add_global({.name = "global", .formula = "every key", .kernel = "nothing to do"},
                                      [](const Term&) -> std::unique_ptr<Scope> { return std::make_unique<Scope>(); });
const Registry<Scope>::Add add_lengths({.name = "lengths",
                                        .formula = "j < the item's length, which the call gives",
                                        .kernel = "whole tiles skipped"},
                                       make<&Given::lengths>);
const Registry<Scope>::Add add_documents({.name = "documents",
                                          .formula = "document of i = document of j, which the call gives",
                                          .kernel = "whole tiles skipped"},
                                         make<&Given::documents>);
const Registry<Scope>::Add add_mask({.name = "mask",
                                     .formula = "where the mask that the call gives is true",
                                     .kernel = "whole tiles skipped"},
                                    make<&Given::mask>);
const Registry<Scope>::Add add_bias({.name = "bias",
                                     .formula = "a tensor that the call gives, added to the scores",
                                     .kernel = "added to the tile"},
                                    make<&Given::bias>);

}  // namespace
}  // namespace regard
