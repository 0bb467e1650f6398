// From which length on it is cheaper to look at a part of the keys.
//
//     cheaper_from("dot | local_m:5", {.heads = 4, .width = 32}, context);     // 128: timed on this machine
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "regard/context.h"

namespace regard {

struct LocalCost {
  std::int64_t heads = 1, width = 64;
  std::int64_t longest = 4096;  // that is tried; the shortest is 16, each twice as long as the one before
};

bool looks_at_a_part(std::string_view line);  // it has local_m, local_p or window

// The least length from which on the forward pass of the line takes less time than that of the same score and align
// over all keys. None: not even with the longest. Of a line that looks at all keys, an Error.
std::optional<std::int64_t> cheaper_from(std::string_view line, const LocalCost& cost, const Context& context);

}  // namespace regard
