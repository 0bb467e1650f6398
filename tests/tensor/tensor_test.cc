#include "regard/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "regard/context.h"
#include "tensor/arena.h"

// Asking for too much must fail as it does without the sanitizer, instead of ending the program.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

namespace regard {
namespace {

Tensor counting(const Shape& shape) {  // 0, 1, 2, …
  Tensor result = Tensor::empty(shape);
  std::iota(result.data<float>(), result.data<float>() + result.size(), 0.0f);
  return result;
}

std::vector<float> values(const Tensor& x) {
  const Tensor dense = x.clone();
  return {dense.data<float>(), dense.data<float>() + dense.size()};
}

ErrorKind kind_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorKind::kInternal;
}

TEST(Tensor, NothingMayBeHuge) {  // the sizes beside a 0 do not count
  const std::int64_t huge = std::int64_t{1} << 62;
  const Tensor nothing = Tensor::empty({huge, 0, 4, 8});
  EXPECT_EQ(nothing.size(), 0);
  EXPECT_EQ(nothing.slice(0, huge - 1, huge).shape(), (Shape{1, 0, 4, 8}));
  EXPECT_EQ(Tensor::empty({0, huge, huge}).size(), 0);
}

TEST(Tensor, CopiesShareMemoryAndClonesDoNot) {
  const Tensor a = Tensor::zeros({2, 3});
  const Tensor same = a, other = a.clone();
  a.data<float>()[4] = 7;
  EXPECT_EQ(same.data<float>()[4], 7);
  EXPECT_EQ(other.data<float>()[4], 0);
}

TEST(Tensor, OutlivesTheOneItWasCopiedFrom) {
  Tensor view;
  {
    const Tensor a = counting({4, 5});
    view = a.slice(0, 2, 4);
  }
  EXPECT_EQ(values(view), (std::vector<float>{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}));
}

TEST(Tensor, SliceIsAView) {
  const Tensor a = counting({3, 4});
  EXPECT_EQ(values(a.slice(0, 1, 2)), (std::vector<float>{4, 5, 6, 7}));
  EXPECT_EQ(values(a.slice(1, 1, 3)), (std::vector<float>{1, 2, 5, 6, 9, 10}));
  EXPECT_EQ(values(a.slice(-1, 3, 4)), (std::vector<float>{3, 7, 11}));
  EXPECT_TRUE(a.slice(0, 1, 3).is_dense());
  EXPECT_FALSE(a.slice(1, 1, 3).is_dense());
  EXPECT_TRUE(a.slice(1, 0, 4).is_dense());
  a.slice(1, 2, 3).data<float>()[0] = -1;
  EXPECT_EQ(a.data<float>()[2], -1);
  EXPECT_EQ(a.slice(0, 3, 3).shape(), (Shape{0, 4}));
}

TEST(Tensor, SliceOfASliceOfATransposition) {
  const Tensor a = counting({3, 4, 5}).transpose(0, 2).slice(0, 1, 4).slice(2, 1, 3);
  ASSERT_EQ(a.shape(), (Shape{3, 4, 2}));
  const std::vector<float> got = values(a);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int k = 0; k < 2; ++k)
        EXPECT_EQ(got[static_cast<std::size_t>((i * 4 + j) * 2 + k)], (k + 1) * 20 + j * 5 + i + 1);
    }
  }
}

TEST(Tensor, SliceOutsideIsAnError) {
  const Tensor a = counting({3, 4});
  for (const auto& [begin, end] : {std::pair{-1, 2}, std::pair{2, 1}, std::pair{0, 5}, std::pair{5, 5}}) {
    EXPECT_EQ(kind_of([&, b = begin, e = end] { a.slice(1, b, e); }), ErrorKind::kInput) << begin << "…" << end;
  }
  EXPECT_EQ(kind_of([&] { a.slice(2, 0, 1); }), ErrorKind::kInput);
}

