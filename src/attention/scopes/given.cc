// global sees every real key. lengths, documents and mask see what the call says, and demand that it says it: what a
// call gives is respected under every scope.
#include "attention/mechanism.h"

namespace regard {
namespace {

class Demand : public Scope {
 public:
  Demand(const char* name, bool Given::*what) : name_(name), what_(what) {}
  void check_call(const Given& given) const override {
    check(what_ == nullptr || given.*what_, "attend: the scope '", name_, "' needs ", name_,
          ", which the call does not give");
  }

 private:
  const char* name_;
  bool Given::*what_;
};

template <int which>
std::unique_ptr<Scope> make(const Arguments& arguments) {
  constexpr const char* kNames[] = {"global", "lengths", "documents", "mask"};
  constexpr bool Given::*kWhat[] = {nullptr, &Given::lengths, &Given::documents, &Given::mask};
  check_arguments(kNames[which], arguments, {});
  return std::make_unique<Demand>(kNames[which], kWhat[which]);
}

const Registry<Scope>::Add add_global({.name = "global", .formula = "every real key", .paper = ""}, make<0>);
const Registry<Scope>::Add add_lengths({.name = "lengths", .formula = "j < length", .paper = ""}, make<1>);
const Registry<Scope>::Add add_documents({.name = "documents", .formula = "document(j) = document(i)", .paper = ""},
                                         make<2>);
const Registry<Scope>::Add add_mask({.name = "mask", .formula = "mask(i, j)", .paper = ""}, make<3>);

}  // namespace
}  // namespace regard
