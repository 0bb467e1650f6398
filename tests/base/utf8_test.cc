#include "base/utf8.h"

#include <gtest/gtest.h>

namespace regard {
namespace {

TEST(Utf8, AcceptsWhatIsWellFormedAndNothingElse) {
  for (const char32_t code : {0x0u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xD7FFu, 0xE000u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    std::string text;
    utf8::append(text, code);
    const utf8::Letter letter = utf8::read(text, 0);
    EXPECT_TRUE(letter.valid);
    EXPECT_EQ(letter.code, code);
    EXPECT_EQ(letter.length, text.size());
    for (std::size_t cut = 1; cut < text.size(); ++cut) EXPECT_FALSE(utf8::valid(text.substr(0, cut)));
  }
  for (const char* bad : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF",
                          "\xE4\xBD"
                          "A"}) {
    EXPECT_EQ(utf8::first_wrong(std::string("ab") + bad), 2u);
  }
}

}  // namespace
}  // namespace regard
