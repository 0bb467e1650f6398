// int8_gemm by AVX512_VNNI: the instruction that multiplies four pairs of bytes and adds them to 32 bits, sixteen
// times.
#pragma once

#include <cstddef>
#include <string>

#include "kernels/int8_gemm.h"

namespace regard::vnni {

std::string why_not(std::size_t depth);
void int8_tile(const Int8Tile& tile);

}  // namespace regard::vnni
