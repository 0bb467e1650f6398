// A vector whose elements lie in the memory of a step: nothing is taken from the heap, nothing is given back before the
// step ends. For elements that need no destructor.
//
//     ArenaVector<std::int32_t> order = arena_vector<std::int32_t>(tape.arena(), batch.size());
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include "tensor/arena.h"

namespace regard {

template <class T>
struct ArenaAllocator {
  static_assert(std::is_trivially_destructible_v<T>);
  using value_type = T;

  explicit ArenaAllocator(Arena& from) : arena(&from) {}
  template <class Other>
  explicit ArenaAllocator(const ArenaAllocator<Other>& other) : arena(other.arena) {}
  T* allocate(std::size_t count) { return static_cast<T*>(arena->allocate(count * sizeof(T))); }
  void deallocate(T*, std::size_t) noexcept {}
  friend bool operator==(const ArenaAllocator&, const ArenaAllocator&) = default;

  Arena* arena;
};

template <class T>
using ArenaVector = std::vector<T, ArenaAllocator<T>>;

// An empty one with room for so many.
template <class T>
ArenaVector<T> arena_vector(Arena& arena, std::int64_t room) {
  ArenaVector<T> made{ArenaAllocator<T>(arena)};
  made.reserve(static_cast<std::size_t>(room));
  return made;
}

}  // namespace regard
