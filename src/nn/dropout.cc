#include "regard/nn/dropout.h"

#include "base/check.h"
#include "tensor/arena.h"

namespace regard {

Dropout::Dropout(const Builder& builder, float p) : key_(builder.key("dropped")), p_(p) {
  check(p >= 0 && p < 1, "dropout: p is ", p, ", expected 0 … 1");
}

Var Dropout::operator()(Var x, const Drawing& drawing) const {
  if (!drawing.training || p_ == 0) return x;
  return dropout(x, p_, key_.at(static_cast<std::uint64_t>(drawing.steps_done)), drawing.ids);
}

Var dropout_over_time(Var x, float p, RandomKey key, std::span<const std::uint64_t> ids, std::int64_t first) {
  check(x.shape().rank() >= 2, "dropout: x is ", x.shape(), ", expected [time, batch, …]");
  const std::int64_t time = x[0], batch = x[1], rows = time * batch;
  check(ids.empty() || static_cast<std::int64_t>(ids.size()) == batch, "dropout: ", ids.size(), " ids for a batch of ",
        batch);
  const auto count = static_cast<std::size_t>(rows);
  auto* places = static_cast<std::uint64_t*>(x.tape().arena().allocate(count * sizeof(std::uint64_t)));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t row = i % static_cast<std::size_t>(batch), t = i / static_cast<std::size_t>(batch);
    places[i] = RandomKey(ids.empty() ? row : ids[row]).at(static_cast<std::uint64_t>(first) + t).value();
  }
  const Shape flat = {rows, rows == 0 ? 0 : x.value().size() / rows};
  return reshape(dropout(reshape(x, flat), p, key, std::span<const std::uint64_t>(places, count)), x.shape());
}

}  // namespace regard
