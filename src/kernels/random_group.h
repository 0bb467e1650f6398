// The 64 random numbers of regard/random.h that are made together, as they are, for those who do more with them than
// a kernel here does.
//
//     std::uint32_t bits[kRandomGroup];
//     random_group(key, element / kRandomGroup, bits);            // bits[i] = random_bits(key, element / 64 · 64 + i)
#pragma once

#include <cstddef>
#include <cstdint>

#include "regard/random.h"

namespace regard {

inline constexpr std::size_t kRandomGroup = 64;

void random_group(RandomKey key, std::uint64_t group, std::uint32_t* to);

namespace reference {

inline void random_group(RandomKey key, std::uint64_t group, std::uint32_t* to) {
  for (std::size_t i = 0; i < kRandomGroup; ++i) to[i] = random_bits(key, group * kRandomGroup + i);
}

}  // namespace reference
}  // namespace regard
