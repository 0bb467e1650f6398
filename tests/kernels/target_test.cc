#include "kernels/target.h"

#include <gtest/gtest.h>

#include "regard/error.h"

namespace regard {
namespace {

TEST(Target, EveryListedTargetCanBeUsed) {
  ASSERT_FALSE(targets().empty());
  for (const std::string& name : targets()) {
    const TargetScope scope(name);
    EXPECT_EQ(target(), name);
  }
  EXPECT_EQ(target(), targets().front());
}

TEST(Target, AnUnknownNameIsAnErrorThatListsTheKnown) {
  try {
    use_target("mmx");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'mmx'"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(targets().front()), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace regard