TEST(Tensor, TransposeSwapsStrides) {
  const Tensor a = counting({2, 3}), b = a.transpose(0, 1);
  EXPECT_EQ(b.shape(), (Shape{3, 2}));
  EXPECT_FALSE(b.is_dense());
  EXPECT_EQ(values(b), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_TRUE(b.transpose(0, 1).shape() == a.shape());
  EXPECT_EQ(values(b.transpose(-1, -2)), values(a));
  EXPECT_EQ(values(counting({2, 1, 3}).transpose(0, 1)), values(counting({2, 1, 3})));
}

TEST(Tensor, ExpandRepeatsWithoutCopying) {
  const Tensor a = counting({3, 1});
  const Tensor b = a.expand({2, 3, 2});
  EXPECT_EQ(values(b), (std::vector<float>{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(b.raw(), a.raw());
  EXPECT_EQ(b.stride(0), 0);
  EXPECT_EQ(b.stride(2), 0);
  EXPECT_EQ(values(Tensor::of<float>({}, {5}).expand({2, 2})), (std::vector<float>{5, 5, 5, 5}));
  EXPECT_EQ(a.expand({0, 3, 1}).size(), 0);
  EXPECT_EQ(kind_of([&] { a.expand({4, 2}); }), ErrorKind::kInput);
  EXPECT_EQ(kind_of([&] { a.expand({3}); }), ErrorKind::kInput);
}

TEST(Tensor, ReshapeKeepsTheOrder) {
  const Tensor a = counting({2, 6});
  EXPECT_EQ(values(a.reshape({3, 4})), values(a));
  EXPECT_EQ(a.reshape({3, 4}).raw(), a.raw());
  EXPECT_EQ(kind_of([&] { a.reshape({5}); }), ErrorKind::kInput);
  EXPECT_EQ(kind_of([&] { a.transpose(0, 1).reshape({12}); }), ErrorKind::kInput) << "not dense";
  EXPECT_EQ(kind_of([&] { a.reshape({std::int64_t{1} << 40, std::int64_t{1} << 40}); }), ErrorKind::kLimit);
}

TEST(Tensor, CopyFromTakesAnyStrides) {
  const Tensor a = counting({2, 3}).transpose(0, 1);
  const Tensor b = Tensor::zeros({3, 4});
  b.slice(1, 1, 3).copy_from(a);
  EXPECT_EQ(values(b), (std::vector<float>{0, 0, 3, 0, 0, 1, 4, 0, 0, 2, 5, 0}));
  EXPECT_EQ(kind_of([&] { b.copy_from(a); }), ErrorKind::kInput);
  EXPECT_EQ(kind_of([&] { Tensor::zeros({3, 2}, DType::kF64).copy_from(a); }), ErrorKind::kInput);
}

TEST(Tensor, NothingGoesWrongWithNoElements) {
  for (const Shape& shape : {Shape{0}, Shape{0, 3}, Shape{3, 0}, Shape{2, 0, 5}}) {
    const Tensor a = Tensor::zeros(shape);
    EXPECT_TRUE(a.defined());
    EXPECT_EQ(a.size(), 0);
    EXPECT_EQ(a.bytes(), 0u);
    EXPECT_EQ(a.clone().shape(), shape);
    EXPECT_EQ(a.to(DType::kF64).size(), 0);
    if (shape.rank() > 1) {
      const Tensor turned = a.transpose(0, shape.rank() - 1);
      turned.clone().copy_from(turned);
    }
    EXPECT_EQ(a.reshape({0}).size(), 0);
    EXPECT_EQ(a.slice(0, 0, 0).size(), 0);
    EXPECT_EQ(kind_of([&] { a.item(); }), ErrorKind::kInput);
  }
}

TEST(Tensor, ReadingAsAnotherTypeIsAnError) {
  const Tensor a = Tensor::zeros({2}, DType::kI32);
  EXPECT_EQ(kind_of([&] { a.data<float>(); }), ErrorKind::kInput);
  EXPECT_NO_THROW(a.data<std::int32_t>());
}

TEST(Tensor, ItemReadsEveryType) {
  EXPECT_EQ(Tensor::of<float>({}, {1.5f}).item(), 1.5);
  EXPECT_EQ(Tensor::of<double>({1}, {1e300}).item(), 1e300);
  EXPECT_EQ(Tensor::of<BF16>({1, 1}, {BF16(2.5f)}).item(), 2.5);
  EXPECT_EQ(Tensor::of<std::int8_t>({}, {std::int8_t{-7}}).item(), -7);
  EXPECT_EQ(Tensor::of<std::int32_t>({}, {123456789}).item(), 123456789);
  EXPECT_EQ(kind_of([] { Tensor::zeros({2}).item(); }), ErrorKind::kInput);
}

TEST(Tensor, OfNeedsAsManyValuesAsTheShapeHas) {
  EXPECT_EQ(kind_of([] { Tensor::of<float>({2, 2}, {1, 2, 3}); }), ErrorKind::kInput);
}

TEST(Tensor, ConvertsBetweenTheFloatingTypes) {
  const Tensor a = Tensor::of<float>({2, 2}, {1, -2.5f, 1e-30f, 3});
  const Tensor wide = a.to(DType::kF64);
  EXPECT_EQ(wide.data<double>()[2], static_cast<double>(1e-30f));
  EXPECT_EQ(values(wide.to(DType::kF32)), values(a));
  EXPECT_EQ(values(a.transpose(0, 1).to(DType::kBF16).to(DType::kF32)),
            (std::vector<float>{1, static_cast<float>(BF16(1e-30f)), -2.5f, 3}));
  EXPECT_EQ(kind_of([&] { a.to(DType::kI8); }), ErrorKind::kInput);
  EXPECT_NE(a.to(DType::kF32).raw(), a.raw()) << "always a copy";
}

TEST(Tensor, SizesBeyondTheMachineAreALimit) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 32;
  EXPECT_EQ(kind_of([] { Tensor::empty({kHuge, kHuge}); }), ErrorKind::kLimit);                   // elements
  EXPECT_EQ(kind_of([] { Tensor::empty({kHuge, kHuge / 4}, DType::kF64); }), ErrorKind::kLimit);  // bytes
  EXPECT_EQ(kind_of([] { Tensor::empty({std::int64_t{1} << 50}); }), ErrorKind::kLimit);          // memory
  EXPECT_EQ(kind_of([] { Tensor::zeros({std::int64_t{1} << 50}); }), ErrorKind::kLimit);
  Arena arena;
  EXPECT_EQ(kind_of([&] { Tensor::empty(arena, {std::int64_t{1} << 50}); }), ErrorKind::kLimit);
  EXPECT_EQ(kind_of([&] { Tensor::empty(arena, {kHuge, kHuge / 4}, DType::kF64); }), ErrorKind::kLimit);
  EXPECT_EQ(values(Tensor::zeros({2})), (std::vector<float>{0, 0})) << "nothing is broken afterwards";
  EXPECT_EQ(Tensor::empty(arena, {4}).size(), 4);
}

// A view whose elements lie more than 2³¹ apart: the offset must not be computed in 32 bits.
TEST(Tensor, OffsetsAreSixtyFourBitsWide) {
  const Tensor line =
      Tensor::borrow(reinterpret_cast<void*>(std::uintptr_t{1} << 12), {std::int64_t{1} << 33}, DType::kF32);
  const Tensor far = line.slice(0, (std::int64_t{1} << 32) + 1, (std::int64_t{1} << 32) + 2);
  EXPECT_EQ(far.raw() - line.raw(), ((std::ptrdiff_t{1} << 32) + 1) * 4);
}

TEST(BF16, RoundsToNearestEven) {
  EXPECT_EQ(static_cast<float>(BF16(1.0f)), 1.0f);
  EXPECT_EQ(BF16(1.0f + 0x1p-8f).bits, 0x3f80) << "halfway, down to even";
  EXPECT_EQ(BF16(1.0f + 0x1p-7f + 0x1p-8f).bits, 0x3f82) << "halfway, up to even";
  EXPECT_EQ(BF16(1.0f + 0x1p-8f + 0x1p-20f).bits, 0x3f81) << "above half";
  EXPECT_EQ(BF16(1.0f + 0x1p-8f - 0x1p-20f).bits, 0x3f80) << "below half";
  EXPECT_EQ(BF16(-1.5f).bits, 0xbfc0);
  EXPECT_EQ(BF16(-0.0f).bits, 0x8000);
  EXPECT_EQ(BF16(std::numeric_limits<float>::max()).bits, 0x7f80) << "over the largest: infinity";
}

TEST(BF16, NanStaysNanAndInfinityStaysInfinity) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(static_cast<float>(BF16(infinity)), infinity);
  EXPECT_EQ(static_cast<float>(BF16(-infinity)), -infinity);
  for (const std::uint32_t bits : {0x7fc00000u, 0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu}) {
    EXPECT_TRUE(std::isnan(static_cast<float>(BF16(std::bit_cast<float>(bits))))) << std::hex << bits;
  }
}

TEST(BF16, EveryValueSurvivesTheWayThereAndBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    BF16 value;
    value.bits = static_cast<std::uint16_t>(bits);
    const float wide = static_cast<float>(value);
    if (std::isnan(wide)) continue;
    ASSERT_EQ(BF16(wide).bits, bits);
  }
}

TEST(Arena, TensorsOfAnEndedStepThrow) {
  Arena arena;
  const Tensor a = Tensor::empty(arena, {3}), view = a.slice(0, 1, 2);
  a.data<float>()[0] = 1;
  const Tensor kept = a.clone();
  arena.reset();
  EXPECT_EQ(kind_of([&] { a.data<float>(); }), ErrorKind::kInternal);
  EXPECT_EQ(kind_of([&] { view.raw(); }), ErrorKind::kInternal);
  EXPECT_EQ(kind_of([&] { a.clone(); }), ErrorKind::kInternal);
  EXPECT_EQ(kind_of([&] { kept.copy_from(a); }), ErrorKind::kInternal);
  EXPECT_EQ(kept.data<float>()[0], 1) << "a clone lasts";
  EXPECT_EQ(a.shape(), Shape{3}) << "the shape can still be told";
}

TEST(Arena, ATensorMayOutliveItsArena) {
  Tensor a;
  {
    Arena arena;
    a = Tensor::empty(arena, {3});
  }
  EXPECT_EQ(kind_of([&] { a.data<float>(); }), ErrorKind::kInternal);
  Arena another;  // takes over the count of the one that is gone, but never an old value of it
  const Tensor b = Tensor::empty(another, {3});
  EXPECT_NO_THROW(b.data<float>());
  EXPECT_EQ(kind_of([&] { a.data<float>(); }), ErrorKind::kInternal);
}

TEST(Arena, ATensorOfNothingIsDefined) {
  Arena arena;
  EXPECT_TRUE(Tensor::empty(arena, {0, 5}).defined()) << "also if it is the first";
}

TEST(Arena, MemoryIsAlignedAndDoesNotOverlap) {
  Arena arena;
  std::vector<Tensor> all;
  for (const std::int64_t size : {1, 3, 16, 17, 0, 1000, 100000, 5, 500000}) {
    all.push_back(Tensor::empty(arena, {size}));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.back().raw()) % 64, 0u);
    std::fill_n(all.back().data<float>(), size, static_cast<float>(size));
  }
  for (const Tensor& each : all) {
    for (std::int64_t i = 0; i < each.size(); ++i) ASSERT_EQ(each.data<float>()[i], static_cast<float>(each.size()));
  }
}

