// Random numbers as a function of where they are used: (seed, step, layer, example, …, element). There is no state to
// save and no order to keep, so threads, batch slots and resumed runs all see the same numbers.
//
//     const RandomKey dropout = RandomKey(seed).at(step).at(layer);
//     float u = uniform(dropout.at(example), element);                  // in [0, 1)
//
// The generator is Philox 4×32 with 10 rounds (Salmon et al. 2011). Elements are laid over its blocks so that 16 lanes
// of a vector unit can make 64 of them at once: element e is word (e / 16) % 4 of block (e / 64) · 16 + e % 16.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace regard {

class RandomKey {
 public:
  constexpr explicit RandomKey(std::uint64_t seed) : value_(mix(seed)) {}
  constexpr RandomKey at(std::uint64_t place) const { return RandomKey(value_ ^ mix(place + 0x9e3779b97f4a7c15u)); }
  constexpr std::uint64_t value() const { return value_; }

 private:
  static constexpr std::uint64_t mix(std::uint64_t x) {  // the finaliser of SplitMix64 (Steele et al. 2014)
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  std::uint64_t value_;
};

struct Philox {
  static constexpr std::uint32_t kMultiply[2] = {0xD2511F53u, 0xCD9E8D57u};
  static constexpr std::uint32_t kWeyl[2] = {0x9E3779B9u, 0xBB67AE85u};
  static constexpr int kRounds = 10;

  static constexpr std::array<std::uint32_t, 4> block(std::array<std::uint32_t, 4> counter,
                                                      std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < kRounds; ++round) {
      const std::uint64_t a = std::uint64_t{kMultiply[0]} * counter[0];
      const std::uint64_t b = std::uint64_t{kMultiply[1]} * counter[2];
      counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
                 static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
      key = {key[0] + kWeyl[0], key[1] + kWeyl[1]};
    }
    return counter;
  }
  static constexpr std::array<std::uint32_t, 4> block(RandomKey key, std::uint64_t counter) {
    return block({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0},
                 {static_cast<std::uint32_t>(key.value()), static_cast<std::uint32_t>(key.value() >> 32)});
  }
};

constexpr std::uint32_t random_bits(RandomKey key, std::uint64_t element) {
  return Philox::block(key, element / 64 * 16 + element % 16)[element / 16 % 4];
}

// In [0, 1), a multiple of 2⁻²⁴.
constexpr float uniform(RandomKey key, std::uint64_t element) {
  return static_cast<float>(random_bits(key, element) >> 8) * 0x1p-24f;
}

// A whole number below `count`, without the bias of a remainder beyond 2⁻³².
constexpr std::uint64_t random_below(RandomKey key, std::uint64_t element, std::uint32_t count) {
  return (std::uint64_t{random_bits(key, element)} * count) >> 32;
}

// Standard normal by Box and Muller; in double, so that it is the same on every target.
inline double normal(RandomKey key, std::uint64_t element) {
  const double radius = (random_bits(key, 2 * element) + 1.0) * 0x1p-32;
  const double angle = random_bits(key, 2 * element + 1) * 0x1p-32;
  return std::sqrt(-2.0 * std::log(radius)) * std::cos(6.283185307179586 * angle);
}

}  // namespace regard
