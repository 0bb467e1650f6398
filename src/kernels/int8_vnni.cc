// Highway 1.0.3 has no name for this instruction, so it is written as it is. A block of rows × panels of 16 columns
// stays in registers while the bytes pass by, four rows of the weights at a time.
#include "kernels/int8_vnni.h"

#include "kernels/target.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#define REGARD_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")))

namespace regard::vnni {
namespace {

template <std::size_t kRows, std::size_t kPanels>
REGARD_VNNI void block(const Int8Tile& tile, std::size_t row, std::size_t panel) {
  const Int8Matrix& b = *tile.b;
  const std::size_t quads = b.quads(), panel_bytes = quads * 64;
  const std::int8_t* weights = b.panel(panel);
  const std::uint8_t* a = tile.a + row * tile.a_stride;
  __m512i sums[kRows][kPanels];
#pragma GCC unroll 8
  for (std::size_t p = 0; p < kPanels; ++p) {
    const __m512i start = _mm512_loadu_si512(b.offsets() + (panel + p) * Int8Matrix::kPanel);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r) sums[r][p] = start;
  }
  for (std::size_t quad = 0; quad < quads; ++quad) {
    __m512i w[kPanels];
#pragma GCC unroll 8
    for (std::size_t p = 0; p < kPanels; ++p) w[p] = _mm512_loadu_si512(weights + p * panel_bytes + quad * 64);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r) {
      int four;
      std::memcpy(&four, a + r * tile.a_stride + quad * 4, sizeof(four));
      const __m512i x = _mm512_set1_epi32(four);
#pragma GCC unroll 8
      for (std::size_t p = 0; p < kPanels; ++p) sums[r][p] = _mm512_dpbusd_epi32(sums[r][p], x, w[p]);
    }
  }
#pragma GCC unroll 8
  for (std::size_t p = 0; p < kPanels; ++p) {
    const std::size_t column = (panel + p) * Int8Matrix::kPanel, left = std::min(b.n() - column, Int8Matrix::kPanel);
    const auto mask = static_cast<__mmask16>((1u << left) - 1);
    const __m512 scales = _mm512_loadu_ps(b.scales() + column);
    const __m512 bias = tile.bias == nullptr ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask, tile.bias + column);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < kRows; ++r) {
      const __m512 scale = _mm512_mul_ps(_mm512_set1_ps(tile.row_scales[row + r]), scales);
      __m512 y = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(0xffff, sums[r][p]), scale);
      if (tile.bias != nullptr) y = _mm512_add_ps(y, bias);
      _mm512_mask_storeu_ps(tile.c + (row + r) * tile.c_stride + column, mask, y);
    }
  }
}

// Few rows take more panels at once: ten sums or more keep the unit busy, which needs five cycles for one.
template <std::size_t kPanels>
REGARD_VNNI void rows_of_panels(const Int8Tile& tile, std::size_t panel) {
  constexpr std::size_t kMost = kPanels > 4 ? 2 : 6;
  std::size_t row = 0;
  for (; row + kMost <= tile.rows; row += kMost) block<kMost, kPanels>(tile, row, panel);
  if constexpr (kMost == 6) {
    switch (tile.rows - row) {
      case 5:
        return block<5, kPanels>(tile, row, panel);
      case 4:
        return block<4, kPanels>(tile, row, panel);
      case 3:
        return block<3, kPanels>(tile, row, panel);
      case 2:
        return block<2, kPanels>(tile, row, panel);
      default:
        break;
    }
  }
  if (tile.rows - row == 1) block<1, kPanels>(tile, row, panel);
}

bool has_vnni() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512vnni") != 0;
}

}  // namespace

std::string why_not(std::size_t depth) {
  static const bool has = has_vnni();
  if (!has) return "the processor has no AVX512_VNNI";
  if (target() != "avx512") return "another instruction set was asked for";
  return depth > kInt8MostDepth ? "rows of more than 65536 numbers" : "";
}

void int8_tile(const Int8Tile& tile) {
  std::size_t panel = tile.first_panel;
  if (tile.rows <= 2) {
    for (; panel + 8 <= tile.end_panel; panel += 8) rows_of_panels<8>(tile, panel);
  }
  for (; panel + 4 <= tile.end_panel; panel += 4) rows_of_panels<4>(tile, panel);
  for (; panel < tile.end_panel; ++panel) rows_of_panels<1>(tile, panel);
}

}  // namespace regard::vnni

#else

namespace regard::vnni {

std::string why_not(std::size_t) { return "not an x86-64 processor"; }
void int8_tile(const Int8Tile& tile) { reference::int8_tile(tile); }

}  // namespace regard::vnni

#endif