TEST(Arena, SettlesOnOneBlockOfTheLargestStep) {
  Arena arena;
  const auto step = [&] {
    for (int i = 0; i < 10; ++i) Tensor::empty(arena, {300000});
  };
  step();
  const std::size_t used = arena.used();
  EXPECT_GE(used, 10u * 300000 * 4);
  arena.reset();
  EXPECT_EQ(arena.used(), 0u);
  const std::size_t reserved = arena.reserved();
  EXPECT_GE(reserved, used);
  for (int round = 0; round < 5; ++round) {
    step();
    EXPECT_EQ(arena.reserved(), reserved) << "no more memory is asked for";
    arena.reset();
  }
}

TEST(MemoryLimit, IsAnErrorOfKindLimitAndEverythingGoesOn) {
  {
    const ContextScope scope({.memory_limit = 1 << 20});
    const Tensor small = Tensor::zeros({1000});
    try {
      Tensor::zeros({1 << 20});
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kLimit);
      for (const char* word : {"memory_limit", "4194304", "1048576"}) {
        EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << word << " is not in: " << error.what();
      }
    }
    EXPECT_EQ(small.data<float>()[999], 0);
    EXPECT_NO_THROW(Tensor::zeros({1000})) << "what fits still fits";
    Arena arena;
    EXPECT_EQ(kind_of([&] { Tensor::empty(arena, {1 << 20}); }), ErrorKind::kLimit);
  }
  EXPECT_NO_THROW(Tensor::zeros({1 << 20})) << "outside the scope there is no limit";
}

