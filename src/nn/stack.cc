#include "regard/nn/stack.h"

#include <memory>
#include <type_traits>

#include "base/check.h"
#include "tensor/arena.h"

namespace regard {
namespace {

// One more dimension of size 1 in front.
Shape below_one(const Shape& shape) {
  check(shape.rank() < kMaxRank, "stack: parts of ", shape.rank(), " dimensions");
  Shape result = {1};
  for (int i = 0; i < shape.rank(); ++i) result = result.plus(shape[i]);
  return result;
}

}  // namespace

std::span<Var> make_vars(Tape& tape, std::int64_t count) {
  static_assert(std::is_trivially_destructible_v<Var>);
  const auto size = static_cast<std::size_t>(count);
  Var* first = static_cast<Var*>(tape.arena().allocate(size * sizeof(Var)));
  std::uninitialized_default_construct_n(first, size);
  return {first, size};
}

Var stack(std::span<const Var> parts) {
  check(!parts.empty(), "stack: nothing to stack");
  const Shape shape = below_one(parts.front().shape());
  const std::span<Var> raised = make_vars(parts.front().tape(), static_cast<std::int64_t>(parts.size()));
  for (std::size_t i = 0; i < parts.size(); ++i) raised[i] = reshape(parts[i], shape);
  return concat(raised, 0);
}

}  // namespace regard
