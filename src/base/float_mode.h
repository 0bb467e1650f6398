// The floating-point mode in which all arithmetic of Regard runs: subnormal numbers count as zero, both read and
// written. Without it a moment of Adam that fades away makes a step a hundred times slower. Set on entry of every
// operation and in every worker; the caller's own mode is put back on leaving.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace regard {

#if defined(__x86_64__)
inline std::uint64_t float_mode() { return _mm_getcsr(); }
inline void set_float_mode(std::uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
inline constexpr std::uint64_t kComputeMode =
    0x1f80 | 0x8040;  // all exceptions masked, nearest; flush to zero, read as zero
#elif defined(__aarch64__)
inline std::uint64_t float_mode() {
  std::uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
inline void set_float_mode(std::uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
inline constexpr std::uint64_t kComputeMode = 1u << 24;  // FZ
#else
#error "Regard runs on x86-64 and ARM64"
#endif

class FloatMode {
 public:
  FloatMode() : before_(float_mode()) {
    if (before_ != kComputeMode) set_float_mode(kComputeMode);
  }
  ~FloatMode() {
    if (before_ != kComputeMode) set_float_mode(before_);
  }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

 private:
  std::uint64_t before_;
};

}  // namespace regard
