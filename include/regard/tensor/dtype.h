// The kinds of numbers a tensor can hold. Arithmetic is done in f32 (and in f64 by the references); bf16 and i8 are for
// storage, i32 for token ids.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace regard {

enum class DType : std::uint8_t { kF32, kF64, kBF16, kI8, kI32 };

// The upper half of an f32.
struct BF16 {
  std::uint16_t bits = 0;

  BF16() = default;
  explicit BF16(float value) {  // to nearest, ties to even; a NaN stays a NaN
    const auto wide = std::bit_cast<std::uint32_t>(value);
    bits = (wide & 0x7fffffffu) > 0x7f800000u ? static_cast<std::uint16_t>((wide >> 16) | 0x40)
                                              : static_cast<std::uint16_t>((wide + 0x7fffu + ((wide >> 16) & 1)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

constexpr std::size_t bytes_of(DType type) {
  switch (type) {
    case DType::kF32:
      return 4;
    case DType::kF64:
      return 8;
    case DType::kBF16:
      return 2;
    case DType::kI8:
      return 1;
    case DType::kI32:
      return 4;
  }
  return 0;
}

inline std::string to_text(DType type) {
  switch (type) {
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kBF16:
      return "bf16";
    case DType::kI8:
      return "i8";
    case DType::kI32:
      return "i32";
  }
  return "?";
}

template <class T>
inline constexpr DType kDTypeOf = [] {
  static_assert(sizeof(T) == 0, "no tensor holds this type");
  return DType::kF32;
}();
template <>
inline constexpr DType kDTypeOf<float> = DType::kF32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kF64;
template <>
inline constexpr DType kDTypeOf<BF16> = DType::kBF16;
template <>
inline constexpr DType kDTypeOf<std::int8_t> = DType::kI8;
template <>
inline constexpr DType kDTypeOf<std::int32_t> = DType::kI32;

}  // namespace regard