TEST(MemoryLimit, FreedMemoryCanBeUsedAgain) {
  const ContextScope scope({.memory_limit = 10 << 20});
  for (int round = 0; round < 100; ++round) Tensor::zeros({1 << 20});
  EXPECT_EQ(current_budget()->used(), 0u);
  Arena arena;
  for (int round = 0; round < 100; ++round) {
    Tensor::empty(arena, {1 << 20});
    arena.reset();
  }
}

TEST(MemoryLimit, ATensorMayOutliveItsBudget) {
  Tensor a;
  {
    const ContextScope scope({.memory_limit = 1 << 20});
    a = Tensor::zeros({100});
  }
  EXPECT_EQ(a.data<float>()[99], 0);
  a = Tensor();  // gives the bytes back to a budget that only it still holds
}

TEST(MemoryLimit, ThreadsOfOneBudgetNeverGoOverIt) {
  const ContextScope scope({.memory_limit = 1 << 20});
  const std::shared_ptr<Budget> budget = current_budget();
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 10000; ++round) {
        try {
          budget->take(400 << 10, "a test");
          EXPECT_LE(budget->used(), 1u << 20);
          budget->give_back(400 << 10);
        } catch (const Error&) {
          ++failures;
        }
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(budget->used(), 0u);
}

TEST(Tensor, SharedMemoryIsCountedAcrossThreads) {
  const Tensor a = counting({100});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([a] {
      for (int round = 0; round < 10000; ++round) {
        const Tensor copy = a;
        const Tensor view = copy.slice(0, 10, 20);
        ASSERT_EQ(view.data<float>()[0], 10);
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(a.data<float>()[99], 99);
}

}  // namespace
}  // namespace regard
