#include "kernels/dropout.h"

#include "kernels/chunks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dropout.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/random-inl.h"

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {
namespace {

// The 64 elements of a group.
template <bool kAdd>
HWY_INLINE void DropGroup(const PhiloxKeys& keys, std::uint64_t group, std::uint32_t threshold, float scale,
                          const float* x, float* y, bool streamed) {
  const hn::CappedTag<float, 16> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t lane = 0; lane < 16; lane += lanes) {
    const auto bits = PhiloxBlocks(du, keys, group * 16 + lane);
#pragma GCC unroll 4
    for (std::size_t w = 0; w < 4; ++w) {
      const std::size_t i = w * 16 + lane;
      const auto dropped = hn::RebindMask(d, hn::Lt(bits.word[w], hn::Set(du, threshold)));
      const auto value = hn::IfThenZeroElse(dropped, hn::Mul(hn::LoadU(d, x + i), hn::Set(d, scale)));
      if (streamed) {
        hwy::Prefetch(x + i + 1024);
        hn::Stream(value, d, y + i);
      } else {
        hn::StoreU(kAdd ? hn::Add(hn::LoadU(d, y + i), value) : value, d, y + i);
      }
    }
  }
}

template <bool kAdd>
HWY_INLINE void DropAll(const PhiloxKeys& keys, std::uint64_t first, std::uint32_t threshold, float scale,
                        const float* x, float* y, std::size_t n, bool streamed) {
  std::size_t i = 0;
  while (i < n) {
    const std::uint64_t group = (first + i) / 64;
    const auto skipped = static_cast<std::size_t>((first + i) % 64);
    if (skipped == 0 && n - i >= 64) {
      DropGroup<kAdd>(keys, group, threshold, scale, x + i, y + i, streamed);
      i += 64;
    } else {  // only some elements of the group are ours
      const std::size_t count = 64 - skipped < n - i ? 64 - skipped : n - i;
      HWY_ALIGN float from[64] = {}, to[64] = {};
      for (std::size_t k = 0; k < count; ++k) from[skipped + k] = x[i + k];
      for (std::size_t k = 0; k < count; ++k) to[skipped + k] = y[i + k];
      DropGroup<kAdd>(keys, group, threshold, scale, from, to, false);
      for (std::size_t k = 0; k < count; ++k) y[i + k] = to[skipped + k];
      i += count;
    }
  }
}

void Dropout(const float* x, float* y, std::size_t n, float p, RandomKey key, std::uint64_t first, bool add,
             bool streamed) {
  const PhiloxKeys keys(key);
  const std::uint32_t threshold = dropout_threshold(p);
  const float scale = 1.0f / (1.0f - p);
  if (add) {
    DropAll<true>(keys, first, threshold, scale, x, y, n, false);
  } else {
    // Streaming stores have to be aligned, which they all are if the first whole group is.
    const auto place = reinterpret_cast<std::uintptr_t>(y + (64 - first % 64) % 64);
    DropAll<false>(keys, first, threshold, scale, x, y, n, streamed && place % 64 == 0);
  }
}

}  // namespace
}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace regard {
namespace {

HWY_EXPORT(Dropout);

}  // namespace

void dropout(const float* x, float* y, std::size_t n, float p, RandomKey key, std::uint64_t first_element, bool add) {
  const Path path = path_for(n, add || x == y);
  in_chunks(n, [&](std::size_t begin, std::size_t count) {
    if (p < 1) {
      HWY_DYNAMIC_DISPATCH(Dropout)
      (x + begin, y + begin, count, p, key, first_element + begin, add, path == Path::kStreamed);
    } else if (!add) {
      std::fill_n(y + begin, count, 0.0f);
    }
    finish_stores(path);
  });
}

void dropout_rows(Rows x, Tile y, float p, const RandomKey* keys, bool add) {
  in_row_chunks(x.count, x.width, [&](std::size_t begin, std::size_t count) {
    for (std::size_t i = begin; i < begin + count; ++i) dropout(x.row(i), y.row(i), x.width, p, keys[i], 0, add);
  });
}

}  // namespace regard
#endif
