// Numbers from a multiple of 64 bytes on, as tensors hold them: a vector never lies across two lines of the cache.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace regard {

template <class T>
struct Aligned {
  using value_type = T;
  Aligned() = default;
  template <class U>
  explicit Aligned(const Aligned<U>&) {}
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{64})); }
  void deallocate(T* memory, std::size_t) { ::operator delete (memory, std::align_val_t{64}); }
  bool operator==(const Aligned&) const = default;
};

using Floats = std::vector<float, Aligned<float>>;

}  // namespace regard
