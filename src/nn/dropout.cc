#include "regard/nn/dropout.h"

#include "base/check.h"

namespace regard {

Dropout::Dropout(const Builder& builder, float p) : key_(builder.key("dropped")), p_(p) {
  check(p >= 0 && p < 1, "dropout: p is ", p, ", expected 0 … 1");
}

Var Dropout::operator()(Var x, const Drawing& drawing) const {
  if (!drawing.training || p_ == 0) return x;
  return dropout(x, p_, key_.at(static_cast<std::uint64_t>(drawing.steps_done)), drawing.ids);
}

}  // namespace regard
