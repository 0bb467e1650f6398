// causal: j ≤ i. With as many queries as keys both are counted from the first; otherwise the call has to say where its
// first query stands.
#include "attention/mechanism.h"

namespace regard {
namespace {

struct Causal : IntervalScope<Causal> {
  void check_call(const Given& given) const override {
    check(given.offset || given.queries == given.keys, "attend: causal with ", given.queries, " queries and ",
          given.keys, " keys: first_query must say where the first query stands among the keys");
  }
  static Range seen(std::int64_t place) { return {0, place + 1}; }
};

const Registry<Scope>::Add add(
    {.name = "causal", .formula = "j ≤ i", .paper = "Vaswani et al. 2017", .kernel = "whole tiles skipped"},
    [](const Term&) -> std::unique_ptr<Scope> { return std::make_unique<Causal>(); });

}  // namespace
}  // namespace regard
