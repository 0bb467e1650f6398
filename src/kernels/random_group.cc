#include "kernels/random_group.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/random_group.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/random-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace {

void RandomGroup(RandomKey key, std::uint64_t group, std::uint32_t* to) {
  const hn::CappedTag<std::uint32_t, 16> d;
  const PhiloxKeys keys(key);
  for (std::size_t lane = 0; lane < 16; lane += hn::Lanes(d)) {
    const auto bits = PhiloxBlocks(d, keys, group * 16 + lane);
#pragma GCC unroll 4
    for (std::size_t w = 0; w < 4; ++w) hn::StoreU(bits.word[w], d, to + w * 16 + lane);
  }
}

}  // namespace
}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(RandomGroup);

}  // namespace

void random_group(RandomKey key, std::uint64_t group, std::uint32_t* to) {
  HWY_DYNAMIC_DISPATCH(RandomGroup)(key, group, to);
}

}  // namespace regard
#endif  // HWY_ONCE
