// bench limits: what the machine can do at best, the yardstick of every other benchmark.
//   fma            independent chains of x ← x·½ + 1 in registers: the most multiply-adds the cores can do
//   copy_64x512    y ← x within the caches
//   copy_4096x4096 y ← x beyond them
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cli/bench_limits.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace regard::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kChains = 12;  // four or five cycles of latency on two ports need ten; AVX2 has 16 registers

// `steps` steps of kChains · 16 elements; writes the final value of each lane, all of them 2.
void FmaChains(std::size_t steps, float* HWY_RESTRICT out) {
  const hn::CappedTag<float, 16> d;
  using V = hn::Vec<decltype(d)>;
  const V half = hn::Set(d, 0.5f), one = hn::Set(d, 1.0f);
  V chain[kChains];
#pragma GCC unroll 16
  for (int c = 0; c < kChains; ++c) chain[c] = hn::Set(d, static_cast<float>(c));
  for (std::size_t step = 0; step < steps * (16 / hn::Lanes(d)); ++step) {
#pragma GCC unroll 16
    for (int c = 0; c < kChains; ++c) chain[c] = hn::MulAdd(chain[c], half, one);
  }
  V sum = hn::Zero(d);
#pragma GCC unroll 16
  for (int c = 0; c < kChains; ++c) sum = hn::Add(sum, chain[c]);
  sum = hn::Mul(sum, hn::Set(d, 1.0f / kChains));
  for (std::size_t lane = 0; lane < 16; lane += hn::Lanes(d)) hn::StoreU(sum, d, out + lane);
}

void Copy(const float* HWY_RESTRICT from, float* HWY_RESTRICT to, std::size_t count) {  // a multiple of 16
  const hn::CappedTag<float, 16> d;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cmath>

#include "base/pool.h"
#include "cli/bench.h"

namespace regard::cli {
namespace {

HWY_EXPORT(FmaChains);
HWY_EXPORT(Copy);

constexpr std::size_t kSteps = 8192;        // about 20 µs
constexpr std::size_t kItemsPerThread = 8;  // so that a thread that wakes late does not leave the others waiting

Case fma() {
  const std::size_t items = kItemsPerThread * static_cast<std::size_t>(threads());
  return {.name = "fma",
          .operation = "fma",
          .flops = 2.0 * 12 * 16 * kSteps * static_cast<double>(items),
          .prepare = [items] {
            auto out = std::make_shared<Floats>(items * 16);
            return Job{.run =
                           [=] {
                             parallel(items, [&](std::size_t item) {
                               HWY_DYNAMIC_DISPATCH(FmaChains)(kSteps, out->data() + item * 16);
                             });
                           },
                       .gap =
                           [=] {
                             double gap = 0;
                             for (const float each : *out) gap = std::max(gap, std::abs(each - 2.0) / 1e-6);
                             return gap;
                           }};
          }};
}

Case copy(std::int64_t rows, std::int64_t width) {
  const auto count = static_cast<std::size_t>(rows * width);
  return {.name = "copy_" + std::to_string(rows) + "x" + std::to_string(width),
          .operation = "copy",
          .parameters = {{"rows", rows}, {"width", width}},
          .bytes = 8.0 * static_cast<double>(count),
          .prepare = [count] {
            auto from = random_numbers(count, 1);
            auto to = std::make_shared<Floats>(count);
            const std::size_t block = std::clamp<std::size_t>(count / 16, 16, 65536);
            return Job{.run =
                           [=] {
                             parallel((count + block - 1) / block, [&](std::size_t item) {
                               const std::size_t first = item * block;
                               HWY_DYNAMIC_DISPATCH(Copy)
                               (from->data() + first, to->data() + first, std::min(block, count - first));
                             });
                           },
                       .gap = [=] { return *from == *to ? 0.0 : 2.0; }};
          }};
}

const AddBench add({.name = "limits",
                    .summary = "what the machine can do at best: multiply-adds, copying",
                    .cases = [] {
                      return std::vector<Case>{fma(), copy(64, 512), copy(4096, 4096)};
                    }});

}  // namespace
}  // namespace regard::cli
#endif
