// The three functions that Highway's dynamic dispatch calls, in place of those in libhwy.so: that library measures the
// speed of the clock when it is loaded, which makes every start of the program 3.4 ms longer (regard --version: 4.6 ms
// with it, 1.2 ms without). The linker leaves the library out as long as nothing else of it is used (--as-needed).
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <atomic>
#include <cstdint>

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace hwy {
namespace {

#if HWY_ARCH_X86
bool has(unsigned leaf, unsigned bit) {  // a bit of ECX; only for what __builtin_cpu_supports of clang 14 cannot name
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(leaf, &a, &b, &c, &d) != 0 && (c >> bit & 1) != 0;
}

// The builtin also knows whether the system saves the wide registers.
std::int64_t detect() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("popcnt")) return 0;
  constexpr unsigned kF16c = 29, kLzcnt = 5;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi") ||
      !__builtin_cpu_supports("bmi2") || !has(1, kF16c) || !has(0x80000001u, kLzcnt)) {
    return HWY_SSE4;
  }
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512bw")) {
    return HWY_AVX2 | HWY_SSE4;
  }
  return HWY_AVX3 | HWY_AVX2 | HWY_SSE4;
}
#else
std::int64_t detect() { return HWY_NEON; }  // every ARM64 processor has it; SVE is not built
#endif

std::atomic<std::int64_t> asked{0};

}  // namespace

std::int64_t SupportedTargets() {
  static const std::int64_t found = detect() | HWY_STATIC_TARGET;
  const std::int64_t only = asked.load(std::memory_order_relaxed);
  return only != 0 ? only : found;
}

void SetSupportedTargetsForTest(std::int64_t targets) { asked.store(targets, std::memory_order_relaxed); }

ChosenTarget& GetChosenTarget() {
  static constinit ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
