// What an Error says.
#include "regard/error.h"

#include <gtest/gtest.h>

namespace regard {
namespace {

TEST(Error, IsOneLineWhateverItQuotes) {
  EXPECT_STREQ(Error(ErrorKind::kInput, "'a\nb\x1b[2J\x7f' ist kein Wort, 他们").what(),
               "'a\\nb\\x1b[2J\\x7f' ist kein Wort, 他们");
}

TEST(Error, SpellsBytesThatAreNoUtf8) {
  EXPECT_STREQ(Error(ErrorKind::kInput, "'\xff\xc0\xaf 他\xe4\xbb' é 😀").what(), "'\\xff\\xc0\\xaf 他\\xe4\\xbb' é 😀");
}

}  // namespace
}  // namespace regard
