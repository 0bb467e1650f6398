// bench limits: what the machine can do at best, the yardstick of every other benchmark.
//   fma            independent chains of x ← x·½ + 1 in registers: the most multiply-adds the cores can do
//   gemm           our own matrix product at a size that suits it, weights packed beforehand
//   copy_64x512    y ← x within the caches
//   copy_4096x4096 y ← x beyond them
//   update_64x512, update_16384x4096  y ← y·½ + 1 in place: writes only what was read, which a copy does not
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

void HalveInPlace(float* y, std::size_t count) {  // a multiple of 16
  const hn::CappedTag<float, 16> d;
  const auto half = hn::Set(d, 0.5f), one = hn::Set(d, 1.0f);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    hn::StoreU(hn::MulAdd(hn::LoadU(d, y + i), half, one), d, y + i);
  }
}

}  // namespace regard::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cmath>

#include "base/pool.h"
#include "cli/bench.h"
#include "kernels/gemm.h"

namespace regard::cli {
namespace {

HWY_EXPORT(FmaChains);
HWY_EXPORT(Copy);
HWY_EXPORT(HalveInPlace);

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

Case product() {
  constexpr std::size_t kSide = 512;
  return {
      .name = "gemm", .operation = "matmul", .flops = 2.0 * kSide * kSide * kSide, .prepare = [] {
        const auto a = random_numbers(kSide * kSide, 1), b = random_numbers(kSide * kSide, 2);
        auto panels = std::make_shared<Floats>(packed_size(kSide, kSide)), c = std::make_shared<Floats>(a->size());
        const PackedMatrix packed = pack(matrix<const float>(b->data(), kSide, kSide), panels->data());
        return Job{
            .run = [=] { gemm(matrix<const float>(a->data(), kSide, kSide), packed, matrix(c->data(), kSide, kSide)); },
            .gap =
                [=] {
                  double sum = 0;
                  for (std::size_t k = 0; k < kSide; ++k) sum += double{(*a)[k]} * (*b)[k * kSide];
                  return std::abs((*c)[0] - sum) / 1e-3;
                },
            .memory = {panels}};
      }};
}

// Eight bytes an element, read and written.
Case streaming(const char* operation, std::int64_t rows, std::int64_t width, Job (*prepare)(std::size_t count)) {
  const auto count = static_cast<std::size_t>(rows * width);
  return {.name = std::string(operation) + "_" + std::to_string(rows) + "x" + std::to_string(width),
          .operation = operation,
          .parameters = {{"rows", rows}, {"width", width}},
          .bytes = 8.0 * static_cast<double>(count),
          .prepare = [=] { return prepare(count); }};
}

// work(first, count) for pieces of the elements.
template <class Work>
void in_blocks(std::size_t count, Work work) {
  const std::size_t block = std::clamp<std::size_t>(count / 16, 16, 65536);
  parallel((count + block - 1) / block,
           [&](std::size_t item) { work(item * block, std::min(block, count - item * block)); });
}

Case copy(std::int64_t rows, std::int64_t width) {
  return streaming("copy", rows, width, [](std::size_t count) {
    auto from = random_numbers(count, 1);
    auto to = std::make_shared<Floats>(count);
    return Job{.run =
                   [=] {
                     in_blocks(count, [&](std::size_t first, std::size_t some) {
                       HWY_DYNAMIC_DISPATCH(Copy)(from->data() + first, to->data() + first, some);
                     });
                   },
               .gap = [=] { return *from == *to ? 0.0 : 2.0; }};
  });
}

Case update(std::int64_t rows, std::int64_t width) {
  return streaming("update", rows, width, [](std::size_t count) {
    auto y = std::make_shared<Floats>(count, 2.0f);  // which 2·½ + 1 is again
    return Job{.run =
                   [=] {
                     in_blocks(count, [&](std::size_t first, std::size_t some) {
                       HWY_DYNAMIC_DISPATCH(HalveInPlace)(y->data() + first, some);
                     });
                   },
               .gap = [=] { return std::ranges::count(*y, 2.0f) == std::ssize(*y) ? 0.0 : 2.0; }};
  });
}

const AddBench add(
    {.name = "limits",
     .summary = "what the machine can do at best: multiply-adds, our matrix product, copying, changing in place",
     .cases = [] {
       return std::vector<Case>{fma(),           product(),          copy(64, 512), copy(4096, 4096),
                                update(64, 512), update(16384, 4096)};
     }});

}  // namespace
}  // namespace regard::cli
#endif
