// One number for all weights of a model, to see at a glance whether two of them are equal to the last bit. Not a
// checksum against ill will.
#pragma once

#include <cstdint>

#include "regard/autograd/parameter.h"

namespace regard {

inline std::uint64_t fingerprint(const Parameters& parameters) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  const auto add = [&hash](const void* data, std::size_t bytes) {
    const auto* from = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < bytes; ++i) hash = (hash ^ from[i]) * 0x100000001b3u;
  };
  for (const Parameter& parameter : parameters) {
    add(parameter.name.data(), parameter.name.size());
    add(parameter.value.raw(), parameter.value.bytes());
  }
  return hash;
}

}  // namespace regard
