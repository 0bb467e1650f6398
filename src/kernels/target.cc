#include "kernels/target.h"

#include <fmt/ranges.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <cstdint>

#include "base/check.h"

namespace regard {
namespace {

struct Known {
  const char* name;
  std::int64_t bit;
};
constexpr Known kKnown[] = {{"avx512", HWY_AVX3}, {"avx2", HWY_AVX2}, {"sse4", HWY_SSE4}, {"neon", HWY_NEON}};

std::int64_t runnable() {  // what the processor has and the build holds, whatever was asked for before
  static const std::int64_t mask = [] {
    hwy::SetSupportedTargetsForTest(0);
    return hwy::SupportedTargets() & HWY_TARGETS;
  }();
  return mask;
}

std::int64_t& chosen() {
  static std::int64_t bit = 0;  // 0: the best
  return bit;
}

}  // namespace

std::vector<std::string> targets() {
  std::vector<std::string> names;
  for (const Known& known : kKnown) {
    if ((runnable() & known.bit) != 0) names.emplace_back(known.name);
  }
  return names;
}

std::string target() {
  for (const Known& known : kKnown) {
    if ((runnable() & known.bit) != 0 && (chosen() == 0 || chosen() == known.bit)) return known.name;
  }
  return "none";
}

void use_target(const std::string& name) {
  std::int64_t bit = 0;
  if (!name.empty()) {
    for (const Known& known : kKnown) {
      if (name == known.name && (runnable() & known.bit) != 0) bit = known.bit;
    }
    check(bit != 0, "unknown or missing instruction set '", name,
          "'; this processor can run: ", fmt::format("{}", fmt::join(targets(), ", ")));
  }
  if (name == targets().front()) bit = 0;  // the best: as if nobody had asked
  chosen() = bit;
  hwy::SetSupportedTargetsForTest(bit);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace regard
