// The random bits of base/random.h, a vector at a time and equal to them bit for bit on every target.
//
//     const PhiloxKeys keys(key);
//     const RandomWords<DU> bits = PhiloxBlocks(du, keys, group * 16);       // du: a tag of uint32_t, at most 16 lanes
//     // bits.word[w] are elements group·64 + 16·w + lane
#if defined(REGARD_KERNELS_RANDOM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef REGARD_KERNELS_RANDOM_INL_H_
#undef REGARD_KERNELS_RANDOM_INL_H_
#else
#define REGARD_KERNELS_RANDOM_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "regard/random.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The keys of all rounds, in 64 bits each because that is how they are broadcast.
struct PhiloxKeys {
  std::uint64_t round[Philox::kRounds][2];

  explicit PhiloxKeys(RandomKey key) {
    auto low = static_cast<std::uint32_t>(key.value()), high = static_cast<std::uint32_t>(key.value() >> 32);
    for (auto& pair : round) {
      pair[0] = low;
      pair[1] = high;
      low += Philox::kWeyl[0];
      high += Philox::kWeyl[1];
    }
  }
};

template <class DU>
struct RandomWords {
  hn::Vec<DU> word[4];
};

// The blocks of counters first, first + 1, …, one a lane; `first` is a multiple of the number of lanes. A product of
// two 32-bit numbers takes 64 bits: even and odd counters go through the rounds in vectors of their own, each number in
// the low half of 64 bits; what is left in the high half is never looked at, so halves may be exchanged instead of
// shifted: multiplying keeps the one unit that shifts busy (16.3 µs for 64×512 numbers to drop, exchanged 15.4).
template <class DU>
HWY_INLINE RandomWords<DU> PhiloxBlocks(DU du, const PhiloxKeys& keys, std::uint64_t first) {
  static_assert(hn::MaxLanes(DU()) <= 16);
  const hn::Repartition<std::uint64_t, DU> wide;
  using W = hn::Vec<decltype(wide)>;
  const auto multiply0 = hn::Set(du, Philox::kMultiply[0]), multiply1 = hn::Set(du, Philox::kMultiply[1]);
  W state[2][4];
#pragma GCC unroll 2
  for (std::uint64_t odd = 0; odd < 2; ++odd) {
    const W step = hn::Iota(wide, 0);
    state[odd][0] = hn::Add(hn::Set(wide, (first & 0xFFFFFFFFu) + odd), hn::Add(step, step));
    state[odd][1] = hn::Set(wide, first >> 32);
    state[odd][2] = hn::Zero(wide);
    state[odd][3] = hn::Zero(wide);
  }
#pragma GCC unroll 10
  for (int round = 0; round < Philox::kRounds; ++round) {
    const W key0 = hn::Set(wide, keys.round[round][0]), key1 = hn::Set(wide, keys.round[round][1]);
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; ++odd) {
      W* counter = state[odd];
      const W a = hn::MulEven(hn::BitCast(du, counter[0]), multiply0);
      const W b = hn::MulEven(hn::BitCast(du, counter[2]), multiply1);
      const auto upper = [&](W product)
                             HWY_ATTR { return hn::BitCast(wide, hn::Shuffle2301(hn::BitCast(du, product))); };
      counter[0] = hn::Xor3(upper(b), counter[1], key0);
      counter[1] = b;
      counter[2] = hn::Xor3(upper(a), counter[3], key1);
      counter[3] = a;
    }
  }
  RandomWords<DU> out;
#pragma GCC unroll 4
  for (int w = 0; w < 4; ++w) {
    out.word[w] = hn::OddEven(hn::BitCast(du, hn::ShiftLeft<32>(state[1][w])), hn::BitCast(du, state[0][w]));
  }
  return out;
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
