// Groups of random numbers are those of regard/random.h on every target.
#include "kernels/random_group.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/target.h"

namespace regard {
namespace {

TEST(RandomGroup, HasTheBitsOfItsElements) {
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    for (const std::uint64_t group : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{77}, std::uint64_t{1} << 40}) {
      std::uint32_t got[kRandomGroup], expected[kRandomGroup];
      random_group(RandomKey(5).at(group), group, got);
      reference::random_group(RandomKey(5).at(group), group, expected);
      EXPECT_TRUE(std::equal(got, got + kRandomGroup, expected)) << name << ", group " << group;
    }
  }
}

}  // namespace
}  // namespace regard
